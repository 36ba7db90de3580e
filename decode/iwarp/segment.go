package iwarp

import (
	"math"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// TCP flags beyond those of package tcp.
const flagACK = 0x10

// maxAhead is how far an acknowledgment may be ahead of the stream: the largest
// window that TCP can announce (RFC 7323 2.3).
const maxAhead = 1 << 30

// base is the position of a stream in the sequence space; it converts acknowledgment numbers to offsets.
type base struct {
	known    bool
	sequence uint32 // of offset 0, modulo 2³²
}

// Segment takes a TCP segment, f.Proto being link.TCP, of direction dir. It
// reports false if the segment opens another connection between the same ports;
// then this one is closed, and a new Conn has to take the segment.
//
// It keeps First, Last, and the packet counters of the rdma.Connection.
func (c *Conn) Segment(dir int, f *link.Frame, ref rdma.Ref) bool {
	if c.closed {
		// Segments after the end are stragglers, unless they start a new connection.
		return f.TCPFlags&tcp.SYN == 0
	}
	if c.t.watcher != nil {
		next, inside := c.expect(dir, f)
		defer c.watch(dir, f, ref, next, inside)
	}
	h := &c.halves[dir]
	k := c.c
	if !k.First.Seen() {
		k.First = ref
	}
	k.Last = ref
	sent := &k.Sent[c.side(h)]
	sent.Packets++
	sent.Bytes += uint64(f.PayloadLen)
	if f.ECN == 3 {
		sent.ECN++
		c.t.handler.Event(k, c.side(h), rdma.EventECN, 0, ref)
	}
	if f.PayloadLen == 0 && f.TCPFlags&(tcp.SYN|tcp.FIN|tcp.RST|flagACK) == flagACK {
		sent.Acks++
	}
	if c.verdict == No {
		return true
	}
	s := &c.streams[dir]
	switch {
	case f.TCPFlags&tcp.SYN != 0:
		if !s.Started() {
			h.sure = h.pos == 0
		}
	case f.TCPFlags&tcp.RST != 0:
		// Nothing more will arrive in the other direction.
		c.streams[dir^1].Flush(ref)
	}
	if c.t.tracer != nil {
		k.Header = rdma.Header{Kind: rdma.HeaderTCP}
	}
	c.taken(0, ref, refusal)
	c.taken(1, ref, refusal)
	// The acknowledgment comes first: it is older than the payload, which may end the connection.
	if f.TCPFlags&flagACK != 0 {
		c.acks(h, dir, f, ref)
	}
	s.Belongs(acknowledges(f, &c.streams[dir^1]))
	before, waiting := s.Next(), s.Buffered()
	s.Segment(f.TCPSeq, f.TCPFlags, f.Payload, f.PayloadLen, ref)
	if b := &c.bases[dir]; !b.known && !c.replaced {
		switch {
		case f.TCPFlags&tcp.SYN != 0:
			*b = base{true, f.TCPSeq + 1}
		case f.PayloadLen > 0 && waiting == 0 && s.Buffered() == 0 && s.Next() == before+uint64(f.PayloadLen):
			// All of the segment was new, and it contains nothing else: it starts at before.
			*b = base{true, f.TCPSeq - uint32(before)}
		}
	}
	if c.verdict == No {
		c.streams[0].Release()
		c.streams[1].Release()
	}
	return !c.replaced
}

// acks takes what a segment acknowledges of the other direction.
func (c *Conn) acks(h *half, dir int, f *link.Frame, ref rdma.Ref) {
	o := &c.streams[dir^1]
	o.Acked(f.TCPAck, ref)
	if b := &c.bases[dir^1]; b.known {
		d := int32(f.TCPAck - b.sequence - uint32(o.Next()))
		if end := int64(o.Next()) + int64(d); end > 0 && d < maxAhead && c.verdict == Yes && !h.terminated && !terminates(f.Payload) {
			c.peer(h).acknowledged(uint64(end), ref)
			if f.PayloadLen > 0 || c.t.o.Live {
				c.taken(dir^1, ref, 0)
			}
		}
	}
}

// taken tells the Handler what was acknowledged at least wait before now, unless a Terminate message says what of it was refused.
func (c *Conn) taken(dir int, now rdma.Ref, wait int64) {
	if h := &c.halves[dir]; h.out.untold < h.out.unacked && !c.peer(h).terminated {
		h.out.taken(h, math.MaxUint64, now, wait)
	}
}

// terminates reports whether a segment is a Terminate message. What it acknowledges, TCP has; RDMA took no more (RFC 5040, section 4.8).
func terminates(b []byte) bool {
	if len(b) < FPDUHeaderLen+UntaggedLen {
		return false
	}
	u := Untagged(b[FPDUHeaderLen:])
	return u.Control().Opcode() == OpTerminate && !u.Control().Tagged() && u.QN() == QueueTerminate && u.MSN() == 1 && u.MO() == 0
}

// acknowledges reports whether a segment acknowledges what a stream has delivered, or nearly that.
func acknowledges(f *link.Frame, s *tcp.Stream) bool {
	return f.TCPFlags&flagACK != 0 && s.Knows(f.TCPAck)
}

// acknowledged records that the receiver has everything before the stream offset end.
func (h *half) acknowledged(end uint64, ref rdma.Ref) {
	if end > h.out.acked {
		h.out.acknowledge(h, end, ref)
	}
}

// Data implements tcp.Consumer. Bytes that overtook others end with the packet that made them readable, since
// TCP delivers in order; but not if only the capture lacks the bytes before them.
func (h *half) Data(_ uint64, p []byte, first, ready rdma.Ref) {
	h.ready = first
	if ready.Number != h.gaveUp {
		h.ready = ready
	}
	h.data(p, first)
}

// Skip implements tcp.Consumer.
func (h *half) Skip(_ uint64, n int, why tcp.Reason, _, ready rdma.Ref) {
	h.lossy = why != tcp.Cut
	h.skip(uint64(n))
	h.lossy = false
	if why == tcp.Cut {
		return // the packet was captured, but not all of it
	}
	h.gaveUp = ready.Number
	c := h.conn
	side := c.side(h)
	c.c.Sent[side].Gaps += uint64(n)
	if c.verdict == Yes && !c.closed {
		c.t.handler.Event(c.c, side, rdma.EventGap, uint32(min(uint64(n), 1<<32-1)), ready)
	}
}

// Again implements tcp.Consumer.
func (h *half) Again(offset uint64, n int, ref rdma.Ref) {
	c := h.conn
	if h.repeated != ref.Number {
		h.repeated = ref.Number
		c.c.Sent[c.side(h)].Retransmitted++
		if c.c.Requests > 0 && c.side(h) == 0 && !c.c.Setup[1].Seen() && h.fpdus == 0 {
			c.c.Requests++ // nothing else was sent
		}
	}
	if c.verdict == Yes && !c.closed && n > 0 {
		h.out.again(h, offset, offset+uint64(n), ref)
	}
}

// Differs implements tcp.Consumer.
func (h *half) Differs(_ uint64, n int, ref rdma.Ref) {
	c := h.conn
	side := c.side(h)
	c.c.Sent[side].Resyncs++
	if c.verdict == Yes && !c.closed {
		c.t.handler.Event(c.c, side, rdma.EventDiffers, uint32(n), ref)
	}
}

// End implements tcp.Consumer. iWARP has no half-closed connections: the first FIN ends it, even if the other
// side still has data to send. The sender of that FIN ended the connection.
func (h *half) End(_ uint64, how tcp.Ending, ref rdma.Ref) {
	c := h.conn
	if c.closed {
		return
	}
	h.ended = true
	if c.ending == "" {
		word := "TCP FIN from "
		if how == tcp.ByReset {
			word = "TCP reset from "
		}
		c.endedBy = ref.Number
		c.ending = word + link.AddrString(c.c.Ends[c.side(h)].Addr)
	}
	if how == tcp.ByReset {
		c.c.Ended = true
		c.over(c.ending, ref)
		return
	}
	if c.verdict == Yes {
		c.terminated(c.ending)
		c.c.Ended = true
	}
	if c.peer(h).ended {
		c.over(c.ending, ref)
	}
}

// Reset implements tcp.Consumer.
func (h *half) Reset(ref rdma.Ref) {
	h.conn.replaced = true
	h.conn.over("a new connection on the same ports", ref)
}
