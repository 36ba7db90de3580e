package transaction

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Role is what a packet is to a transaction.
type Role uint8

// Roles.
const (
	CallPart     Role = iota + 1 // a packet of the call's Send
	ReplyPart                    // a packet of the reply's Send
	DonePart                     // RDMA_DONE
	ReadRequest                  // RDMA Read Request
	ReadResponse                 // payload that was read
	WriteData                    // payload of an RDMA Write
	Ack                          // acknowledges a part of the transaction
	Nak                          // refuses a packet of it
	Congestion                   // a CNP on its connection while it was under way
)

var roleNames = [...]string{
	"", "call", "reply", "done", "read_request", "read_response", "write", "ack", "nak", "cnp",
}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return ""
}

// Packet is a packet of a transaction. A packet of the capture that belongs to
// a transaction in two ways, as data that also acknowledge, stands in its list
// twice.
type Packet struct {
	Ref    rdma.Ref
	Header rdma.Header
	Role   Role
	From   rdma.Side // that sent it
	Again  bool      // what it carries was seen before
	// Beside says that it is a NAK or CNP of the connection while the
	// transaction was under way, and not known to be for a packet of it.
	Beside bool
	// RNR says that a Nak is "receiver not ready".
	RNR bool
	// AcksCall and AcksReply say that an Ack is of the call's or reply's Send.
	AcksCall, AcksReply bool
	// Operation counts from 1 in Transaction.Operations; 0 is no operation, or one
	// beyond the limit. Of an Ack it is the last one that was acknowledged.
	Operation int
	// Acked is how many operations an Ack is of.
	Acked int
	// Bytes is the payload: of a Send, transport header and inline part.
	Bytes uint32
	// Offset is the address of RDMA payload in the memory of Operation.
	Offset uint64
}

// refusal is a NAK for a packet that has not been seen yet, or whose repetition
// will tell to which transaction it belongs.
type refusal struct {
	psn    uint32
	packet Packet
}

// maxRefusals bounds what is remembered of one side.
const maxRefusals = 8

// tracer lists the packets of transactions. It is nil if nobody asks for them.
type tracer struct {
	limit     int                         // Options.Packets
	attribute func(*Transaction, *Packet) // Options.Attribute
	packet    Packet                      // for that
	storage   *storage
	halves    *halves
	entries   *entries
}

// add lists a packet of tx.
func (l *tracer) add(tx *Transaction, p Packet) {
	if tx.untraced {
		return
	}
	if p.Header.Kind == rdma.HeaderBTH && p.Role <= WriteData && p.Role != ReadResponse {
		l.refusal(tx, &p)
	}
	l.list(tx, p)
}

// maxEarly bounds the packets of one side that wait for their repetition.
const maxEarly = 4096

// Early implements rdma.Tracer.
func (l *tracer) Early(c *rdma.Connection, from rdma.Side, psn uint32, ref rdma.Ref) {
	h := l.halves.of(c, from)
	if h.early == nil || len(h.early) >= maxEarly {
		h.early = make(map[uint32]rdma.Ref)
		l.halves.grew(h, -h.earlySize)
		h.earlySize = 0
	}
	h.early[psn] = ref
	if n := len(h.early) * earlySize; n > h.earlySize {
		l.halves.grew(h, n-h.earlySize)
		h.earlySize = n
	}
}

// list adds to the list, or to its last packet if that is the same.
func (l *tracer) list(tx *Transaction, p Packet) {
	if l.attribute != nil {
		l.packet = p
		l.attribute(tx, &l.packet)
	}
	if l.limit == 0 {
		return
	}
	for i := len(tx.Packets) - 1; i >= 0 && i >= len(tx.Packets)-2; i-- {
		if tx.Packets[i].join(&p) {
			return
		}
	}
	n := len(tx.Packets)
	if n >= l.limit || n == cap(tx.Packets) && n > 64 && !l.storage.memory.Fits(n*packetSize) {
		tx.PacketsLost++
		return
	}
	before := cap(tx.Packets)
	tx.Packets = append(tx.Packets, p)
	l.storage.grew(tx, (cap(tx.Packets)-before)*packetSize)
}

// join makes one of two entries for the same packet and role.
func (p *Packet) join(o *Packet) bool {
	if p.Ref.Number != o.Ref.Number || p.From != o.From {
		return false
	}
	switch {
	case p.Role == Ack && o.Role == Ack:
		p.joinAck(o)
		return true
	case p.Role == Nak && o.Role == Ack, p.Role == ReadResponse && o.Role == Ack && p.Operation == o.Operation:
		return true // the response says so itself
	case p.Role == Nak && o.Role == Nak:
		if p.Beside && !o.Beside {
			*p = *o
		}
		return true
	case p.Role == Ack && o.Role == Nak:
		calls, replies := p.AcksCall, p.AcksReply
		*p = *o
		p.AcksCall, p.AcksReply = calls, replies
		return true
	}
	if p.Role != o.Role || p.Operation != o.Operation || p.Again != o.Again {
		return false
	}
	if p.Role >= ReadResponse && o.Bytes > 0 && p.Offset+uint64(p.Bytes) == o.Offset {
		p.Bytes += o.Bytes
		return true
	}
	return p.Offset == o.Offset && p.Bytes == o.Bytes
}

// joinAck adds what another acknowledgement by the same packet is of.
func (p *Packet) joinAck(o *Packet) {
	p.AcksCall = p.AcksCall || o.AcksCall
	p.AcksReply = p.AcksReply || o.AcksReply
	if o.Operation != 0 && o.Operation != p.Operation {
		p.Operation = o.Operation
		p.Acked += o.Acked
	}
}

// send lists the packets of a Send. again says that all of it was seen
// before.
func (l *tracer) send(tx *Transaction, role Role, s *rdma.Send, again bool) {
	if l == nil || tx.untraced {
		return
	}
	c := tx.Connection
	if len(s.Parts) == 0 {
		l.add(tx, Packet{
			Ref: s.Last, Header: c.Header, Role: role, From: s.From, Again: again, Bytes: uint32(min(s.Length, 1<<31-1)),
		})
		return
	}
	for i := range s.Parts {
		x := &s.Parts[i]
		p := Packet{Ref: x.Ref, Header: x.Header, Role: role, From: s.From, Again: again || x.Kind == rdma.PartAgain, Bytes: x.Bytes}
		if x.Kind == rdma.PartAck {
			p = ackOf(x.Ref, x.Header, s.From)
			p.AcksCall, p.AcksReply = role == CallPart, role == ReplyPart
		}
		l.add(tx, p)
	}
}

// ackOf is an acknowledgement of what from has sent.
func ackOf(ref rdma.Ref, h rdma.Header, from rdma.Side) Packet {
	p := Packet{Ref: ref, Header: h, Role: Ack, From: from.Other()}
	if h.HasAETH && h.Syndrome&0x60 == 0x60 { // IBTA volume 1, table 48: a NAK acknowledges what is before it
		p.Role = Nak
	} else if h.HasAETH && h.Syndrome&0x60 == 0x20 {
		p.Role, p.RNR = Nak, true
	}
	return p
}

// Acked implements rdma.Tracer.
func (l *tracer) Acked(c *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref) {
	p := ackOf(ref, c.Header, from)
	tx := l.entries.tagged(tag)
	if tx == nil {
		return
	}
	switch kindOf(tag) {
	case sendTag:
		reply := tx.isReply(tag)
		p.AcksCall, p.AcksReply = !reply, reply
	case opTag:
		p.Operation, p.Acked = number(tag), 1
	}
	l.add(tx, p)
}

// data lists the packets of RDMA payload.
func (l *tracer) data(c *rdma.Connection, tx *Transaction, op *rdma.Op, f *rdma.Fragment) {
	p := Packet{
		Ref: f.Ref, Header: c.Header, Role: WriteData, From: op.From, Again: f.Again,
		Operation: number(op.Tag), Bytes: f.Length, Offset: f.Offset,
	}
	if op.Kind == rdma.Read {
		p.Role, p.From = ReadResponse, op.From.Other()
	}
	if len(f.Parts) == 0 {
		l.add(tx, p)
		return
	}
	for i := range f.Parts {
		p.Ref, p.Bytes = f.Parts[i].Ref, f.Parts[i].Bytes
		l.add(tx, p)
		p.Offset += uint64(p.Bytes)
	}
}

// orphan lists what is known of an operation whose call was not captured.
func (l *tracer) orphan(tx *Transaction, o *orphan) {
	if l == nil {
		return
	}
	p := Packet{Ref: o.first, Role: WriteData, From: o.from, Operation: len(tx.Operations), Offset: o.offset}
	if o.last.Number == o.first.Number {
		p.Bytes = o.bytes
		l.add(tx, p)
		return
	}
	l.add(tx, p)
	p.Ref = o.last
	l.add(tx, p)
}

// refused remembers a NAK until the packet that it asks for comes.
func (l *tracer) refused(c *rdma.Connection, from rdma.Side, e rdma.Event, psn uint32, ref rdma.Ref) {
	if e < rdma.EventNAKSequence || e > rdma.EventRNR {
		return
	}
	h := l.halves.of(c, from.Other())
	if len(h.naks) >= maxRefusals {
		h.naks = h.naks[:copy(h.naks, h.naks[1:])]
	}
	before := cap(h.naks)
	h.naks = append(h.naks, refusal{psn, Packet{
		Ref: ref, Header: c.Header, Role: Nak, From: from, RNR: e == rdma.EventRNR,
	}})
	l.halves.grew(h, (cap(h.naks)-before)*refusalSize)
}

// refusal lists the NAKs for p ahead of it.
func (l *tracer) refusal(tx *Transaction, p *Packet) {
	h := halfOf(tx.Connection, p.From)
	if h == nil {
		return
	}
	if ref, ok := h.early[p.Header.PSN]; ok && len(h.early) > 0 {
		delete(h.early, p.Header.PSN)
		first := *p
		first.Ref, first.Again = ref, false
		l.list(tx, first)
	}
	if len(h.naks) == 0 {
		return
	}
	kept := h.naks[:0]
	for _, n := range h.naks {
		if n.psn == p.Header.PSN {
			n.packet.Operation = p.Operation
			l.list(tx, n.packet)
		} else {
			kept = append(kept, n)
		}
	}
	h.naks = kept
}

// event lists what happened to the connection while tx was under way.
func (l *tracer) event(tx *Transaction, x *Trouble) {
	if tx.untraced {
		return
	}
	p := Packet{Ref: x.Ref, From: x.From, Role: Nak, Beside: true}
	switch {
	case x.Kind == rdma.EventCNP:
		p.Role = Congestion
	case x.Kind >= rdma.EventNAKSequence && x.Kind <= rdma.EventRNR:
		p.RNR = x.Kind == rdma.EventRNR
	default:
		return
	}
	l.list(tx, p)
}

// sortPackets puts the list in the order of the capture: what is reported late
// stands at its end.
func (tx *Transaction) sortPackets() {
	byNumber := func(a, b Packet) int { return cmp.Compare(a.Ref.Number, b.Ref.Number) }
	if slices.IsSortedFunc(tx.Packets, byNumber) {
		return
	}
	slices.SortStableFunc(tx.Packets, byNumber)
	n := 0
	for i := range tx.Packets {
		if n > 0 && tx.Packets[n-1].join(&tx.Packets[i]) {
			continue
		}
		tx.Packets[n] = tx.Packets[i]
		n++
	}
	tx.Packets = tx.Packets[:n]
}
