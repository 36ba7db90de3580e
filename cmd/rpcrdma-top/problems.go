package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// maxMessages is how many malformed messages are named one by one.
const maxMessages = 20

// problemNotes tells on standard error what is wrong with the input. While
// screens are shown it waits until they are gone.
type problemNotes struct {
	w        io.Writer
	mu       sync.Mutex
	quiet    bool
	held     []string
	damaged  bool // exit code 3
	messages int  // malformed RPC messages
}

func (n *problemNotes) printf(format string, args ...any) {
	s := fmt.Sprintf("rpcrdma-top: "+format+"\n", args...)
	if n.quiet {
		n.held = append(n.held, s)
		return
	}
	fmt.Fprint(n.w, s)
}

// message notes a call or reply that could not be decoded though all of it was
// captured.
func (n *problemNotes) message(v *rpc.View) {
	v.Malformed(func(packet uint64, part string, err error) { n.malformed(packet, v.Tx.XID, part, err) })
}

func (n *problemNotes) malformed(packet uint64, xid uint32, what string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.damaged = true
	n.messages++
	switch {
	case n.messages <= maxMessages:
		n.printf("packet %d: XID 0x%08x: malformed %s: %v", packet, xid, what, err)
	case n.messages == maxMessages+1:
		n.printf("more malformed messages are counted, not listed")
	}
}

// input notes what is wrong with the files and packets, once all has been read.
func (n *problemNotes) input(src *source, s *monitor.Snapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.quiet = false
	for _, h := range n.held {
		fmt.Fprint(n.w, h)
	}
	n.held = nil
	list, total := src.Problems()
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
	st := s.Decoder
	if bad := st.Undecodable - st.CutShort; bad > 0 {
		n.damaged = true
		n.printf("%s with malformed headers", text.Plural(bad, "packet"))
	}
	if st.BadICRC > 0 {
		n.printf("note: %s with a wrong ICRC, of %d checked", text.Plural(st.BadICRC, "packet"), st.BadICRC+st.GoodICRC)
	}
	if st.Packets == 0 && total == 0 {
		n.printf("note: no packets")
	}
	if e := s.Orphans.Evicted; e > 0 {
		n.printf("note: %s given up for lack of memory", text.Plural(e, "open call"))
	}
}
