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
	sendless, ok := o.(decode.Sendless)
	b := beside{r, o, ok && sendless.Sendless()}
	if m, ok := o.(decode.MessageObserver); ok {
		return &besideMessages{b, m}
	}
	return &b
}

// beside passes to o what is no message. The Recorder has no use for it.
type beside struct {
	*Recorder
	o decode.Observer
	// sendless says that o has no use for Sends.
	sendless bool
}

var _ decode.Sendless = (*beside)(nil)

// Sendless implements decode.Sendless.
func (b *beside) Sendless() bool { return b.sendless }

// Send implements decode.Observer.
func (b *beside) Send(c *rdma.Connection, s *rdma.Send) { b.o.Send(c, s) }

// OpStart implements decode.Observer.
func (b *beside) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) { b.o.OpStart(c, op, ref) }

// OpData implements decode.Observer.
func (b *beside) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) { b.o.OpData(c, op, f) }

// Event implements decode.Observer.
func (b *beside) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	b.o.Event(c, from, e, value, ref)
}

// besideMessages passes messages, too.
type besideMessages struct {
	beside
	m decode.MessageObserver
}

// Message implements decode.MessageObserver.
func (b *besideMessages) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	b.Recorder.Message(tx, reply, s)
	b.m.Message(tx, reply, s)
}

// Operation implements decode.MessageObserver.
func (b *besideMessages) Operation(tx *transaction.Transaction, op *rdma.Op) { b.m.Operation(tx, op) }

// Merged implements decode.MessageObserver.
func (b *besideMessages) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	b.m.Merged(into, side, from, was)
}
