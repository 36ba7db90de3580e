package transaction_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// The verdicts on the last message of a connection on which an earlier one of the same side was acknowledged, or none was.
func TestDelivery(t *testing.T) {
	const (
		unknown, acknowledged = transaction.DeliveryUnknown, transaction.Acknowledged
		refused, missing      = transaction.Refused, transaction.NotAcknowledged
	)
	for _, c := range []struct {
		name        string
		before      bool // a call and a reply that are acknowledged
		reply       bool
		then        func(w *wire, call, reply uint64)
		ended       bool // the end was captured
		call, after transaction.Delivery
		state       transaction.State
		note        transaction.NoteKind
	}{
		{"all there", true, true, func(w *wire, call, reply uint64) { w.ack(call); w.ack(reply) }, true, acknowledged, acknowledged, transaction.Complete, 0},
		{"capture ends", true, true, nil, false, acknowledged, unknown, transaction.Complete, 0},
		{"no acknowledgement was captured", false, true, nil, true, acknowledged, unknown, transaction.Complete, 0},
		{"the acknowledgement alone is missing", true, true, nil, true, acknowledged, unknown, transaction.Complete, 0},
		{"reply sent again", true, true, func(w *wire, _, reply uint64) { w.again(reply) }, true, acknowledged, missing, transaction.Incomplete, transaction.ReplyNotAcknowledged},
		{"receiver not ready", true, true, func(w *wire, _, _ uint64) { w.event(0, rdma.EventRNR) }, true, acknowledged, missing, transaction.Incomplete, transaction.ReplyNotAcknowledged},
		{"the capture lacks packets", true, true, func(w *wire, _, _ uint64) { w.c.Sent[0].Gaps = 1 }, true, acknowledged, unknown, transaction.Complete, 0},
		{"reply refused", true, true, func(w *wire, _, _ uint64) { w.event(0, rdma.EventNAKAccess) }, false, acknowledged, refused, transaction.Incomplete, transaction.ReplyRefused},
		{"acknowledged after all", true, true, func(w *wire, _, reply uint64) { w.event(0, rdma.EventNAKAccess); w.ack(reply) }, true, acknowledged, acknowledged, transaction.Complete, 0},
		{"asked for again", true, true, func(w *wire, _, _ uint64) { w.event(0, rdma.EventNAKSequence) }, true, acknowledged, missing, transaction.Incomplete, transaction.ReplyNotAcknowledged},
		{"the requester's own message refused", true, true, func(w *wire, _, reply uint64) { w.event(1, rdma.EventTerminate); w.ack(reply) }, true, acknowledged, acknowledged, transaction.Complete, 0},
		{"the call's acknowledgement alone is missing", true, false, nil, true, unknown, unknown, transaction.NoReply, transaction.LastCall},
		{"call not acknowledged", true, false, func(w *wire, call, _ uint64) { w.again(call) }, true, missing, unknown, transaction.NoReply, transaction.CallNotAcknowledged},
		{"call refused", true, false, func(w *wire, _, _ uint64) { w.event(1, rdma.EventNAKInvalid) }, true, refused, unknown, transaction.NoReply, transaction.CallRefused},
		{"call acknowledged", true, false, func(w *wire, call, _ uint64) { w.ack(call) }, true, acknowledged, unknown, transaction.NoReply, transaction.LastCall},
		{"call, capture ends", true, false, nil, false, unknown, unknown, transaction.NoReply, 0},
	} {
		w := newWire(t, rdma.RoCEv2)
		exchange := func(xid uint32, reply bool) (call, answer uint64) {
			call = w.send(0, msg(v1(xid, rpcrdma.TypeMsg), rpc(xid, false, rocetest.Program, 8)))
			if reply {
				answer = w.send(1, msg(v1(xid, rpcrdma.TypeMsg), rpc(xid, true, 0, 8)))
			}
			return call, answer
		}
		if c.before {
			call, reply := exchange(1, true)
			w.ack(call)
			w.ack(reply)
		}
		call, reply := exchange(2, c.reply)
		w.c.Terminated, w.c.Ended = "an end", c.ended
		if c.then != nil {
			c.then(w, call, reply)
		}
		out := w.end()
		last := out[len(out)-1]
		if last.xid != 2 || last.delivered != [2]transaction.Delivery{c.call, c.after} || last.state != c.state || c.note != 0 && !has(last, c.note) ||
			c.reply && (c.note == 0) != (len(last.notes) == 0) {
			t.Errorf("%s: %v %v %v", c.name, last.delivered, last.state, last.notes)
		}
	}
}

// A reply waits longer for its acknowledgement where others were acknowledged: its sender goes on for seconds.
func TestDeliveryLate(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	for xid := range uint32(2) {
		w.ack(w.send(0, msg(v1(xid, rpcrdma.TypeMsg), rpc(xid, false, rocetest.Program, 8))))
		n := w.send(1, msg(v1(xid, rpcrdma.TypeMsg), rpc(xid, true, 0, 8)))
		if xid == 0 {
			w.ack(n)
		}
	}
	w.now += 30e9
	w.ack(w.send(0, msg(v1(2, rpcrdma.TypeMsg), rpc(2, false, rocetest.Program, 8))))
	w.c.Terminated, w.c.Ended = "an end", true
	w.ack(w.send(1, msg(v1(2, rpcrdma.TypeMsg), rpc(2, true, 0, 8))))
	out := w.end()
	w.want("lost", len(out) == 3 && out[1].delivered[1] == transaction.NotAcknowledged)
}
