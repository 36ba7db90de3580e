package endpoint

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// readRead reports whether long replies to this call are exposed for the
// Requester to read.
func (x *exchange) readRead() bool {
	return !x.s.backward && (x.hdr.Version == rpcrdma.Version0 || x.s.o.Model == ReadRead && len(x.hdr.Writes) == 0 && !x.hdr.HasReply)
}

// Reply sends the reply.
func (x *exchange) Reply(m *transport.Message) {
	if _, ok := x.step(exchangeReply); !ok {
		return
	}
	x.release = m.Release
	l := x.l
	if x.s.o.Trace != nil {
		x.trace.Replied = time.Now()
	}
	buf := l.sendBuffer()
	if buf == nil || l.isDead() {
		// There are twice as many buffers as credits. If none is free, the peer
		// does not take what we send.
		if buf != nil {
			l.freeSend(buf)
		} else {
			l.close()
		}
		x.end()
		return
	}
	h := &x.out
	h.XID, h.Version, h.Type, h.Dialect = x.hdr.XID, x.hdr.Version, rpcrdma.TypeMsg, x.hdr.Dialect
	h.Credits = x.s.grant(l, x.hdr.Credits)
	h.Reads, h.Writes, h.Reply, h.HasReply = h.Reads[:0], h.Writes[:0], nil, false
	x.wrs, x.sgl = x.wrs[:0], x.sgl[:0]
	if n := m.Size(); x.counted || n > l.inlineSend {
		x.recharge(int64(x.size) + int64(n))
	}
	var ok bool
	if x.readRead() {
		ok = x.expose(m, buf)
	} else {
		ok = x.push(m, buf)
	}
	if !ok {
		xid, version, grant, s := x.hdr.XID, x.hdr.Version, h.Credits, x.s
		l.freeSend(buf)
		l.ref()
		x.abandon()
		s.sendError(l, xid, version, grant, rpcrdma.ErrChunk)
		l.unref()
		return
	}
	l.ctr.replies.Add(1)
	x.send(buf)
}

// abandon ends an exchange whose reply cannot be sent.
func (x *exchange) abandon() {
	x.op.bound = false
	x.l.closeRegions(&x.op)
	x.end()
}

// push encodes a reply as RFC 8166 has it: data goes into the Write chunks, and the
// message goes into the Reply chunk if it does not fit inline.
func (x *exchange) push(m *transport.Message, buf *sendBuf) bool {
	l, h := x.l, &x.out
	// The reply returns the lists with the lengths that were written (RFC 8166,
	// section 4.3.2).
	x.segments = x.segments[:0]
	back := func(from rpcrdma.WriteChunk) rpcrdma.WriteChunk {
		start := len(x.segments)
		for _, s := range from {
			s.Length = 0
			x.segments = append(x.segments, s)
		}
		return x.segments[start:len(x.segments):len(x.segments)]
	}
	for _, w := range x.hdr.Writes {
		h.Writes = append(h.Writes, back(w))
	}
	inline := func(i int) bool { return i >= len(h.Writes) || len(x.hdr.Writes[i]) == 0 }
	body := len(m.Stream)
	for i := range m.Items {
		data := m.Items[i].Data
		if inline(i) {
			body += (len(data) + 3) &^ 3
			continue
		}
		// A chunk that is too small is an error of the call (section 4.5.2).
		if uint64(len(data)) > x.hdr.Writes[i].Length() || !x.write(h.Writes[i], x.hdr.Writes[i], data) {
			return false
		}
	}
	if x.hdr.HasReply {
		h.Reply, h.HasReply = back(x.hdr.Reply), true
	}
	room := x.hdr.Reply.Length()
	switch size := h.Size(); {
	case size+body <= l.inlineSend && !(x.s.o.ReplyChunkAlways && room >= uint64(body)):
		buf.b = m.AppendReduced(h.Append(buf.b[:0]), inline)
		return true
	case room >= uint64(body) && body > 0 && size <= l.inlineSend:
		h.Type = rpcrdma.TypeNoMsg
		b, err := l.mem.get(body)
		if err != nil {
			return false
		}
		x.blocks = append(x.blocks, b)
		x.recharge(x.charge + int64(len(b.b)))
		m.AppendReduced(b.b[:0], inline)
		if !x.write(h.Reply, x.hdr.Reply, b.b[:body]) {
			return false
		}
		buf.b = h.Append(buf.b[:0])
		return true
	}
	return false
}

// write prepares the RDMA Writes of data into a chunk and records their lengths.
func (x *exchange) write(used, offered rpcrdma.WriteChunk, data []byte) bool {
	l := x.l
	if !l.mem.usable(data) {
		b, err := l.mem.get(len(data))
		if err != nil {
			return false
		}
		x.blocks = append(x.blocks, b)
		x.recharge(x.charge + int64(len(b.b)))
		data = b.b[:copy(b.b, data)]
	}
	x.trace.WriteBytes += len(data)
	for i, s := range offered {
		n := min(len(data), int(s.Length))
		used[i].Length = uint32(n)
		x.wrs, x.sgl = l.appendOps(x.wrs, x.sgl, verbs.OpWrite, s, data[:n])
		data = data[n:]
	}
	return true
}

// expose encodes a reply of the ReadRead model: what does not fit inline is exposed
// for the Requester to read.
func (x *exchange) expose(m *transport.Message, buf *sendBuf) bool {
	l, h := x.l, &x.out
	if h.Version == rpcrdma.Version0 && h.Dialect == rpcrdma.DialectEither {
		h.Dialect = x.s.o.Dialect
	}
	body := m.Size()
	if h.Size()+body <= l.inlineSend {
		buf.b = m.AppendWhole(h.Append(buf.b[:0]))
		return true
	}
	if l.o.Registration == Inline {
		return false
	}
	// The Requester identifies the items in chunks by their order. No inline item
	// may precede one in a chunk, and an empty item cannot have a chunk.
	first := 0 // this item and all that follow are inline
	for i := range m.Items {
		if len(m.Items[i].Data) >= min(l.o.MinChunk, l.inlineSend/2) {
			first = i + 1
		}
	}
	for i := range first {
		if len(m.Items[i].Data) == 0 {
			first = 0
			break
		}
	}
	inline := func(i int) bool { return i >= first }
	body = len(m.Stream)
	for i := range m.Items {
		data := m.Items[i].Data
		if inline(i) {
			body += (len(data) + 3) &^ 3
			continue
		}
		list, err := l.open(&x.op, x.hdr.XID, data, verbs.RemoteRead, nil)
		if err != nil {
			return false
		}
		x.trace.ReadBytes += len(data)
		x.list(m.Items[i].Position, list)
	}
	if h.Size()+body > l.inlineSend {
		h.Type = rpcrdma.TypeNoMsg
		b, err := l.newBounce(&x.op, body)
		if err != nil {
			return false
		}
		m.AppendReduced(b.b[:0], inline)
		list, err := l.openBlock(&x.op, x.hdr.XID, b, body, verbs.RemoteRead, nil)
		if err != nil {
			return false
		}
		reads := len(h.Reads)
		x.list(0, list)
		// Position zero comes first.
		rotate(h.Reads, reads)
		buf.b = h.Append(buf.b[:0])
	} else {
		buf.b = m.AppendReduced(h.Append(buf.b[:0]), inline)
	}
	if len(buf.b) > l.inlineSend {
		return false
	}
	x.wrs = append(x.wrs, x.op.binds...)
	x.op.bound = len(x.op.binds) > 0
	return x.s.hold(x)
}

// rotate moves the segments from n on to the front.
func rotate(r []rpcrdma.ReadSegment, n int) {
	tail := append([]rpcrdma.ReadSegment(nil), r[n:]...)
	copy(r[len(tail):], r[:n])
	copy(r, tail)
}

func (x *exchange) list(position uint32, segments []rpcrdma.Segment) {
	for _, s := range segments {
		x.out.Reads = append(x.out.Reads, rpcrdma.ReadSegment{Position: position, Segment: s})
	}
}

// send posts the Writes of the reply, and then its Send.
func (x *exchange) send(buf *sendBuf) {
	l := x.l
	handle, with := x.invalidates()
	w := work{wrs: x.wrs, send: buf.request(handle, with), buf: buf}
	if rb := x.rb; rb != nil {
		// The receive has to be posted before the reply permits the peer to send
		// again. Nothing of the call is used from here on.
		x.rb = nil
		x.call = transport.Message{}
		l.recycle(rb)
	}
	held := len(x.out.Reads) > 0
	if s := x.s.o.Trace; s != nil {
		x.trace.Segments = len(x.hdr.Reads) + len(x.segments)
		x.trace.Done = time.Now()
		s(&x.trace)
	}
	switch {
	case held:
		w.owner = x // see hold
	case len(x.wrs) > 0:
		x.step(exchangeSend)
		w.owner = x
	default:
		// The send buffer holds a copy of the whole reply.
		l.enqueue(w)
		l.ref()
		x.end()
		l.flush()
		l.unref()
		return
	}
	l.ref()
	x.owes()
	if !l.enqueue(w) {
		x.s.unhold(x)
		x.end()
	}
	l.flush()
	l.unref()
}

// invalidates picks the handle that the reply invalidates, if the peer allows it and
// the call names just one handle (RFC 8797, section 3).
func (x *exchange) invalidates() (handle uint32, ok bool) {
	if !x.l.invalidate || x.s.backward || x.hdr.Version != rpcrdma.Version1 {
		return 0, false
	}
	one := func(h uint32) bool {
		if ok && h != handle {
			return false
		}
		handle, ok = h, true
		return true
	}
	for i := range x.hdr.Reads {
		if !one(x.hdr.Reads[i].Handle) {
			return 0, false
		}
	}
	for _, w := range x.hdr.Writes {
		for i := range w {
			if !one(w[i].Handle) {
				return 0, false
			}
		}
	}
	for i := range x.hdr.Reply {
		if !one(x.hdr.Reply[i].Handle) {
			return 0, false
		}
	}
	return handle, ok
}
