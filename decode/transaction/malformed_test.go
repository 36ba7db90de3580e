package transaction_test

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

func TestMalformed(t *testing.T) {
	good := func(xid uint32) []byte {
		h := rpcrdma.Header{XID: xid, Version: 1, Credits: 32}
		return append(h.Append(nil), rpc(xid, false, 100003, 8)...)
	}
	bad := func(word int, v uint32) []byte {
		b := good(7)
		binary.BigEndian.PutUint32(b[4*word:], v)
		return b
	}
	nvme := make([]byte, 64)
	nvme[0], nvme[4] = 2, 1
	type counts map[rpcrdma.Fault]uint64
	for _, test := range []struct {
		name   string
		fabric rdma.Fabric
		port   uint16
		sends  [][]byte
		want   counts
		other  uint64
		first  uint64 // packet
	}{
		{"nothing wrong", rdma.RoCEv2, 0, [][]byte{good(1), good(2)}, nil, 0, 0},
		{"after a message", rdma.RoCEv2, 0, [][]byte{good(1), bad(3, 9), bad(1, 0xffff)}, counts{rpcrdma.FaultType: 1, rpcrdma.FaultVersion: 1}, 0, 2},
		{"before a message", rdma.IWARP, 0, [][]byte{bad(3, 9), good(1)}, counts{rpcrdma.FaultType: 1}, 0, 1},
		{"by the port", rdma.IWARP, 20049, [][]byte{good(1)[:12]}, counts{rpcrdma.FaultShort: 1}, 0, 1},
		{"of another port", rdma.IWARP, 4420, [][]byte{good(1)[:12]}, nil, 1, 0},
		{"of another protocol", rdma.RoCEv2, 4420, [][]byte{nvme, nvme, make([]byte, 4096), {1}}, nil, 4, 0},
		{"version 2 with a type of version 1", rdma.RoCEv2, 0, [][]byte{good(1), bad(1, 2)}, counts{rpcrdma.FaultType: 1}, 0, 2},
		{"shown as a transaction", rdma.RoCEv2, 0, [][]byte{good(1), bad(4, 7)}, counts{rpcrdma.FaultList: 1}, 0, 2},
		{"segments", rdma.RoCEv2, 0, [][]byte{good(1), bad(6, 1)}, counts{rpcrdma.FaultContradicts: 0, rpcrdma.FaultCount: 1}, 0, 2},
		{"no bytes", rdma.IWARP, 20049, [][]byte{{}, good(1), {}}, nil, 2, 0},
		{"RPC over TCP", rdma.TCP, 20049, [][]byte{{0, 0, 0, 1}}, nil, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWire(t, test.fabric)
			w.c.Ends[1].Port = test.port
			for _, b := range test.sends {
				w.send(0, b)
			}
			m := &w.tr.Stats.Malformed
			var want transaction.Malformed
			for f, n := range test.want {
				want.Counts[f] = n
			}
			if m.Counts != want.Counts || m.First.Ref.Number != test.first {
				t.Errorf("%v, first %+v", m.Counts, m.First)
			}
			if got := w.tr.Stats.OtherSends; got != test.other {
				t.Errorf("%d other Sends, want %d", got, test.other)
			}
			if got := transaction.MalformedOf(w.c); got != *m {
				t.Errorf("of the connection: %+v, of all: %+v", got, *m)
			}
			if got := transaction.MalformedOf(transaction.Copy(w.c)); got != *m {
				t.Errorf("of a copy: %+v, of all: %+v", got, *m)
			}
			if since := m.Since(m); since.Total() != 0 {
				t.Errorf("since then: %+v", since)
			}
			w.end()
		})
	}
}

// TestMalformedCut has Sends of which the capture holds too little to tell.
func TestMalformedCut(t *testing.T) {
	h := rpcrdma.Header{XID: 9, Version: 1, Credits: 32}
	whole := append(h.Append(nil), rpc(9, false, 100003, 8)...)
	for n := range 30 {
		w := newWire(t, rdma.RoCEv2)
		w.c.Ends[1].Port = 20049
		w.send(0, whole)
		ref := w.ref()
		w.tr.Send(w.c, &rdma.Send{From: 1, Data: whole[:n], Length: len(whole), First: ref, Last: ref, Packets: 1})
		if m := &w.tr.Stats.Malformed; m.Total() != 0 {
			t.Errorf("%d bytes captured: %+v", n, *m)
		}
	}
}

// TestMalformedMerged has the two halves of a connection whose setup was not captured: only one shows what it is.
func TestMalformedMerged(t *testing.T) {
	h := rpcrdma.Header{XID: 9, Version: 1, Credits: 32}
	whole := append(h.Append(nil), rpc(9, false, 100003, 8)...)
	damaged := append([]byte(nil), whole...)
	damaged[15] = 9
	for _, turned := range []bool{false, true} {
		w := newWire(t, rdma.RoCEv2)
		other := &rdma.Connection{ID: 2, Fabric: rdma.RoCEv2, Ends: w.c.Ends}
		a, b := w.c, other
		if turned {
			a, b = other, w.c
		}
		send := func(c *rdma.Connection, data []byte) {
			ref := w.ref()
			w.tr.Send(c, &rdma.Send{Data: data, Length: len(data), First: ref, Last: ref, Packets: 1})
		}
		send(a, damaged)
		send(b, whole)
		if m := &w.tr.Stats; m.OtherSends != 1 || m.Malformed.Total() != 0 {
			t.Errorf("before: %+v", *m)
		}
		w.tr.Merged(w.c, 1, other, 0)
		m := &w.tr.Stats
		if m.OtherSends != 0 || m.Malformed.Total() != 1 || m.Malformed.First.Ref.Number != 1 || m.Malformed.First.Offset != 12 {
			t.Errorf("after: %+v", *m)
		}
		if of := transaction.MalformedOf(w.c); of != m.Malformed {
			t.Errorf("of the connection: %+v", of)
		}
		send(w.c, damaged)
		if m.Malformed.Total() != 2 {
			t.Errorf("later: %+v", *m)
		}
	}
}
