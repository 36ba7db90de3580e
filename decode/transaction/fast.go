package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// fastSend is Send for what nearly all Sends are: the first copy of a call or of the reply to an open one, behind a header without
// chunks, on a connection that is known to carry such. It returns the transaction and whether the Send is the reply;
// nil, and has changed nothing, if anything else has to be looked at. What it does is what Send would do: TestFast and FuzzFast compare the two.
func (t *Tracker) fastSend(k *conn, c *rdma.Connection, s *rdma.Send) (tx *Transaction, reply bool) {
	if !k.carries || t.tracer != nil || c.Fabric == rdma.TCP || c.Fabric == rdma.UDP || len(s.Data) > headOnly {
		return nil, false
	}
	xid, message, ok := rpcrdma.Chunkless(s.Data)
	if !ok {
		return nil, false
	}
	if message == 0 {
		h := k.halves[s.From&1]
		if h == nil || h.open.get(xid) != nil {
			return nil, false
		}
		tx = t.begin(h, c, s.From, xid)
		h.newest = tx.gen
		t.storage.setFast(tx, &tx.Call, s)
		t.queue.put(tx)
		h.asked(tx)
		tx.assumed, tx.fastCall = false, true
		tx.named()
		if h.calls < maxResent {
			t.sent.resent(tx, h, &t.pool.entries)
		}
		return tx, false
	}
	h := k.halves[s.From.Other()&1]
	if h == nil {
		return nil, false
	}
	tx = h.open.get(xid)
	if tx == nil || tx.replied || !tx.Call.Seen() {
		return nil, false
	}
	t.storage.setFast(tx, &tx.Reply, s)
	tx.fast = tx.fastCall
	h.settled(tx, s.Last)
	t.replyOfCall(tx)
	return tx, true
}

// completeFast is complete for a transaction of which nothing was seen but two messages that setFast has set. It returns false, and has
// changed nothing, if there is more to it.
func (t *Tracker) completeFast(tx *Transaction) bool {
	call, reply := &tx.Call, &tx.Reply
	if !tx.fast || !tx.acked || tx.late || tx.turned || call.Cut || reply.Cut || !tx.Named || tx.unproven || tx.noted != 0 || len(tx.segments)|len(tx.served) != 0 ||
		t.events.newest >= call.First.Number || call.First.Time > reply.Last.Time {
		return false
	}
	call.Bytes, reply.Bytes = uint64(call.PayloadLength), uint64(reply.PayloadLength)
	return true
}

// finishFast is finish for a transaction that completeFast takes, and whose turn it is to be emitted. It returns false, and has
// changed nothing, if it is another one.
func (t *Tracker) finishFast(tx *Transaction) bool {
	c := tx.Connection
	k, ok := c.Upper.(*conn)
	if !ok || tx != t.queue.head || c.MergedInto != nil || t.opt.OnCompletion || !t.completeFast(tx) {
		return false
	}
	h := k.halves[tx.From&1]
	if h == nil {
		return false
	}
	t.open--
	h.open.remove(tx)
	h.recent.add(tx)
	if h.open.slots == nil { // it was large
		t.halves.countTables(h)
	}
	t.acks.usual.left(tx)
	if t.opt.Ended != nil {
		if tx.blame == nil {
			t.storage.roomForBlame(tx)
		}
		t.opt.Ended(tx)
	}
	tx.finished = true
	k.calls.Ended++
	t.queue.pop()
	if k.forward != 0 { // as resolve
		tx.Backward = tx.From != rdma.Side(k.forward-1)
	} else {
		tx.resolve()
	}
	t.give(tx)
	if t.queue.held > 0 { // they may have waited for this one
		t.queue.drain()
	}
	return true
}
