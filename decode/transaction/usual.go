package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// usual is Send for what nearly all Sends are: the first copy of a call or of the reply to an open one, behind a header without
// chunks, on a connection that is known to carry such. It returns false, and has changed nothing, if anything else has to be
// looked at. What it does is what Send would do: TestUsual and FuzzUsual compare the two.
func (t *Tracker) usual(c *rdma.Connection, s *rdma.Send) (tag rdma.Tag, ok bool) {
	k, ok := c.Upper.(*conn)
	if !ok || !k.carries || t.tracing || c.Fabric == rdma.TCP || c.Fabric == rdma.UDP || len(s.Data) > headOnly {
		return tag, false
	}
	xid, message, ok := rpcrdma.Usual(s.Data)
	if !ok {
		return tag, false
	}
	if message == 0 {
		h := k.halves[s.From&1]
		if h == nil || h.open.get(xid) != nil {
			return tag, false
		}
		tx := t.begin(h, c, s.From, xid)
		t.setUsual(tx, &tx.Call, s)
		t.placed(tx)
		h.asked(tx)
		tx.assumed = false
		t.named(tx)
		t.resent(tx, h)
		return tx.sendTag(false), true
	}
	h := k.halves[s.From.Other()&1]
	if h == nil {
		return tag, false
	}
	tx := h.open.get(xid)
	if tx == nil || tx.replied || !tx.Call.Seen() {
		return tag, false
	}
	t.setUsual(tx, &tx.Reply, s)
	h.settled(tx, s.Last)
	t.replyOfCall(tx)
	return tx.sendTag(true), true
}

// setUsual is setMessage for what rpcrdma.Usual has accepted. The header is decoded where it is to stay.
func (t *Tracker) setUsual(tx *Transaction, m *Message, s *rdma.Send) {
	m.setSend(tx, s)
	m.Transport = true
	before := cap(m.raw)
	m.raw = append(m.raw[:0], s.Data...)
	t.grew(tx, cap(m.raw)-before)
	m.Header.DecodeUsual(m.raw, s.Length)
	m.Payload, m.PayloadLength = m.Header.Payload, m.Header.PayloadLength
	if tx.noted != 0 || !tx.plain() {
		t.listed(tx)
	}
}
