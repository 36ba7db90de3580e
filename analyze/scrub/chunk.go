package scrub

import (
	"bytes"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// long is a transaction with something in chunks that is copied: a message, which is known when all of it has come, or data on request.
type long struct {
	call, reply []carried
	moved       [2][]carried // by chunks of data of the call and of the reply
	data        bool         // what the call moves is data of files
	results     bool         // and what the reply moves
	waiting     *rdma.Send   // a reply that waits for its call
	segments    []fpdu
	transfers   []transferKey
}

// carried is a part of a message in a chunk.
type carried struct {
	offset, size int // in the message
	fabric       rdma.Fabric
	number       uint64 // RoCE, InfiniBand: of the packet
	psn          uint32
	fpdu         fpdu // iWARP
}

// transferKey names an RDMA operation.
type transferKey struct {
	c      *rdma.Connection
	from   rdma.Side
	kind   rdma.OpKind
	handle uint32
	offset uint64
	first  uint64
}

// transfer is an operation that moves a message.
type transfer struct {
	of     uint64 // serial of the transaction
	reply  bool
	data   bool   // no message
	offset uint64 // in the message, of what begins at the operation's offset
}

// Bounds of what is remembered.
const (
	maxLong      = 4096
	maxTransfers = 16384
	maxCarried   = 1 << 16 // parts of all of them
	mostWaiting  = 64 << 10
)

// longOf is what is remembered of a transaction, nil if that is too much.
func (s *Scrubber) longOf(tx *transaction.Transaction) *long {
	l := s.long[tx.Serial()]
	if l == nil && len(s.long) < maxLong {
		l = new(long)
		s.long[tx.Serial()] = l
	}
	return l
}

// wait keeps a reply until its call is known.
func (l *long) wait(c *rdma.Connection, x *rdma.Send, segments []fpdu) {
	if len(x.Data) > mostWaiting || l.waiting != nil {
		return
	}
	w := *x
	w.Data = bytes.Clone(x.Data)
	w.Parts = append([]rdma.Part(nil), x.Parts...)
	if len(w.Parts) == 0 {
		w.Parts = []rdma.Part{{Ref: x.Last, Header: c.Header, Bytes: uint32(len(x.Data))}}
	}
	l.waiting, l.segments = &w, append([]fpdu(nil), segments...)
}

func keyOf(c *rdma.Connection, op *rdma.Op) transferKey {
	return transferKey{c, op.From, op.Kind, op.Handle, op.Offset, op.First.Number}
}

// Operation is decode.Observer.Operation: it finds the operations that move messages, not data.
func (o *observer) Operation(tx *transaction.Transaction, op *rdma.Op) {
	s := (*Scrubber)(o)
	if tx == nil {
		return
	}
	x, ok := messageAt(&tx.Call.Header, op)
	if !ok && s.opt.KeepData {
		x, ok = transfer{reply: op.Kind == rdma.Write, data: true}, true
	}
	if !ok || len(s.transfers) >= maxTransfers {
		return
	}
	l := s.longOf(tx)
	if l == nil {
		return
	}
	x.of = tx.Serial()
	k := keyOf(tx.Connection, op)
	s.transfers[k] = x
	l.transfers = append(l.transfers, k)
}

// messageAt finds the place of an operation in the message that the header of a call has memory for.
func messageAt(h *rpcrdma.Header, op *rdma.Op) (transfer, bool) {
	at := uint64(0)
	in := func(g rpcrdma.Segment) bool {
		if g.Handle == op.Handle && op.Offset-g.Offset < uint64(g.Length) {
			at += op.Offset - g.Offset
			return true
		}
		at += uint64(g.Length)
		return false
	}
	if op.Kind == rdma.Read && h.Type == rpcrdma.TypeNoMsg {
		for i := range h.Reads {
			if h.Reads[i].Position == 0 && in(h.Reads[i].Segment) {
				return transfer{offset: at}, true
			}
		}
	}
	if op.Kind == rdma.Write && h.HasReply && slices.ContainsFunc(h.Reply, in) {
		return transfer{reply: true, offset: at}, true
	}
	return transfer{}, false
}

// OpData is decode.Observer.OpData.
func (o *observer) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	s := (*Scrubber)(o)
	if len(s.transfers) == 0 {
		return
	}
	x, ok := s.transfers[keyOf(c, op)]
	l := s.long[x.of]
	if !ok || l == nil || len(f.Data) == 0 {
		return
	}
	offset := x.offset + (f.Offset - op.Offset)
	if offset >= mostMessage {
		return
	}
	p := carried{offset: int(offset), size: len(f.Data), fabric: c.Fabric, number: f.Ref.Number, psn: c.Header.PSN, fpdu: s.fpdu}
	list := &l.call
	switch {
	case x.data && x.reply:
		list = &l.moved[1]
	case x.data:
		list = &l.moved[0]
	case x.reply:
		list = &l.reply
	}
	if s.carriedBy < maxCarried {
		*list = append(*list, p)
		s.carriedBy++
	}
}

// mostMessage is the longest message in a chunk that is looked at.
const mostMessage = 1 << 30

// ended copies what a transaction had in chunks, when it ends.
func (s *Scrubber) ended(tx *transaction.Transaction) {
	if s.opt.Unwrap != nil && s.opt.Learn != nil {
		s.unwrap(tx)
	}
	l := s.long[tx.Serial()]
	if l == nil {
		return
	}
	if len(l.call) > 0 {
		m := message{b: tx.Call.Payload, full: tx.Call.PayloadLength, header: &tx.Call.Header}
		m.out = s.zeros(len(m.b))
		s.call(&m)
		s.carry(l.call, m.b, m.out)
		l.data = l.data || m.data
	}
	if len(l.reply) > 0 && tx.Reply.Header.Type == rpcrdma.TypeNoMsg {
		m := message{b: tx.Reply.Payload, full: tx.Reply.PayloadLength, header: &tx.Reply.Header}
		m.out = s.zeros(len(m.b))
		s.reply(&m, tx.Call.Payload, tx.Call.PayloadLength)
		s.carry(l.reply, m.b, m.out)
		l.results = l.results || m.data
	}
	if l.waiting != nil {
		s.send(tx, true, tx.Connection, l.waiting, l.segments)
	}
	if l.data {
		s.restore(l.moved[0])
	}
	if l.results {
		s.restore(l.moved[1])
	}
	s.forget(tx.Serial())
}

// forget removes what is remembered of a transaction.
func (s *Scrubber) forget(serial uint64) {
	if l := s.long[serial]; l != nil {
		for _, k := range l.transfers {
			delete(s.transfers, k)
		}
		s.carriedBy -= len(l.call) + len(l.reply) + len(l.moved[0]) + len(l.moved[1])
		delete(s.long, serial)
	}
}

// restore leaves data in the packets that carried it.
func (s *Scrubber) restore(list []carried) {
	for i := range list {
		if p := &list[i]; p.fabric == rdma.IWARP {
			s.rewrite(&p.fpdu, nil, true)
		} else {
			s.leave(p.number, p.psn)
		}
	}
}

// carry writes parts of a message to the packets that carried them.
func (s *Scrubber) carry(list []carried, was, is []byte) {
	for i := range list {
		p := &list[i]
		to := min(p.offset+p.size, len(was))
		switch {
		case p.offset >= to:
		case p.fabric == rdma.IWARP:
			s.rewrite(&p.fpdu, is[p.offset:to], false)
		default:
			s.change(p.number, p.psn, was[p.offset:to], is[p.offset:to])
		}
	}
}
