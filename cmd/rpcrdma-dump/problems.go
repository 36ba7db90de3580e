package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// maxMessages is how many malformed messages are named one by one.
const maxMessages = 20

// problemNotes tells on standard error what is wrong with the input.
type problemNotes struct {
	w        io.Writer
	damaged  bool // exit code 3
	messages int  // malformed RPC messages
}

func (n *problemNotes) printf(format string, args ...any) {
	fmt.Fprint(n.w, printable.Text(fmt.Sprintf("rpcrdma-dump: "+format+"\n", args...)))
}

// message notes a call or reply that could not be decoded though all of it was
// captured.
func (n *problemNotes) message(v *rpc.View) {
	v.Malformed(func(packet uint64, part string, err error) { n.malformed(packet, v.Tx.XID, part, err) })
}

func (n *problemNotes) malformed(packet uint64, xid uint32, what string, err error) {
	n.damaged = true
	n.messages++
	switch {
	case n.messages <= maxMessages:
		n.printf("packet %d: XID 0x%08x: malformed %s: %v", packet, xid, what, err)
	case n.messages == maxMessages+1:
		n.printf("more malformed messages are counted, not listed")
	}
}

// input notes what is wrong with the files and packets. stopped says that the
// command did not want all of the input: the reader is ahead then, and what it
// found beyond the last packet wanted is nobody's concern.
func (n *problemNotes) input(in *input, d *decode.Decoder, stopped bool) {
	list, total := in.Problems()
	if stopped && len(in.names) == 1 {
		last := d.Stats().Packets
		list = slices.DeleteFunc(list, func(p *capture.Problem) bool { return p.Packet > last })
		total = len(list)
	}
	for _, p := range list {
		n.printf("%v", p)
	}
	if total > len(list) {
		n.printf("%d more problems of this kind", total-len(list))
	}
	if total > 0 {
		n.damaged = true
	}
	if n.messages > maxMessages {
		n.printf("%d malformed messages in all", n.messages)
	}
	st := d.Stats()
	if bad := st.Undecodable - st.CutShort; bad > 0 {
		n.damaged = true
		n.printf("%s with malformed headers", text.Plural(bad, "packet"))
	}
	if cut := in.cut.Load(); cut > 0 && !stopped {
		n.printf("note: %s cut to the capture's snapshot length; what is missing is not decoded", text.Plural(cut, "packet"))
	}
	if st.BadICRC > 0 {
		n.printf("note: %s with a wrong ICRC, of %d checked", text.Plural(st.BadICRC, "packet"), st.BadICRC+st.GoodICRC)
	}
	if st.Packets == 0 && total == 0 {
		n.printf("note: no packets")
	}
	if a := d.Account(); a.Packets > 0 && a.Transactions == 0 && !stopped {
		n.printf("note: no transactions: %s", text.Account(nil, &a, 12))
	}
	if e := d.Orphans().Evicted; e > 0 {
		n.printf("note: %s given up for lack of memory: see --limit-calls and --limit-memory", text.Plural(e, "open call"))
	}
	if e := st.EvictedConnections; e > 0 {
		n.printf("note: %s no longer followed for lack of memory, and shown as evicted: see --limit-connections and --limit-memory",
			text.Plural(e, "connection"))
	}
	if e := st.EvictedDatagrams; e > 0 {
		n.printf("note: %s given up before all fragments had come", text.Plural(e, "IP datagram"))
	}
}
