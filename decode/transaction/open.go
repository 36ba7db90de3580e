package transaction

import (
	"iter"
	"math/rand/v2"
)

// openCalls finds the open transactions of one requester by XID. It is a hash
// table with linear probing: each Send looks here, and a map costs several
// times as much.
type openCalls struct {
	slots []openCall // a power of two; at most half of them in use
	n     int
}

type openCall struct {
	xid uint32
	tx  *Transaction // nil: the slot is free
}

// openFactor spreads the XIDs. A peer that chooses them cannot know it, and so
// cannot make them meet.
var openFactor = rand.Uint64() | 1

const minOpenCalls = 16

func (o *openCalls) home(xid uint32) int { return int(uint64(xid)*openFactor>>32) & (len(o.slots) - 1) }

// get returns the transaction with the XID, or nil.
func (o *openCalls) get(xid uint32) *Transaction {
	if o.n == 0 {
		return nil
	}
	for i := o.home(xid); ; i = (i + 1) & (len(o.slots) - 1) {
		if s := &o.slots[i]; s.tx == nil || s.xid == xid {
			return s.tx
		}
	}
}

// put adds a transaction, in place of one with the same XID.
func (o *openCalls) put(xid uint32, tx *Transaction) {
	if 2*o.n >= len(o.slots) {
		o.resize(max(minOpenCalls, 2*len(o.slots)))
	}
	i := o.home(xid)
	for ; o.slots[i].tx != nil; i = (i + 1) & (len(o.slots) - 1) {
		if o.slots[i].xid == xid {
			o.slots[i].tx = tx
			return
		}
	}
	o.slots[i] = openCall{xid, tx}
	o.n++
}

// remove takes a transaction out, if it is there. A large table that is empty
// then gives its memory back.
func (o *openCalls) remove(tx *Transaction) {
	if o.n == 0 {
		return
	}
	mask := len(o.slots) - 1
	i := o.home(tx.XID)
	for ; o.slots[i].tx != tx; i = (i + 1) & mask {
		if o.slots[i].tx == nil {
			return
		}
	}
	// Those behind it move up, as far as their home allows.
	for j := (i + 1) & mask; o.slots[j].tx != nil; j = (j + 1) & mask {
		if home := o.home(o.slots[j].xid); (j-home)&mask >= (j-i)&mask {
			o.slots[i] = o.slots[j]
			i = j
		}
	}
	o.slots[i] = openCall{}
	if o.n--; o.n == 0 && len(o.slots) > 1024 {
		o.slots = nil
	}
}

func (o *openCalls) resize(size int) {
	old := o.slots
	o.slots, o.n = make([]openCall, size), 0
	for i := range old {
		if old[i].tx != nil {
			o.put(old[i].xid, old[i].tx)
		}
	}
}

// all goes through the transactions, in no particular order.
func (o *openCalls) all() iter.Seq2[uint32, *Transaction] {
	return func(yield func(uint32, *Transaction) bool) {
		for i := range o.slots {
			if s := &o.slots[i]; s.tx != nil && !yield(s.xid, s.tx) {
				return
			}
		}
	}
}
