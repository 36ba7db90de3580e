package transaction

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Ordinary reports whether the transaction is complete, nothing noteworthy happened to it, and its call and its reply were a packet
// each, with nothing moved by RDMA. It then took that long, all of it in PhaseServer: SetPhases says the same.
func (t *Transaction) Ordinary() (took time.Duration, ok bool) {
	if t.took != 0 {
		return t.took, true
	}
	return t.mayBeOrdinary()
}

// mayBeOrdinary is Ordinary for a transaction of which setOrdinary has not found it.
func (t *Transaction) mayBeOrdinary() (took time.Duration, ok bool) {
	if t.State != Complete || len(t.Notes)|len(t.Troubles)|t.Retransmits|t.Reads|t.Writes != 0 ||
		t.Call.First.Time != t.Call.Last.Time || t.Reply.First.Time != t.Reply.Last.Time ||
		t.Times.FirstRead.Number|t.Times.LastRead.Number|t.Times.FirstPush.Number != 0 || !t.Call.Seen() || !t.Reply.Seen() {
		return 0, false
	}
	start, end := t.Call.First.Time, t.Reply.Last.Time
	took = time.Duration(end - start)
	return took, end > start && took > 0
}

// setOrdinary finds out whether a transaction that completeUsual takes is ordinary. Such a transaction is complete, and has moved nothing by
// RDMA.
func (t *Transaction) setOrdinary() {
	start, end := t.Call.First.Time, t.Reply.Last.Time
	if start == t.Call.Last.Time && end == t.Reply.First.Time && len(t.Notes)|len(t.Troubles)|t.Retransmits == 0 {
		t.took = max(time.Duration(end-start), 0) // less, if that is more than a Duration holds
	}
}

// Calm is Ordinary for a transaction that moved no data by RDMA and, as far as Blame says, lost no
// time and did not wait to be sent.
func (t *Transaction) Calm() (took time.Duration, ok bool) {
	if b := t.Blame; b != nil && b.ordinary && t.final { // it was when it ended, and nothing has happened to it since
		took = time.Duration(t.Reply.Last.Time - t.Call.First.Time)
		return took, t.Credits|t.Slots == 0 && t.ReadBytes|t.WriteBytes == 0
	}
	if b := t.Blame; b != nil && (!b.Quiet || t.Credits|t.Slots != 0) || t.ReadBytes|t.WriteBytes != 0 {
		return 0, false
	}
	return t.Ordinary()
}

// Chunkless reports whether a message was captured with an RPC-over-RDMA header that was read as a
// whole and has no chunks.
func (m *Message) Chunkless() bool {
	return m.Seen() && m.Transport && m.Header.Fixed() && m.Header.Plain()
}

// Chunkless reports that both messages are, that each is one RDMA_MSG, and that it is Named. It is false for a few of which that is
// true as well: whoever has to know asks the messages.
func (t *Transaction) Chunkless() bool { return t.chunkless }

// Acked is the time from the reply to its acknowledgement, as Phases.Ack.
func (t *Transaction) Acked() time.Duration {
	if !t.Times.Ack.Seen() {
		return -1
	}
	return max(rdma.Between(t.Reply.Last.Time, t.Times.Ack.Time), 0) // the clock may go backwards
}
