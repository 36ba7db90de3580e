package decode

import (
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// handover passes transactions to whoever consumes them, and back to the tracker that owns their memory. It belongs to the
// tracking goroutine.
type handover struct {
	p      *pipeline
	memory *memory.Account
	limit  int // bytes on their way, unless there is one list

	list parcel // being filled
	away int    // bytes held by the lists on their way
	free [][]*transaction.Transaction
	seen []parcel // consumed
}

// parcel is a list of transactions on its way.
type parcel struct {
	list  []*transaction.Transaction
	bytes int // what they hold
}

const (
	handoverList  = 16      // transactions that change hands together
	handoverLists = 8       // lists that wait for a helper before the tracking goroutine consumes
	handoverMost  = 12      // lists that wait while somebody consumes one
	handoverBytes = 4 << 20 // what all of them hold
	leastHandover = 2 << 20 // with less memory for all, nothing is handed over: connections would be evicted to make room for it
)

func newHandover(p *pipeline, m *memory.Account) *handover {
	return &handover{p: p, memory: m, limit: min(handoverBytes, m.Limit()/8)}
}

// add hands a transaction over, with others.
func (h *handover) add(tx *transaction.Transaction) {
	if h.list.list == nil {
		if n := len(h.free); n > 0 {
			h.list.list, h.free = h.free[n-1], h.free[:n-1]
		} else {
			h.list.list = make([]*transaction.Transaction, 0, handoverList)
		}
	}
	n := tx.Memory()
	h.list.list = append(h.list.list, tx)
	h.list.bytes += n
	h.memory.Add(n)
	if len(h.seen) > 0 {
		h.recycle()
	}
	if len(h.list.list) == handoverList || h.list.bytes > h.limit/handoverLists {
		h.p.mu.Lock()
		h.send()
		h.p.mu.Unlock()
	}
}

// send passes the list on, and takes back those that were consumed. It returns false if there is none. A list that exceeds
// the limit waits until it is the only one. p.mu is held, except while something else is done.
func (h *handover) send() bool {
	if h == nil || len(h.list.list) == 0 {
		return false
	}
	p := h.p
	for {
		h.collect()
		n, heavy := p.lists.len(), h.away > 0 && h.away+h.list.bytes > h.limit
		switch {
		case n >= handoverLists || heavy:
			if p.consume() {
				continue
			}
			if n >= handoverMost || heavy {
				p.wait(waitsForConsumer)
				continue
			}
		}
		break
	}
	p.lists.add(h.list)
	h.away += h.list.bytes
	h.list = parcel{}
	p.call()
	p.mu.Unlock()
	h.recycle()
	p.mu.Lock()
	return true
}

// collect takes back what was consumed. p.mu is held.
func (h *handover) collect() {
	p := h.p
	for i := range p.back {
		h.away -= p.back[i].bytes
	}
	h.seen = append(h.seen, p.back...)
	clear(p.back)
	p.back = p.back[:0]
}

// recycle gives what was collected to the tracker.
func (h *handover) recycle() {
	for i := range h.seen {
		x := &h.seen[i]
		h.memory.Add(-x.bytes)
		for _, tx := range x.list {
			h.p.d.tx.Recycle(tx)
		}
		h.free = append(h.free, x.list[:0])
		*x = parcel{}
	}
	h.seen = h.seen[:0]
}

// finish waits until all has been consumed.
func (h *handover) finish() {
	p := h.p
	p.mu.Lock()
	h.send()
	for p.lists.len() > 0 || p.busy {
		if !p.consume() {
			p.wait(waitsForConsumer)
		}
	}
	h.collect()
	p.mu.Unlock()
	h.recycle()
}
