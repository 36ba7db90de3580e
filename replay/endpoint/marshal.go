package endpoint

import (
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Sizes in bytes of the parts of a header of version 1 (RFC 8166, section 4).
const (
	headerSize       = 28 // with three empty chunk lists
	readEntrySize    = 24
	segmentEntrySize = 16
)

// reserves returns how many bytes the headers of a call and of its reply are assumed
// to need. Linux assumes as many segments as its largest payload can have.
func (l *link) reserves() (call, reply int) {
	const payloadPages, most = 257, 16
	depth := max(l.o.SegmentSize/pageSize, 1)
	n := min(most, (payloadPages+depth-1)/depth+2)
	call, reply = headerSize+n*readEntrySize+24, headerSize+4+n*segmentEntrySize+4
	return min(call, l.inlineSend/2), min(reply, l.inlineReceive/2)
}

// plan says which chunks a call gets.
type plan struct {
	zero   bool // a chunk at position zero: the call itself
	reads  bool // a Read chunk for each of Items of at least min bytes
	min    int
	writes int // how many of Results, from the first, have Write chunks
	reply  int // size of the Reply chunk in bytes, 0 for none
}

// plan picks chunks for a call without a Layout.
func (c *caller) plan(l *link, call *transport.Call) (p plan) {
	if c.backward || c.o.Registration == Inline {
		return p
	}
	callReserve, replyReserve := l.reserves()
	maxSend, maxReceive := l.inlineSend-callReserve, l.inlineReceive-replyReserve
	p.min = 1
	if c.o.Choice == ChooseMinimum {
		p.min = c.o.MinChunk
	}
	reduced, large := len(call.Stream), false
	for i := range call.Items {
		if n := len(call.Items[i].Data); n < p.min {
			reduced += (n + 3) &^ 3
		} else {
			large = true
		}
	}
	switch fits := call.Size() <= maxSend; {
	case fits && c.o.Choice == ChooseLinux:
	case c.o.Choice == ChooseLinux:
		p.reads = large && reduced <= maxSend
		p.zero = !p.reads
	default:
		p.reads = large
		p.zero = !(fits && !large) && reduced > maxSend
	}
	if c.o.Model == ReadRead {
		return p // in this model the Responder offers chunks
	}
	results, large := 0, false
	for _, r := range call.Results {
		results += (len(r) + 3) &^ 3
		large = large || len(r) >= p.min
	}
	whole := call.MaxReply + results
	switch {
	case whole <= maxReceive && c.o.Choice == ChooseLinux:
	case large && call.MaxReply <= maxReceive:
		p.writes = len(call.Results)
	case whole <= maxReceive:
	case large && c.o.Choice == ChooseMinimum:
		p.writes = len(call.Results)
		p.reply = max(call.MaxReply, c.o.LongReply)
	default:
		p.reply = max(whole, c.o.LongReply)
	}
	return p
}

// marshal opens memory for the chunks of a call and encodes header and message into
// a send buffer. After a failure, unsent closes what was opened.
func (c *caller) marshal(l *link, pc *pendingCall) (*sendBuf, error) {
	call, h := pc.call, &pc.hdr
	h.XID, h.Version, h.Type, h.Dialect = pc.xid, rpcrdma.Version1, rpcrdma.TypeMsg, rpcrdma.DialectNone
	if !c.backward {
		h.Version, h.Dialect = c.o.version(), c.o.Dialect
	}
	h.Credits = c.ask()
	h.Reads, h.Writes, h.Reply, h.HasReply = h.Reads[:0], h.Writes[:0], nil, false
	pc.op.reset()
	pc.writes, pc.reply, pc.pulls, pc.sgl, pc.moved = 0, nil, pc.pulls[:0], pc.sgl[:0], struct{ reads, writes int }{}
	chunked, zero := 0, false // Items in chunks, the first ones if there is a Layout
	p := plan{}
	var err error
	if call.Layout != nil {
		chunked, zero, err = pc.layOut(l, call.Layout)
	} else {
		p = c.plan(l, call)
		zero = p.zero
		err = pc.offer(l, &p)
		if p.reads {
			chunked = len(call.Items)
		}
	}
	if err != nil {
		return nil, err
	}
	inline := func(i int) bool { return i >= chunked || len(call.Items[i].Data) < p.min }
	body := 0
	if !zero {
		body = len(call.Stream)
		for i := range call.Items {
			if inline(i) {
				body += (len(call.Items[i].Data) + 3) &^ 3
			}
		}
	}
	if y := call.Layout; y != nil && !y.Inline && !zero && !c.backward && h.Size()+body > l.inlineSend && c.o.Registration != Inline {
		// The part that the layout leaves inline does not fit.
		reads := len(h.Reads)
		if err := pc.positionZero(l, body, nil, inline); err != nil {
			return nil, err
		}
		rotate(h.Reads, reads)
		zero, body = true, 0
	}
	if zero {
		h.Type = rpcrdma.TypeNoMsg
	}
	if h.Size()+body > l.inlineSend {
		return nil, transport.ErrTooLong
	}
	buf := l.sendBuffer()
	if buf == nil {
		return nil, transport.ErrDisconnected
	}
	buf.b = h.Append(buf.b[:0])
	if !zero {
		buf.b = call.AppendReduced(buf.b, inline)
	}
	return buf, nil
}

// offer opens the chunks of a plan.
func (pc *pendingCall) offer(l *link, p *plan) error {
	call := pc.call
	if p.zero {
		n := call.Size()
		if p.reads {
			n = len(call.Stream)
			for i := range call.Items {
				if len(call.Items[i].Data) < p.min {
					n += (len(call.Items[i].Data) + 3) &^ 3
				}
			}
		}
		if err := pc.positionZero(l, n, nil, func(i int) bool { return !p.reads || len(call.Items[i].Data) < p.min }); err != nil {
			return err
		}
	}
	if p.reads {
		for i := range call.Items {
			if it := &call.Items[i]; len(it.Data) >= p.min {
				if err := pc.readChunk(l, it, nil); err != nil {
					return err
				}
			}
		}
	}
	for i := range p.writes {
		if err := pc.writeChunk(l, call.Results[i], nil); err != nil {
			return err
		}
	}
	if p.reply > 0 {
		return pc.replyChunk(l, p.reply, nil)
	}
	return nil
}

// layOut opens exactly the chunks of a Layout. It returns how many Items are in
// chunks, and whether the call itself is in one.
func (pc *pendingCall) layOut(l *link, y *transport.Layout) (chunked int, zero bool, err error) {
	call := pc.call
	if len(y.Reads) > len(call.Items) || len(y.Writes) > len(call.Results) {
		return 0, false, transport.ErrLayout
	}
	chunked, zero = len(y.Reads), len(y.PositionZero) > 0
	if pc.c.backward && (chunked > 0 || zero || len(y.Writes) > 0 || len(y.Reply) > 0) {
		return 0, false, transport.ErrLayout // RFC 8167, section 4.3: no chunks without agreement
	}
	if zero {
		n := len(call.Stream)
		for i := chunked; i < len(call.Items); i++ {
			n += (len(call.Items[i].Data) + 3) &^ 3
		}
		if err := pc.positionZero(l, n, y.PositionZero, func(i int) bool { return i >= chunked }); err != nil {
			return 0, false, err
		}
	}
	for i, sizes := range y.Reads {
		if err := pc.readChunk(l, &call.Items[i], sizes); err != nil {
			return 0, false, err
		}
	}
	for i, sizes := range y.Writes {
		if err := pc.writeChunk(l, call.Results[i], sizes); err != nil {
			return 0, false, err
		}
	}
	if !y.Inline && !pc.c.backward && pc.c.o.Model != ReadRead && !pc.roomFor(l, y) {
		return 0, false, transport.ErrReplyRoom
	}
	if len(y.Reply) > 0 {
		n := sum(y.Reply)
		if n > 1<<30 {
			return 0, false, transport.ErrLayout
		}
		return chunked, zero, pc.replyChunk(l, n, y.Reply)
	}
	return chunked, zero, nil
}

// roomFor reports whether the largest reply fits inline, behind a header that returns
// the Write list, or into the Reply chunk. A Responder finds out only after it has
// executed the call, and then has no way to report the outcome.
func (pc *pendingCall) roomFor(l *link, y *transport.Layout) bool {
	header := headerSize
	for i := range pc.hdr.Writes {
		header += 8 + segmentEntrySize*len(pc.hdr.Writes[i])
	}
	return header+pc.call.MaxReply <= l.inlineReceive || pc.call.MaxReply <= sum(y.Reply)
}

// positionZero puts the call, of n bytes, into a Read chunk.
func (pc *pendingCall) positionZero(l *link, n int, sizes []uint32, inline func(int) bool) error {
	if len(sizes) > 0 && sum(sizes) != n {
		return transport.ErrLayout
	}
	b, err := l.newBounce(&pc.op, n)
	if err != nil {
		return err
	}
	pc.call.AppendReduced(b.b[:0], inline)
	list, err := l.openBlock(&pc.op, pc.xid, b, n, verbs.RemoteRead, sizes)
	return pc.readList(l, 0, list, err)
}

func (pc *pendingCall) readChunk(l *link, it *transport.Item, sizes []uint32) error {
	list, err := l.open(&pc.op, pc.xid, it.Data, verbs.RemoteRead, sizes)
	return pc.readList(l, it.Position, list, err)
}

func (pc *pendingCall) readList(l *link, position uint32, list []rpcrdma.Segment, err error) error {
	if err != nil {
		return err
	}
	if len(list) > l.o.MaxSegments {
		return transport.ErrTooLong
	}
	for _, s := range list {
		pc.moved.reads += int(s.Length)
		pc.hdr.Reads = append(pc.hdr.Reads, rpcrdma.ReadSegment{Position: position, Segment: s})
	}
	return nil
}

func (pc *pendingCall) writeChunk(l *link, mem []byte, sizes []uint32) error {
	if total := sum(sizes); len(sizes) > 0 && total < len(mem) {
		mem = mem[:total]
	}
	before := len(pc.op.bounces)
	list, err := l.open(&pc.op, pc.xid, mem, verbs.RemoteWrite, sizes)
	if err != nil {
		return err
	}
	if len(list) > l.o.MaxSegments {
		return transport.ErrTooLong
	}
	if len(pc.op.bounces) > before {
		pc.op.bounces[before].chunk = pc.writes
	}
	pc.hdr.Writes = append(pc.hdr.Writes, list)
	pc.writes++
	return nil
}

func (pc *pendingCall) replyChunk(l *link, n int, sizes []uint32) error {
	b, err := l.newBounce(&pc.op, n)
	if err != nil {
		return err
	}
	list, err := l.openBlock(&pc.op, pc.xid, b, n, verbs.RemoteWrite, sizes)
	if err != nil {
		return err
	}
	if len(list) > l.o.MaxSegments {
		return transport.ErrTooLong
	}
	pc.reply, pc.hdr.Reply, pc.hdr.HasReply = b, list, true
	return nil
}

func sum(sizes []uint32) (n int) {
	for _, s := range sizes {
		n += int(s)
	}
	return n
}
