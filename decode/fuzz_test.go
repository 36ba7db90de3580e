package decode_test

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	rpcview "github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// fuzzOptions are those that a program's second byte chooses among.
func fuzzOptions(how uint8) (opt decode.Options) {
	switch how & 3 {
	case 1:
		opt = decode.Options{
			RoCE:         roce.Limits{Connections: 4, SendBytes: 1 << 12, Requests: 16, Assembly: 1 << 14},
			TCP:          decode.TCPLimits{Connections: 4, Record: 1 << 12},
			Transactions: transaction.Options{Open: 4, Held: 4, HeldBytes: 1 << 13, Assembly: 1 << 12, Operations: 4, Segments: 8},
		}
	case 2:
		opt.Transactions = transaction.Options{KeepData: true, Packets: 40}
	case 3:
		opt.SkipICRC = true
	}
	return opt
}

// digests decodes packets and returns what came out, in order.
func digests(packets []capture.Packet, batch int, opt decode.Options) [][]byte {
	var out [][]byte
	d := decode.New(opt, func(tx *transaction.Transaction) { out = append(out, holds.Digest(nil, tx)) })
	traffic.Run(d, packets, batch)
	return out
}

// sameDigests fails if two ways to decode the same packets differ.
func sameDigests(t *testing.T, what string, got, want [][]byte) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !bytes.Equal(got[i], want[i]) {
			var a, b []byte
			if i < len(got) {
				a = got[i]
			}
			if i < len(want) {
				b = want[i]
			}
			t.Fatalf("%s: transaction %d of %d is\n%q\nand not, of %d,\n%q", what, i+1, len(got), a, len(want), b)
		}
	}
}

// FuzzDecoder decodes changed captures. Each transaction that comes out is
// consistent and encodes to the bytes that it came from. Where batches end makes
// no difference, nor does which of the two ways packets of the fast path go, nor what
// other hosts do at the same time.
//
// how chooses options (bits 0 and 1) and what is compared (bits 2 and 3).
func FuzzDecoder(f *testing.F) {
	for i := range traffic.Count() {
		for how := range uint8(4) {
			f.Add(uint8(i), how|how<<2, []byte{})
			f.Add(uint8(i), how<<2, mutate.Program(mutate.Step{Op: traffic.Drop, At: uint8(3 + 5*how)}, mutate.Step{Op: traffic.Double, At: 9, Value: 3}))
		}
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		opt := fuzzOptions(how)
		memory.Start()
		switch how >> 2 & 3 {
		case 0:
			consistent(t, packets, opt)
		case 1:
			whole := digests(packets, len(packets), opt)
			sameDigests(t, "one by one", digests(packets, 1, opt), whole)
			sameDigests(t, "by 7", digests(packets, 7, opt), whole)
		case 2:
			fast := digests(packets, 16, opt)
			opt.Observe(decode.Observer{Packet: func(*decode.PacketView) {}})
			sameDigests(t, "all in full", digests(packets, 16, opt), fast)
		case 3:
			if opt.RoCE.Connections == 0 && len(packets) > 0 { // limits are shared
				apart(t, packets, traffic.Apply(which+how>>4+1, mutate.Program(mutate.Step{Op: traffic.Elsewhere, Value: 0x8000})), opt)
			}
		}
		memory.End(t)
	})
}

// consistent decodes packets and looks at each transaction.
func consistent(t *testing.T, packets []capture.Packet, opt decode.Options) {
	n := uint64(0)
	open := map[*rdma.Connection]bool{}
	opt.Observe(decode.Observer{Closed: func(c *rdma.Connection) {
		if open[c] {
			t.Fatalf("connection %d ends twice", c.ID)
		}
		open[c] = true
	}})
	var v rpcview.View
	d := decode.New(opt, func(tx *transaction.Transaction) {
		n++
		holds.Transaction(t, tx)
		v.Set(tx)
		holds.Messages(t, &v)
		_, _ = v.Status(), v.ProcedureName()
	})
	traffic.Run(d, packets, 16)
	s := d.Stats()
	if s.Transactions != n || n > s.Packets*64 || s.Packets != uint64(len(packets)) || s.Undecodable < s.CutShort {
		t.Fatalf("%d transactions: %+v", n, s)
	}
	for tx := range d.Open() {
		t.Fatalf("transaction %#x is still open", tx.XID)
	}
}

// apart decodes two captures between different hosts each alone and as one, the
// packets of both in turn. What their transactions say is the same.
func apart(t *testing.T, a, b []capture.Packet, opt decode.Options) {
	hosts := [2]map[netip.Addr]bool{addresses(a), addresses(b)}
	for h := range hosts[1] {
		if hosts[0][h] {
			return // a change has made them meet
		}
	}
	var both []capture.Packet
	now := int64(1e18)
	for i := range max(len(a), len(b)) {
		for _, list := range [][]capture.Packet{a, b} {
			if i >= len(list) {
				continue
			}
			p := &list[i]
			// Nothing runs out of time: that is noticed at the next packet,
			// whose ever it is.
			now += 1000
			p.Time, p.Number = now, uint64(len(both)+1)
			both = append(both, *p)
		}
	}
	// What is noticed at the end bears the number of the last packet.
	end := capture.Packet{Time: now + 1000, Number: uint64(len(both) + 1), Link: capture.LinkEthernet, Length: 14, Data: make([]byte, 14)}
	both, a, b = append(both, end), append(a, end), append(b, end)
	var parts [2][][]byte
	d := decode.New(opt, func(tx *transaction.Transaction) {
		side := 0
		if hosts[1][tx.Client().Addr] {
			side = 1
		}
		parts[side] = append(parts[side], holds.Digest(nil, tx))
	})
	traffic.Run(d, both, 16)
	sameDigests(t, "beside others", anyConnection(parts[0]), anyConnection(digests(a, 16, opt)))
	sameDigests(t, "others beside it", anyConnection(parts[1]), anyConnection(digests(b, 16, opt)))
}

var (
	connectionNumber = regexp.MustCompile(`on connection \d+`)
	queuePair        = regexp.MustCompile(` qp=\d+`)
	laterNote        = regexp.MustCompile(` XID sent again after reconnect: on connection \d+`)
)

// anyConnection takes the numbers of connections out of notes, and sorts. Others' open calls hold back what
// is to come after them: so a message that is understood late may come out earlier or later, a call may
// still learn that it was retransmitted, and a connection may have been joined with another queue pair
// meanwhile: without its setup, the first one was guessed.
func anyConnection(list [][]byte) [][]byte {
	for i := range list {
		list[i] = laterNote.ReplaceAll(list[i], nil)
		list[i] = connectionNumber.ReplaceAll(list[i], []byte("on a connection"))
		list[i] = queuePair.ReplaceAll(list[i], nil)
	}
	slices.SortFunc(list, bytes.Compare)
	return list
}

// addresses are all that packets name.
func addresses(packets []capture.Packet) map[netip.Addr]bool {
	m := map[netip.Addr]bool{}
	var f link.Frame
	for i := range packets {
		p := &packets[i]
		link.Decode(p.Link, p.Data, p.Length, &f)
		m[f.Src], m[f.Dst] = true, true
	}
	delete(m, netip.Addr{})
	return m
}
