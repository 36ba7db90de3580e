package decode

import (
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// A segment that begins or ends a TCP connection is in doubt until the peers act on it: the receiver ignores
// an RST or SYN outside of its window, and anybody can send one (RFC 9293, section 3.10.7.4; RFC 5961). It
// waits here until it is confirmed, or contradicted by further traffic.

const (
	ackFlag = 0x10
	// doubtTime is how long an RST or FIN waits for a contradiction, in
	// nanoseconds of capture time.
	doubtTime = 2e9
	// resetWindow is how far an RST may be from the sequence numbers seen: no more is lost between two
	// packets of a capture.
	resetWindow = 1 << 20
	// farWindow is more than the peers of a connection have in flight, in bytes.
	farWindow = 1 << 24
)

// tcpPlace is what the packets of one direction have shown of its sequence numbers.
type tcpPlace struct {
	known    bool
	opened   bool // isn is the sequence number of its SYN
	ackKnown bool
	finished bool   // a FIN was acknowledged
	isn      uint32 // sequence number after the SYN
	next     uint32 // after the highest byte seen
	ack      uint32 // the highest sent
}

// doubtful is a segment whose meaning is not certain.
type doubtful struct {
	set   bool
	dir   int
	frame link.Frame
	ref   rdma.Ref
	seq   uint32 // after it
	peer  uint32 // tcpPlace.next of the peer at that time
}

// doubts are what waits of a connection.
type doubts struct {
	syn, rst doubtful
	fin      [2]doubtful
}

func after(a, b uint32) bool { return int32(a-b) > 0 }

// keep takes a copy of a segment without its payload.
func (d *doubtful) keep(dir int, f *link.Frame, flags uint8, ref rdma.Ref) {
	tunnels := d.frame.Tunnels[:0]
	*d = doubtful{set: true, dir: dir, frame: *f, ref: ref}
	d.frame.Tunnels = append(tunnels, f.Tunnels...)
	d.frame.Payload, d.frame.PayloadLen = nil, 0
	d.frame.Net, d.frame.Transport = nil, nil
	d.frame.TCPFlags = flags
	d.seq = f.TCPSeq + uint32(f.PayloadLen)
}

// over reports whether the connection has ended.
func (c *tcpConn) over() bool {
	return c.rpc != nil && c.rpc.Closed() || c.iwarp != nil && c.iwarp.Closed()
}

// segment handles the next segment of a connection, sent in direction dir. It returns the connection that it
// belongs to: a new one if it proves that another has begun between the same ports.
func (t *tcpDemux) segment(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref, tap int32) *tcpConn {
	const special = tcp.SYN | tcp.FIN | tcp.RST
	flags, own := f.TCPFlags, &c.places[dir]
	if c.over() && c.stranger(dir, f) {
		return t.again(c, dir, f, ref, tap) // its SYN was not captured
	}
	if flags&special == 0 && c.doubts == nil || c.ignored || c.over() || !own.known && flags&tcp.RST == 0 {
		return t.pass(c, dir, f, ref, tap)
	}
	if c.doubts != nil && t.review(c, dir, f, ref) {
		return t.reopen(c, dir, f, ref, tap)
	}
	switch {
	case flags&tcp.RST != 0:
		t.doubtRST(c, dir, f, ref)
		return c
	case flags&tcp.SYN != 0 && !(own.opened && f.TCPSeq+1 == own.isn):
		if !c.ending() {
			t.doubting(c, ref)
			c.doubts.syn.keep(dir, f, flags, ref)
			c.doubts.syn.seq++
			return c
		}
	case flags&tcp.FIN != 0:
		t.doubtFIN(c, dir, f, ref)
		return t.withoutFIN(c, dir, f, ref, tap)
	}
	return t.proceed(c, dir, f, ref, tap)
}

// stranger reports whether a segment cannot be of a connection that has ended: neither something that was sent late, nor a retransmission.
func (c *tcpConn) stranger(dir int, f *link.Frame) bool {
	own, peer := &c.places[dir], &c.places[1-dir]
	return own.known && far(f.TCPSeq, own.next) || peer.known && f.TCPFlags&ackFlag != 0 && far(f.TCPAck, peer.next)
}

// far reports whether two sequence numbers are so far from each other that no packets between them were in flight together.
func far(a, b uint32) bool { return a-b+farWindow > 2*farWindow }

// pass lets a segment have its effect, whatever is in doubt.
func (t *tcpDemux) pass(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref, tap int32) *tcpConn {
	c.places[dir].add(f)
	if t.feed(c, dir, f, ref) {
		return c
	}
	return t.again(c, dir, f, ref, tap)
}

// proceed lets a segment have its effect, and then the peer's FIN that it acknowledges.
func (t *tcpDemux) proceed(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref, tap int32) *tcpConn {
	if f.TCPFlags&tcp.SYN != 0 {
		t.settle(c, ref)
	}
	if next := t.pass(c, dir, f, ref, tap); next != c {
		return next
	}
	if c.doubts == nil {
		return c
	}
	if fin := &c.doubts.fin[1-dir]; fin.set && f.TCPFlags&ackFlag != 0 && after(f.TCPAck, fin.seq) {
		t.apply(c, fin)
		c.places[1-dir].finished = true
	}
	return c
}

// withoutFIN is proceed for what a segment says besides its FIN. If that is nothing, it does not count as an
// acknowledgment.
func (t *tcpDemux) withoutFIN(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref, tap int32) *tcpConn {
	g := *f
	g.TCPFlags &^= tcp.FIN
	if c.iwarp == nil || g.PayloadLen > 0 || g.TCPFlags != ackFlag {
		return t.proceed(c, dir, &g, ref, tap)
	}
	acks := &c.Sent[c.iwarp.Side(dir)].Acks
	before := *acks
	next := t.proceed(c, dir, &g, ref, tap)
	*acks = before
	return next
}

// review drops the doubts that a segment settles. It reports whether the segment confirms that another
// connection has begun.
func (t *tcpDemux) review(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref) (reopened bool) {
	d := c.doubts
	t.expire(c, ref)
	switch {
	case d.syn.set && d.syn.confirmed(dir, f):
		return true
	case d.rst.set && d.rst.contradicted(dir, f):
		d.rst.set = false
		t.doubted(c, d.rst.dir, ref)
	}
	if fin := &d.fin[dir]; fin.set && f.PayloadLen > 1 && after(f.TCPSeq+uint32(f.PayloadLen), fin.seq) {
		fin.set = false
		t.doubted(c, dir, ref)
	}
	return false
}

// doubtRST keeps an RST until it is confirmed, unless its receiver ignores it.
func (t *tcpDemux) doubtRST(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref) {
	own, peer := &c.places[dir], &c.places[1-dir]
	if d := int32(f.TCPSeq - own.next); own.known && (d > resetWindow || d < -resetWindow) && !peer.acked(f.TCPSeq) {
		t.doubted(c, dir, ref)
		return
	}
	t.doubting(c, ref)
	if d := &c.doubts.rst; !d.set {
		d.keep(dir, f, f.TCPFlags, ref)
		d.peer = peer.next
	}
}

// doubtFIN keeps a FIN until it is acknowledged, unless its sender has gone on already.
func (t *tcpDemux) doubtFIN(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref) {
	if after(c.places[dir].next, f.TCPSeq+uint32(f.PayloadLen)) {
		t.doubted(c, dir, ref)
		return
	}
	t.doubting(c, ref)
	d := &c.doubts.fin[dir]
	d.keep(dir, f, tcp.FIN, ref)
	d.frame.TCPSeq = d.seq
}

// ending reports whether the connection has ended in all likelihood.
func (c *tcpConn) ending() bool {
	return c.doubts != nil && c.doubts.rst.set || c.places[0].finished || c.places[1].finished
}

// waitingConn is a connection with something in doubt, and the time since when.
type waitingConn struct {
	c     *tcpConn
	since int64
}

// doubting makes room for what is in doubt.
func (t *tcpDemux) doubting(c *tcpConn, ref rdma.Ref) {
	if c.doubts != nil {
		return
	}
	c.doubts = new(doubts)
	if !c.waiting {
		if len(t.doubtful)-t.overdueAt > 1024+2*len(t.order) {
			t.sweep()
		}
		c.waiting = true
		t.doubtful = append(t.doubtful, waitingConn{c, ref.Time})
	}
}

// sweep removes connections that have ended, so that a flood of them does not grow the list.
func (t *tcpDemux) sweep() {
	n := 0
	for _, w := range t.doubtful[t.overdueAt:] {
		if w.c.doubts != nil {
			t.doubtful[n] = w
			n++
		} else {
			w.c.waiting = false
		}
	}
	clear(t.doubtful[n:])
	t.doubtful, t.overdueAt = t.doubtful[:n], 0
}

// overdue settles what has waited long enough on other connections.
func (t *tcpDemux) overdue(ref rdma.Ref) {
	for t.overdueAt < len(t.doubtful) {
		w := &t.doubtful[t.overdueAt]
		if w.c.doubts != nil && ref.Time-w.since <= doubtTime {
			break
		}
		c := w.c
		w.c = nil
		t.overdueAt++
		c.waiting = false
		if c.doubts != nil {
			if t.expire(c, ref); c.doubts != nil {
				c.waiting = true
				t.doubtful = append(t.doubtful, waitingConn{c, ref.Time})
			}
			t.count(c)
		}
	}
	if t.overdueAt > 64 && t.overdueAt > len(t.doubtful)/2 || t.overdueAt == len(t.doubtful) {
		n := copy(t.doubtful, t.doubtful[t.overdueAt:])
		clear(t.doubtful[n:])
		t.doubtful, t.overdueAt = t.doubtful[:n], 0
	}
}

// add records a segment's sequence numbers.
func (p *tcpPlace) add(f *link.Frame) {
	seq := f.TCPSeq
	if f.TCPFlags&tcp.SYN != 0 {
		seq++
		p.opened, p.isn = true, seq
		p.next, p.known = seq, true
	}
	if end := seq + uint32(f.PayloadLen); !p.known || after(end, p.next) {
		p.next, p.known = end, true
	}
	if f.TCPFlags&ackFlag != 0 && (!p.ackKnown || after(f.TCPAck, p.ack)) {
		p.ack, p.ackKnown = f.TCPAck, true
	}
}

// acked reports whether a sequence number is the one that the side expects next, according to its
// acknowledgments.
func (p *tcpPlace) acked(seq uint32) bool { return p.ackKnown && seq == p.ack }

// confirmed reports whether a segment answers a SYN, or continues after it.
func (d *doubtful) confirmed(dir int, f *link.Frame) bool {
	if dir == d.dir {
		return f.PayloadLen > 0 && f.TCPFlags&tcp.SYN == 0 && f.TCPSeq == d.seq
	}
	return f.TCPFlags&ackFlag != 0 && f.TCPFlags&tcp.RST == 0 && f.TCPAck == d.seq
}

// contradicted reports whether the sender of an RST continues after it.
func (d *doubtful) contradicted(dir int, f *link.Frame) bool {
	if dir != d.dir || f.TCPFlags&tcp.RST != 0 {
		return false
	}
	return f.PayloadLen > 1 && after(f.TCPSeq+uint32(f.PayloadLen), d.seq) ||
		f.TCPFlags&ackFlag != 0 && after(f.TCPAck, d.peer)
}

// doubted counts a segment that was contradicted, and notes it in the open transactions.
func (t *tcpDemux) doubted(c *tcpConn, dir int, ref rdma.Ref) {
	side := rdma.Side(dir)
	if c.iwarp != nil {
		side = c.iwarp.Side(dir)
	}
	c.Sent[side].Resyncs++
	t.h.Event(c.Connection, side, rdma.EventDoubted, 0, ref)
}

// apply lets what was in doubt have its effect.
func (t *tcpDemux) apply(c *tcpConn, d *doubtful) {
	if !d.set {
		return
	}
	d.set = false
	last := c.Last
	if d.frame.TCPFlags == tcp.FIN { // counted when it came
		side := 0
		if e := &c.Ends[0]; d.frame.SrcPort != e.Port || d.frame.Src != e.Addr {
			side = 1
		}
		c.Sent[side].Packets--
	}
	t.feed(c, d.dir, &d.frame, d.ref)
	c.Last = last
	if d.ref.Number > last.Number {
		c.Last = d.ref
	}
}

// settle applies everything in doubt, as at the end of a connection, except a SYN without an answer.
func (t *tcpDemux) settle(c *tcpConn, ref rdma.Ref) {
	d := c.doubts
	if d == nil {
		return
	}
	if d.syn.set {
		d.syn.set = false
		t.doubted(c, d.syn.dir, ref)
	}
	first := 0
	if d.fin[1].set && d.fin[1].ref.Number < d.fin[0].ref.Number {
		first = 1
	}
	t.apply(c, &d.fin[first])
	t.apply(c, &d.fin[1-first])
	t.apply(c, &d.rst)
}

// expire applies what has waited long enough.
func (t *tcpDemux) expire(c *tcpConn, ref rdma.Ref) {
	d := c.doubts
	for _, x := range [...]*doubtful{&d.fin[0], &d.fin[1], &d.rst} {
		if x.set && ref.Time-x.ref.Time > doubtTime && (x == &d.rst || c.places[1-x.dir].known) {
			t.apply(c, x)
		}
	}
	if !d.syn.set && !d.rst.set && !d.fin[0].set && !d.fin[1].set {
		c.doubts = nil
	}
}

// again begins the connection that a segment opens, which was sent in direction dir of c.
func (t *tcpDemux) again(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref, tap int32) *tcpConn {
	t.end(c, ref)
	c = t.begin(c.key, c.fromHigh(dir), f, ref, tap)
	c.taps[0].Follow(tap)
	c.places[0].add(f)
	t.feed(c, 0, f, ref)
	return c
}

// reopen starts the connection whose SYN was in doubt, and handles the segment that confirmed it.
func (t *tcpDemux) reopen(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref, tap int32) *tcpConn {
	syn := c.doubts.syn
	c.doubts.syn.set = false
	c = t.again(c, syn.dir, &syn.frame, syn.ref, tap)
	side := 0
	if dir != syn.dir {
		side = 1
		c.taps[1].Follow(tap)
	}
	c.places[side].add(f)
	t.feed(c, side, f, ref)
	return c
}
