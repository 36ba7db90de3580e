package decode

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/heap"
)

// merger puts what the groups have found into the order in which one tracker would have found it, a batch at a time.
type merger struct {
	d     *Decoder
	emit  func(*transaction.Transaction)
	order bool // transactions come in the order of their calls, and not as they end

	events  []event // of the batch at hand
	endings []ending
	numbers [maxGroups][]int // of connections, by group and its own number
	count   int              // of all connections
	serial  uint64
	groups  [maxGroups]waiting
	busy    []uint16 // groups with transactions that wait: a heap, the oldest first
	held    int      // transactions that wait
	bytes   int      // of these
	settled *settled
}

// waiting holds the transactions of a group that wait for older ones of other groups.
type waiting struct {
	queue []ending
	head  int
	key   uint64 // of the first in the queue
}

const (
	maxHeld     = 1024 // as transaction.Options.Held
	heldPortion = 8    // of the memory
)

func newMerger(d *Decoder) *merger {
	return &merger{d: d, emit: d.emit, order: !d.opt.Transactions.OnCompletion}
}

// batch merges what the workers have found in a batch: connections first, whose numbers transactions have.
func (m *merger) batch(j *grouped) {
	m.settled = m.d.groups.settledBefore(j)
	for i := range j.parts {
		m.events = append(m.events, j.parts[i].events...)
	}
	slices.SortStableFunc(m.events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.group, b.group)) })
	for i := range m.events {
		m.event(&m.events[i])
	}
	clear(m.events)
	m.events = m.events[:0]
	if m.order {
		m.inOrder(j)
	} else {
		m.asEnded(j)
	}
	m.d.groups.caps(&j.used, &m.settled.caps)
}

func (m *merger) event(e *event) {
	if e.c == nil {
		m.count++
		m.numbers[e.group] = append(m.numbers[e.group], m.count)
		return
	}
	if id := e.c.ID; id > 0 {
		e.c.ID = m.numbers[e.group][id-1]
	}
	if into := e.c.MergedInto; into != nil && into.ID > 0 {
		into.ID = m.numbers[e.group][into.ID-1]
	}
	m.d.observer.Closed(e.c)
}

// asEnded emits the transactions of a batch as they have ended.
func (m *merger) asEnded(j *grouped) {
	for i := range j.parts {
		m.endings = append(m.endings, j.parts[i].endings...)
		clear(j.parts[i].endings)
	}
	slices.SortStableFunc(m.endings, func(a, b ending) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.group, b.group)) })
	for i := range m.endings {
		m.out(&m.endings[i])
	}
	m.endings = m.endings[:0]
}

// inOrder emits what is older than all that has not ended in other groups. What has not in its own has waited for it as long as it
// should.
func (m *merger) inOrder(j *grouped) {
	for i := range j.parts {
		p := &j.parts[i]
		for k := range p.endings {
			m.add(&p.endings[k])
		}
		clear(p.endings)
	}
	low, second := uint64(noMark), uint64(noMark) // the lowest marks
	lowest := uint16(maxGroups)
	for i, mark := range j.marks {
		switch {
		case mark < low:
			low, second, lowest = mark, low, uint16(i)
		case mark < second:
			second = mark
		}
	}
	for len(m.busy) > 0 {
		g := m.busy[0]
		bound := low
		if g == lowest {
			bound = second
		}
		if m.groups[g].key > bound && m.held <= maxHeld && m.bytes <= m.d.groups.limit/heldPortion && !j.last {
			return
		}
		m.pop()
	}
}

// add takes an ended transaction.
func (m *merger) add(e *ending) {
	w := &m.groups[e.group]
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
		w.key = e.tx.First().Number
		m.busy = heap.Push(m.busy, e.group, m.before)
	}
	if w.head > 64 && w.head > len(w.queue)/2 {
		n := copy(w.queue, w.queue[w.head:])
		clear(w.queue[n:])
		w.queue, w.head = w.queue[:n], 0
	}
	w.queue = append(w.queue, *e)
	m.held++
	m.bytes += e.bytes
}

// pop emits the oldest transaction that waits.
func (m *merger) pop() {
	w := &m.groups[m.busy[0]]
	e := &w.queue[w.head]
	w.head++
	m.held--
	m.bytes -= e.bytes
	m.out(e)
	if w.head < len(w.queue) {
		w.key = max(w.key, w.queue[w.head].tx.First().Number)
		heap.Fix(m.busy, m.before)
	} else {
		w.queue, w.head = w.queue[:0], 0
		_, m.busy = heap.Pop(m.busy, m.before)
	}
}

// before reports whether the first transaction of a group precedes that of another one.
func (m *merger) before(a, b uint16) bool {
	x, y := m.groups[a].key, m.groups[b].key
	return x < y || x == y && a < b
}

// out hands a transaction to the consumer. Its group gets it back with a later batch.
func (m *merger) out(e *ending) {
	m.serial++
	tx := e.tx
	tx.Renumber(m.numbers[e.group], m.serial)
	m.emit(tx)
	tx.Release()
	back := &m.settled.back[int(e.group)%len(m.settled.back)]
	*back = append(*back, *e)
	e.tx = nil
}
