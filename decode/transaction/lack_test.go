package transaction

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

func TestLacks(t *testing.T) {
	some := rpcrdma.Segment{Length: 1}
	seen := rdma.Ref{Number: 3, Time: 3}
	for _, x := range []struct {
		name string
		set  func(tx *Transaction)
		want Lack
	}{
		{"no chunks", func(*Transaction) {}, LackNothing},
		{"the header of the call is cut", func(tx *Transaction) { tx.Call.Header.Cut = true }, LackLists},
		{"that of the reply is", func(tx *Transaction) { tx.Reply.Header.Cut = true }, LackNothing},
		{"over TCP", func(tx *Transaction) { tx.Call.Header.Cut, tx.Call.Transport = true, false }, LackNothing},
		{"Reads", func(tx *Transaction) { tx.Call.Header.Reads = []rpcrdma.ReadSegment{{}, {Segment: some}} }, LackReads},
		{"a Call chunk of version 2", func(tx *Transaction) { tx.Call.Header.Call = []rpcrdma.ReadSegment{{Segment: some}} }, LackReads},
		{"nothing to read", func(tx *Transaction) { tx.Call.Header.Reads = make([]rpcrdma.ReadSegment, 2) }, LackNothing},
		{"Reads that were seen", func(tx *Transaction) {
			tx.Call.Header.Reads, tx.Times.LastRead = []rpcrdma.ReadSegment{{Segment: some}}, seen
		}, LackNothing},
		{"Reads of a call that was refused", func(tx *Transaction) {
			tx.Call.Header.Reads, tx.Reply.Header.Type = []rpcrdma.ReadSegment{{Segment: some}}, rpcrdma.TypeError
		}, LackNothing},
		{"Writes", func(tx *Transaction) { tx.Reply.Header.Writes = []rpcrdma.WriteChunk{{}, {some}} }, LackWrites},
		{"a Reply chunk", func(tx *Transaction) { tx.Reply.Header.Reply = rpcrdma.WriteChunk{{}, some} }, LackWrites},
		{"chunks that were not used", func(tx *Transaction) {
			tx.Call.Header.Writes = []rpcrdma.WriteChunk{{some}}
			tx.Reply.Header.Writes, tx.Reply.Header.Reply = []rpcrdma.WriteChunk{{{}}}, rpcrdma.WriteChunk{{}}
		}, LackNothing},
		{"Writes that were seen", func(tx *Transaction) {
			tx.Reply.Header.Writes, tx.Times.FirstPush = []rpcrdma.WriteChunk{{some}}, seen
		}, LackNothing},
		{"Writes of a call whose Reads were seen", func(tx *Transaction) {
			tx.Call.Header.Reads, tx.Times.LastRead = []rpcrdma.ReadSegment{{Segment: some}}, seen
			tx.Reply.Header.Writes = []rpcrdma.WriteChunk{{some}}
		}, LackWrites},
	} {
		var tx Transaction
		tx.Call.Transport, tx.Reply.Transport = true, true
		x.set(&tx)
		if got := tx.Lacks(); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	reply := func(words ...uint32) (b []byte) {
		for _, w := range append([]uint32{7, 1}, words...) {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	for _, x := range []struct {
		name string
		b    []byte
		want bool
	}{
		{"success", reply(0, 0, 0, 0), false},
		{"success, behind a verifier", reply(0, 6, 5, 1, 1, 0), false},
		{"no such program", reply(0, 0, 0, 1), true},
		{"the same, behind a verifier", reply(0, 6, 5, 0, 0, 1), true},
		{"a status that is not defined", reply(0, 0, 0, 4096), false},
		{"denied", reply(1, 1, 1), true},
		{"denied for a reason that is not defined", reply(1, 2, 1), false},
		{"denied, cut", reply(1), true},
		{"accepted, cut", reply(0, 0, 0), false},
		{"a false length", reply(0, 0, 1<<32-1, 1), false},
		{"a verifier that is too long", append(reply(0, 6, 404), make([]byte, 600)...), false},
		{"neither accepted nor denied", reply(2, 0, 0, 1), false},
		{"nothing", nil, false},
	} {
		m := Message{Payload: x.b}
		if m.refuses() != x.want {
			t.Errorf("%s: %v", x.name, !x.want)
		}
	}
	m := Message{Transport: true}
	if m.Header.Type = rpcrdma.TypeError; !m.refuses() {
		t.Error("RDMA_ERROR")
	}
}
