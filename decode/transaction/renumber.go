package transaction

// Where several trackers share a capture, each numbers connections and transactions
// by itself. What is put together from all of them has numbers of its own.

// Renumber gives an emitted transaction of a Tracker with Options.Detach other numbers:
// numbers has those of the tracker's connections, number n at n-1, and serial that of
// the transaction. Transactions that share the copy of a connection are renumbered by
// one goroutine at a time.
func (t *Transaction) Renumber(numbers []int, serial uint64) {
	t.serial = serial
	if k := of(t.Connection); !k.renumbered {
		k.renumbered = true
		if id := t.Connection.ID; id > 0 {
			t.Connection.ID = numbers[id-1]
		}
	}
	for i := range t.Notes {
		n := &t.Notes[i]
		if (n.Kind == ResentOn || n.Kind == ResentFrom) && n.N > 0 {
			n.N = uint64(numbers[n.N-1])
		}
	}
}

// Oldest is the first packet of the oldest transaction that the tracker has not emitted;
// false if there is none.
func (t *Tracker) Oldest() (first uint64, ok bool) {
	if t.queue.head == nil {
		return 0, false
	}
	return t.queue.head.First().Number, true
}
