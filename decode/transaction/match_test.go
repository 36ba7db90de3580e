package transaction_test

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestCutCallback: where the capture ends before a message says whether it is a call, the first of two with one XID is the call, whichever side sent it.
func TestCutCallback(t *testing.T) {
	type sent struct {
		from   rdma.Side
		packet uint64
	}
	for _, c := range []struct {
		name     string
		sends    []sent
		call     uint64 // packet
		reply    uint64
		backward bool
		notes    []transaction.NoteKind // of all that are about what was assumed
	}{
		{"a call", []sent{{0, 1}, {1, 2}}, 1, 2, false, nil},
		{"a callback", []sent{{1, 1}, {0, 2}}, 1, 2, true, []transaction.NoteKind{transaction.AssumedCall}},
		{"a reply that has overtaken its call", []sent{{1, 2}, {0, 1}}, 1, 2, false, nil},
		{"a reply alone", []sent{{1, 1}}, 0, 1, false, []transaction.NoteKind{transaction.AssumedReply}},
		{"a call alone", []sent{{0, 1}}, 1, 0, false, nil},
	} {
		n := 0
		tr := transaction.NewTracker(transaction.Options{}, func(tx *transaction.Transaction) {
			n++
			var notes []transaction.NoteKind
			for _, x := range tx.Notes {
				if x.Kind == transaction.AssumedCall || x.Kind == transaction.AssumedReply {
					notes = append(notes, x.Kind)
				}
			}
			if tx.Call.First.Number != c.call || tx.Reply.First.Number != c.reply || tx.Backward != c.backward || !slices.Equal(notes, c.notes) {
				t.Errorf("%s: call %d, reply %d, backward %v, %v", c.name, tx.Call.First.Number, tx.Reply.First.Number, tx.Backward, tx.Notes)
			}
		})
		conn := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}
		conn.Setup[0].Message, conn.Setup[0].Frame.Number = rdma.SetupREQ, 1
		for _, s := range c.sends {
			b := callMessage(rpcrdma.Header{XID: 7, Type: rpcrdma.TypeMsg}, 40)
			ref := rdma.Ref{Time: int64(s.packet) * 1e6, Number: s.packet}
			tr.Send(conn, &rdma.Send{From: s.from, Data: b[:34], Length: len(b), First: ref, Last: ref, Packets: 1})
		}
		tr.Flush()
		if n != 1 {
			t.Errorf("%s: %d transactions", c.name, n)
		}
	}
}
