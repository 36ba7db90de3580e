package iwarp

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What is written at once.
const (
	txBytes   = 256 << 10
	txFPDUs   = 64
	txVectors = 256
	txHeaders = 32 << 10
	inlineMax = 512 // payload that is copied beside its header
	overhead  = iwarp.FPDUHeaderLen + iwarp.UntaggedLen + iwarp.ReadRequestLen + 3 + iwarp.CRCLen
)

// kind is the kind of a message of ours.
type kind uint8

const (
	kindSend kind = iota // Send and Write complete when they are written
	kindWrite
	kindRead
	kindResponse
	kindReady // the ready-to-receive message
	kindTerminate
)

// message is the message that is being cut into segments.
type message struct {
	active   bool
	kind     kind
	entry    uint64 // index of the request, or of the response
	msn      uint32
	stag     uint32 // sink of a Read, or the one to invalidate
	opcode   iwarp.Opcode
	off, len int
}

// segment is one FPDU of a batch, with what its message had when the segment was cut.
type segment struct {
	kind   kind
	opcode iwarp.Opcode
	last   bool // of its message
	msn    uint32
	stag   uint32
	entry  uint64
	off, n int // payload bytes
	end    int // where it ends in the batch
}

// transmitter builds FPDUs in batches and writes them. Only the goroutine that has set
// owned does so. conn.mu protects the fields while no attempt is under way; during an
// attempt they belong to the owner.
type transmitter struct {
	c          *conn
	owned      bool
	attempting bool
	dead       bool // the socket takes no more
	built      bool
	ready      bool // the ready-to-receive message is still to go
	hold       bool // the peer has to send first
	cut        bool // the Terminate has been cut
	turn       bool // the other kind is next: requests and responses take turns
	msg        message
	sendMSN    uint32
	readMSN    uint32
	sink       uint32

	segs  []segment
	early int      // segments of the batch that are built when they are cut
	heads []byte   // headers, trailers and short payloads
	vecs  [][]byte // of the batch, from the first byte not written
	loan  []bool   // vecs[i] is memory of the user
	vecs0 [][]byte // where vecs begins
	loan0 []bool
	used  int // of vecs0, since it was last cleared
	size  int // of the batch in bytes
	sent  int
	acct  int // segments that are accounted for
	sge   int // where in its slices the message's next payload byte is
	skip  int
	pos   uint64 // in our stream of FPDUs, for markers
	flat  []byte // the batch in one piece
	ulpdu []byte

	writeOnce func(fd uintptr) bool
	writeWait func(fd uintptr) bool
	n         int
	again     bool
	err       error
}

func (t *transmitter) init(c *conn) {
	t.c = c
	t.sendMSN, t.readMSN = 1, 1
	t.sink = c.p.newTag()
	t.vecs0, t.loan0 = make([][]byte, 0, txVectors), make([]bool, 0, txVectors)
	t.ready = c.initiator && c.rtr != 0
	// A responder may not send before it has received an FPDU from the initiator (RFC
	// 5044, section 7.1.2; RFC 6581, section 9.2).
	t.hold = !c.initiator
	t.writeOnce = func(fd uintptr) bool {
		t.writev(fd)
		return true
	}
	t.writeWait = func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.yield()
		if t.empty() {
			return true
		}
		t.attempting = true
		c.mu.Unlock()
		t.writev(fd)
		c.mu.Lock()
		t.attempted()
		return !t.again
	}
}

func (t *transmitter) writev(fd uintptr) {
	s := t.c.s
	if s.flow != nil {
		s.order.Lock()
		defer s.order.Unlock()
	}
	orderWrite()
	t.n, t.again, t.err = s.raw.writev(fd, t.vecs)
	if s.flow != nil && t.n > 0 {
		s.flow.Sent(prefix(t.vecs, t.n)...)
	}
}

// prefix returns the first n bytes.
func prefix(vecs [][]byte, n int) [][]byte {
	var p [][]byte
	for _, v := range vecs {
		if n == 0 {
			break
		}
		m := min(n, len(v))
		p = append(p, v[:m])
		n -= m
	}
	return p
}

func (t *transmitter) empty() bool { return t.acct == len(t.segs) }

// kick makes sure that what can be written is written; mu is held. Without hand, the
// caller writes it, unless that would take long.
func (c *conn) kick(hand bool) {
	t := &c.tx
	if t.owned {
		return // the owner checks again before it stops
	}
	t.owned = true
	if hand || c.s.raw == nil {
		c.handOver()
		return
	}
	c.transmit(false)
}

func (c *conn) handOver() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// transmit writes until nothing is left; mu and the ownership are held. If it must not
// wait, it passes the ownership on when the socket is full, or after a while.
func (c *conn) transmit(wait bool) {
	t := &c.tx
	for rounds := 0; ; rounds++ {
		c.yield()
		if t.empty() {
			if rounds >= 2 && !wait && !t.dead && t.pending() {
				c.handOver()
				return
			}
			// mu is held from plan to build: for Deregister, a segment that uses a
			// region is either not planned or completely built.
			if t.dead || !t.plan() {
				break
			}
		}
		if c.s.raw == nil {
			t.copyOut()
		} else {
			t.attempting = true
			c.mu.Unlock()
			if !t.built {
				t.build()
			}
			if err := c.s.raw.rc.Write(t.writeOnce); err != nil {
				t.n, t.again, t.err = 0, false, err
			}
			c.mu.Lock()
			t.attempted()
			if t.again && t.err == nil {
				if !wait {
					c.handOver()
					return
				}
				t.await()
			}
		}
		if t.err != nil {
			t.broken()
		}
	}
	// Completed requests do not keep their memory alive.
	clear(t.vecs0[:t.used])
	t.used = 0
	t.owned = false
	if c.state == verbs.StateSQD {
		c.change.Broadcast()
	}
}

// attempted ends an attempt and accounts for what it has written; mu is held.
func (t *transmitter) attempted() {
	t.attempting = false
	if t.c.pausing > 0 {
		t.c.change.Broadcast()
	}
	t.account(t.n)
}

// await waits until the socket accepts more, and writes; mu is held.
func (t *transmitter) await() {
	c := t.c
	c.mu.Unlock()
	c.s.SetWriteDeadline(time.Now().Add(c.p.o.Stall)) //nolint:errcheck // a socket has deadlines
	t.err = nil
	err := c.s.raw.rc.Write(t.writeWait)
	c.s.SetWriteDeadline(time.Time{}) //nolint:errcheck // a socket has deadlines
	c.mu.Lock()
	if err != nil {
		t.err = err
	}
}

// broken gives up writing; mu is held. The reader finds the reason, since the last data
// of the peer, perhaps a Terminate, may still be unread.
func (t *transmitter) broken() {
	c := t.c
	t.dead = true
	t.segs, t.acct = t.segs[:0], 0
	if os.IsTimeout(t.err) {
		c.fail(&verbs.StatusError{Op: verbs.OpSend, Status: verbs.StatusRetryExceeded, Detail: "the peer reads nothing for " + c.p.o.Stall.String()}, nil)
		return
	}
	if c.state != verbs.StateError {
		c.s.SetReadDeadline(time.Now().Add(linger)) //nolint:errcheck // a socket has deadlines
	}
	c.change.Broadcast()
}

// plan cuts the next messages into segments; mu is held. It reports false if there is
// nothing to send.
func (t *transmitter) plan() bool {
	if t.heads == nil {
		t.heads = make([]byte, 0, txHeaders)
	}
	t.segs, t.heads, t.vecs, t.loan = t.segs[:0], t.heads[:0], t.vecs0[:0], t.loan0[:0]
	t.size, t.sent, t.acct, t.built = 0, 0, 0, false
	c := t.c
	for len(t.segs) < txFPDUs && len(t.heads)+overhead+inlineMax < txHeaders && t.short() {
	}
	t.early = len(t.segs)
	heads, vectors, bytes := len(t.heads), 0, 0
	for len(t.segs) < txFPDUs && bytes < txBytes && vectors+maxSGE+2 < txVectors && heads+overhead+inlineMax < txHeaders {
		m := &t.msg
		if m.active && (m.kind == kindResponse && c.resps.at(m.entry).region.gone() || c.state == verbs.StateError) {
			m.active = false
			if c.state != verbs.StateError {
				t.refuse(c.resps.at(m.entry), refusedSTag)
			}
		}
		if !m.active && !t.next() {
			break
		}
		room := c.maxULPDU - iwarp.UntaggedLen
		if m.kind == kindWrite || m.kind == kindResponse {
			room = c.maxULPDU - iwarp.TaggedLen
		}
		n := min(m.len-m.off, room)
		at := len(t.segs)
		t.segs = slices.Grow(t.segs, 1)[:at+1]
		s := &t.segs[at]
		// Field by field: copying a whole struct right after its fields were written stalls the processor.
		s.kind, s.opcode, s.entry, s.msn, s.stag, s.off = m.kind, m.opcode, m.entry, m.msn, m.stag, m.off
		s.n, s.last = n, m.off+n == m.len
		m.off += n
		m.active = !s.last
		bytes += n
		heads += overhead
		if n <= inlineMax {
			heads += n
		} else {
			vectors += 2
			if m.kind != kindResponse {
				vectors += len(c.sends.at(m.entry).sge)
			}
		}
	}
	return len(t.segs) > 0
}

// short cuts and builds the next message if that is a short Send, as most calls and replies are; mu is held. It reports false if the next
// message is something else.
func (t *transmitter) short() bool {
	c := t.c
	q := &c.sends
	if t.msg.active || t.ready || t.hold || q.next == q.tail || c.resps.next < c.resps.tail || c.state == verbs.StateError || c.finSent {
		return false
	}
	e := q.at(q.next)
	if e.op != verbs.OpSend || e.fence || e.length > min(inlineMax, c.maxULPDU-iwarp.UntaggedLen) {
		return false
	}
	start := len(t.heads)
	b := binary.BigEndian.AppendUint16(t.heads, uint16(iwarp.UntaggedLen+e.length))
	b = iwarp.AppendUntagged(b, iwarp.NewControl(iwarp.OpSend, true), 0, t.sendMSN, 0)
	for _, p := range e.sge {
		b = append(b, p...)
	}
	t.heads = t.seal(b, start)
	at := len(t.segs)
	t.segs = slices.Grow(t.segs, 1)[:at+1]
	s := &t.segs[at]
	s.kind, s.entry, s.last, s.end = kindSend, q.next, true, t.size
	q.next++
	t.sendMSN++
	return true
}

// seal ends the FPDU that begins at b[start:] and is all in b.
func (t *transmitter) seal(b []byte, start int) []byte {
	for (len(b)-start)&3 != 0 {
		b = append(b, 0)
	}
	var sum uint32
	if t.c.crc {
		sum = crc32.Checksum(b[start:], castagnoli)
	}
	t.size += len(b) - start + iwarp.CRCLen
	return binary.LittleEndian.AppendUint32(b, sum)
}

// pending reports whether there may be something to send; mu is held.
func (t *transmitter) pending() bool {
	c := t.c
	return t.msg.active || t.ready || c.resps.next < c.resps.tail || c.sends.next < c.sends.tail || c.term != nil && !t.cut
}

// next begins the next message; mu is held.
func (t *transmitter) next() bool {
	c := t.c
	switch {
	case c.state == verbs.StateError:
		if c.term == nil || t.cut {
			return false
		}
		t.cut = true
		t.msg = message{active: true, kind: kindTerminate, msn: 1, opcode: iwarp.OpTerminate, len: len(c.term)}
		return true
	case c.finSent:
		return false
	case t.ready:
		t.ready = false
		t.msg = message{active: true, kind: kindReady}
		switch c.rtr {
		case RTRWrite:
			t.msg.opcode = iwarp.OpWrite
		case RTRSend:
			t.msg.opcode, t.msg.msn = iwarp.OpSend, t.sendMSN
			t.sendMSN++
		default:
			t.msg.opcode, t.msg.msn, t.msg.stag = iwarp.OpReadRequest, t.readMSN, t.newSink()
			t.readMSN++
			c.reads.push(read{ready: true, stag: t.msg.stag})
		}
		return true
	}
	if t.turn = !t.turn; t.turn {
		return t.nextResponse() || t.nextRequest()
	}
	return t.nextRequest() || t.nextResponse()
}

func (t *transmitter) newSink() uint32 {
	t.sink++
	return t.sink
}

func (t *transmitter) nextResponse() bool {
	c := t.c
	q := &c.resps
	if q.next == q.tail || c.state == verbs.StateError {
		return false
	}
	r := q.at(q.next)
	why := r.refused
	if why == allowed && r.region.gone() {
		why = refusedSTag
	}
	if why != allowed {
		t.refuse(r, why)
		return t.next()
	}
	t.msg = message{active: true, kind: kindResponse, entry: q.next, opcode: iwarp.OpReadResponse, len: len(r.mem)}
	q.next++
	return true
}

// refuse terminates the connection for a Read Request; mu is held.
func (t *transmitter) refuse(r *response, why refusal) {
	f := protectionFailure(why, &r.request)
	t.c.fail(f.err, f.term)
}

func (t *transmitter) nextRequest() bool {
	c := t.c
	q := &c.sends
	for q.next < q.tail && !t.hold && c.state != verbs.StateError {
		e := q.at(q.next)
		if e.fence && c.reads.n > 0 {
			return false
		}
		m := &t.msg
		*m = message{entry: q.next, len: e.length}
		switch e.op {
		case verbs.OpSend, verbs.OpSendInvalidate:
			m.kind, m.opcode, m.msn = kindSend, iwarp.OpSend, t.sendMSN
			if e.op == verbs.OpSendInvalidate {
				m.opcode, m.stag = iwarp.OpSendInvalidate, e.handle
			}
			t.sendMSN++
		case verbs.OpWrite:
			m.kind, m.opcode, m.stag = kindWrite, iwarp.OpWrite, e.handle
		case verbs.OpRead:
			if c.reads.n >= c.ord {
				return false
			}
			m.kind, m.opcode, m.msn, m.len = kindRead, iwarp.OpReadRequest, t.readMSN, 0
			m.stag = t.newSink()
			t.readMSN++
			c.reads.push(read{entry: q.next, stag: m.stag, len: e.length})
		case verbs.OpBind:
			e.status, e.done = c.bind(e), true
		case verbs.OpLocalInvalidate:
			if e.done = true; !c.closeRegion(e.handle, false) {
				e.status = verbs.StatusBind
			}
		}
		q.next++
		if !e.done {
			m.active = true
			return true
		}
		c.retire()
		if e.status != verbs.StatusSuccess {
			c.fail(&verbs.StatusError{Op: e.op, Status: e.status}, (&failure{layer: iwarp.LayerRDMAP}).terminate())
			return t.next()
		}
	}
	return false
}

// build builds the bytes of the batch. The owner calls it during an attempt.
func (t *transmitter) build() {
	c := t.c
	b := t.heads
	from := 0 // bytes of b that are not in vecs yet
	for i := t.early; i < len(t.segs); i++ {
		s := &t.segs[i]
		start := len(b)
		b = append(b, 0, 0)
		b = t.header(b, s)
		ulpdu := len(b) - start - iwarp.FPDUHeaderLen + s.n
		binary.BigEndian.PutUint16(b[start:], uint16(ulpdu))
		if s.n <= inlineMax {
			b = t.seal(t.payload(b, s, s.n, nil), start)
		} else {
			var sum uint32
			if c.crc {
				sum = crc32.Checksum(b[start:], castagnoli)
			}
			t.vecs, t.loan = append(t.vecs, b[from:]), append(t.loan, false)
			from = len(b)
			t.payload(nil, s, s.n, func(p []byte) {
				t.vecs, t.loan = append(t.vecs, p), append(t.loan, true)
				if c.crc {
					sum = crc32.Update(sum, castagnoli, p)
				}
			})
			pad := -(iwarp.FPDUHeaderLen + ulpdu) & 3
			b = append(b, []byte{0, 0, 0}[:pad]...)
			if c.crc {
				sum = crc32.Update(sum, castagnoli, b[len(b)-pad:])
			}
			t.size += iwarp.FPDULen(ulpdu)
			b = binary.LittleEndian.AppendUint32(b, sum)
		}
		s.end = t.size
	}
	t.vecs, t.loan = append(t.vecs, b[from:]), append(t.loan, false)
	t.used = max(t.used, min(len(t.vecs), cap(t.vecs0)))
	t.heads = b
	t.built = true
}

// header appends the DDP and RDMAP headers of a segment.
func (t *transmitter) header(b []byte, s *segment) []byte {
	c := t.c
	control := iwarp.NewControl(s.opcode, s.last)
	switch s.kind {
	case kindWrite:
		return iwarp.AppendTagged(b, control, s.stag, c.sends.at(s.entry).offset+uint64(s.off))
	case kindResponse:
		r := c.resps.at(s.entry)
		return iwarp.AppendTagged(b, control, r.sinkSTag, r.sinkTO+uint64(s.off))
	case kindSend:
		return iwarp.AppendUntagged(b, control, s.stag, s.msn, uint32(s.off))
	case kindRead:
		e := c.sends.at(s.entry)
		b = iwarp.AppendUntagged(b, control, 0, s.msn, 0)
		return iwarp.AppendReadRequest(b, s.stag, 0, uint32(e.length), e.handle, e.offset)
	case kindReady:
		switch s.opcode {
		case iwarp.OpWrite:
			return iwarp.AppendTagged(b, control, 0, 0)
		case iwarp.OpSend:
			return iwarp.AppendUntagged(b, control, 0, s.msn, 0)
		}
		b = iwarp.AppendUntagged(b, control, 0, s.msn, 0)
		return iwarp.AppendReadRequest(b, s.stag, 0, 0, 0, 0)
	}
	return iwarp.AppendUntagged(b, control, 0, s.msn, uint32(s.off))
}

// payload appends the next n bytes of the message to b, or passes them to f.
func (t *transmitter) payload(b []byte, s *segment, n int, f func([]byte)) []byte {
	if n == 0 {
		return b
	}
	var list [][]byte
	var single [1][]byte
	switch s.kind {
	case kindResponse:
		single[0] = t.c.resps.at(s.entry).mem
		list = single[:]
	case kindTerminate:
		single[0] = t.c.term
		list = single[:]
	default:
		list = t.c.sends.at(s.entry).sge
	}
	if s.off == 0 {
		t.sge, t.skip = 0, 0
	}
	for n > 0 {
		p := list[t.sge][t.skip:]
		p = p[:min(n, len(p))]
		if f != nil {
			f(p)
		} else {
			b = append(b, p...)
		}
		n -= len(p)
		if t.skip += len(p); t.skip == len(list[t.sge]) {
			t.sge, t.skip = t.sge+1, 0
		}
	}
	return b
}

// copyOut writes the batch through package net, in one piece; mu is held. The user's
// memory is copied first, so that it is not in use while the write waits.
func (t *transmitter) copyOut() {
	c := t.c
	t.attempting = true
	c.mu.Unlock()
	t.build()
	if c.sendMarkers {
		t.mark()
	} else {
		t.flat = t.flat[:0]
		for _, v := range t.vecs {
			t.flat = append(t.flat, v...)
		}
	}
	c.mu.Lock()
	t.n = 0
	t.attempted()
	t.vecs, t.loan = t.vecs[:0], t.loan[:0]
	flat := t.flat
	c.mu.Unlock()
	c.s.SetWriteDeadline(time.Now().Add(c.p.o.Stall)) //nolint:errcheck // a socket has deadlines
	n, err := c.s.Write(flat)
	c.mu.Lock()
	t.err = err
	if err == nil && n == len(flat) {
		t.account(t.size)
	}
}

// mark copies the batch to flat and inserts markers.
func (t *transmitter) mark() {
	t.flat, t.ulpdu = t.flat[:0], t.ulpdu[:0]
	for _, v := range t.vecs {
		t.ulpdu = append(t.ulpdu, v...)
	}
	rest := t.ulpdu
	for range t.segs {
		f, err := iwarp.ParseFPDU(rest)
		if err != nil {
			break // impossible: build has written them
		}
		before := len(t.flat)
		t.flat = iwarp.AppendMarkedFPDU(t.flat, f.ULPDU(), t.c.crc, t.pos)
		t.pos += uint64(len(t.flat) - before)
		rest = rest[len(f):]
	}
}

// account records that n more bytes have been written; mu is held.
func (t *transmitter) account(n int) {
	c := t.c
	t.sent += n
	for n > 0 && len(t.vecs) > 0 {
		if n < len(t.vecs[0]) {
			t.vecs[0] = t.vecs[0][n:]
			break
		}
		n -= len(t.vecs[0])
		t.vecs, t.loan = t.vecs[1:], t.loan[1:]
	}
	some := false
	for t.acct < len(t.segs) && t.segs[t.acct].end <= t.sent && t.built {
		s := &t.segs[t.acct]
		t.acct++
		if !s.last {
			continue
		}
		switch s.kind {
		case kindSend, kindWrite:
			if !c.flushed {
				c.sends.at(s.entry).done = true
				some = true
			}
		case kindResponse:
			if !c.flushed {
				c.resps.pop()
			}
		case kindTerminate:
			c.s.CloseWrite()
		}
	}
	if some {
		c.retire()
	}
}

// detach copies the unwritten part of the batch, so that it needs no memory of the user;
// mu is held, and no attempt is under way.
func (t *transmitter) detach() {
	for i := range t.vecs {
		if t.loan[i] {
			t.vecs[i], t.loan[i] = append([]byte(nil), t.vecs[i]...), false
		}
	}
}

// trim cuts the batch after the segment that is partly written, or at the present end if
// there is none; mu is held, and no attempt is under way.
func (t *transmitter) trim() {
	t.msg.active = false
	if t.empty() || len(t.vecs) == 0 && t.built {
		return // nothing, or a copy that is being written
	}
	begin := 0
	if t.acct > 0 {
		begin = t.segs[t.acct-1].end
	}
	if !t.built || begin == t.sent {
		t.segs, t.vecs, t.loan = t.segs[:t.acct], t.vecs[:0], t.loan[:0]
		return
	}
	t.segs = t.segs[:t.acct+1]
	left := t.segs[t.acct].end - t.sent
	t.vecs = prefix(t.vecs, left)
	t.loan = t.loan[:len(t.vecs)]
	t.detach()
}
