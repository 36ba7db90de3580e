package decode

import "github.com/rpcrdma/toolkit/decode/transaction"

// handover carries transactions to a goroutine that looks at them, and back
// to the tracker that owns their memory.
type handover struct {
	emit    func(*transaction.Transaction)
	recycle func(*transaction.Transaction)

	list  []*transaction.Transaction // being filled
	bytes int                        // what it holds
	free  [][]*transaction.Transaction
	out   chan []*transaction.Transaction
	back  chan []*transaction.Transaction
	done  chan struct{}
}

const (
	handoverList  = 32        // transactions that change hands together
	handoverLists = 16        // lists on their way
	handoverBytes = 512 << 10 // held by one list, but for its last transaction
)

func newHandover(emit, recycle func(*transaction.Transaction)) *handover {
	h := &handover{
		emit: emit, recycle: recycle,
		out:  make(chan []*transaction.Transaction, handoverLists),
		back: make(chan []*transaction.Transaction, handoverLists),
		done: make(chan struct{}),
	}
	go func() {
		defer close(h.done)
		defer close(h.back)
		for list := range h.out {
			for _, tx := range list {
				h.emit(tx)
				tx.Release()
			}
			h.back <- list
		}
	}()
	return h
}

// add hands a transaction over, with others.
func (h *handover) add(tx *transaction.Transaction) {
	if h.list == nil {
		if n := len(h.free); n > 0 {
			h.list, h.free = h.free[n-1], h.free[:n-1]
		} else {
			h.list = make([]*transaction.Transaction, 0, handoverList)
		}
	}
	h.list = append(h.list, tx)
	h.bytes += tx.Memory()
	if len(h.list) == handoverList || h.bytes > handoverBytes {
		h.send()
	}
}

// send hands the list over, and takes back what has been looked at.
func (h *handover) send() {
	if len(h.list) == 0 {
		return
	}
	for h.list != nil {
		select {
		case list := <-h.back:
			h.take(list)
		case h.out <- h.list:
			h.list, h.bytes = nil, 0
		}
	}
}

func (h *handover) take(list []*transaction.Transaction) {
	for _, tx := range list {
		h.recycle(tx)
	}
	h.free = append(h.free, list[:0])
}

// finish waits until all has been looked at.
func (h *handover) finish() {
	h.send()
	close(h.out)
	for list := range h.back {
		h.take(list)
	}
	<-h.done
}
