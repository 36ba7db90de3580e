package onepass

import (
	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Attribute lets a decoder find out what the time of transactions was lost to, and whether they came after all slots
// of their session had been in use. It costs a look at each packet. The Observer has to be set before. memory is
// fabric.Options.Memory, slotMemory that of session.Recorder.Limit. It returns what a saved state has besides the decoder.
func Attribute(opt *decode.Options, memory, slotMemory int) []decode.StatePart {
	slots := session.New(nil)
	slots.Limit(slotMemory)
	slots.Live()
	slots.SlotsOnly()
	return AttributeWith(opt, memory, slots)
}

// AttributeWith is Attribute with a Recorder that finds out about slots, perhaps among other things.
func AttributeWith(opt *decode.Options, memory int, sessions *session.Recorder) []decode.StatePart {
	b := blame.Lean(memory)
	opt.Watcher = rdma.Watchers(opt.Watcher, b.Recorder)
	opt.Observer = session.Beside(opt.Observer, sessions)
	opt.Transactions.Ended = func(tx *transaction.Transaction) {
		b.Ended(tx)
		sessions.Ended(tx)
	}
	return []decode.StatePart{b.Recorder, sessions}
}

// both is two observers.
type both struct {
	decode.MessageObserver // of messages
	check                  observer
}

// observer is what a check.Checker is.
type observer interface {
	decode.MessageObserver
	rdma.SegmentHandler
}

func (b *both) Send(c *rdma.Connection, s *rdma.Send) {
	b.MessageObserver.Send(c, s)
	b.check.Send(c, s)
}

func (b *both) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	b.MessageObserver.OpStart(c, op, ref)
	b.check.OpStart(c, op, ref)
}

func (b *both) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	b.MessageObserver.OpData(c, op, f)
	b.check.OpData(c, op, f)
}

func (b *both) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	b.MessageObserver.Event(c, from, e, value, ref)
	b.check.Event(c, from, e, value, ref)
}

func (b *both) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	b.MessageObserver.Message(tx, reply, s)
	b.check.Message(tx, reply, s)
}

func (b *both) Operation(tx *transaction.Transaction, op *rdma.Op) {
	b.MessageObserver.Operation(tx, op)
	b.check.Operation(tx, op)
}

func (b *both) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	b.MessageObserver.Merged(into, side, from, was)
	b.check.Merged(into, side, from, was)
}

// Segment implements rdma.SegmentHandler.
func (b *both) Segment(c *rdma.Connection, s *rdma.Segment) { b.check.Segment(c, s) }
