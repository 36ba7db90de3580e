package iwarp

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// extentKind is what a part of the stream carried.
type extentKind uint8

const (
	extentOther extentKind = iota
	extentSend
	extentWrite
	extentReadRequest
	extentReadResponse
)

// extent is one FPDU in the stream, remembered in case TCP retransmits it.
type extent struct {
	start, end uint64 // stream offsets
	seq        uint64 // name of its Send, Write or Read
	offset     uint64 // Fragment.Offset of its payload
	length     uint32 // bytes of its payload
	kind       extentKind
}

// sentSend is a Send that the Handler knows.
type sentSend struct {
	tag   rdma.Tag
	end   uint64 // stream offset after its last FPDU
	work  uint64 // the watcher's: rdma.Work.Seq
	msn   uint32
	done  bool     // it has been reported
	ack   rdma.Ref // what acknowledged it
	stamp rdma.Stamp
	acked bool // the Handler has been told so
}

// sentWrite is an RDMA Write.
type sentWrite struct {
	op   rdma.Op
	end  uint64 // stream offset after the part seen so far
	work uint64 // the watcher's: rdma.Work.Seq
	done bool   // its end was seen
}

// sentRead is an RDMA Read that the side requested.
type sentRead struct {
	op       rdma.Op
	sinkSTag uint32
	sinkTO   uint64
	work     uint64 // the watcher's: rdma.Work.Seq
	done     bool
	ready    bool // a ready-to-receive message of MPA, which is ignored
}

// again is a part of the stream that was repeated before it was decoded.
type again struct {
	from, to uint64
	ref      rdma.Ref
}

// operations converts the DDP segments of one direction to operations.
type operations struct {
	extents ring[extent]
	sends   ring[sentSend]
	writes  ring[sentWrite]
	reads   ring[sentRead]

	oldestRead uint64 // the first read that is not done
	unacked    uint64 // the first send that has not been acknowledged
	untold     uint64 // the first send whose acknowledgement the Handler does not know, at most unacked
	acked      uint64 // the peer has acknowledged up to this stream offset
	ackRef     rdma.Ref

	pending []again
	lost    bool // part of the stream was not seen since the last FPDU

	// The Send under way, of several segments.
	sending   bool
	cut       bool // bytes are missing after those in data
	odd       bool // a segment of it did not continue it
	headless  bool // there is none under way, but the rest of one whose beginning was not seen
	message   rdma.Send
	msn       uint32
	nextMO    uint64
	sendEnd   uint64 // stream offset after its last segment
	sendSeq   uint64
	sendWork  uint64 // the watcher's
	data      []byte
	sendSpan  span
	sendAgain int
	parts     []rdma.Part // for a tracer

	works     uint64 // operations that the watcher was told of
	unwritten uint64 // the first Write whose acknowledgement the watcher does not know

	traced uint64 // the first extent whose acknowledgement has not been traced

	// The Write under way.
	writing  bool
	writeSeq uint64
	nextTO   uint64
}

// interrupted records that FPDUs may be missing before the next one.
func (o *operations) interrupted() { o.lost = true }

// segment handles a DDP segment; u is the captured part of length bytes, at least its header, at stream
// offsets start to end.
func (o *operations) segment(h *half, u []byte, length int, start, end uint64, from *span) {
	c := h.conn
	side := c.side(h)
	sent := &c.c.Sent[side]
	op := ULPDU(u).Control().Opcode()
	if c.t.tracer != nil {
		c.c.Header = rdma.Header{Kind: rdma.HeaderDDP, Opcode: uint8(op), Last: ULPDU(u).Control().Last()}
		if !op.Tagged() {
			c.c.Header.MSN = Untagged(u).MSN()
		}
	}
	if o.lost {
		// Messages do not interleave (RFC 5041 5.3): if something else continues after the gap, the end of
		// the current message was in it.
		if o.sending && !(op.IsSend() && Untagged(u).MSN() == o.msn) {
			o.abandon(h)
		}
		if op != OpWrite {
			o.writing = false
		}
		defer func() { o.lost = false }()
	}
	if c.ready(h, op, u, length) {
		o.remember(h, extent{start: start, end: end})
		return
	}
	switch {
	case op == OpWrite:
		o.write(h, Tagged(u), length-TaggedLen, start, end, from)
	case op == OpReadResponse:
		c.peer(h).out.response(h, Tagged(u), length-TaggedLen, start, end, from)
	case op.IsSend():
		o.gather(h, Untagged(u), length-UntaggedLen, start, end, from)
	case op == OpReadRequest:
		o.read(h, u, start, end, from)
	default:
		o.remember(h, extent{start: start, end: end})
		switch op {
		case OpAtomicRequest:
			sent.Atomics++
		case OpTerminate:
			c.terminate(h, u[UntaggedLen:], from.last)
		}
	}
}

// write takes a segment of an RDMA Write.
func (o *operations) write(h *half, u Tagged, length int, start, end uint64, from *span) {
	c := h.conn
	t := c.t
	side := c.side(h)
	stag, to, last := u.STag(), u.TO(), u.Control().Last()
	var w *sentWrite
	if o.writing {
		w = o.writes.at(o.writeSeq)
		// The segments of a message are contiguous in memory. After a gap in the capture, one further on may
		// belong to the same message.
		if w.op.Handle != stag || to != o.nextTO && !(o.lost && to > o.nextTO && to-w.op.Offset <= 1<<32-1-uint64(length)) {
			o.writing = false
		}
	}
	if !o.writing {
		w, o.writeSeq = o.writes.push(maxWrites, func(w *sentWrite) bool { return w.end > o.acked })
		w.op = rdma.Op{Kind: rdma.Write, From: side, Handle: stag, Offset: to, First: from.first}
		c.c.Sent[side].Writes++
		o.writing = true
		w.op.Length, w.op.Last = uint32(length), from.last
		w.end = end
		w.work = o.began(h, rdma.WorkWrite, stag, to, 0, from.first)
		t.handler.OpStart(c.c, &w.op, from.first)
	}
	w.op.Length = uint32(min(to-w.op.Offset+uint64(length), 1<<32-1))
	w.op.Last = from.last
	w.end = end
	o.nextTO = to + uint64(length)
	t.fragment = rdma.Fragment{Offset: to, Length: uint32(length), Data: u[TaggedLen:], Ref: from.last, Last: last}
	if t.tracer != nil {
		t.fragment.Parts = h.carriers(TaggedLen, length, from)
	}
	here := uint64(length) - h.payload(&w.op, start)
	o.carried(h, w.work, uint32(here), false, from.last)
	c.c.Sent[side].WriteBytes += here
	if last {
		o.writing, w.done = false, true
		if t.watcher != nil {
			t.watcher.WorkDone(c.c, side, w.work, w.op.Length, nil, from.last)
		}
	}
	o.remember(h, extent{start: start, end: end, seq: o.writeSeq, offset: to, length: uint32(length), kind: extentWrite})
}

// read takes a Read Request.
func (o *operations) read(h *half, u []byte, start, end uint64, from *span) {
	c := h.conn
	if len(u) < UntaggedLen+ReadRequestLen {
		o.remember(h, extent{start: start, end: end})
		return
	}
	r := ReadRequest(u[UntaggedLen:])
	read, seq := o.reads.push(maxReads, func(r *sentRead) bool { return !r.done })
	o.oldestRead = max(o.oldestRead, o.reads.oldest())
	*read = sentRead{
		op: rdma.Op{
			Kind: rdma.Read, From: c.side(h), Handle: r.SourceSTag(), Offset: r.SourceTO(),
			Length: r.Size(), First: from.first, Last: from.last,
		},
		sinkSTag: r.SinkSTag(), sinkTO: r.SinkTO(),
	}
	c.c.Sent[c.side(h)].Reads++
	read.work = o.began(h, rdma.WorkRead, read.op.Handle, read.op.Offset, read.op.Length, from.first)
	c.t.handler.OpStart(c.c, &read.op, from.first)
	o.remember(h, extent{start: start, end: end, seq: seq, kind: extentReadRequest})
}

// response handles a segment of a Read Response. o belongs to the requester, h is the direction of the
// response.
func (o *operations) response(h *half, u Tagged, length int, start, end uint64, from *span) {
	c := h.conn
	t := c.t
	c.c.Sent[c.side(h)].ReadBytes += uint64(length)
	stag, to := u.STag(), u.TO()
	var read *sentRead
	seq := o.oldestRead
	for ; seq < o.reads.next; seq++ {
		r := o.reads.at(seq)
		if !r.done && r.sinkSTag == stag && to-r.sinkTO <= uint64(r.op.Length) && uint64(length) <= uint64(r.op.Length)-(to-r.sinkTO) {
			read = r
			break
		}
	}
	if read == nil {
		// The request was not captured, so what was read is unknown.
		t.handler.Event(c.c, c.side(h), rdma.EventUnrequested, 0, from.last)
		h.out.remember(h, extent{start: start, end: end})
		return
	}
	for ; o.oldestRead < seq; o.oldestRead++ {
		// Answers come in the order of the requests (RFC 5040 5.2): the rest of earlier ones was not
		// captured.
		o.reads.at(o.oldestRead).done = true
	}
	distance := to - read.sinkTO
	last := u.Control().Last() || distance+uint64(length) == uint64(read.op.Length)
	if last {
		read.done = true
		o.oldestRead = seq + 1
	}
	if read.ready {
		h.out.remember(h, extent{start: start, end: end})
		return
	}
	read.op.Last = from.last
	offset := read.op.Offset + distance
	t.fragment = rdma.Fragment{Offset: offset, Length: uint32(length), Data: u[TaggedLen:], Ref: from.last, Last: last}
	if t.tracer != nil {
		t.fragment.Parts = h.carriers(TaggedLen, length, from)
	}
	lost := h.payload(&read.op, start)
	if t.watcher != nil {
		o.carried(c.peer(h), read.work, uint32(length)-uint32(lost), false, from.last)
		if last {
			t.watcher.WorkDone(c.c, c.side(h).Other(), read.work, read.op.Length, nil, from.last)
		}
	}
	c.c.Sent[c.side(h)].ReadBytes -= lost
	h.out.remember(h, extent{start: start, end: end, seq: seq, offset: offset, length: uint32(length), kind: extentReadResponse})
}

// behead takes a segment of a Send whose beginning was not captured, so that its kind is unknown.
func (o *operations) behead(h *half, u Untagged, length int, start, end uint64, from *span) {
	c, msn, last := h.conn, u.MSN(), u.Control().Last()
	if !o.lost && !(o.headless && msn == o.msn) {
		c.t.misplaced(start, length, from)
	}
	o.headless, o.msn = !last, msn
	if last {
		c.c.Sent[c.side(h)].Sends++
	}
	o.remember(h, extent{start: start, end: end})
}

// gather takes a segment of a Send.
func (o *operations) gather(h *half, u Untagged, length int, start, end uint64, from *span) {
	c := h.conn
	mo, msn, last := uint64(u.MO()), u.MSN(), u.Control().Last()
	payload := u[UntaggedLen:]
	if o.sending && (msn != o.msn || mo == 0) {
		if !o.lost {
			c.t.misplaced(start, 0, from) // the end of the message under way should be here
		}
		o.abandon(h)
	}
	if !o.sending && mo != 0 {
		o.behead(h, u, length, start, end, from)
		return
	}
	if !o.sending {
		op := u.Control().Opcode()
		o.sending, o.cut, o.odd, o.headless = true, false, false, false
		o.msn, o.nextMO, o.sendEnd = msn, 0, start
		o.sendSpan, o.sendAgain = span{}, 0
		o.message = rdma.Send{
			From: c.side(h), Invalidates: op.Invalidates(), Solicited: op.Solicited(),
		}
		if op.Invalidates() {
			o.message.Handle = u.InvalidateSTag()
		}
		var sent *sentSend
		sent, o.sendSeq = o.sends.push(maxSends, func(s *sentSend) bool { return !s.acked })
		sent.work = o.began(h, rdma.WorkSend, 0, 0, 0, from.first)
		o.sendWork = sent.work
		sent.msn = msn
		o.unacked = max(o.unacked, o.sends.oldest())
		o.data = o.data[:0]
		o.parts = o.parts[:0]
		if last {
			// All in one segment: no copy.
			if c.t.tracer != nil {
				o.part(h, length, from)
			}
			o.sendSpan = *from
			o.nextMO = uint64(length)
			if s := o.sends.at(o.sendSeq); s != nil {
				s.end = end
			}
			o.remember(h, extent{start: start, end: end, seq: o.sendSeq, length: uint32(length), kind: extentSend})
			o.carried(h, o.sendWork, uint32(length), false, from.last)
			o.deliver(h, payload, end)
			return
		}
		if o.data == nil {
			o.data = c.t.buffer()
		}
	}
	switch {
	case mo-o.nextMO > start-o.sendEnd: // also if it is before
		// No capture lacks more of a message than of the stream that carries it, and TCP delivers in order: the offset is wrong, and so may
		// be the size that follows from it.
		c.t.misplaced(start, length, from)
		if !o.odd {
			o.odd, o.cut = true, true
			o.nextMO++ // one byte more than was seen, so that the Send counts as cut
		}
	case o.cut:
		o.nextMO = mo + uint64(length)
	case mo > o.nextMO:
		o.cut = true
		o.nextMO = mo + uint64(length)
	default:
		room := max(0, c.t.o.MaxSend-len(o.data))
		if len(payload) < length || room < length {
			o.cut = true
		}
		o.data = append(o.data, payload[:min(len(payload), room)]...)
		o.nextMO += uint64(length)
	}
	o.sendEnd = end
	o.sendSpan.join(from)
	o.carried(h, o.sendWork, uint32(length), false, from.last)
	if c.t.tracer != nil {
		o.part(h, length, from)
	}
	if s := o.sends.at(o.sendSeq); s != nil {
		s.end = end
	}
	o.remember(h, extent{start: start, end: end, seq: o.sendSeq, length: uint32(length), kind: extentSend})
	if last {
		o.deliver(h, o.data, end)
	}
}

// abandon reports a Send whose end was not captured. Its length is unknown; it is given as one byte more than
// was seen, so that the Send counts as cut.
func (o *operations) abandon(h *half) {
	if !o.sending {
		return
	}
	o.nextMO++
	end := uint64(0)
	if s := o.sends.at(o.sendSeq); s != nil {
		end = s.end
	}
	o.deliver(h, o.data, end)
}

// deliver reports the Send under way.
func (o *operations) deliver(h *half, data []byte, end uint64) {
	c := h.conn
	t := c.t
	c.c.Sent[c.side(h)].Sends++
	t.send = o.message
	t.send.Data = data[:len(data):len(data)]
	t.send.Length = int(o.nextMO)
	t.send.First, t.send.Last = o.sendSpan.first, o.sendSpan.last
	t.send.Packets = o.sendSpan.count()
	t.send.Again = o.sendAgain
	t.send.Parts = o.parts
	o.sending = false
	tag := t.handler.Send(c.c, &t.send)
	if t.watcher != nil {
		t.watcher.WorkDone(c.c, t.send.From, o.sendWork, uint32(t.send.Length), t.send.Data, t.send.Last)
	}
	t.send = rdma.Send{}
	if o.data != nil {
		t.release(o.data)
		o.data = nil
	}
	if s := o.sends.at(o.sendSeq); s != nil {
		s.tag, s.end, s.done = tag, end, true
	}
	if o.acked >= end {
		o.acknowledge(h, o.acked, o.ackRef)
	}
}

// acknowledge records that the peer has everything before the stream offset end.
func (o *operations) acknowledge(h *half, end uint64, ref rdma.Ref) {
	o.acked, o.ackRef = end, ref
	if h.conn.t.tracer != nil {
		o.trace(h, end, ref)
	}
	if h.conn.t.watcher != nil {
		o.written(h, end, ref)
	}
	for o.unacked < o.sends.next {
		s := o.sends.at(o.unacked)
		if !s.done || s.end > end {
			return
		}
		s.ack, s.stamp = ref, h.conn.c.Stamp
		o.unacked++
		if w := h.conn.t.watcher; w != nil {
			w.WorkAcked(h.conn.c, h.conn.side(h), s.work, ref)
		}
	}
}

// refusal is how long after the acknowledgement of TCP a Terminate message may still say that RDMA refused what was acknowledged,
// in nanoseconds of capture time, if its sender sent nothing in between.
const refusal = 10e6

// taken tells the Handler of the Sends that end before the stream offset end, and were acknowledged at least wait before now.
func (o *operations) taken(h *half, end uint64, now rdma.Ref, wait int64) {
	c := h.conn.c
	stamp := c.Stamp // of the packet at hand
	defer func() { c.Stamp = stamp }()
	o.untold = max(o.untold, o.sends.oldest())
	for ; o.untold < o.unacked; o.untold++ {
		s := o.sends.at(o.untold)
		if s.end > end || now.Time-s.ack.Time < wait {
			return
		}
		s.acked, c.Stamp = true, s.stamp
		h.conn.t.handler.SendAcked(c, h.conn.side(h), s.tag, s.ack)
	}
}

// refused is the stream offset at which the segment starts that a Terminate message names (RFC 5040, section 4.8), or 0: RDMA took what came before.
func (o *operations) refused(h *half, t Terminate) uint64 {
	header := t.DDPHeader()
	for i := o.extents.next; header != nil && i > o.extents.oldest(); i-- {
		if e := o.extents.at(i - 1); o.names(h, e, header, t.ReadRequest()) {
			return e.start
		}
	}
	return 0
}

// names reports whether a Terminate message that quotes a header, and a Read Request, is about segment e.
func (o *operations) names(h *half, e *extent, header ULPDU, request ReadRequest) bool {
	op := header.Control().Opcode()
	switch e.kind {
	case extentSend:
		s := o.sends.at(e.seq)
		return s != nil && op.IsSend() && Untagged(header).MSN() == s.msn
	case extentWrite:
		w := o.writes.at(e.seq)
		return w != nil && op == OpWrite && Tagged(header).STag() == w.op.Handle && Tagged(header).TO() == e.offset
	case extentReadRequest:
		r := o.reads.at(e.seq)
		return r != nil && op == OpReadRequest && request != nil && request.SourceSTag() == r.op.Handle && request.SourceTO() == r.op.Offset
	case extentReadResponse:
		r := h.conn.peer(h).out.reads.at(e.seq)
		return r != nil && op == OpReadResponse && Tagged(header).STag() == r.sinkSTag && Tagged(header).TO()-r.sinkTO == e.offset-r.op.Offset
	default:
		return false
	}
}

// remember stores an FPDU to recognise retransmissions, and reports those that came before it was decoded.
func (o *operations) remember(h *half, e extent) {
	p, _ := o.extents.push(maxExtents, func(e *extent) bool { return e.end > o.acked })
	*p = e
	if len(o.pending) > 0 {
		o.settle(h, p)
	}
}

// settle reports the pending retransmissions of e.
func (o *operations) settle(h *half, e *extent) {
	kept := o.pending[:0]
	for _, a := range o.pending {
		if a.from < e.end && a.to > e.start {
			o.repeated(h, e, a.from, a.to, a.ref)
		}
		if a.from = max(a.from, e.end); a.from < a.to {
			kept = append(kept, a)
		}
	}
	o.pending = kept
}

// again records that TCP repeated the stream offsets from to to.
func (o *operations) again(h *half, from, to uint64, ref rdma.Ref) {
	// Find the first extent that ends after from; they are ordered.
	lo, hi := o.extents.oldest(), o.extents.next
	decoded := uint64(0)
	if hi > lo {
		decoded = o.extents.at(hi - 1).end
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if o.extents.at(mid).end <= from {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	reported := ^uint64(0)
	for ; lo < o.extents.next; lo++ {
		e := o.extents.at(lo)
		if e.start >= to {
			break
		}
		if e.kind == extentSend {
			if e.seq == reported {
				continue // one packet, one report
			}
			reported = e.seq
		}
		o.repeated(h, e, from, to, ref)
	}
	if to > decoded {
		if len(o.pending) == maxPending {
			o.pending = o.pending[:copy(o.pending, o.pending[1:])]
		}
		o.pending = append(o.pending, again{max(from, decoded), to, ref})
	}
}

// repeated reports that an FPDU, or a part of it, was repeated.
func (o *operations) repeated(h *half, e *extent, from, to uint64, ref rdma.Ref) {
	c := h.conn
	side := c.side(h)
	if c.t.tracer != nil {
		c.c.Header = rdma.Header{Kind: rdma.HeaderDDP, Opcode: uint8(extentOpcodes[e.kind])}
	}
	switch e.kind {
	case extentSend:
		s := o.sends.at(e.seq)
		if s != nil {
			o.carried(h, s.work, 0, true, ref)
		}
		switch {
		case s == nil:
		case !s.done:
			o.sendAgain++
			if c.t.tracer != nil && o.sending && e.seq == o.sendSeq {
				o.parts = rdma.AddPart(o.parts, rdma.Part{Ref: ref, Header: c.c.Header, Kind: rdma.PartAgain})
			}
		default:
			c.taken(int(h.dir), ref, 0) // the copy that was acknowledged counts
			c.t.handler.SendAgain(c.c, side, s.tag, ref, to >= s.end)
		}
	case extentReadRequest:
		if r := o.reads.at(e.seq); r != nil {
			o.carried(h, r.work, 0, true, ref)
			c.t.handler.OpAgain(c.c, &r.op, ref)
		}
	case extentWrite, extentReadResponse:
		var op *rdma.Op
		work, of := uint64(0), h
		if e.kind == extentWrite {
			if w := o.writes.at(e.seq); w != nil {
				op, work = &w.op, w.work
			}
		} else if r := c.peer(h).out.reads.at(e.seq); r != nil {
			op, work, of = &r.op, r.work, c.peer(h)
		}
		if op == nil {
			return
		}
		// Which bytes of the payload were in it?
		first := h.unmarked(e.start) + FPDUHeaderLen + TaggedLen
		lo := max(h.unmarked(max(from, e.start)), first)
		hi := min(h.unmarked(min(to, e.end)), first+uint64(e.length))
		if lo > hi || lo == hi && e.length > 0 {
			return // header, pad or CRC only
		}
		c.t.fragment = rdma.Fragment{Offset: e.offset + (lo - first), Length: uint32(hi - lo), Ref: ref, Again: true, Acked: o.acked >= to}
		o.carried(of, work, uint32(hi-lo), true, ref)
		c.t.handler.OpData(c.c, op, &c.t.fragment)
	}
}

// unmarked is a stream offset without the markers before it.
func (h *half) unmarked(at uint64) uint64 {
	if !h.marked || at < h.base {
		return at
	}
	rel := at - h.base
	return rel/MarkerInterval*markerData + max(rel%MarkerInterval, MarkerLen) - MarkerLen
}

// ready reports whether a segment is the ready-to-receive message of MPA's peer-to-peer mode (RFC 6581 5):
// the initiator's first FPDU, without payload. It exists so that the responder may send first, and means
// nothing to RPC. The answer to a Read of no bytes is recognised by its request.
func (c *Conn) ready(h *half, op Opcode, u []byte, length int) bool {
	if h.fpdus != 1 || !c.negotiated || c.side(h) != 0 {
		return false
	}
	switch {
	case op == OpWrite:
		return length == TaggedLen
	case op.IsSend():
		return length == UntaggedLen
	case op == OpReadRequest && len(u) == UntaggedLen+ReadRequestLen && ReadRequest(u[UntaggedLen:]).Size() == 0:
		r := ReadRequest(u[UntaggedLen:])
		read, _ := h.out.reads.push(maxReads, func(r *sentRead) bool { return !r.done })
		*read = sentRead{sinkSTag: r.SinkSTag(), sinkTO: r.SinkTO(), ready: true}
		return true
	}
	return false
}

// terminate takes the payload of a Terminate message.
func (c *Conn) terminate(h *half, payload []byte, ref rdma.Ref) {
	var word uint32
	if c.c.Terminated == c.ending && ref.Number <= c.endedBy {
		c.c.Terminated = "" // this came before, but could be read only now, because of a gap before it
	}
	text := "Terminate"
	if len(payload) >= TerminateLen {
		word = binary.BigEndian.Uint32(payload)
		if c.c.Terminated == "" {
			text = "Terminate: " + Terminate(payload).String()
		}
	}
	c.terminated(text)
	c.c.Ended, h.terminated = true, true
	if len(payload) >= TerminateLen {
		p := c.peer(h)
		end := p.out.refused(p, payload)
		p.acknowledged(end, ref)
		p.out.taken(p, end, ref, 0)
	}
	c.t.handler.Event(c.c, c.side(h), rdma.EventTerminate, word, ref)
}
