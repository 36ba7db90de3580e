package planner

import (
	"hash/fnv"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// A client sends a call without a reply again after a reconnect, with the same XID. One of the copies is replayed: the first one with a reply,
// which tells the outcome, and for which later calls have waited. The plan may have a copy without a reply by then. If the capture can be read
// again, the plan is made once more. Otherwise it keeps that copy, and its outcome is not compared.

// Resent identifies a call of which a later copy has a reply.
type Resent struct{ copies retry }

// retry identifies a call that may come again on a new connection.
type retry struct {
	client, server netip.Addr
	xid            uint32
	sum            uint64
}

// resent are the calls whose copies may still come.
type resent struct {
	// newer and older are whether a call had a reply that its client could use. When newer is full, it becomes older.
	newer, older map[retry]bool
	answered     map[retry]int   // Options.Answered: how many calls are to wait for a copy with a reply
	first        map[retry]int64 // when such a call was sent for the first time
	found        []Resent        // the same, of this pass
}

// maxSent bounds the calls that are remembered in newer, and maxAnswered those in found.
const (
	maxSent     = 1 << 15
	maxAnswered = 1 << 16
)

func newResent(answered []Resent) resent {
	r := resent{newer: map[retry]bool{}, answered: map[retry]int{}, first: map[retry]int64{}}
	for _, x := range answered {
		r.answered[x.copies]++
	}
	return r
}

// was reports whether a call has been seen before, and had a reply.
func (r *resent) was(k retry) (seen, answered bool) {
	if answered, seen = r.newer[k]; !seen {
		answered, seen = r.older[k]
	}
	return seen, answered
}

func (r *resent) put(k retry, answered bool) {
	if len(r.newer) >= maxSent {
		r.newer, r.older = map[retry]bool{}, r.newer
	}
	r.newer[k] = answered
}

// again reports whether another copy of a call that was sent at start is replayed in its place. If not, before is how much
// earlier the call was sent for the first time.
func (r *resent) again(v *rpc.View, start int64) (is bool, before int64) {
	tx := v.Tx
	f := fnv.New64a()
	if o := &v.CallOpened; o.How == rpc.Decrypted {
		f.Write(o.Data) // encrypted arguments differ each time
	} else {
		f.Write(tx.Call.Payload)
	}
	k := retry{client: tx.Client().Addr, server: tx.Server().Addr, xid: tx.XID, sum: f.Sum64()}
	usable := tx.Reply.Seen() && !(tx.Reply.Transport && tx.Reply.Header.Type == rpcrdma.TypeError)
	seen, answered := r.was(k)
	if answered && !sentBefore(tx) {
		seen = false // a client may count its calls from 1 on each connection
	}
	switch {
	case seen && usable && !answered:
		r.put(k, true)
		if len(r.found) < maxAnswered {
			r.found = append(r.found, Resent{k})
		}
		return true, 0
	case seen:
		return true, 0
	case !usable && r.answered[k] > 0:
		if _, known := r.first[k]; !known {
			r.first[k] = start
		}
		return true, 0
	case r.answered[k] > 0:
		r.answered[k]--
		if first, known := r.first[k]; known {
			before = start - first
			delete(r.first, k)
		}
	}
	if usable && !(v.ReplyErr == nil && v.Reply().Succeeded()) {
		return false, before // the client may send it once more for that reason: a call of its own
	}
	r.put(k, usable)
	return false, before
}

// sentBefore reports whether a copy of the call came on another connection of its client.
func sentBefore(tx *transaction.Transaction) bool {
	for i := range tx.Notes {
		if tx.Notes[i].Kind == transaction.ResentFrom {
			return true
		}
	}
	return false
}
