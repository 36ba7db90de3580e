package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// recents has the latest transactions of a requester that have ended with a reply.
type recents struct {
	list [32]recent
	at   int
}

// recent is a transaction that has ended with a reply.
type recent struct {
	set    bool
	xid    uint32
	origin int   // connection of the first copy of its call
	first  int64 // when that was sent
	sum    uint64
	print  uint64 // of the reply
	gen    uint64 // as in the tags of its messages; 0 if one of them was cut
	number uint64 // first packet of the call; 0 if that was not captured
}

// add remembers a transaction that has ended with a reply.
func (l *recents) add(tx *Transaction) {
	e := l.next()
	e.set, e.xid, e.print = true, tx.XID, tx.Reply.print()
	if !tx.Call.Cut && !tx.Reply.Cut {
		e.gen = tx.gen
	}
	if tx.Call.Seen() {
		e.origin, e.number, e.first = tx.from(), tx.Call.First.Number, tx.FirstSent()
		e.sum = tx.sum()
	}
}

// next returns an empty entry for a transaction that has ended with a reply, in place of that of the oldest.
func (l *recents) next() *recent {
	const mask = len(l.list) - 1 // a power of two
	e := &l.list[l.at&mask]
	*e = recent{}
	l.at = (l.at + 1) & mask
	return e
}

// answered reports whether s is the reply to an XID that ended not long ago, or
// another one to it.
func (l *recents) answered(xid uint32, s *rdma.Send) (same, other bool) {
	for i := range l.list {
		if r := &l.list[i]; r.set && r.xid == xid {
			if r.print == printOf(s.Data, s.Length) {
				return true, other
			}
			other = true
		}
	}
	return false, other
}

// has reports whether one of them had the XID.
func (l *recents) has(xid uint32) bool {
	for i := range l.list {
		if l.list[i].set && l.list[i].xid == xid {
			return true
		}
	}
	return false
}

// again returns the one that had the call of tx, if that was sent before the connection of tx began; nil if there is none.
func (l *recents) again(tx *Transaction, sum uint64) *recent {
	for i := range l.list {
		if e := &l.list[i]; e.set && e.xid == tx.XID && e.sum == sum && e.number != 0 && e.number < tx.Connection.First.Number {
			return e
		}
	}
	return nil
}
