package decode

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Observer is told what passes by, on the goroutine of Run or Batch, in the order of the capture. What is nil is not told, and a Decoder
// saves the work for what no Observer wants. Arguments must not be kept beyond the call, except a *rdma.Connection.
type Observer struct {
	// Arrival is called for each packet before it is tracked. l is nil for those of which a roce.FastPacket does not say all.
	Arrival func(p *capture.Packet, l *roce.FastPacket)
	// Packet is called for each packet after it has been tracked. To decode all headers of all packets takes time: see Headers.
	Packet func(*PacketView)
	// Headers, if set, is called in place of Packet for the packets of RoCEv2 of which a roce.FastPacket says all, which are nearly
	// all of them. c is the packet's connection, if known. With SkipICRC, or if another Observer has a Packet, Packet is called for all.
	Headers func(p *capture.Packet, l *roce.FastPacket, c *rdma.Connection)

	// Message reports a Send that is a call or a reply of tx, or repeats one on the same connection. It
	// precedes Send. The transaction is not complete yet.
	Message func(tx *transaction.Transaction, reply bool, s *rdma.Send)
	// Unmatched reports a Send that Message says nothing of.
	Unmatched func(c *rdma.Connection, s *rdma.Send)
	// Send reports each Send.
	Send func(c *rdma.Connection, s *rdma.Send)
	// Operation reports the start of an operation on memory that an open transaction has offered, before
	// OpStart; tx is nil if none has.
	Operation func(tx *transaction.Transaction, op *rdma.Op)
	// OpStart, OpData and Event are called as the methods of rdma.Handler with these names.
	OpStart func(c *rdma.Connection, op *rdma.Op, ref rdma.Ref)
	OpData  func(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment)
	Event   func(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref)

	// Segment is shown the DDP segments of iWARP: see rdma.Hooks.
	Segment func(c *rdma.Connection, s *rdma.Segment)
	// Watcher is told of each packet and operation of RDMA as the fabric carries it. Runs may be the same one, to be called less often.
	// With several Watchers it is not used. See rdma.Hooks.
	Watcher rdma.Watcher
	Runs    rdma.RunWatcher

	// Counter reports by how much a counter of an RDMA port has grown in the second before, as a kernel showed it beside its events: mlx5_0/1,
	// local_ack_timeout_err.
	Counter func(at rdma.Ref, port, name string, grown uint64)

	// Merged reports that two connections were found to be one: see rdma.Handler.
	Merged func(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side)
	// Closed is called for each connection at its end, or at the end of the capture.
	Closed func(*rdma.Connection)
	// Attempt is called for each attempt to connect by TCP that Stats.Refused counts, or Stats.Unanswered: the latter as it counts. Such
	// an attempt gets no connection number.
	Attempt func(*rdma.Connection, Asked)
}

// join makes one Observer of several, which are told in their order.
func join(list []Observer) (o Observer) {
	if len(list) == 1 {
		return list[0]
	}
	var watchers []rdma.Watcher
	packets := 0
	for i := range list {
		x := &list[i]
		if x.Watcher != nil {
			watchers, o.Runs = append(watchers, x.Watcher), x.Runs
		}
		if x.Packet != nil {
			packets++
			o.Packet, o.Headers = both1(o.Packet, x.Packet), x.Headers
		}
		o.Arrival = both2(o.Arrival, x.Arrival)
		o.Message = both3(o.Message, x.Message)
		o.Unmatched = both2(o.Unmatched, x.Unmatched)
		o.Send = both2(o.Send, x.Send)
		o.Operation = both2(o.Operation, x.Operation)
		o.OpStart = both3(o.OpStart, x.OpStart)
		o.OpData = both3(o.OpData, x.OpData)
		o.Event = both5(o.Event, x.Event)
		o.Segment = both2(o.Segment, x.Segment)
		o.Counter = both4(o.Counter, x.Counter)
		o.Merged = both4(o.Merged, x.Merged)
		o.Closed = both1(o.Closed, x.Closed)
		o.Attempt = both2(o.Attempt, x.Attempt)
	}
	o.Watcher = rdma.Watchers(watchers...)
	if len(watchers) > 1 {
		o.Runs = nil
	}
	if packets > 1 {
		o.Headers = nil
	}
	return o
}

// handles reports whether an Observer is told what a rdma.Handler is, besides the end of connections.
func (o *Observer) handles() bool {
	return o.Send != nil || o.Operation != nil || o.OpStart != nil || o.OpData != nil || o.Event != nil || o.Merged != nil
}

// ordered reports whether an Observer has to be told in the order of the capture.
func (o *Observer) ordered() bool {
	return o.handles() || o.Arrival != nil || o.Packet != nil || o.Message != nil || o.Unmatched != nil || o.Segment != nil || o.Watcher != nil || o.Attempt != nil || o.Counter != nil
}

// observed passes what the transaction tracker receives to the observers.
type observed struct{ handler }

// Send implements rdma.Handler.
func (h *observed) Send(c *rdma.Connection, s *rdma.Send) rdma.Tag {
	tag := h.handler.Send(c, s)
	if send := h.d.observer.Send; send != nil {
		send(c, s)
	}
	return tag
}

// OpStart implements rdma.Handler.
func (h *observed) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	h.handler.OpStart(c, op, ref)
	if operation := h.d.observer.Operation; operation != nil {
		operation(h.OfOperation(op), op)
	}
	if start := h.d.observer.OpStart; start != nil {
		start(c, op, ref)
	}
}

// OpData implements rdma.Handler.
func (h *observed) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	h.handler.OpData(c, op, f)
	if data := h.d.observer.OpData; data != nil {
		data(c, op, f)
	}
}

// Event implements rdma.Handler.
func (h *observed) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	h.handler.Event(c, from, e, value, ref)
	if event := h.d.observer.Event; event != nil {
		event(c, from, e, value, ref)
	}
}

// Merged implements rdma.Handler.
func (h *observed) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	h.handler.Merged(into, side, from, was)
	if merged := h.d.observer.Merged; merged != nil {
		merged(into, side, from, was)
	}
}

// both1 to both5 make one function of two that have as many arguments as the name says. Either may be nil.
func both1[A any](f, g func(A)) func(A) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A) { f(a); g(a) }
}

func both2[A, B any](f, g func(A, B)) func(A, B) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A, b B) { f(a, b); g(a, b) }
}

func both3[A, B, C any](f, g func(A, B, C)) func(A, B, C) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A, b B, c C) { f(a, b, c); g(a, b, c) }
}

func both4[A, B, C, D any](f, g func(A, B, C, D)) func(A, B, C, D) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A, b B, c C, d D) { f(a, b, c, d); g(a, b, c, d) }
}

func both5[A, B, C, D, E any](f, g func(A, B, C, D, E)) func(A, B, C, D, E) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A, b B, c C, d D, e E) { f(a, b, c, d, e); g(a, b, c, d, e) }
}
