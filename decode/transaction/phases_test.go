package transaction

import (
	"math"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// The parts sum to the total and are not negative, whatever times a capture
// claims: also those that are further apart than a Duration can say.
func TestPhases(t *testing.T) {
	for _, c := range []struct {
		name              string
		call, reply, read int64
		ack               int64
		want              Phases
	}{
		{"ordinary", 100, 190, 120, 200, Phases{ArgumentPull: 20, Server: 70, Total: 90, Ack: 10}},
		{"three centuries ahead", -5e18, 5e18, 4e18, 6e18, Phases{Server: math.MaxInt64, Total: math.MaxInt64, Ack: 1e18}},
		{"acknowledged long before", 1, 9e18, 0, -9e18, Phases{Server: 9e18 - 1, Total: 9e18 - 1}},
	} {
		at := func(n int64) rdma.Ref { return rdma.Ref{Number: 1, Time: n} }
		var tx Transaction
		tx.Call.First, tx.Call.Last = at(c.call), at(c.call)
		tx.Reply.First, tx.Reply.Last = at(c.reply), at(c.reply)
		tx.Times.LastRead, tx.Times.Ack = at(c.read), at(c.ack)
		p, ok := tx.Phases()
		if sum := p.CallTransfer + p.ArgumentPull + p.Server + p.ResultPush + p.ReplyTransfer; !ok || p != c.want || sum != p.Total {
			t.Errorf("%s: %+v, want %+v", c.name, p, c.want)
		}
	}
	// Without its chunk lists, nobody knows what a transaction has waited for.
	tx := Transaction{Call: Message{First: rdma.Ref{Number: 1, Time: 100}, Last: rdma.Ref{Number: 1, Time: 100}}}
	tx.Reply.First = rdma.Ref{Number: 2, Time: 190}
	tx.Reply.Last, tx.Times.Ack = tx.Reply.First, rdma.Ref{Number: 3, Time: 200}
	tx.Call.Header.Cut = true
	if p, ok := tx.Phases(); !ok || !p.Divided() || p.Server != 90 {
		t.Errorf("a call over TCP, which has no header: %+v", p)
	}
	tx.Call.Transport = true
	if p, ok := tx.Phases(); !ok || p.Divided() || p != (Phases{-1, -1, -1, -1, -1, 90, -1, 10}) {
		t.Errorf("with its header cut: %+v", p)
	}
	// A reply stamped before its call has no phases.
	for _, c := range [][2]int64{{100, 40}, {5e18, -5e18}} {
		var tx Transaction
		tx.Call.First, tx.Reply.Last = rdma.Ref{Number: 1, Time: c[0]}, rdma.Ref{Number: 2, Time: c[1]}
		tx.Call.Last, tx.Reply.First = tx.Call.First, tx.Reply.Last
		if p, ok := tx.Phases(); ok {
			t.Errorf("from %d to %d: %+v", c[0], c[1], p)
		}
	}
}
