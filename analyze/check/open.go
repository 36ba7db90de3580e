package check

import "github.com/rpcrdma/toolkit/decode/transaction"

// openCalls are the states of open transactions. The newest few are in an array: most calls are answered while
// few others are open, and a map costs more than all rules of such a call.
type openCalls struct {
	near [8]openCall
	far  map[*transaction.Transaction]*callState
	at   int // in near: the next place to be given up
}

type openCall struct {
	tx *transaction.Transaction // nil: none
	st *callState
}

// get is the state of a transaction, nil if there is none.
func (o *openCalls) get(tx *transaction.Transaction) *callState {
	for i := range o.near {
		if o.near[i].tx == tx {
			return o.near[i].st
		}
	}
	if len(o.far) == 0 {
		return nil
	}
	return o.far[tx]
}

// put adds the state of a transaction that has none.
func (o *openCalls) put(tx *transaction.Transaction, st *callState) {
	for i := range o.near {
		if o.near[i].tx == nil {
			o.near[i] = openCall{tx, st}
			return
		}
	}
	if o.far == nil {
		o.far = make(map[*transaction.Transaction]*callState)
	}
	old := &o.near[o.at]
	o.far[old.tx] = old.st
	*old = openCall{tx, st}
	o.at = (o.at + 1) % len(o.near)
}

// take removes and returns the state of a transaction, nil if there is none.
func (o *openCalls) take(tx *transaction.Transaction) *callState {
	for i := range o.near {
		if o.near[i].tx == tx {
			st := o.near[i].st
			o.near[i] = openCall{}
			return st
		}
	}
	st := o.far[tx]
	delete(o.far, tx)
	return st
}
