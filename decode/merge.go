package decode

import "github.com/rpcrdma/toolkit/decode/transaction"

// merger puts what the groups have found into the order in which one tracker would have found it.
type merger struct {
	d     *Decoder
	emit  func(*transaction.Transaction)
	order bool // transactions come in the order of their calls, and not as they end

	numbers [maxGroups][]int // of connections, by group and its own number
	count   int              // of all connections
	serial  uint64
	groups  [maxGroups]waiting
	busy    []uint16 // groups with transactions that wait
	held    int      // transactions that wait
	bytes   int      // of these

	// The lowest and the second lowest mark, and whose the lowest is. While nothing waits for them, they are found later.
	low, second uint64
	lowest      uint16 // maxGroups: all have ended everything
	stale       bool

	job   *grouped
	heads []int // of the workers' lists
}

// waiting is what a group has ended, and what it has not.
type waiting struct {
	mark  uint64 // first packet of the oldest transaction that has not ended
	queue []event
	head  int
	key   uint64 // of the first in the queue
}

const (
	maxHeld     = 1024 // as transaction.Options.Held
	heldPortion = 8    // of the memory
)

func newMerger(d *Decoder) *merger {
	m := &merger{d: d, emit: d.emit, order: !d.opt.Transactions.OnCompletion, low: noMark, second: noMark, lowest: maxGroups}
	for i := range m.groups {
		m.groups[i].mark = noMark
	}
	return m
}

// batch merges what the workers have found in a batch.
func (m *merger) batch(j *grouped) {
	m.job = j
	m.heads = m.heads[:0]
	for range j.parts {
		m.heads = append(m.heads, 0)
	}
	for {
		e := m.next()
		if e == nil {
			break
		}
		m.event(e)
	}
	if j.last {
		m.release()
	}
	m.d.groups.caps(&j.used, &j.caps)
}

// next is the next event of the batch in the order of the capture, nil at its end.
func (m *merger) next() *event {
	var first *event
	from := 0
	for i := range m.heads {
		list := m.job.parts[i].out
		if m.heads[i] == len(list) {
			continue
		}
		e := &list[m.heads[i]]
		if first == nil || e.at < first.at || e.at == first.at && e.group < first.group {
			first, from = e, i
		}
	}
	if first != nil {
		m.heads[from]++
	}
	return first
}

func (m *merger) event(e *event) {
	switch e.kind {
	case eventNumber:
		m.count++
		m.numbers[e.group] = append(m.numbers[e.group], m.count)
	case eventClosed:
		if id := e.c.ID; id > 0 {
			e.c.ID = m.numbers[e.group][id-1]
		}
		if into := e.c.MergedInto; into != nil && into.ID > 0 {
			into.ID = m.numbers[e.group][into.ID-1]
		}
		m.d.opt.Closed(e.c)
		e.c = nil
	case eventMark:
		w := &m.groups[e.group]
		old := w.mark
		w.mark = e.n
		if e.group != m.lowest && old > m.second && e.n >= m.second {
			return // the lowest ones are the same
		}
		m.stale = true
		m.drain()
	case eventTransaction:
		m.add(e)
	}
}

// add takes an ended transaction.
func (m *merger) add(e *event) {
	if !m.order {
		m.out(e)
		return
	}
	w := &m.groups[e.group]
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
		w.key = e.tx.First().Number
		m.busy = append(m.busy, e.group)
	}
	if w.head > 64 && w.head > len(w.queue)/2 {
		n := copy(w.queue, w.queue[w.head:])
		clear(w.queue[n:])
		w.queue, w.head = w.queue[:n], 0
	}
	w.queue = append(w.queue, *e)
	e.tx = nil
	m.held++
	m.bytes += e.bytes
	m.drain()
	if e.at < endOf && (m.held > maxHeld || m.bytes > m.d.groups.limit/heldPortion) {
		m.release()
	}
}

// marks finds the lowest marks.
func (m *merger) marks() {
	m.stale = false
	m.low, m.second, m.lowest = noMark, noMark, maxGroups
	for i := range m.groups {
		switch k := m.groups[i].mark; {
		case k < m.low:
			m.second = m.low
			m.low, m.lowest = k, uint16(i)
		case k < m.second:
			m.second = k
		}
	}
}

// first is the group whose first waiting transaction is the oldest.
func (m *merger) first() (at int) {
	for i, g := range m.busy[1:] {
		if a, b := m.groups[g].key, m.groups[m.busy[at]].key; a < b || a == b && g < m.busy[at] {
			at = i + 1
		}
	}
	return at
}

// drain emits what is older than all that has not ended in other groups. What has not in its own has waited for
// it as long as it should.
func (m *merger) drain() {
	if m.stale && len(m.busy) > 0 {
		m.marks()
	}
	for len(m.busy) > 0 {
		at := m.first()
		g := m.busy[at]
		bound := m.low
		if g == m.lowest {
			bound = m.second
		}
		if m.groups[g].key > bound {
			return
		}
		m.pop(at)
	}
}

// release emits all that waits.
func (m *merger) release() {
	for len(m.busy) > 0 {
		m.pop(m.first())
	}
}

// pop emits the first waiting transaction of a group.
func (m *merger) pop(at int) {
	w := &m.groups[m.busy[at]]
	e := &w.queue[w.head]
	w.head++
	m.held--
	m.bytes -= e.bytes
	m.out(e)
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
		last := len(m.busy) - 1
		m.busy[at] = m.busy[last]
		m.busy = m.busy[:last]
		return
	}
	w.key = max(w.key, w.queue[w.head].tx.First().Number)
}

// out hands a transaction to the consumer. Its group gets it back with a later batch.
func (m *merger) out(e *event) {
	m.serial++
	tx := e.tx
	tx.Renumber(m.numbers[e.group], m.serial)
	m.emit(tx)
	tx.Release()
	p := &m.job.parts[int(e.group)%len(m.job.parts)]
	p.back = append(p.back, event{group: e.group, tx: tx, bytes: e.bytes})
	e.tx = nil
}
