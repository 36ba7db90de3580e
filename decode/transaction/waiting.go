package transaction

import "unsafe"

// acks has the replies that wait for their acknowledgements.
type acks struct {
	usual ring // oldest first
	slow  ring // those that wait longer than ackWait, see slowWait
}

// wait adds a transaction whose reply has come, once. open is how many there are at most that wait.
func (a *acks) wait(tx *Transaction, open int) {
	tx.waitingUntil = tx.Reply.Last.Time + ackWait
	if !tx.waiting {
		tx.waiting = true
		a.usual.push(tx, tx.gen, open)
	}
}

// any reports whether something may wait.
func (a *acks) any() bool { return a.usual.head < len(a.usual.q) || a.slow.head < len(a.slow.q) }

// overdue returns a transaction whose reply has waited too long, nil if there is none any more.
func (a *acks) overdue(now int64, open int) *Transaction {
	for a.usual.head < len(a.usual.q) {
		w := a.usual.q[a.usual.head]
		wait := !w.over() && w.tx.replied
		if wait && now < w.tx.waitingUntil {
			break
		}
		a.usual.head++
		if wait {
			if !w.tx.missed() {
				return w.tx
			}
			w.tx.waitingUntil += slowWait
			a.slow.push(w.tx, w.gen, open)
		}
	}
	a.usual.empty()
	for a.slow.head < len(a.slow.q) {
		w := a.slow.q[a.slow.head]
		if !w.over() && now < w.tx.waitingUntil {
			break
		}
		a.slow.head++
		if !w.over() {
			return w.tx
		}
	}
	a.slow.empty()
	return nil
}

// ring is a queue of transactions that wait for the acknowledgement of their
// reply.
type ring struct {
	q    []waiter
	head int
}

type waiter struct {
	tx  *Transaction
	gen uint64
}

// over reports whether the transaction has ended by other means.
func (w *waiter) over() bool { return w.tx.gen != w.gen || w.tx.finished }

// push adds a transaction. open is how many there are at most that still wait:
// where they do not expire, because time stands still, the rest is swept out.
func (r *ring) push(tx *Transaction, gen uint64, open int) {
	if r.head > 64 || len(r.q) > 1024 {
		r.tidy(open)
	}
	r.q = append(r.q, waiter{tx, gen})
}

// tidy makes room for push, if there is much that does not wait.
func (r *ring) tidy(open int) {
	switch {
	case r.head > 64 && r.head > len(r.q)/2:
		n := copy(r.q, r.q[r.head:])
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	case len(r.q)-r.head > 1024+2*open:
		n := 0
		for _, w := range r.q[r.head:] {
			if !w.over() {
				r.q[n] = w
				n++
			}
		}
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	}
}

// left takes out a transaction that has ended, if it is the one that was pushed last: then nobody has to look at it again.
func (r *ring) left(tx *Transaction) {
	if n := len(r.q) - 1; n >= r.head && r.q[n].tx == tx {
		r.q = r.q[:n]
	}
}

// empty begins anew if nothing waits.
func (r *ring) empty() {
	if r.head == len(r.q) {
		r.q, r.head = r.q[:0], 0
	}
}

// ahead has the replies that came before their calls, in the order of their coming from at on.
type ahead struct {
	list []waiter
	at   int
}

// maxAheadReplies is how many replies wait for their calls at once. In a capture
// that has one direction only they all do.
const maxAheadReplies = 1024

const waiterSize = int(unsafe.Sizeof(waiter{}))

// wait adds a transaction. The one that has waited longest is returned if it has to go for it; grown is by how many bytes the list has grown.
func (a *ahead) wait(tx *Transaction) (gone *Transaction, grown int) {
	if len(a.list) < maxAheadReplies {
		before := cap(a.list)
		a.list = append(a.list, waiter{tx, tx.gen})
		return nil, (cap(a.list) - before) * waiterSize
	}
	w := &a.list[a.at]
	a.at = (a.at + 1) % len(a.list)
	old := *w
	*w = waiter{tx, tx.gen}
	if old.over() || old.tx.Call.Seen() {
		return nil, 0
	}
	return old.tx, 0
}
