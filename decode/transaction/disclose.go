package transaction

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// disclose looks at the first words of a message that is in a Position-Zero Read
// chunk, as soon as they have been read: they decide whether it is a call or a
// reply.
func (t *Tracker) disclose(tx *Transaction, s *segment) {
	m := &tx.Call
	if s.reply {
		m = &tx.Reply
	}
	p := m.long.prefix()
	if len(p) < 8 {
		return
	}
	tx.disclosed = true
	if binary.BigEndian.Uint32(p) != tx.XID {
		return // it is wrong in any case
	}
	isCall := binary.BigEndian.Uint32(p[4:]) == 0
	switch {
	case binary.BigEndian.Uint32(p[4:]) > 1 || isCall != s.reply:
	case !tx.Call.Seen() || !tx.Reply.Seen():
		t.turn(tx)
	case isCall:
		// The reply may still come.
		tx.replied = false
		tx.incomplete(Note{Kind: TakenForReply})
	}
}

// turn makes a transaction that began with what was taken for a call one whose
// call was not captured, and the other way round.
func (t *Tracker) turn(tx *Transaction) {
	c := tx.Connection
	h := t.halves.of(c, tx.From)
	h.open.remove(tx)
	t.halves.countTables(h)
	tx.From = tx.From.Other()
	tx.turned = !tx.turned
	tx.Call, tx.Reply = tx.Reply, tx.Call
	tx.segments, tx.served = tx.served, tx.segments
	for i := range tx.served {
		tx.served[i].reply = true
	}
	for i := range tx.segments {
		tx.segments[i].reply = false
	}
	for i := range tx.Packets {
		p := &tx.Packets[i]
		switch p.Role {
		case CallPart:
			p.Role = ReplyPart
		case ReplyPart:
			p.Role = CallPart
		}
		p.AcksCall, p.AcksReply = p.AcksReply, p.AcksCall
	}
	h = t.halves.of(c, tx.From)
	if h.open.get(tx.XID) == nil {
		h.open.put(tx.XID, tx)
	}
	t.halves.countTables(h)
	first, last := tx.Times.FirstRead, tx.Times.LastRead
	tx.Times = Timeline{}
	tx.replied = tx.Reply.Seen()
	if !tx.replied {
		// Reads are the responder's.
		for i := range tx.Operations {
			if o := &tx.Operations[i]; o.Kind == rdma.Read {
				if !first.Seen() {
					first = o.First
				}
				last = o.Last
			}
		}
		tx.Times.FirstRead, tx.Times.LastRead = first, last
		tx.ReadsByRequester = 0
		tx.named()
		return
	}
	if tx.assumed {
		setForwardSide(c, tx.From)
	}
	tx.Backward = forwardSide(c) != tx.From
	tx.ReadsByRequester = tx.Reads
	t.acks.wait(tx, t.open)
}
