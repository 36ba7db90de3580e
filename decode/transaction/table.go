package transaction

// Table has a value for each of some open transactions, for whoever observes them: see decode.MessageObserver. Some of them
// are in an array: most calls are answered while few others are open, and a map costs several times as much. The zero
// value is empty.
type Table[V any] struct {
	keys [nearTable]*Transaction // nil: free
	near [nearTable]V
	far  map[*Transaction]V
	at   int // in near: the next to go to far
	n    int
}

const nearTable = 16

// Len is how many transactions have a value.
func (t *Table[V]) Len() int { return t.n }

// Get is the value of a transaction.
func (t *Table[V]) Get(tx *Transaction) (v V, ok bool) {
	for i, k := range &t.keys {
		if k == tx {
			return t.near[i], true
		}
	}
	if len(t.far) > 0 {
		v, ok = t.far[tx]
	}
	return v, ok
}

// Put gives a value to a transaction that has none.
func (t *Table[V]) Put(tx *Transaction, v V) {
	t.n++
	for i, k := range &t.keys {
		if k == nil {
			t.keys[i], t.near[i] = tx, v
			return
		}
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
	for i, k := range &t.keys {
		if k == tx {
			v, t.near[i], t.keys[i] = t.near[i], v, nil
			t.n--
			return v, true
		}
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

// DeleteFunc removes the values for which del returns true.
func (t *Table[V]) DeleteFunc(del func(V) bool) {
	var none V
	for i, k := range &t.keys {
		if k != nil && del(t.near[i]) {
			t.keys[i], t.near[i] = nil, none
			t.n--
		}
	}
	for k, v := range t.far {
		if del(v) {
			delete(t.far, k)
			t.n--
		}
	}
}
