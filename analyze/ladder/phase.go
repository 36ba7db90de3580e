package ladder

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Phase is a part of a transaction's latency, in the order of DESIGN: the call
// first. After is what comes behind the reply.
type Phase uint8

// Phases.
const (
	CallTransfer Phase = iota
	ArgumentPull
	Server
	ResultPush
	ReplyTransfer
	After
	phases
)

var phaseNames = [phases]string{"call_transfer", "argument_pull", "server", "result_push", "reply_transfer", "after"}

func (p Phase) String() string { return phaseNames[p] }

// Timeline tells in which phase of a transaction a packet falls.
type Timeline struct {
	// Known is false if call or reply are missing: then there are no phases.
	Known bool
	// Durations of the five phases, and of After the time to the
	// acknowledgement of the reply, negative if that was not seen.
	Durations [phases]time.Duration
	PullWait  time.Duration
	Total     time.Duration
	Start     int64 // first packet of the call

	ends [After]uint64 // last packets of the phases; Server ends before that
}

// Reset takes the times of a transaction.
func (t *Timeline) Reset(tx *transaction.Transaction) {
	*t = Timeline{Start: tx.First().Time}
	p, ok := tx.Phases()
	if !ok {
		return
	}
	t.Known = true
	t.Durations = [phases]time.Duration{p.CallTransfer, p.ArgumentPull, p.Server, p.ResultPush, p.ReplyTransfer, p.Ack}
	t.PullWait, t.Total = p.PullWait, p.Total
	end := tx.Reply.Last.Number
	call := min(tx.Call.Last.Number, end)
	pull := call
	if tx.Times.LastRead.Seen() {
		pull = min(max(tx.Times.LastRead.Number, call), end)
	}
	push := max(tx.Reply.First.Number, pull+1)
	last := push - 1
	if tx.Times.FirstPush.Seen() {
		push = max(tx.Times.FirstPush.Number, pull+1)
		last = min(max(tx.Times.LastPush.Number, push-1), end)
	}
	t.ends = [After]uint64{call, pull, min(push-1, end), last, end}
}

// Of returns the phase of a packet.
func (t *Timeline) Of(r rdma.Ref) Phase {
	for p := CallTransfer; p < After; p++ {
		if r.Number <= t.ends[p] {
			return p
		}
	}
	return After
}

// Begins is when a phase begins, in nanoseconds after Start.
func (t *Timeline) Begins(p Phase) time.Duration {
	var d time.Duration
	for i := CallTransfer; i < min(p, After); i++ {
		d += t.Durations[i]
	}
	return d
}
