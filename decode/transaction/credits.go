package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// credits is how many calls of a side wait for their replies, of as many as it may
// have (RFC 8166, section 3.3.1).
type credits struct {
	waiting int    // calls without a reply
	granted uint32 // by the newest reply, at least 1; 0 before
	holes   uint32 // times that the capture lacked packets of the responder
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
	tx.counted, tx.holes = true, k.holes
	k.waiting++
	tx.InFlight, tx.Window = uint32(k.waiting), k.granted
	if k.granted > 0 && uint32(k.waiting) >= k.granted && !k.full.Seen() {
		k.full = tx.Call.First
	}
}

// settled takes a call out of the count: it is answered, or given up.
func (h *half) settled(tx *Transaction, at rdma.Ref) {
	k := &h.credits
	if tx.counted {
		tx.counted = false
		if tx.holes == k.holes {
			k.waiting--
		}
	}
	if m := &tx.Reply; m.Transport && m.Header.Fixed() {
		k.granted = max(m.Credits(), 1) // with a grant of 0 a client goes on with one call at a time, as Linux does: it could never ask again
	}
	switch {
	case !k.full.Seen() || uint32(k.waiting) >= k.granted:
	case at.Seen() && !k.freed.Seen():
		k.freed = at
	case !at.Seen():
		k.full, k.freed = rdma.Ref{}, rdma.Ref{}
	}
}

// hole forgets the calls that wait: the capture lacks packets of the responder, and their replies may be among them.
func (h *half) hole() {
	k := &h.credits
	k.holes++
	k.waiting, k.full, k.freed = 0, rdma.Ref{}, rdma.Ref{}
}
