package oncrpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// TCPTracker follows one TCP connection that carries RPC and reports each message as a Send. Create one when
// StartsRecord accepts a segment of a connection, and feed it with that segment and those that follow.
type TCPTracker struct {
	conn    *rdma.Connection
	handler rdma.Handler
	tracer  rdma.Tracer // nil: packets are not listed
	sides   [2]tcpSide
	closed  bool

	given, sealed, alert rdma.Given // see RecordParser, once it is closed
}

// tcpSide is what one end of the connection sends.
type tcpSide struct {
	tracker *TCPTracker
	from    rdma.Side
	stream  tcp.Stream
	parser  RecordParser

	// base is the sequence number of offset 0, once it is known. segment is
	// the payload being fed to the stream and sequence where it starts.
	base     uint32
	based    bool
	segment  []byte
	sequence uint32

	copies []copied    // packets of the open record seen again
	again  int         // and more of them
	acks   []rdma.Part // for a tracer: packets that acknowledge a part of the open record, or are repetitions
	gaveUp uint64      // number of the packet at which bytes were given up for lost
	acked  uint64      // offset up to which the peer has acknowledged
	ackRef rdma.Ref
	sends  []sent // not yet acknowledged, by offset
	ended  bool
	send   rdma.Send // for Handler.Send; kept here so that it is not allocated each time
}

// sent is a record that was reported.
type sent struct {
	start, end uint64
	tag        rdma.Tag
}

// copied is a packet that was seen again: its bytes in the stream.
type copied struct {
	from, to uint64
	ref      rdma.Ref
}

// maxSends is how many unacknowledged records of a side are remembered; the
// oldest are forgotten first.
const maxSends = 64

// maxAhead is how far an acknowledgment may be ahead of what was captured: the
// largest window that TCP can announce (RFC 7323, section 2.3).
const maxAhead = 1 << 30

// ackFlag is the TCP flag ACK.
const ackFlag = 0x10

// NewTCPTracker makes a tracker for c, whose Ends tell the two directions
// apart. tracer may be nil. limit is how many bytes of a record are kept; 0 means
// DefaultRecordLimit. The pool is shared by the trackers of a goroutine.
func NewTCPTracker(c *rdma.Connection, h rdma.Handler, tracer rdma.Tracer, pool *tcp.Pool, limit int) *TCPTracker {
	t := &TCPTracker{conn: c, handler: h, tracer: tracer}
	for i := range t.sides {
		s := &t.sides[i]
		s.tracker, s.from = t, rdma.Side(i)
		s.stream.Init(pool, s)
		s.parser.Limit = limit
		s.parser.Trace = t.tracer != nil
		s.parser.Deliver = s.deliver
	}
	return t
}

// Segment takes a TCP frame of the connection. It reports false, and does
// nothing, if the frame opens another connection between the same ports: then
// Close this tracker.
func (t *TCPTracker) Segment(f *link.Frame, ref rdma.Ref) bool {
	from := rdma.Side(0)
	if e := &t.conn.Ends[0]; f.SrcPort != e.Port || f.Src != e.Addr {
		from = 1
	}
	s, peer := &t.sides[from], &t.sides[from.Other()]
	seq := f.TCPSeq
	if f.TCPFlags&tcp.SYN != 0 {
		seq++
		if t.closed || s.based && seq != s.base {
			return false
		}
	}
	c := t.conn
	c.Last = ref
	sent := &c.Sent[from]
	sent.Packets++
	sent.Bytes += uint64(f.PayloadLen)
	if f.TCPFlags&ackFlag != 0 && f.PayloadLen == 0 {
		sent.Acks++
	}
	if t.closed {
		return true
	}
	if t.tracer != nil {
		c.Header = rdma.Header{Kind: rdma.HeaderTCP}
	}
	if f.TCPFlags&ackFlag != 0 {
		// Before the payload: a reply comes with the acknowledgment of its call.
		peer.stream.Acked(f.TCPAck, ref)
		peer.acknowledge(f.TCPAck, ref)
	}
	s.segment, s.sequence = f.Payload, seq
	s.stream.Belongs(f.TCPFlags&ackFlag != 0 && peer.stream.Knows(f.TCPAck))
	s.stream.Segment(f.TCPSeq, f.TCPFlags, f.Payload, f.PayloadLen, ref)
	s.segment = nil
	switch {
	case f.TCPFlags&tcp.RST != 0 && s.ended:
		c.Ended = true
		t.close("reset", ref)
	case s.ended && peer.ended:
		c.Ended = true
		t.close("closed", ref)
	}
	return true
}

// Closed reports whether the connection has ended. Later segments are counted
// but not looked at.
func (t *TCPTracker) Closed() bool { return t.closed }

// Close ends the tracking, at the end of the capture for instance, and frees
// what the streams have buffered.
func (t *TCPTracker) Close(ref rdma.Ref) {
	for i := range t.sides {
		t.sides[i].stream.Flush(ref)
	}
	t.close("", ref)
}

func (t *TCPTracker) close(why string, ref rdma.Ref) {
	if t.closed {
		return
	}
	t.closed = true
	for i := range t.sides {
		s := &t.sides[i]
		s.stream.Release()
		s.parser.End()
		t.given.Add(s.parser.Given)
		t.sealed.Add(s.parser.Sealed)
		t.alert.Add(s.parser.Alert)
		s.sends, s.parser = nil, RecordParser{}
	}
	if why != "" {
		t.conn.State = rdma.Closed
		t.conn.Terminated = why
	}
	t.handler.Closed(t.conn, ref)
}

// Displaced counts the directions in which bytes came too late to be decoded, once the connection is closed.
func (t *TCPTracker) Displaced() (g rdma.Given) {
	for i := range t.sides {
		if n := t.sides[i].stream.Stats().Displaced(); n > 0 {
			g.Add(rdma.Given{Count: 1, Bytes: n, First: t.conn.First.Number})
		}
	}
	return g
}

// Given and Sealed are what RecordParser counts under these names, once the connection is closed.
func (t *TCPTracker) Given() rdma.Given { return t.given }

// Sealed is described at Given.
func (t *TCPTracker) Sealed() rdma.Given { return t.sealed }

// Alert is described at Given.
func (t *TCPTracker) Alert() rdma.Given { return t.alert }

// deliver reports a record.
func (s *tcpSide) deliver(r *Record) {
	t := s.tracker
	if peer := &t.sides[s.from.Other()].parser; len(peer.suspects) > 0 && len(r.Data) >= 8 {
		s.answers(peer, r.Data)
	}
	t.conn.Sent[s.from].Sends++
	s.send = rdma.Send{
		From: s.from, Data: r.Data, Length: r.Length,
		First: r.First, Last: r.Last, Packets: r.Packets, Again: s.again + len(s.copies), Parts: r.Parts, Claimed: r.Claimed,
		Sequence: s.stream.Sequence(r.Start),
	}
	if t.tracer != nil {
		for _, p := range s.acks {
			if p.Ref.Number > r.First.Number { // else of a record that was given up
				s.send.Parts = append(s.send.Parts, p)
			}
		}
		s.acks = s.acks[:0]
	}
	s.again, s.copies = 0, s.copies[:0]
	if r.Broken {
		s.send.Length++ // how long it is, is not known: it counts as cut
	}
	tag := t.handler.Send(t.conn, &s.send)
	s.send.Data, s.send.Parts = nil, nil
	if s.acked >= r.End {
		t.handler.SendAcked(t.conn, s.from, tag, s.ackRef)
		return
	}
	if len(s.sends) == maxSends {
		s.forget(1)
	}
	s.sends = append(s.sends, sent{r.Start, r.End, tag})
}

// answers looks whether a message is the reply to a call that the peer's open record has swallowed, and to no other.
func (s *tcpSide) answers(peer *RecordParser, msg []byte) {
	if MsgType(binary.BigEndian.Uint32(msg[4:])) != TypeReply {
		return
	}
	xid := binary.BigEndian.Uint32(msg)
	x := peer.suspected(xid)
	if x == nil {
		return
	}
	if from, open := s.tracker.handler.FindCall(s.tracker.conn, xid); !open || from == s.from {
		p := &s.tracker.sides[s.from.Other()]
		copies, acked := p.copies, p.acked
		p.copies, p.acked = nil, 0 // they were acknowledged after all that follows here
		peer.release(x)
		for _, c := range copies {
			p.sendsAgain(c.from, c.to, c.ref)
			if start, open := p.parser.Open(); open && c.to > start {
				p.again++
			}
		}
		p.acked = acked
		p.confirm()
	}
}

// forget drops the oldest n sends.
func (s *tcpSide) forget(n int) {
	rest := copy(s.sends, s.sends[n:])
	clear(s.sends[rest:])
	s.sends = s.sends[:rest]
}

// acknowledge takes an acknowledgment of what the side has sent.
func (s *tcpSide) acknowledge(ack uint32, ref rdma.Ref) {
	if !s.based {
		return
	}
	next := s.stream.Next()
	ahead := int64(int32(ack - s.base - uint32(next)))
	to := int64(next) + ahead
	if to <= int64(s.acked) || ahead > maxAhead {
		return
	}
	s.acked, s.ackRef = uint64(to), ref
	if s.tracker.tracer != nil {
		s.traceAck(ref)
	}
	s.confirm()
}

// confirm reports the records that the last acknowledgment covers.
func (s *tcpSide) confirm() {
	n := 0
	for ; n < len(s.sends) && s.sends[n].end <= s.acked; n++ {
		e := &s.sends[n]
		s.tracker.handler.SendAcked(s.tracker.conn, s.from, e.tag, s.ackRef)
	}
	if n > 0 {
		s.forget(n)
	}
}

// Data implements tcp.Consumer. What overtook other bytes ends with the packet
// that made it readable, since TCP delivers in order; but not if the capture
// alone lacks what was before it.
func (s *tcpSide) Data(offset uint64, p []byte, first, ready rdma.Ref) {
	if !s.based && len(s.segment) > 0 && &p[0] == &s.segment[0] {
		s.base, s.based = s.sequence-uint32(offset), true
	}
	if ready.Number == s.gaveUp {
		ready = first
	}
	s.parser.data(p, first, ready)
}

// Skip implements tcp.Consumer.
func (s *tcpSide) Skip(_ uint64, n int, why tcp.Reason, first, ready rdma.Ref) {
	s.parser.Skip(uint64(n), first)
	if why != tcp.Cut {
		s.gaveUp = ready.Number
		c := s.tracker.conn
		c.Sent[s.from].Gaps += uint64(n)
		s.tracker.handler.Event(c, s.from, rdma.EventGap, uint32(n), ready)
	}
}

// Again implements tcp.Consumer.
func (s *tcpSide) Again(offset uint64, n int, ref rdma.Ref) {
	t := s.tracker
	t.conn.Sent[s.from].Retransmitted++
	end := offset + uint64(n)
	s.sendsAgain(offset, end, ref)
	if start, open := s.parser.Open(); open && end > start {
		if len(s.copies) < maxPieces {
			s.copies = append(s.copies, copied{offset, end, ref})
		} else {
			s.again++
		}
		if t.tracer != nil {
			s.acks = rdma.AddPart(s.acks, rdma.Part{Ref: ref, Header: rdma.Header{Kind: rdma.HeaderTCP}, Kind: rdma.PartAgain})
		}
	}
}

// sendsAgain reports the records of which a packet with the bytes [from, to) was seen again.
func (s *tcpSide) sendsAgain(from, to uint64, ref rdma.Ref) {
	for i := range s.sends {
		e := &s.sends[i]
		if e.start < to && from < e.end {
			s.tracker.handler.SendAgain(s.tracker.conn, s.from, e.tag, ref, e.end <= to)
		}
	}
}

// Differs implements tcp.Consumer.
func (s *tcpSide) Differs(_ uint64, n int, ref rdma.Ref) {
	c := s.tracker.conn
	c.Sent[s.from].Resyncs++
	s.tracker.handler.Event(c, s.from, rdma.EventDiffers, uint32(n), ref)
}

// traceAck reports to the tracer which records the peer has now, or a part of them.
func (s *tcpSide) traceAck(ref rdma.Ref) {
	t := s.tracker
	for i := range s.sends {
		e := &s.sends[i]
		if e.start >= s.acked {
			return
		}
		t.tracer.Acked(t.conn, s.from, e.tag, ref)
	}
	if start, open := s.parser.Open(); open && start < s.acked {
		s.acks = rdma.AddPart(s.acks, rdma.Part{Ref: ref, Header: t.conn.Header, Kind: rdma.PartAck})
	}
}

// End implements tcp.Consumer.
func (s *tcpSide) End(uint64, tcp.Ending, rdma.Ref) { s.ended = true }

// Reset implements tcp.Consumer: the sequence numbers have started again, and the capture lacks the SYN.
func (s *tcpSide) Reset(rdma.Ref) {
	s.parser.Restart()
	s.based, s.again, s.copies, s.acked, s.ended = false, 0, nil, 0, false
	s.forget(len(s.sends))
}
