package session

import (
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Beside is an observer that tells a Recorder of messages, and passes all to o, which may be nil.
func Beside(o decode.Observer, r *Recorder) decode.MessageObserver {
	if o == nil {
		return r
	}
	m, _ := o.(decode.MessageObserver)
	return &beside{o, m, r}
}

type beside struct {
	decode.Observer
	m decode.MessageObserver // the same, if it is one
	r *Recorder
}

// Message implements decode.MessageObserver.
func (b *beside) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	b.r.Message(tx, reply, s)
	if b.m != nil {
		b.m.Message(tx, reply, s)
	}
}

// Operation implements decode.MessageObserver.
func (b *beside) Operation(tx *transaction.Transaction, op *rdma.Op) {
	if b.m != nil {
		b.m.Operation(tx, op)
	}
}

// Merged implements decode.MessageObserver.
func (b *beside) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	if b.m != nil {
		b.m.Merged(into, side, from, was)
	}
}
