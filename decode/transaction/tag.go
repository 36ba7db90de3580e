package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// A tag is what the trackers of the fabrics keep of a transaction, for longer
// than it lasts. It names an entry of Tracker.entries, and says which of the
// transactions that have had this entry is meant:
//
//	word 0: generation 48 bits, number of the operation 16 bits
//	word 1: kind 2 bits, formerly reply 1 bit, entry 29 bits, place of the segment 32 bits
//
// The number of an operation is its place in Transaction.Operations counted from
// 1; 0 if it is not listed. That of an orphan is its place in orphans.list.
const (
	numberBits = 16
	kindShift  = 62
	replyBit   = 1 << 61
	entryShift = 32
	entryMask  = 1<<29 - 1
)

// tagKind is what a tag was given to.
type tagKind uint8

const (
	noTag     tagKind = iota
	sendTag           // a message
	opTag             // an operation on memory that a message has offered
	orphanTag         // an operation without a call
)

// entries find transactions by their tags. A transaction keeps its entry until it
// is dropped, also while its memory waits to be used again.
type entries struct {
	list []*Transaction
	free []uint32
}

// add gives a new transaction an entry.
func (e *entries) add(tx *Transaction) {
	if n := len(e.free); n > 0 {
		tx.entry = e.free[n-1]
		e.free = e.free[:n-1]
		e.list[tx.entry] = tx
		return
	}
	tx.entry = uint32(len(e.list))
	e.list = append(e.list, tx)
}

// drop forgets a transaction.
func (e *entries) drop(tx *Transaction) {
	e.list[tx.entry] = nil
	e.free = append(e.free, tx.entry)
}

// entrySize is the memory of an entry, free or not, with room for the lists to
// grow.
const entrySize = 2 * (8 + 4)

func kindOf(tag rdma.Tag) tagKind { return tagKind(tag.W1 >> kindShift) }

// number is the number of the operation of a tag.
func number(tag rdma.Tag) int { return int(tag.W0 & (1<<numberBits - 1)) }

// sendTag is the tag of a message.
func (tx *Transaction) sendTag(reply bool) rdma.Tag {
	tag := rdma.Tag{W0: tx.gen << numberBits, W1: uint64(sendTag)<<kindShift | uint64(tx.entry)<<entryShift}
	if reply != tx.turned {
		tag.W1 |= replyBit
	}
	return tag
}

// isReply reports whether a tag belongs to a reply.
func (tx *Transaction) isReply(tag rdma.Tag) bool { return (tag.W1&replyBit != 0) != tx.turned }

// opTag is the tag of an operation on memory of s.
func (tx *Transaction) opTag(s *segment, number int) rdma.Tag {
	return rdma.Tag{W0: tx.gen<<numberBits | uint64(number), W1: uint64(opTag)<<kindShift | uint64(tx.entry)<<entryShift | uint64(uint32(tx.place(s)))}
}

// orphanTagOf is the tag of the i-th operation without a call.
func orphanTagOf(gen uint64, i int) rdma.Tag {
	return rdma.Tag{W0: gen<<numberBits | uint64(i), W1: uint64(orphanTag) << kindShift}
}

// tagged returns the transaction that a message or an operation belongs to, nil if
// it has ended or there was none.
func (e *entries) tagged(tag rdma.Tag) *Transaction {
	if k := kindOf(tag); k != sendTag && k != opTag {
		return nil
	}
	tx := e.list[tag.W1>>entryShift&entryMask]
	if tx == nil || tx.gen != tag.W0>>numberBits || tx.finished {
		return nil
	}
	return tx
}

// segmentOf returns the segment of an operation, and its place in the list if it
// has one. It returns nil if the transaction is over.
func (e *entries) segmentOf(op *rdma.Op) (*segment, *Operation) {
	if kindOf(op.Tag) != opTag {
		return nil, nil
	}
	tx := e.tagged(op.Tag)
	if tx == nil {
		return nil, nil
	}
	s := tx.segmentAt(int32(uint32(op.Tag.W1)))
	if s == nil {
		return nil, nil
	}
	if i := number(op.Tag); i > 0 && i <= len(tx.Operations) {
		return s, &tx.Operations[i-1]
	}
	return s, nil
}

// ofSend returns the transaction of a message, ended or not, and whether the message is its reply.
func (e *entries) ofSend(tag rdma.Tag) (tx *Transaction, reply bool) {
	if kindOf(tag) != sendTag {
		return nil, false
	}
	tx = e.list[tag.W1>>entryShift&entryMask]
	if tx == nil || tx.gen != tag.W0>>numberBits {
		return nil, false
	}
	return tx, tx.isReply(tag)
}

// OfSend returns what the tag belongs to that Tracker.Send has returned: a
// transaction, and whether the Send was its reply. It returns nil for a Send
// that belongs to none.
func (t *Tracker) OfSend(tag rdma.Tag) (tx *Transaction, reply bool) {
	return t.pool.entries.ofSend(tag)
}

// OfOperation returns the transaction whose chunk an operation serves, once
// Tracker.OpStart has seen it; nil if no open call has offered its memory.
func (t *Tracker) OfOperation(op *rdma.Op) *Transaction {
	s, _ := t.pool.entries.segmentOf(op)
	if s == nil {
		return nil
	}
	return s.tx
}
