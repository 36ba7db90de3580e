// Package halfopen keeps peers that have asked for a connection but not completed the
// first step: TCP connections without a first message, connection requests without a
// confirmation. A flood of them must not keep others out (RFC 4987). There is always
// room for one more: when the table is full, an entry is evicted, one of the source
// that has the most.
package halfopen

import (
	"math/rand/v2"
	"net/netip"
	"time"
)

// Table is a bounded set of half-open peers. It is not safe for use by several
// goroutines at a time.
type Table[T any] struct {
	limit   int
	entries []*Entry[T]
	sources map[netip.Prefix]int
	// The oldest and the newest entry.
	head, tail *Entry[T]
}

// Entry is a peer in a Table.
type Entry[T any] struct {
	Value T
	// Since is when it was added.
	Since  time.Time
	source netip.Prefix
	// at is its index in Table.entries; -1 when it is in no table.
	at         int
	prev, next *Entry[T]
}

// samples is how many random entries are compared for an eviction. If one source has
// half of the table, it is almost certainly among them. If all sources have the same
// share, as in a flood with forged addresses, the oldest of them is evicted, so that a
// recent entry is safe.
const samples = 8

// New returns a table of at most limit entries.
func New[T any](limit int) *Table[T] {
	return &Table[T]{limit: max(limit, 1), sources: make(map[netip.Prefix]int)}
}

// Source returns what counts as one source of an attack: an IPv4 address, or an IPv6
// network of 64 bits, whose owner can use all its addresses.
func Source(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

// Len returns the number of entries.
func (t *Table[T]) Len() int { return len(t.entries) }

// Share returns how many entries a source has.
func (t *Table[T]) Share(source netip.Prefix) int { return t.sources[source] }

// Add adds a peer. If the table was full, evicted is the entry that it has replaced.
func (t *Table[T]) Add(from netip.Addr, value T, now time.Time) (added, evicted *Entry[T]) {
	if len(t.entries) >= t.limit {
		evicted = t.Evict()
	}
	e := &Entry[T]{Value: value, Since: now, source: Source(from), at: len(t.entries), prev: t.tail}
	t.entries = append(t.entries, e)
	t.sources[e.source]++
	if t.tail != nil {
		t.tail.next = e
	} else {
		t.head = e
	}
	t.tail = e
	return e, evicted
}

// Evict removes and returns an entry of the source that has the most; nil if the table
// is empty.
func (t *Table[T]) Evict() *Entry[T] {
	var worst *Entry[T]
	share := 0
	for range min(samples, len(t.entries)) {
		e := t.entries[rand.IntN(len(t.entries))]
		switch n := t.sources[e.source]; {
		case worst == nil, n > share, n == share && e.Since.Before(worst.Since):
			worst, share = e, n
		}
	}
	if worst != nil {
		t.Remove(worst)
	}
	return worst
}

// Remove removes an entry. It reports false if the entry is not in the table.
func (t *Table[T]) Remove(e *Entry[T]) bool {
	if e.at < 0 || e.at >= len(t.entries) || t.entries[e.at] != e {
		return false
	}
	last := t.entries[len(t.entries)-1]
	t.entries[e.at], last.at = last, e.at
	t.entries[len(t.entries)-1] = nil
	t.entries = t.entries[:len(t.entries)-1]
	e.at = -1
	if t.sources[e.source]--; t.sources[e.source] == 0 {
		delete(t.sources, e.source)
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		t.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		t.tail = e.prev
	}
	e.prev, e.next = nil, nil
	return true
}

// Oldest returns the oldest entry; nil if the table is empty.
func (t *Table[T]) Oldest() *Entry[T] { return t.head }
