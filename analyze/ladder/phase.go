package ladder

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// After is the phase of packets after the reply, including its acknowledgement.
const After = transaction.PhaseAck

// phases is the number of phases, including After.
const phases = After + 1

// phaseName is the name of the phase of a packet.
func phaseName(p transaction.Phase) string {
	if p == After {
		return "after"
	}
	return p.String()
}

// Timeline determines the phase of each packet of a transaction.
type Timeline struct {
	// Known is false if there are no phases: the call or the reply is missing, or the time is not divided.
	Known bool
	// Durations of the five phases. The duration of After is the time to the acknowledgement of the reply,
	// negative if none was seen.
	Durations [phases]time.Duration
	PullWait  time.Duration
	Total     time.Duration
	Start     int64 // first packet of the call

	ends [After]uint64 // last packet of each phase; Server ends before it
}

// Reset loads the times of a transaction.
func (t *Timeline) Reset(tx *transaction.Transaction) {
	*t = Timeline{Start: tx.First().Time}
	p, ok := tx.Phases()
	if !ok {
		return
	}
	t.Total = p.Total
	if !p.Divided() {
		return
	}
	t.Known = true
	t.Durations = [phases]time.Duration{After: p.Ack}
	for ph := range transaction.Parts() {
		t.Durations[ph] = p.Of(ph)
	}
	t.PullWait = p.PullWait
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
func (t *Timeline) Of(r rdma.Ref) transaction.Phase {
	for p := range transaction.Parts() {
		if r.Number <= t.ends[p] {
			return p
		}
	}
	return After
}

// Begins is the start of a phase, in nanoseconds after Start.
func (t *Timeline) Begins(p transaction.Phase) time.Duration {
	var d time.Duration
	for i := transaction.PhaseCall; i < min(p, After); i++ {
		d += t.Durations[i]
	}
	return d
}
