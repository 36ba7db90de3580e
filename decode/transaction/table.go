package transaction

import "math/bits"

// Table has a value for each of some open transactions, for whoever observes them: see decode.Observer. Some of them
// are in an array: most calls are answered while few others are open, and a map costs several times as much. The zero
// value is empty.
type Table[V any] struct {
	used uint16 // which of near have a value, a bit each: most of the time few
	keys [nearTable]*Transaction
	near [nearTable]V
	far  map[*Transaction]V
	at   int // in near: the next to go to far
	n    int
}

const nearTable = 16

// Len is how many transactions have a value.
func (t *Table[V]) Len() int { return t.n }

// find is the place of a transaction in near; -1 if it is not there.
func (t *Table[V]) find(tx *Transaction) int {
	for m := t.used; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros16(m) % nearTable; t.keys[i] == tx {
			return i
		}
	}
	return -1
}

// Get is the value of a transaction.
func (t *Table[V]) Get(tx *Transaction) (v V, ok bool) {
	if i := t.find(tx); i >= 0 {
		return t.near[i], true
	}
	if len(t.far) > 0 {
		v, ok = t.far[tx]
	}
	return v, ok
}

// Put gives a value to a transaction that has none.
func (t *Table[V]) Put(tx *Transaction, v V) {
	t.n++
	if i := bits.TrailingZeros16(^t.used); i < nearTable {
		t.used |= 1 << i
		t.keys[i], t.near[i] = tx, v
		return
	}
	if t.far == nil {
		t.far = make(map[*Transaction]V)
	}
	t.far[t.keys[t.at]] = t.near[t.at]
	t.keys[t.at], t.near[t.at] = tx, v
	t.at = (t.at + 1) % nearTable
}

// Take removes the value of a transaction and returns it.
func (t *Table[V]) Take(tx *Transaction) (v V, ok bool) {
	if i := t.find(tx); i >= 0 {
		v = t.near[i]
		t.clear(i)
		return v, true
	}
	if len(t.far) == 0 {
		return v, false
	}
	if v, ok = t.far[tx]; ok {
		delete(t.far, tx)
		t.n--
	}
	return v, ok
}

// clear frees a place of near.
func (t *Table[V]) clear(i int) {
	var none V
	t.used &^= 1 << i
	t.keys[i], t.near[i] = nil, none
	t.n--
}

// DeleteFunc removes the values for which del returns true.
func (t *Table[V]) DeleteFunc(del func(V) bool) {
	for m := t.used; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros16(m); del(t.near[i]) {
			t.clear(i)
		}
	}
	for k, v := range t.far {
		if del(v) {
			delete(t.far, k)
			t.n--
		}
	}
}
