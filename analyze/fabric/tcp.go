package fabric

import "github.com/rpcrdma/toolkit/decode/rdma"

// stream is the TCP stream of one side of an iWARP connection.
type stream struct {
	begun    bool
	high     uint64 // behind the newest byte
	hasAcked bool
	acked    uint64
	dups     int // acknowledgements of the same in a row, without payload
	firstDup rdma.Ref
	closed   rdma.Ref // the receiver has no room since
	sent     segments
	stamp    uint32 // timestamp of the newest segment, if they have one
	window   *window
}

// segment handles a TCP segment: payload of one stream, and an acknowledgement of the other.
func (r *Recorder) segment(k *conn, s *rdma.Sighting) {
	if s.HasAck {
		r.segmentAck(k, s)
	}
	if !s.Placed || s.End == s.Start {
		return
	}
	d := &k.dirs[s.From]
	t := &d.stream
	if !t.begun {
		t.begun, t.high = true, s.Start
	}
	if t.window == nil {
		t.window = &window{}
	}
	switch {
	case s.Start >= t.high:
		if s.Start > t.high {
			d.gaps.add(hole{start: t.high, count: s.Start - t.high, ref: s.Ref, value: k.c.Stamp.Value})
		}
		t.window.next(r, k, s)
		t.high, t.stamp = s.End, k.c.Stamp.Value
		t.sent.put(r, s.Start, s.Ref, d)
	case t.hasAcked && s.End <= t.acked && s.End-s.Start <= 1:
		// A probe of the window, or a keep-alive (RFC 1122, sections 4.2.2.17 and 4.2.3.6).
	default:
		r.segmentLate(k, d, s)
		t.high = max(t.high, s.End)
	}
	d.LastSent = s.Ref
}

// shortestTimer is less than any timer of a TCP sender, in nanoseconds: data that comes again
// earlier, without a duplicate acknowledgement, is a copy made by the network.
const shortestTimer = 1_000_000

// segmentLate handles a segment that is not the next one.
func (r *Recorder) segmentLate(k *conn, d *direction, s *rdma.Sighting) {
	t := &d.stream
	g := d.gaps.bytes(s.Start)
	var was hole
	if g != nil {
		was = *g
		// A packet that was overtaken is older than the one behind it; one that
		// was sent again is younger (RFC 7323, section 3.2).
		younger := k.c.Stamp.Present && int32(k.c.Stamp.Value-g.value) > 0
		d.gaps.fill(s.Start, s.End)
		if !younger && t.dups < 3 && !d.active {
			r.totals.Reordered++
			return
		}
	}
	e := d.ep
	if d.active {
		t.resentAgain(d, e, s, g, &was)
	} else if e = r.firstResent(k, d, s, g, &was); e == nil {
		return
	}
	e.Resent++
	e.ResentBytes += uint64(s.Bytes)
	r.totals.Resent++
	r.totals.ResentBytes += uint64(s.Bytes)
	if t.hasAcked && s.End <= t.acked {
		e.Needless++
		r.totals.Needless++
		return
	}
	x := Stall{From: was.ref.Time, To: s.Ref.Time, Cause: rdma.CauseRecovery, episode: d.serial}
	switch {
	case g != nil:
		x.Late, x.LateTo = s.Ref.Number, s.Ref.Number
	default:
		since := t.sent.get(s.Start)
		if !since.Seen() {
			since = e.Start()
		}
		x.From = since.Time
	}
	x.Lost = x.To - x.From
	d.stalls.add(r, x)
	t.window.repaired(t, e, g != nil)
}

// firstResent begins an episode with the first segment that is sent again, or nil if that is a copy that the network made. g is not nil
// if the segment was missing, as it was then.
func (r *Recorder) firstResent(k *conn, d *direction, s *rdma.Sighting, g, was *hole) *Episode {
	t := &d.stream
	notice := ByTimer
	if t.dups > 0 {
		notice = ByDupAcks
	}
	waited := later(d.LastSent, d.Progress)
	if wait, ok := between(waited, s.Ref); notice == ByTimer && g == nil && ok && wait < shortestTimer &&
		(!k.c.Stamp.Present || int32(k.c.Stamp.Value-t.stamp) <= 0) { // a copy has the timestamp that the segment had
		r.totals.Copies++
		return nil
	}
	e := r.begin(k, s.From, d, notice, 0)
	e.NAK, e.First = t.firstDup, s.Ref
	if g != nil {
		e.Exact, e.Detected = true, was.ref
		e.Lost = append(e.Lost, Range{was.start, was.count})
	} else {
		e.Lost = append(e.Lost, Range{s.Start, s.End - s.Start})
		e.LostAt = t.sent.get(s.Start)
	}
	if notice == ByTimer {
		e.Timeouts = 1
		e.Waited, _ = between(waited, s.Ref)
	}
	e.until = t.high
	return e
}

// resentAgain adds to an episode a further segment that is sent again.
func (t *stream) resentAgain(d *direction, e *Episode, s *rdma.Sighting, g, was *hole) {
	wait, ok := between(later(d.LastSent, d.Progress), s.Ref)
	if ok && wait >= shortestTimer && t.dups == 0 && t.hasAcked && s.Start == t.acked {
		e.Timeouts++ // what had been sent again was lost, too
	}
	if g != nil && len(e.Lost) < maxRanges && was.start >= e.Lost[len(e.Lost)-1].Start+e.Lost[len(e.Lost)-1].Count {
		e.Lost = append(e.Lost, Range{was.start, was.count})
	}
}

// segmentAck handles an acknowledgement of what the other side sent.
func (r *Recorder) segmentAck(k *conn, s *rdma.Sighting) {
	d := &k.dirs[s.From.Other()]
	t := &d.stream
	if t.window != nil {
		t.window.acknowledge(r, k, s)
	}
	switch {
	case !t.hasAcked || s.Acked > t.acked:
		t.hasAcked, t.acked, t.dups, t.firstDup = true, s.Acked, 0, rdma.Ref{}
		d.Progress = s.Ref
		if len(d.gaps.list) > 0 {
			r.totals.NotCaptured += d.gaps.bytesBefore(s.Acked)
		}
		if d.active && s.Acked >= d.ep.until {
			d.ep.CaughtUp = s.Ref
			r.finish(k, d)
		}
	case s.Acked == t.acked && s.End == s.Start && t.high > t.acked && !s.ZeroWindow && !t.closed.Seen():
		if t.dups++; t.dups == 1 {
			t.firstDup = s.Ref
		}
	}
	switch {
	case s.ZeroWindow && !t.closed.Seen():
		t.closed = s.Ref
	case !s.ZeroWindow && t.closed.Seen():
		e := Episode{Connection: k.c, Service: k.service(r), From: s.From.Other(), Notice: ByZeroWind, NAK: t.closed, CaughtUp: s.Ref}
		e.Waited, _ = between(t.closed, s.Ref)
		d.stalls.add(r, Stall{From: t.closed.Time, To: s.Ref.Time, Lost: s.Ref.Time - t.closed.Time, Cause: rdma.CauseNotReady, Until: s.Ref.Time})
		t.closed = rdma.Ref{}
		r.episode(k, &e)
	}
}

// segments has the times when the newest segments of a stream were first sent, by offset.
type segments struct {
	ring []sentAt // a power of two of them
	next int
}

type sentAt struct {
	start uint64
	ref   rdma.Ref
}

// put notes a segment. The ring grows while more are in flight than it holds.
func (l *segments) put(r *Recorder, start uint64, ref rdma.Ref, d *direction) {
	n := len(l.ring)
	if n == 0 || n < maxSegments && l.next >= n && (!d.stream.hasAcked || l.ring[l.next&(n-1)].start >= d.stream.acked) {
		size := max(2*n, trailStart)
		if n == 0 || r.steps+size-n <= maxTrails/16*r.scale {
			r.steps += size - n
			ring := make([]sentAt, size)
			kept := 0
			if n > 0 {
				kept = copy(ring, l.ring[l.next%n:])
				kept += copy(ring[kept:], l.ring[:l.next%n])
			}
			l.ring, l.next = ring, kept
		}
	}
	x := &l.ring[l.next&(len(l.ring)-1)]
	x.start, x.ref = start, ref
	l.next++
}

// get is when the segment with an offset was sent; the zero Ref if that is not remembered.
func (l *segments) get(at uint64) rdma.Ref {
	n := len(l.ring)
	for i := l.next - 1; i >= 0 && i >= l.next-n; i-- {
		if x := &l.ring[i&(n-1)]; x.start <= at {
			return x.ref
		}
	}
	return rdma.Ref{}
}

// behind is how many of the segments that were sent begin at an offset or behind it; ok is false if there may be more
// than are remembered.
func (l *segments) behind(at uint64) (n int, ok bool) {
	for size := len(l.ring); n < size && n < l.next; n++ {
		if l.ring[(l.next-1-n)&(size-1)].start < at {
			return n, true
		}
	}
	return n, n < maxSegments
}

func (l *segments) reset(r *Recorder) {
	r.steps -= len(l.ring)
	*l = segments{}
}

// maxSegments is how many of a stream are remembered.
const maxSegments = 64

// bytes returns the hole that an offset of a stream is in.
func (h *holes) bytes(at uint64) *hole {
	for i := range h.list {
		if g := &h.list[i]; at >= g.start && at-g.start < g.count {
			return g
		}
	}
	return nil
}

// fill removes the bytes from start to end from the hole that start is in.
func (h *holes) fill(start, end uint64) {
	for i := range h.list {
		g := &h.list[i]
		if start < g.start || start-g.start >= g.count {
			continue
		}
		rest := hole{start: end, ref: g.ref, value: g.value}
		if last := g.start + g.count; last > end {
			rest.count = last - end
		}
		if g.count = start - g.start; g.count == 0 {
			*g = rest
			if g.count == 0 {
				h.list = append(h.list[:i], h.list[i+1:]...)
			}
		} else if rest.count > 0 && len(h.list) < maxHoles {
			h.list = append(h.list, hole{})
			copy(h.list[i+2:], h.list[i+1:])
			h.list[i+1] = rest
		}
		return
	}
}

// bytesBefore forgets the holes of a stream up to an offset, and returns how many
// there were: a segment that the receiver has, and the capture lacks.
func (h *holes) bytesBefore(at uint64) (n uint64) {
	kept := h.list[:0]
	for _, g := range h.list {
		if g.start+g.count > at {
			kept = append(kept, g)
		} else {
			n++
		}
	}
	h.list = kept
	return n
}
