package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// credits is how many calls of a side wait for their replies, of as many as it may
// have (RFC 8166, section 3.3.1).
type credits struct {
	waiting int    // calls without a reply
	granted uint32 // by the newest reply; 0 before
	full    rdma.Ref
	freed   rdma.Ref
}

// asked counts a call. If one before it had used up all credits, and a reply has
// freed one since, the call may have waited all that time: Transaction.Credits.
func (h *half) asked(tx *Transaction) {
	k := &h.credits
	if k.freed.Seen() {
		tx.Credits = max(rdma.Between(k.full.Time, k.freed.Time), 0)
		k.full, k.freed = rdma.Ref{}, rdma.Ref{}
	}
	tx.counted = true
	k.waiting++
	if k.granted > 0 && uint32(k.waiting) >= k.granted && !k.full.Seen() {
		k.full = tx.Call.First
	}
}

// settled takes a call out of the count: it is answered, or given up.
func (h *half) settled(tx *Transaction, at rdma.Ref) {
	k := &h.credits
	if tx.counted {
		tx.counted = false
		k.waiting--
	}
	if n := tx.Reply.Credits(); n > 0 {
		k.granted = n
	}
	switch {
	case !k.full.Seen() || uint32(k.waiting) >= k.granted:
	case at.Seen() && !k.freed.Seen():
		k.freed = at
	case !at.Seen():
		k.full, k.freed = rdma.Ref{}, rdma.Ref{}
	}
}
