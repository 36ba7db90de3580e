package transaction_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestProgress follows calls with chunks from their beginning to their end.
func TestProgress(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	h := v1(7, rpcrdma.TypeMsg)
	h.Reads = []rpcrdma.ReadSegment{
		{Position: 100, Segment: rpcrdma.Segment{Handle: 1, Length: 600, Offset: 0}},
		{Position: 100, Segment: rpcrdma.Segment{Handle: 2, Length: 400, Offset: 0}},
	}
	h.Writes = []rpcrdma.WriteChunk{{{Handle: 3, Length: 500, Offset: 4096}}}
	h.HasReply, h.Reply = true, rpcrdma.WriteChunk{{Handle: 4, Length: 50, Offset: 8192}}
	w.send(0, msg(h, rpc(7, false, 100003, 40)))
	w.send(0, msg(v1(8, rpcrdma.TypeMsg), rpc(8, false, 100003, 40)))

	open := func() (xids []uint32, chunks []transaction.ChunkProgress) {
		for tx := range w.tr.Open() {
			xids = append(xids, tx.XID)
			chunks = tx.Progress(chunks)
		}
		return
	}
	check := func(at string, want ...transaction.ChunkProgress) {
		t.Helper()
		xids, got := open()
		if len(xids) != 2 || xids[0] != 7 || xids[1] != 8 || w.tr.Under() != 2 {
			t.Fatalf("%s: open calls %v, %d", at, xids, w.tr.Under())
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %+v", at, got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %+v, want %+v", at, got[i], want[i])
			}
		}
	}
	read := transaction.ChunkProgress{Kind: transaction.ReadList, Index: 0, Segments: 2, Offered: 1000}
	write := transaction.ChunkProgress{Kind: transaction.WriteList, Index: 0, Segments: 1, Offered: 500}
	reply := transaction.ChunkProgress{Kind: transaction.ReplyChunk, Segments: 1, Offered: 50}
	check("after the call", read, write, reply)

	op := rdma.Op{Kind: rdma.Read, From: 1, Handle: 1, Offset: 0, Length: 600}
	w.tr.OpStart(w.c, &op, w.ref())
	read.Asked, read.InFlight = 600, 1
	check("after a Read Request", read, write, reply)

	w.tr.OpData(w.c, &op, &rdma.Fragment{Offset: 0, Length: 200, Ref: w.ref()})
	read.Moved = 200
	check("after a part of the response", read, write, reply)

	w.tr.OpData(w.c, &op, &rdma.Fragment{Offset: 0, Length: 200, Ref: w.ref(), Again: true})
	check("after a repetition", read, write, reply)

	w.tr.OpData(w.c, &op, &rdma.Fragment{Offset: 200, Length: 400, Ref: w.ref(), Last: true})
	read.Moved, read.InFlight = 600, 0
	check("after the response", read, write, reply)

	op = rdma.Op{Kind: rdma.Write, From: 1, Handle: 3, Offset: 4096, Length: 500}
	w.tr.OpStart(w.c, &op, w.ref())
	w.tr.OpData(w.c, &op, &rdma.Fragment{Offset: 4096, Length: 300, Ref: w.ref()})
	write.Asked, write.Moved, write.InFlight = 500, 300, 1
	check("in an RDMA Write", read, write, reply)

	w.tr.OpData(w.c, &op, &rdma.Fragment{Offset: 4396, Length: 200, Ref: w.ref(), Last: true})
	write.Moved, write.InFlight = 500, 0
	check("after the RDMA Write", read, write, reply)

	stopped := 0
	for range w.tr.Open() {
		stopped++
		break
	}
	if stopped != 1 {
		t.Errorf("went on after the end: %d", stopped)
	}
	var scratch []transaction.ChunkProgress
	if n := testing.AllocsPerRun(100, func() {
		for tx := range w.tr.Open() {
			scratch = tx.Progress(scratch[:0])
		}
	}); n > 0 && scratch != nil {
		t.Errorf("%v allocations", n)
	}
	w.tr.Flush()
	if w.tr.Under() != 0 {
		t.Errorf("%d open after the end", w.tr.Under())
	}
	for tx := range w.tr.Open() {
		t.Errorf("XID %d is still open", tx.XID)
	}
}

// TestProgressOfManyChunks wants a bounded answer to a call with a chunk for
// each byte.
func TestProgressOfManyChunks(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	h := v1(7, rpcrdma.TypeMsg)
	for i := range 100 {
		h.Writes = append(h.Writes, rpcrdma.WriteChunk{{Handle: uint32(i), Length: 8, Offset: 0}})
	}
	w.send(0, msg(h, rpc(7, false, 100003, 40)))
	for tx := range w.tr.Open() {
		p := tx.Progress(nil)
		sum := uint64(0)
		for _, c := range p {
			sum += c.Offered
		}
		if len(p) != 16 || sum != 800 {
			t.Errorf("%d chunks of %d bytes", len(p), sum)
		}
	}
}
