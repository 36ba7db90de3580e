package transaction

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// truncated says what is known of a transaction of whose message no more than the XID
// was captured.
func (t *Tracker) truncated(c *rdma.Connection, tag rdma.Tag) {
	tx, reply := t.OfSend(tag)
	switch {
	case tx == nil:
	case reply && tx.Call.Seen():
		// The calls before and after it are calls, too.
		t.half(c, tx.From).proven = true
		tx.unproven = false
	default:
		tx.unproven = !tx.Reply.Seen() || !tx.Call.Seen()
		tx.note(AssumedByLength)
	}
}

// answered reports whether the other side has an open call with the XID of s.
func (t *Tracker) answered(c *rdma.Connection, s *rdma.Send) bool {
	tx := t.half(c, s.From.Other()).open.get(binary.BigEndian.Uint32(s.Data))
	return tx != nil && !tx.replied
}

// known reports whether the sender has used the XID of s before.
func (t *Tracker) known(c *rdma.Connection, s *rdma.Send) bool {
	h := t.half(c, s.From)
	xid := binary.BigEndian.Uint32(s.Data)
	if h.open.get(xid) != nil {
		return true
	}
	for i := range h.recent {
		if h.recent[i].set && h.recent[i].xid == xid {
			return true
		}
	}
	return false
}
