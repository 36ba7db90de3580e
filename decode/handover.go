package decode

import (
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// handover passes transactions to a consumer goroutine, and back to the tracker that owns their memory.
type handover struct {
	emit    func(*transaction.Transaction)
	recycle func(*transaction.Transaction)

	memory *memory.Account
	limit  int // bytes held by one list, except for its last transaction

	list parcel // being filled
	away int    // bytes held by the lists on their way
	free [][]*transaction.Transaction
	out  chan parcel
	back chan parcel
	done chan struct{}
}

// parcel is a list of transactions on its way.
type parcel struct {
	list  []*transaction.Transaction
	bytes int // what they hold
}

// What is on its way should stay in the second-level cache, with the batches: beyond that, each transaction costs misses on
// both sides. See docs/design/0080-less-under-way.md.
const (
	handoverList  = 16        // transactions that change hands together
	handoverLists = 4         // lists on their way
	handoverBytes = 512 << 10 // most that one list holds, except for its last transaction
)

func newHandover(emit, recycle func(*transaction.Transaction), m *memory.Account) *handover {
	h := &handover{
		emit: emit, recycle: recycle, memory: m,
		limit: min(handoverBytes, m.Limit()/8/handoverLists),
		out:   make(chan parcel, handoverLists),
		back:  make(chan parcel, handoverLists),
		done:  make(chan struct{}),
	}
	go func() {
		defer close(h.done)
		defer close(h.back)
		for p := range h.out {
			for _, tx := range p.list {
				h.emit(tx)
				tx.Release()
			}
			h.back <- p
		}
	}()
	return h
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
	h.list.list = append(h.list.list, tx)
	h.list.bytes += tx.Memory()
	h.memory.Add(tx.Memory())
	if len(h.list.list) == handoverList || h.list.bytes > h.limit {
		h.send()
	}
}

// send passes the list on, and takes back those already processed. A list that exceeds the total limit waits
// until it is the only one.
func (h *handover) send() {
	if len(h.list.list) == 0 {
		return
	}
	for h.away > 0 && h.away+h.list.bytes > handoverLists*h.limit {
		h.take(<-h.back)
	}
	for h.list.list != nil {
		select {
		case p := <-h.back:
			h.take(p)
		case h.out <- h.list:
			h.away += h.list.bytes
			h.list = parcel{}
		}
	}
}

func (h *handover) take(p parcel) {
	h.away -= p.bytes
	h.memory.Add(-p.bytes)
	for _, tx := range p.list {
		h.recycle(tx)
	}
	h.free = append(h.free, p.list[:0])
}

// finish waits until all has been looked at.
func (h *handover) finish() {
	h.send()
	close(h.out)
	for p := range h.back {
		h.take(p)
	}
	<-h.done
}
