package rocev2

import (
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

const (
	// maxOutstanding bounds the distance between the oldest unacknowledged PSN and the
	// newest: well below half of the PSN space, so that their order stays known.
	maxOutstanding = 1 << 22
	minWindow      = 4 // packets
	// ackInterval is the number of datagrams between two requests for an acknowledgement.
	ackInterval = 4
	// singlePackets is how many packets count as a datagram if each is sent as one of its own.
	singlePackets = 4
)

// wqe is a request in the send queue.
type wqe struct {
	id           uint64
	op           verbs.Op
	access       verbs.Access
	signaled     bool
	fence        bool
	assigned     bool // has PSNs
	done         bool // executed, or acknowledged
	handle       uint32
	offset       uint64
	local        [][]byte
	length       uint32
	psn, packets uint32
	// sent is how many packets have been sent, acked how many of them have been
	// acknowledged. For a Read they count packets of the response: requested, and
	// received.
	sent, acked uint32
}

// requester is the sending half of a queue pair (IBTA volume 1, section 9.7).
type requester struct {
	sq   queue[wqe]
	cur  uint32 // the request that is sent next; those before it have been sent
	psn  uint32 // of the next request that gets one
	top  uint32 // behind the highest PSN ever sent
	now  time.Time
	wait time.Time // RNR: nothing is sent before that

	inflight uint32 // packets of Sends and Writes sent and not acknowledged
	window   uint32 // limit of inflight
	windowHi uint32 // limit of window
	credit   uint32 // acknowledged since window grew

	openReads  int    // Reads that have PSNs and are not complete
	readReqs   int    // Read requests that are not answered in full
	readWait   uint32 // packets asked for and not received
	readWindow uint32 // limit of readWait, beyond one request
	readChunk  uint32 // packets that one request asks for at most

	readWindowHi uint32 // limit of readWindow

	whole uint32 // packets of a full datagram with segmentation offload

	lost     bool // a loss was detected, and there was no progress since
	rnrTries uint8
	progress time.Time // when the peer last acknowledged something new
	deadline time.Time // when to retransmit; zero if nothing is outstanding
	backoff  uint8
	srtt     time.Duration
	timing   bool // a packet's round trip is being measured
	timedPSN uint32
	timed    time.Time
}

func (r *requester) start(c *Conn, psn uint32) {
	r.psn = psn & psnMask
	r.top = r.psn
	r.windowHi = max(minWindow, uint32(c.s.window)/c.mtu)
	r.window = max(minWindow, min(r.windowHi, (256<<10)/c.mtu))
	r.readWindowHi = max(1, uint32(c.s.readWindow)/c.mtu)
	r.readWindow = r.readWindowHi
	r.readChunk = max(1, r.readWindow/4)
	r.whole = min(maxSegments, maxDatagram/(roce.BTHSize+c.mtu+roce.ICRCSize))
	r.progress = time.Now()
}

func (c *Conn) enqueue(wr *verbs.WorkRequest) {
	w := c.sq.push()
	local := append(w.local[:0], wr.Local...)
	n := 0
	for _, b := range local {
		n += len(b)
	}
	*w = wqe{
		id: wr.ID, op: wr.Op, access: wr.Access, signaled: wr.Signaled, fence: wr.Fence,
		handle: wr.Handle, offset: wr.Offset, local: local, length: uint32(n),
	}
}

// una returns the oldest unacknowledged PSN.
func (c *Conn) una() uint32 {
	for i := c.sq.head; i != c.sq.tail; i++ {
		if w := c.sq.at(i); w.assigned && !w.done {
			return psnAdd(w.psn, w.acked)
		} else if !w.done {
			break
		}
	}
	return c.psn
}

// request puts packets of requests into the batch. It reports whether there is more to
// send that did not fit into the batch.
func (c *Conn) request(b *batch) bool {
	if !c.wait.IsZero() {
		return false
	}
	every := c.ackEvery(b.offload)
	for c.cur != c.sq.tail {
		w := c.sq.at(c.cur)
		if w.done {
			c.cur++
			continue
		}
		if !w.assigned && !c.assign(w) {
			return false
		}
		switch w.op {
		case verbs.OpLocalInvalidate, verbs.OpBind:
			if !c.execute(w) {
				return false
			}
			c.cur++
			c.retire()
			continue
		case verbs.OpRead:
			for w.sent < w.packets {
				n := min(w.packets-w.sent, c.readChunk-w.sent%c.readChunk)
				if c.readReqs >= int(c.initDepth) || c.readWait > 0 && c.readWait+n > c.readWindow {
					return false
				}
				if b.full() {
					return true
				}
				c.putRead(b, w, n)
			}
		default:
			for w.sent < w.packets {
				if c.inflight >= c.window {
					return false
				}
				if b.full() {
					return true
				}
				c.putData(b, w, every)
			}
		}
		c.cur++
	}
	return false
}

// assign gives a request its PSNs, unless it has to wait.
func (c *Conn) assign(w *wqe) bool {
	if w.fence && c.openReads > 0 {
		return false
	}
	switch w.op {
	case verbs.OpLocalInvalidate, verbs.OpBind:
		return true
	}
	n := c.packets(w.length)
	if uint32(psnDiff(c.psn, c.una()))+n > maxOutstanding {
		return false
	}
	w.psn, w.packets, w.assigned = c.psn, n, true
	c.psn = psnAdd(c.psn, n)
	if w.op == verbs.OpRead {
		c.openReads++
	}
	return true
}

// execute executes requests that need no peer. It reports false if the connection has
// failed.
func (c *Conn) execute(w *wqe) bool {
	c.now = time.Now()
	if w.op == verbs.OpBind {
		w.done = c.mem.bind(w.handle, w.local[0], w.offset, w.access)
	} else {
		w.done = c.mem.invalidate(w.handle, false)
	}
	if w.done {
		return true
	}
	err := &verbs.StatusError{Op: w.op, Status: verbs.StatusBind, Detail: fmt.Sprintf("handle %#x", w.handle)}
	if w.op == verbs.OpLocalInvalidate {
		err.Status = verbs.StatusLocalQP
	}
	c.failAt(c.cur, err)
	return false
}

// failAt ends the queue pair because of one request: those before it are
// flushed as well, since nobody knows what became of them.
func (c *Conn) failAt(i uint32, err *verbs.StatusError) {
	for ; c.sq.head != i; c.sq.head++ {
		w := c.sq.at(c.sq.head)
		if w.done && !w.signaled {
			c.sendUsed.Add(-1)
			continue
		}
		s := verbs.StatusFlushed
		if w.done {
			s = verbs.StatusSuccess
		}
		c.complete(w, s, time.Now())
	}
	c.failWith(err, err.Status, verbs.StatusFlushed)
	c.hangUp()
}

// hangUp tells the peer that the queue pair has failed.
func (c *Conn) hangUp() {
	go c.p.cm.disconnect(c.cm)
}

// failOldest ends the queue pair because of the oldest request.
func (c *Conn) failOldest(s verbs.Status, detail string) {
	op := verbs.OpSend
	if c.sq.len() > 0 {
		op = c.sq.at(c.sq.head).op
	}
	c.p.opt.logf("rocev2: %v, queue pair %d: %v: %s", c.remote, c.qpn, s, detail)
	c.failWith(&verbs.StatusError{Op: op, Status: s, Detail: detail}, s, verbs.StatusFlushed)
	c.hangUp()
}

// putData puts the next packet of a Send or Write into the batch. Every few packets ask for an acknowledgement.
func (c *Conn) putData(b *batch, w *wqe, every uint32) {
	i := w.sent
	off := i * c.mtu
	n := min(w.length-off, c.mtu)
	first, last := i == 0, i+1 == w.packets
	op, size := roce.RCSendFirst, roce.BTHSize
	if w.op == verbs.OpWrite {
		op = roce.RCWriteFirst
	}
	switch {
	case first && last:
		op += roce.RCSendOnly - roce.RCSendFirst
	case last:
		op += roce.RCSendLast - roce.RCSendFirst
	case !first:
		op += roce.RCSendMiddle - roce.RCSendFirst
	}
	switch {
	case w.op == verbs.OpWrite && first:
		size += roce.RETHSize
	case w.op == verbs.OpSendInvalidate && last:
		size += roce.IETHSize
		op = roce.RCSendLastInvalidate
		if first {
			op = roce.RCSendOnlyInvalidate
		}
	}
	psn := psnAdd(w.psn, i)
	h := b.header(size)
	c.bth(h, op, psn, n)
	if last || i%every == every-1 || c.inflight+1 == c.window {
		h[8] = 0x80
		c.time(psn)
	}
	switch {
	case w.op == verbs.OpWrite && first:
		c.reth(h, w.offset, w.handle, w.length)
	case size > roce.BTHSize:
		roce.IETH(h[roce.BTHSize:]).SetRKey(w.handle)
	}
	gather(w.local, off, n, b.payload)
	b.finish(kindRequest, c.cur, i, 1)
	w.sent++
	c.inflight++
	c.sentUpTo(psnAdd(psn, 1))
}

// ackEvery is how many packets of a message there are from one that asks for an acknowledgement to the next. An
// acknowledgement makes room in the window for as many, so they should fill whole datagrams; and the peer should answer
// several times before the window is full.
func (c *Conn) ackEvery(offload bool) uint32 {
	whole := uint32(singlePackets)
	if offload {
		whole = c.whole
	}
	n := min(ackInterval*whole, max(1, c.window/4))
	if n > whole {
		n -= n % whole
	}
	return n
}

// putRead puts a request for the next n packets of a Read into the batch.
func (c *Conn) putRead(b *batch, w *wqe, n uint32) {
	off := w.sent * c.mtu
	psn := psnAdd(w.psn, w.sent)
	h := b.header(roce.BTHSize + roce.RETHSize)
	c.bth(h, roce.RCReadRequest, psn, 0)
	c.reth(h, w.offset+uint64(off), w.handle, min(w.length-off, n*c.mtu))
	b.finish(kindReadRequest, c.cur, w.sent, n)
	w.sent += n
	c.readReqs++
	c.readWait += n
	c.time(psn)
	c.sentUpTo(psnAdd(psn, n))
}

func (c *Conn) reth(h []byte, va uint64, handle, n uint32) {
	r := roce.RETH(h[roce.BTHSize:])
	r.SetVA(va)
	r.SetRKey(handle)
	r.SetDMALen(n)
}

// gather calls f for the parts of a list that contain the n bytes from off on.
func gather(list [][]byte, off, n uint32, f func([]byte)) {
	for _, b := range list {
		if n == 0 {
			return
		}
		if off >= uint32(len(b)) {
			off -= uint32(len(b))
			continue
		}
		b = b[off:]
		off = 0
		if uint32(len(b)) > n {
			b = b[:n]
		}
		n -= uint32(len(b))
		f(b)
	}
}

// sentUpTo records that PSNs below psn have been used.
func (c *Conn) sentUpTo(psn uint32) {
	if psnDiff(psn, c.top) > 0 {
		c.top = psn
	}
}

// time starts to measure a round trip, if none is being measured.
func (c *Conn) time(psn uint32) {
	if !c.timing && psnDiff(psn, c.top) >= 0 {
		c.timing, c.timedPSN, c.timed = true, psn, time.Now()
	}
}

// unsend takes a packet back.
func (c *Conn) unsend(s *segment) {
	w := c.sq.at(s.ref)
	if s.kind == kindReadRequest {
		c.readReqs--
		c.readWait -= s.count
	} else {
		c.inflight--
	}
	w.sent = s.index
	c.cur = s.ref
}

// onAck handles an acknowledgement.
func (c *Conn) onAck(pkt *roce.Packet) {
	s := pkt.AETH.Syndrome
	una := c.una()
	d, sent := psnDiff(pkt.PSN, una), psnDiff(c.top, una)
	if d < 0 || d > sent || d == sent && s != roce.NAKPSNSequence {
		return // old, or for something that was never sent
	}
	switch {
	case s.IsACK():
		c.acked(psnAdd(pkt.PSN, 1))
	case s.IsRNR():
		c.acked(pkt.PSN)
		c.notReady(s)
	case s == roce.NAKPSNSequence:
		c.acked(pkt.PSN)
		c.gap()
	default:
		c.acked(pkt.PSN)
		status := verbs.StatusRemoteInvalid
		switch s {
		case roce.NAKRemoteAccess:
			status = verbs.StatusRemoteAccess
		case roce.NAKRemoteOp:
			status = verbs.StatusRemoteOperation
		}
		c.failOldest(status, s.String())
	}
}

// notReady handles an RNR NAK.
func (c *Conn) notReady(s roce.Syndrome) {
	if !c.wait.IsZero() || c.sq.len() == 0 {
		return
	}
	if c.rnrRetries < 7 {
		if c.rnrTries >= c.rnrRetries {
			c.failOldest(verbs.StatusRNRRetryExceeded, s.String())
			return
		}
		c.rnrTries++
	}
	c.rewind()
	c.wait = c.now.Add(s.RNRTimer())
	c.progress = c.now // it is alive
}

// acked handles the acknowledgement of all PSNs below limit.
func (c *Conn) acked(limit uint32) {
	news, missing := false, false
	for i := c.sq.head; i != c.sq.tail; i++ {
		w := c.sq.at(i)
		if w.done {
			continue
		}
		if !w.assigned {
			break
		}
		d := psnDiff(limit, w.psn)
		if d <= 0 {
			break
		}
		if w.op == verbs.OpRead {
			// Acknowledged, but the response has not come.
			missing = true
			break
		}
		n := min(uint32(d), w.packets)
		if n <= w.acked {
			continue
		}
		news = true
		more := n - w.acked
		if w.sent < n {
			more = w.sent - min(w.sent, w.acked)
			w.sent = n
		}
		c.inflight -= min(more, c.inflight)
		c.grow(n - w.acked)
		w.acked = n
		w.done = n == w.packets
	}
	if news {
		c.progressed(limit)
	}
	if missing {
		c.gap()
	}
}

// progressed records that PSNs below limit are done.
func (c *Conn) progressed(limit uint32) {
	c.lost = false
	c.rnrTries, c.backoff = 0, 0
	c.progress = c.now
	c.deadline = time.Time{} // to be set anew
	if c.timing && psnDiff(limit, c.timedPSN) > 0 {
		c.timing = false
		if rtt := c.now.Sub(c.timed); c.srtt == 0 {
			c.srtt = rtt
		} else {
			c.srtt += (rtt - c.srtt) / 8
		}
	}
	c.retire()
}

// retire completes the requests that are done, in order.
func (c *Conn) retire() {
	for c.sq.head != c.sq.tail {
		w := c.sq.at(c.sq.head)
		if !w.done {
			break
		}
		if w.signaled {
			c.complete(w, verbs.StatusSuccess, c.now)
		} else {
			c.sendUsed.Add(-1)
		}
		clear(w.local)
		if c.cur == c.sq.head {
			c.cur++
		}
		c.sq.head++
	}
	if c.drained != nil && c.sq.len() == 0 {
		close(c.drained)
		c.drained = nil
	}
}

// grow widens the window for packets that have arrived.
func (c *Conn) grow(n uint32) {
	if c.window == c.windowHi && c.readWindow == c.readWindowHi {
		return
	}
	if c.credit += n; c.credit >= c.window {
		c.credit = 0
		c.window = min(c.windowHi, c.window+max(1, c.window/8))
		c.readWindow = min(c.readWindowHi, c.readWindow+max(1, c.readWindow/8))
	}
}

// gap retransmits what has not been acknowledged, once for each loss.
func (c *Conn) gap() {
	if c.lost {
		return
	}
	c.lost = true
	c.p.count(&c.p.stats.Gaps)
	c.shrink()
	c.rewind()
}

func (c *Conn) shrink() {
	c.window = max(minWindow, c.window/2)
	c.readWindow = max(1, c.readWindow/2)
	c.credit = 0
}

// rewind restarts sending at the oldest unacknowledged packet (go-back-N).
func (c *Conn) rewind() {
	for i := c.sq.head; i != c.sq.tail; i++ {
		w := c.sq.at(i)
		if !w.assigned && !w.done {
			break
		}
		w.sent = w.acked
	}
	c.cur = c.sq.head
	c.inflight, c.readReqs, c.readWait = 0, 0, 0
	c.timing = false
	c.deadline = time.Time{}
}

// onReadResponse handles a packet of the response to a Read.
func (c *Conn) onReadResponse(pkt *roce.Packet) {
	if c.openReads == 0 {
		return
	}
	var w *wqe
	for i := c.sq.head; i != c.sq.tail; i++ {
		if x := c.sq.at(i); x.op == verbs.OpRead && !x.done {
			w = x
			break
		}
	}
	if w == nil || !w.assigned {
		return
	}
	want := psnAdd(w.psn, w.acked)
	d := psnDiff(pkt.PSN, want)
	if d < 0 || psnDiff(pkt.PSN, c.top) >= 0 {
		return
	}
	if d > 0 {
		c.gap()
		return
	}
	off := w.acked * c.mtu
	n := min(w.length-off, c.mtu)
	if uint32(pkt.PayloadLen) != n {
		c.acked(w.psn)
		c.failOldest(verbs.StatusBadResponse, fmt.Sprintf("%v of %d bytes where %d were due", pkt.Opcode, pkt.PayloadLen, n))
		return
	}
	data := pkt.Payload
	gather(w.local, off, n, func(p []byte) { data = data[place(p, data):] })
	// The response acknowledges what was sent before the Read.
	c.acked(w.psn)
	chunkEnds := (w.acked+1)%c.readChunk == 0 || w.acked+1 == w.packets
	if w.acked < w.sent {
		c.readWait -= min(1, c.readWait)
		if chunkEnds && c.readReqs > 0 {
			c.readReqs--
		}
	} else {
		w.sent = w.acked + 1 // asked for before a rewind
	}
	w.acked++
	c.grow(1)
	if w.acked == w.packets {
		w.done = true
		c.openReads--
	}
	c.progressed(psnAdd(pkt.PSN, 1))
}

// outstanding reports whether the peer owes something.
func (c *Conn) outstanding() bool { return c.inflight > 0 || c.readWait > 0 }
