package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// OfSend returns what the tag belongs to that Tracker.Send has returned: a
// transaction, and whether the Send was its reply. It returns nil for a Send
// that belongs to none.
func OfSend(tag rdma.Tag, gen uint64) (tx *Transaction, reply bool) {
	s, ok := tag.(*sendTag)
	if !ok || s.tx == nil || s.tx.gen != gen {
		return nil, false
	}
	return s.tx, s.reply
}

// OfOperation returns the transaction whose chunk an operation serves, once
// Tracker.OpStart has seen it; nil if no open call has offered its memory.
func OfOperation(op *rdma.Op) *Transaction {
	s, _ := tagged(op)
	if s == nil {
		return nil
	}
	return s.tx
}
