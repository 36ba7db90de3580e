package check

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestAnswered: the segments of a call that is answered are the same, whether it is remembered where they are, or each is searched.
func TestAnswered(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	var of [2]*Checker
	var k [2]*conn
	for i := range of {
		of[i] = New(Options{Rules: All()}, func(*Finding) {})
		k[i] = &conn{c: new(rdma.Connection), number: 1}
	}
	var open []*transaction.Transaction
	number := uint64(0)
	call := func() *transaction.Transaction {
		number += 1 + uint64(random.IntN(600))
		tx := &transaction.Transaction{From: rdma.Side(random.IntN(2)), XID: random.Uint32()}
		tx.Call.First = rdma.Ref{Number: number, Time: int64(number)}
		tx.Call.Last = tx.Call.First
		tx.Reply.Last = rdma.Ref{Number: number + 1}
		tx.Reply.Invalidates, tx.Reply.Handle = random.IntN(2) == 0, uint32(random.IntN(6))
		segment := func() rpcrdma.Segment { return rpcrdma.Segment{Handle: uint32(random.IntN(6)), Length: 8} }
		h := &tx.Call.Header
		for range random.IntN(3) {
			h.Reads = append(h.Reads, rpcrdma.ReadSegment{Segment: segment()})
		}
		for range random.IntN(3) {
			h.Writes = append(h.Writes, rpcrdma.WriteChunk{segment(), segment()})
		}
		for range random.IntN(3) {
			h.Reply = append(h.Reply, segment())
		}
		return tx
	}
	for step := range 3000 {
		if len(open) < 8 && random.IntN(2) == 0 || len(open) == 0 {
			tx := call()
			open = append(open, tx)
			for i, c := range of {
				c.memory.offered(k[i], &callState{}, tx)
			}
		} else {
			at := random.IntN(len(open))
			of[1].memory.mem.calls = [len(of[1].memory.mem.calls)]callSegments{}
			for i, c := range of {
				c.memory.mem.answered(k[i], open[at])
			}
			open = slices.Delete(open, at, at+1)
		}
		a, b := &of[0].memory.mem, &of[1].memory.mem
		for seq := a.next - min(a.next, 64); seq < a.next; seq++ {
			x, y := *a.at(seq), *b.at(seq)
			x.lost, y.lost = nil, nil
			if x != y {
				t.Fatalf("step %d: segment %d\n%+v\nand\n%+v", step, seq, x, y)
			}
		}
	}
	for seq := range of[0].memory.mem.next {
		if o := of[0].memory.mem.at(seq); o.state == segmentOpen && !slices.ContainsFunc(open, func(tx *transaction.Transaction) bool { return tx.Call.First.Number == o.call }) {
			t.Fatalf("segment %d is open, and its call was answered", seq)
		}
	}
}

// TestHandle: keys of different sides and connections are different handles.
func TestHandle(t *testing.T) {
	seen := make(map[handle]bool)
	for _, k := range [...]*conn{{number: 1}, {number: 2}, {number: 1<<31 - 1}} {
		for owner := range rdma.Side(2) {
			for _, key := range [...]uint32{0, 1, 1 << 31, 1<<32 - 1} {
				h := k.handle(owner, key)
				if seen[h] || h.key() != key || h.owner() != owner {
					t.Errorf("connection %d, side %d, key 0x%x: %x", k.number, owner, key, h)
				}
				seen[h] = true
			}
		}
	}
}
