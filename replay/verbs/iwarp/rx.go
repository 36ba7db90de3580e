package iwarp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/internal/busy"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

const (
	// rxBuffer holds the largest FPDU with its markers six times. One call that reads several FPDUs, and a copy of each to its place, takes
	// less time than a call for each place.
	rxBuffer = 400 << 10
	// The buffer for a peer that has not sent an FPDU yet. It grows when it is full
	// or an FPDU is complete.
	rxStranger = 2 << 10
	// A longer Read Response is written by the goroutine that writes, so this one goes on reading.
	handMin = 8 << 10
)

var rxBuffers = sync.Pool{New: func() any {
	b := make([]byte, rxBuffer)
	return &b
}}

// receiver parses the stream of the peer. It belongs to the reading goroutine.
type receiver struct {
	c       *conn
	pooled  *[]byte
	buf     []byte
	r, w    int    // buf[r:w] has been read and not been used
	pos     uint64 // of buf[r] in the stream, markers included
	plain   []byte // an FPDU without its markers
	started bool   // an FPDU has been received
	fpdus   uint64 // FPDUs received
	watch   unfinished
	sendMSN uint32
	readMSN uint32

	// The Send under way.
	recv       verbs.RecvRequest
	receiving  bool
	recvOff    int
	recvOp     iwarp.Opcode
	recvTag    uint32
	recvStatus verbs.Status
	message    bool // a Send is under way, received or discarded

	done []verbs.Completion

	vecs     [][]byte
	fillOnce func(fd uintptr) bool // tryFill
	asking   bool                  // fillOnce does not wait
	again    bool                  // there was nothing to read
	drained  bool                  // the last fill has read all there was
	busy     busy.Wait
	n        int
	err      error
}

func (x *receiver) init(c *conn) {
	x.c = c
	x.watch.init(c)
	x.buf = make([]byte, rxStranger)
	x.sendMSN, x.readMSN = 1, 1
	x.fillOnce = x.tryFill
	// The peer may start new Reads when it has seen the responses, which can be
	// before we have noted that they are written.
	c.resps.ring = make([]response, 2*max(c.ird, 1))
}

// giveBack gives the buffer to the pool.
func (x *receiver) giveBack() {
	if x.pooled == nil {
		return
	}
	rxBuffers.Put(x.pooled)
	x.buf, x.pooled, x.r, x.w = nil, nil, 0, 0
	x.charge(-rxBuffer)
}

// charge tells the user what the connection holds.
func (x *receiver) charge(bytes int) {
	if f := x.c.charge; f != nil {
		f(bytes)
	}
}

// run reads until the connection ends. It returns nil if the connection was ended by this
// side.
func (x *receiver) run() *failure {
	defer x.watch.stop()
	for {
		f := x.parse()
		waking := x.deliver()
		if f != nil {
			return f
		}
		if waking && x.drained {
			x.giveWay()
		}
		x.watch.wait(x.fpdus, x.r < x.w || x.message)
		if err := x.fill(); err != nil {
			return x.ended(err)
		}
	}
}

// turn is how long a user that has waited has the processor.
const turn = 20 * time.Microsecond

// giveWay lets the user who has been woken go first, until the user waits again. The peer most likely has nothing to say
// before the answer, and to ask its socket meanwhile keeps a processor, and the lock of the socket, from those with work to do.
func (x *receiver) giveWay() {
	for begun := time.Now(); ; {
		runtime.Gosched()
		if x.c.completions.waiting.Load() || time.Since(begun) > turn {
			return
		}
	}
}

// fill reads more data into the buffer.
func (x *receiver) fill() error {
	if s := x.c.s; s.raw == nil || s.flow != nil {
		n, err := s.Read(x.room())
		if x.w += n; n > 0 {
			return nil
		}
		return err
	}
	return x.read()
}

// room returns the part of the buffer for more data. An FPDU that has begun always fits.
func (x *receiver) room() []byte {
	if x.pooled == nil && (x.started || x.w == len(x.buf)) {
		x.pooled = rxBuffers.Get().(*[]byte)
		x.w = copy(*x.pooled, x.buf[x.r:x.w])
		x.buf, x.r = *x.pooled, 0
		x.charge(rxBuffer)
	}
	if x.r == x.w {
		x.r, x.w = 0, 0
	} else if len(x.buf)-x.w < rxBuffer/6 {
		x.w = copy(x.buf, x.buf[x.r:x.w])
		x.r = 0
	}
	return x.buf[x.w:]
}

// tryFill reads what is available. It reports false if there is nothing and it should wait.
func (x *receiver) tryFill(fd uintptr) bool {
	room := x.room()
	x.vecs = append(x.vecs[:0], room)
	x.n, x.again, x.err = x.c.s.raw.readv(fd, x.vecs)
	if x.n == 0 && !x.again && x.err == nil {
		x.err = io.EOF
	}
	x.w += x.n
	x.drained = x.n < len(room)
	if x.again && !x.asking {
		x.rest()
		return false
	}
	return true
}

// rest gives an empty buffer back for the time of a wait: an idle connection needs none. Nor may it keep one alive that the
// pool has dropped meanwhile, or memory of the user's.
func (x *receiver) rest() {
	clear(x.vecs[:cap(x.vecs)])
	if x.r == x.w {
		x.giveBack()
	}
}

// read calls fillOnce until there was something to read.
func (x *receiver) read() error {
	x.asking = true
	err := x.ask(x.fillOnce)
	if err == nil && x.again {
		x.busy.Begin()
		for err == nil && x.again && x.busy.Again() {
			err = x.ask(x.fillOnce)
		}
		if x.asking = false; err == nil && x.again {
			err = x.c.s.raw.rc.Read(x.fillOnce)
		}
		x.busy.End()
	}
	orderRead()
	if err == nil {
		err = x.err
	}
	return err
}

// ask calls once unless it would have to wait for a write.
func (x *receiver) ask(once func(fd uintptr) bool) error {
	asked, err := x.c.s.raw.ask(once)
	if !asked {
		x.n, x.again, x.err = 0, true, nil
	}
	return err
}

// ended returns why the stream is over.
func (x *receiver) ended(err error) *failure {
	c := x.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == verbs.StateError {
		return nil
	}
	if errors.Is(err, io.EOF) {
		c.s.ended()
		if x.r == x.w && !x.message {
			return &failure{err: verbs.ErrDisconnected}
		}
		err = errors.New("the connection ends within a message")
	}
	if c.finSent {
		return &failure{err: verbs.ErrDisconnected}
	}
	// A peer that closes with unread data, perhaps the answer to its RTR Read, resets
	// the connection. It has left, and no rule is broken.
	if errors.Is(err, syscall.ECONNRESET) {
		return &failure{err: fmt.Errorf("%w: %w", verbs.ErrDisconnected, err)}
	}
	return &failure{err: &verbs.StatusError{Op: verbs.OpRecv, Status: verbs.StatusGeneral, Detail: err.Error()}}
}

// discard reads to the end and discards the data.
func (x *receiver) discard() {
	io.Copy(io.Discard, x.c.s) //nolint:errcheck // the end of the stream, or its error, is all there is to come
}

// parse handles the complete FPDUs in the buffer.
func (x *receiver) parse() *failure {
	c := x.c
	for {
		b := x.buf[x.r:x.w]
		if c.markers {
			n, f := x.marked(b)
			if f != nil {
				return f
			}
			if n == 0 {
				return nil
			}
			x.r += n
			x.pos += uint64(n)
			continue
		}
		fpdu, err := iwarp.ParseFPDU(b)
		if err != nil {
			return nil
		}
		if c.crc && crc32.Checksum(fpdu[:len(fpdu)-iwarp.CRCLen], castagnoli) != fpdu.CRC() {
			return violation(iwarp.LayerMPA, typeMPA, codeCRC, verbs.OpRecv, verbs.StatusGeneral, nil)
		}
		x.r += len(fpdu)
		if f := x.ulpdu(fpdu.ULPDU()); f != nil {
			return f
		}
	}
}

// marked handles an FPDU with markers and returns its size, 0 if it is not
// complete.
func (x *receiver) marked(b []byte) (int, *failure) {
	lead := 0
	if x.pos%iwarp.MarkerInterval == 0 {
		lead = iwarp.MarkerLen
	}
	if len(b) < lead+iwarp.FPDUHeaderLen {
		return 0, nil
	}
	n := iwarp.MarkedLen(x.pos, iwarp.FPDULen(int(binary.BigEndian.Uint16(b[lead:]))))
	if len(b) < n {
		return 0, nil
	}
	b = b[:n]
	header := x.pos + uint64(lead)
	for at := (iwarp.MarkerInterval - x.pos%iwarp.MarkerInterval) % iwarp.MarkerInterval; at < uint64(n); at += iwarp.MarkerInterval {
		want := uint16(0)
		if p := x.pos + at; p > header {
			want = uint16(p - header)
		}
		if binary.BigEndian.Uint16(b[at+2:]) != want {
			return 0, violation(iwarp.LayerMPA, typeMPA, codeLength, verbs.OpRecv, verbs.StatusGeneral, nil)
		}
	}
	if x.c.crc && crc32.Checksum(b[:n-iwarp.CRCLen], castagnoli) != binary.LittleEndian.Uint32(b[n-iwarp.CRCLen:]) {
		return 0, violation(iwarp.LayerMPA, typeMPA, codeCRC, verbs.OpRecv, verbs.StatusGeneral, nil)
	}
	x.plain = iwarp.RemoveMarkers(x.plain[:0], b, x.pos)
	f, err := iwarp.ParseFPDU(x.plain)
	if err != nil {
		return 0, violation(iwarp.LayerMPA, typeMPA, codeLength, verbs.OpRecv, verbs.StatusGeneral, nil)
	}
	return n, x.ulpdu(f.ULPDU())
}

// offenderOf describes a segment for a Terminate.
func offenderOf(u iwarp.ULPDU) *offender {
	o := new(offender)
	o.set(u)
	return o
}

func (o *offender) set(u iwarp.ULPDU) {
	*o = offender{length: uint16(len(u))}
	if len(u) < iwarp.ControlLen || len(u) < u.HeaderLen() {
		return
	}
	o.n = copy(o.header[:], u[:u.HeaderLen()])
	if u.Control().Opcode() == iwarp.OpReadRequest && !u.Control().Tagged() && len(u) >= iwarp.UntaggedLen+iwarp.ReadRequestLen {
		o.isRead = true
		copy(o.read[:], u.Payload())
	}
}

// ulpdu handles a DDP segment.
func (x *receiver) ulpdu(u iwarp.ULPDU) *failure {
	x.fpdus++
	if f := x.header(u, len(u)); f != nil {
		return f
	}
	x.start()
	if u.Control().Tagged() {
		return x.tagged(u)
	}
	switch u.Control().Opcode() {
	case iwarp.OpReadRequest:
		return x.readRequest(u)
	case iwarp.OpTerminate:
		p := iwarp.Terminate(u.Payload())
		if len(p) < iwarp.TerminateLen {
			return &failure{err: &verbs.StatusError{Op: verbs.OpSend, Status: verbs.StatusGeneral, Detail: "Terminate from the peer, cut short"}}
		}
		return reported(p)
	}
	return x.send(u)
}

// header checks what all segments have in common. u may end after the header; length is
// the length of the whole segment.
func (x *receiver) header(u iwarp.ULPDU, length int) *failure {
	if length < iwarp.ControlLen || length < u.HeaderLen() {
		return violation(iwarp.LayerMPA, typeMPA, codeLength, verbs.OpRecv, verbs.StatusGeneral, nil)
	}
	k := u.Control()
	about := func() *offender { return offenderOf(u) }
	tagged := k.Tagged()
	if k.DDPVersion() != 1 {
		if tagged {
			return violation(iwarp.LayerDDP, typeTagged, codeTaggedDDP, verbs.OpRecv, verbs.StatusGeneral, about())
		}
		return violation(iwarp.LayerDDP, typeUntagged, codeUntaggedDDP, verbs.OpRecv, verbs.StatusGeneral, about())
	}
	if k.RDMAPVersion() != 1 {
		return violation(iwarp.LayerRDMAP, typeOperation, codeRDMAP, verbs.OpRecv, verbs.StatusGeneral, about())
	}
	op := k.Opcode()
	if !tagged {
		qn := iwarp.Untagged(u).QN()
		if qn > iwarp.QueueTerminate {
			return violation(iwarp.LayerDDP, typeUntagged, codeQN, verbs.OpRecv, verbs.StatusGeneral, about())
		}
		if op.Tagged() || op > iwarp.OpTerminate || qn != op.Queue() {
			return violation(iwarp.LayerRDMAP, typeOperation, codeOpcode, verbs.OpRecv, verbs.StatusGeneral, about())
		}
		return nil
	}
	if !op.Tagged() || op > iwarp.OpTerminate {
		return violation(iwarp.LayerRDMAP, typeOperation, codeOpcode, verbs.OpRecv, verbs.StatusGeneral, about())
	}
	return nil
}

// start permits the responder to send after the initiator has.
func (x *receiver) start() {
	if x.started {
		return
	}
	x.started = true
	c := x.c
	c.mu.Lock()
	if c.tx.hold {
		c.tx.hold = false
		c.kick(false)
	}
	c.mu.Unlock()
}

// tagged places a whole segment.
func (x *receiver) tagged(u iwarp.ULPDU) *failure {
	h := iwarp.Tagged(u)
	p := u.Payload()
	if h.Control().Opcode() == iwarp.OpReadResponse {
		if f := x.response(h, len(p)); f != nil {
			return f
		}
		copyTo(x.sink(len(p)), p)
		return x.responded(h, len(p))
	}
	if len(p) == 0 {
		return nil // a Write of zero bytes needs no STag (RFC 5040, section 5.2)
	}
	t := &x.c.regions
	t.mu.Lock()
	r, at, why := t.find(h.STag(), h.TO(), len(p), verbs.RemoteWrite)
	if why == allowed {
		copy(r.mem[at:], p)
	}
	t.mu.Unlock()
	if why != allowed {
		return writeFailure(why, offenderOf(u))
	}
	return nil
}

func copyTo(vecs [][]byte, p []byte) {
	for _, v := range vecs {
		p = p[copy(v, p):]
	}
}

// response checks a segment of a Read Response with n bytes of payload.
func (x *receiver) response(h iwarp.Tagged, n int) *failure {
	c := x.c
	c.mu.Lock()
	defer c.mu.Unlock()
	bad := func(code uint8) *failure {
		f := violation(iwarp.LayerDDP, typeTagged, code, verbs.OpRead, verbs.StatusBadResponse, offenderOf(iwarp.ULPDU(h[:iwarp.TaggedLen])))
		f.read, f.status = c.reads.n > 0, verbs.StatusBadResponse
		return f
	}
	if c.reads.n == 0 {
		return bad(codeSTag)
	}
	r := c.reads.oldest()
	if h.STag() != r.stag {
		return bad(codeSTag)
	}
	if h.TO() != uint64(r.got) || n > r.len-r.got || h.Control().Last() != (n == r.len-r.got) {
		return bad(codeBounds)
	}
	return nil
}

// sink returns the memory for the n bytes of a segment of a Read Response that has been checked.
func (x *receiver) sink(n int) [][]byte {
	c := x.c
	x.vecs = x.vecs[:0]
	// Only this goroutine changes or removes the oldest Read.
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.reads.oldest()
	if r.ready {
		return nil
	}
	skip := r.got
	for _, s := range c.sends.at(r.entry).sge {
		if skip >= len(s) {
			skip -= len(s)
			continue
		}
		v := s[skip:]
		v = v[:min(n, len(v))]
		skip = 0
		if n -= len(v); len(v) > 0 {
			x.vecs = append(x.vecs, v)
		}
		if n == 0 {
			break
		}
	}
	return x.vecs
}

// responded records the arrival of n more bytes of the oldest Read.
func (x *receiver) responded(h iwarp.Tagged, n int) *failure {
	c := x.c
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.reads.oldest()
	r.got += n
	if !h.Control().Last() {
		return nil
	}
	ready, i := r.ready, r.entry
	c.reads.pop()
	if !ready {
		c.sends.at(i).done = true
		c.retire()
	}
	if c.sends.next < c.sends.tail || c.state == verbs.StateSQD {
		c.kick(false) // a request may have waited for this
	}
	return nil
}

// readRequest queues a Read of the peer's.
func (x *receiver) readRequest(u iwarp.ULPDU) *failure {
	h, p := iwarp.Untagged(u), u.Payload()
	wrong := func(code uint8) *failure {
		return violation(iwarp.LayerDDP, typeUntagged, code, verbs.OpRead, verbs.StatusGeneral, offenderOf(u))
	}
	switch {
	case h.MSN() != x.readMSN:
		return wrong(codeMSN)
	case h.MO() != 0:
		return wrong(codeMO)
	case len(p) > iwarp.ReadRequestLen:
		return wrong(codeTooLong)
	case len(p) < iwarp.ReadRequestLen || !h.Control().Last():
		return violation(iwarp.LayerRDMAP, typeOperation, 0xff, verbs.OpRead, verbs.StatusGeneral, offenderOf(u))
	}
	x.readMSN++
	q := iwarp.ReadRequest(p)
	r := response{sinkSTag: q.SinkSTag(), sinkTO: q.SinkTO(), refused: allowed}
	r.request.set(u)
	c := x.c
	if n := uint64(q.Size()); n > maxMessage {
		r.refused = refusedBounds
	} else if n > 0 {
		t := &c.regions
		t.mu.Lock()
		region, at, why := t.find(q.SourceSTag(), q.SourceTO(), int(n), verbs.RemoteRead)
		if why == allowed {
			// From here on Deregister waits for the responses.
			region.responses.Add(1)
			r.region, r.mem = region, region.mem[at:at+int(n):at+int(n)]
		}
		t.mu.Unlock()
		r.refused = why
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	full := c.resps.tail-c.resps.head == uint64(len(c.resps.ring))
	if full || c.state == verbs.StateError {
		if r.region != nil {
			r.region.responses.Add(-1)
		}
		if full {
			return wrong(codeNoBuffer)
		}
		return nil
	}
	*c.resps.at(c.resps.tail) = r
	c.resps.tail++
	c.kick(len(r.mem) > handMin)
	return nil
}

// send places a segment of a Send.
func (x *receiver) send(u iwarp.ULPDU) *failure {
	h, p := iwarp.Untagged(u), u.Payload()
	k := h.Control()
	op := k.Opcode()
	wrong := func(code uint8, s verbs.Status) *failure {
		return violation(iwarp.LayerDDP, typeUntagged, code, verbs.OpSend, s, offenderOf(u))
	}
	if h.MSN() != x.sendMSN {
		return wrong(codeMSN, verbs.StatusGeneral)
	}
	if !x.message {
		if h.MO() != 0 {
			return wrong(codeMO, verbs.StatusGeneral)
		}
		if x.c.rtr == RTRSend && !x.c.initiator && x.sendMSN == 1 {
			// The ready-to-receive message is not for the user.
			if len(p) > 0 || !k.Last() {
				return violation(iwarp.LayerMPA, typeMPA, 7, verbs.OpSend, verbs.StatusGeneral, offenderOf(u))
			}
			x.sendMSN++
			return nil
		}
		r, ok := x.c.recvs.take()
		if !ok {
			return wrong(codeNoBuffer, verbs.StatusRNRRetryExceeded)
		}
		x.recv, x.receiving, x.message = r, true, true
		x.recvOff, x.recvOp, x.recvTag = 0, op, h.InvalidateSTag()
		x.recvStatus = verbs.StatusFlushed
	}
	if int64(h.MO()) != int64(x.recvOff) {
		return wrong(codeMO, verbs.StatusGeneral)
	}
	if op != x.recvOp {
		return violation(iwarp.LayerRDMAP, typeOperation, codeOpcode, verbs.OpSend, verbs.StatusGeneral, offenderOf(u))
	}
	if len(p) > len(x.recv.Buffer)-x.recvOff {
		x.recvStatus = verbs.StatusLocalLength
		return wrong(codeTooLong, verbs.StatusLocalLength)
	}
	x.recvOff += copy(x.recv.Buffer[x.recvOff:], p)
	if !k.Last() {
		return nil
	}
	if op.Invalidates() && !x.c.closeRegion(x.recvTag, true) {
		return violation(iwarp.LayerRDMAP, typeProtection, codeSTag, verbs.OpSendInvalidate, verbs.StatusLocalProtection, offenderOf(u))
	}
	x.sendMSN++
	x.receiving, x.message = false, false
	d := x.completed(verbs.StatusSuccess)
	d.Length = uint32(x.recvOff)
	if op.Invalidates() {
		d.Invalidated, d.Handle = true, x.recvTag
	}
	return nil
}

// completed ends the receive under way. Its completion is filled in where it stands: copying a whole struct right after its
// fields were written stalls the processor.
func (x *receiver) completed(s verbs.Status) *verbs.Completion {
	n := len(x.done)
	x.done = slices.Grow(x.done, 1)[:n+1]
	d := &x.done[n]
	d.ID, d.Op, d.Status, d.Length, d.Invalidated, d.Handle = x.recv.ID, verbs.OpRecv, s, 0, false, 0
	x.recv.Buffer = nil
	return d
}

// deliver reports completed receives to the user, and whether the user has waited for them.
func (x *receiver) deliver() (waking bool) {
	if len(x.done) == 0 {
		return false
	}
	now := time.Now()
	for i := range x.done {
		x.done[i].Time = now
	}
	waking = x.c.completions.push(x.done)
	x.done = x.done[:0]
	return waking
}

// flush completes the receive under way after the end of the stream.
func (x *receiver) flush() {
	if x.receiving {
		x.receiving = false
		x.completed(x.recvStatus)
	}
	x.deliver()
}
