package transaction

// States has a value for each of some transactions, for whoever observes them: see decode.Observer. A value is where
// the entry of its transaction says, so that to find it takes no search. The zero value is empty. It is as long as the most
// transactions that a Tracker has held at a time.
type States[V any] struct {
	list []state[V]
}

type state[V any] struct {
	tx *Transaction // nil: no value. Another transaction may have the entry now
	v  V
}

// Of returns the value of a transaction; nil if it has none. It is valid until the next Begin.
func (s *States[V]) Of(tx *Transaction) *V {
	if i := int(tx.entry); i < len(s.list) {
		if x := &s.list[i]; x.tx == tx {
			return &x.v
		}
	}
	return nil
}

// Begin gives a value to a transaction that has none. It is zero.
func (s *States[V]) Begin(tx *Transaction) *V {
	if int(tx.entry) >= len(s.list) {
		s.list = append(s.list, make([]state[V], int(tx.entry)+1-len(s.list))...)
	}
	x := &s.list[tx.entry]
	if x.tx != nil { // of one that was dropped
		*x = state[V]{}
	}
	x.tx = tx
	return &x.v
}

// End forgets the value of a transaction that has one.
func (s *States[V]) End(tx *Transaction) { s.list[tx.entry] = state[V]{} }
