package monitor

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// ended is a transaction that has ended but is still listed.
type ended struct {
	tx    *transaction.Transaction
	at    int64 // ns since 1970
	total int64 // -1 if not known
	size  int
	shown bool // part of a snapshot: it may be requested
	row   *Row
}

// linger keeps ended transactions: the latest, the slowest, and those with anomalies. If many end, the latest
// change faster than anyone can read. What was shown stays until the next snapshot, so that it can be opened.
type linger struct {
	recent []*ended // oldest first
	slow   []*ended
	odd    []*ended
	gone   []*ended // shown, and dropped since
	pinned *ended   // being viewed
	bytes  int
	watch  uint64
	spare  []*ended
	free   func(*transaction.Transaction)

	// A page instead of all these: ended transactions from number from on.
	paging bool
	from   uint64
	passed uint64 // seen so far
	page   []*ended
	full   bool
}

// turn takes a transaction for the page, if it belongs there.
func (l *linger) turn(tx *transaction.Transaction, at, total int64) {
	n := l.passed
	l.passed++
	size := tx.Memory()
	l.full = l.full || len(l.page) == maxPage || len(l.page) > 0 && l.bytes+size > maxHeld
	if n < l.from || l.full {
		l.free(tx)
		return
	}
	l.bytes += size
	l.page = append(l.page, &ended{tx: tx, at: at, total: total, size: size})
}

// add adds a transaction that has just ended. It is released at once if it is not kept.
func (l *linger) add(tx *transaction.Transaction, at, total int64, odd bool) {
	e := l.entry()
	*e = ended{tx: tx, at: at, total: total, size: tx.Memory()}
	if tx.Serial() == l.watch && l.pinned == nil {
		l.pinned = e
		return
	}
	if e.size > maxHeld/4 {
		l.release(e)
		return
	}
	l.bytes += e.size
	switch {
	case odd:
		l.odd = l.push(l.odd, e, maxOdd)
	case total >= 0 && l.isSlow(e):
	default:
		l.recent = l.push(l.recent, e, maxRecent)
	}
	for l.bytes > maxHeld {
		switch {
		case len(l.recent) > 0:
			l.recent = l.drop(l.recent, 0)
		case len(l.odd) > 0:
			l.odd = l.drop(l.odd, 0)
		case len(l.slow) > 0:
			l.slow = l.drop(l.slow, 0)
		default:
			return
		}
	}
}

// aside keeps a transaction that a frozen list shows as open, so that it can be opened.
func (l *linger) aside(tx *transaction.Transaction, at, total int64) {
	e := l.entry()
	*e = ended{tx: tx, at: at, total: total, size: tx.Memory(), shown: true}
	held := 0
	for _, x := range l.gone {
		held += x.size
	}
	if held+e.size > maxHeld {
		l.release(e)
		return
	}
	l.gone = append(l.gone, e)
}

func (l *linger) entry() *ended {
	if n := len(l.spare); n > 0 {
		e := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return e
	}
	return new(ended)
}

// release returns a transaction to the decoder.
func (l *linger) release(e *ended) {
	l.free(e.tx)
	*e = ended{}
	l.spare = append(l.spare, e)
}

// push appends to a list and drops its oldest entry.
func (l *linger) push(list []*ended, e *ended, limit int) []*ended {
	list = append(list, e)
	if len(list) > limit {
		list = l.drop(list, 0)
	}
	return list
}

// isSlow adds a transaction if it is slower than the fastest of the slow ones.
func (l *linger) isSlow(e *ended) bool {
	if len(l.slow) < maxSlow {
		l.slow = append(l.slow, e)
		return true
	}
	least := 0
	for i := range l.slow {
		if l.slow[i].total < l.slow[least].total {
			least = i
		}
	}
	if e.total <= l.slow[least].total {
		return false
	}
	l.slow = append(l.drop(l.slow, least), e)
	return true
}

// drop drops the i-th entry of a list.
func (l *linger) drop(list []*ended, i int) []*ended {
	e := list[i]
	l.bytes -= e.size
	if e.shown && len(l.gone) < maxRecent+maxSlow+maxOdd {
		l.gone = append(l.gone, e)
	} else {
		l.release(e)
	}
	return slices.Delete(list, i, i+1)
}

// expire drops what ended before a time.
func (l *linger) expire(before int64) {
	old := func(list []*ended) []*ended {
		for i := 0; i < len(list); {
			if list[i].at < before {
				list = l.drop(list, i)
			} else {
				i++
			}
		}
		return list
	}
	l.recent, l.slow, l.odd = old(l.recent), old(l.slow), old(l.odd)
}

// keep drops transactions that want rejects.
func (l *linger) keep(want func(*transaction.Transaction) bool) {
	some := func(list []*ended) []*ended {
		for i := 0; i < len(list); {
			if want(list[i].tx) {
				i++
			} else {
				list = l.drop(list, i)
			}
		}
		return list
	}
	l.recent, l.slow, l.odd = some(l.recent), some(l.slow), some(l.odd)
}

// sweep releases what was dropped before this snapshot.
func (l *linger) sweep() {
	for i, e := range l.gone {
		l.release(e)
		l.gone[i] = nil
	}
	l.gone = l.gone[:0]
}

// find finds an ended transaction.
func (l *linger) find(serial uint64) *ended {
	if l.pinned != nil && l.pinned.tx.Serial() == serial {
		return l.pinned
	}
	for _, list := range [...][]*ended{l.recent, l.slow, l.odd, l.gone, l.page} {
		for _, e := range list {
			if e.tx.Serial() == serial {
				return e
			}
		}
	}
	return nil
}

// look sets the transaction that is viewed; 0 is none.
func (l *linger) look(serial uint64) {
	if e := l.pinned; e != nil && e.tx.Serial() != serial {
		l.bytes += e.size
		l.recent = l.push(l.recent, e, maxRecent)
		l.pinned = nil
	}
	l.watch = serial
	if serial == 0 || l.pinned != nil {
		return
	}
	// Remove it from its list, so that nothing drops it.
	for _, list := range [...]*[]*ended{&l.recent, &l.slow, &l.odd, &l.gone} {
		for i, e := range *list {
			if e.tx.Serial() != serial {
				continue
			}
			if list != &l.gone {
				l.bytes -= e.size
			}
			*list = slices.Delete(*list, i, i+1)
			l.pinned = e
			return
		}
	}
}

// each visits all that are listed.
func (l *linger) each(f func(*ended)) {
	if l.pinned != nil {
		f(l.pinned)
	}
	for _, list := range [...][]*ended{l.odd, l.slow, l.recent, l.page} {
		for _, e := range list {
			f(e)
		}
	}
}

// count is how many are kept.
func (l *linger) count() int { return len(l.recent) + len(l.slow) + len(l.odd) + len(l.gone) }
