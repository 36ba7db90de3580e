package fabric

import "github.com/rpcrdma/toolkit/decode/rdma"

// window follows how much a TCP sender had in flight, in order to find the time that it lost because
// a loss had reduced its congestion window (RFC 5681, section 3.1 equation 4 and section 3.2; RFC
// 9438, section 4.6; RFC 6298, section 5).
//
// The capture does not show the congestion window, but a lower bound of the one before the loss: the
// most bytes in flight (RFC 5681, section 2, FlightSize). Until that much is in flight again, the
// time between two consecutive segments counts, beyond what it took before the loss, if
//
//   - the second continues a message of the first: the sender had it to send;
//   - an acknowledgement reached the sender in between, which it may have waited for;
//   - without the loss it need not have waited: with the second segment there would have been no
//     more in flight than before the loss, nor more than the receiver's window.
type window struct {
	known heard   // newest acknowledgement that the sender has, as far as its segments show
	news  []heard // those after it, the oldest first, in a ring
	first int
	count int

	last    rdma.Ref // newest segment with new payload
	end     uint64   // of it
	edge    uint64   // end of the receiver's window, as far as the sender knows
	scale   int8     // of that window, if the setup was not captured
	segment uint64   // longest payload
	message uint32

	peak uint64 // most bytes in flight while no loss had reduced the window
	// The sender has waited for an acknowledgement with this much in flight, when this much was
	// acknowledged; steady says that it did so again, at least two round trips later.
	stop, stopAcked uint64
	steady          bool

	lossy   bool   // something was lost before
	growing bool   // without the loss the window would have grown further
	reduced bool   // a loss has reduced the window, which has not been seen as large since
	base    uint64 // what had been acknowledged then
	recover uint64 // what had been sent when the newest loss was repaired
	idle    bool   // the sender has been idle, so that its window had to start again
	resumed uint64 // what had been acknowledged then

	clock ticks // of the receiver

	held       uint64 // most bytes in flight since the newest loss
	pieces     int    // most segments in flight since then
	level      uint64 // in flight when the sender waited for an acknowledgement within a message, since then
	busy       bool   // there are stalls since it had nothing to send
	reaction   int64  // usual time from an acknowledgement to the segment that it released, in 1/16 ns
	took, sent int64  // nanoseconds and bytes of segments that did not wait for an acknowledgement
	close      uint64 // bytes of which usual is the time between two segments, in 1/16 ns
	usual      int64
	rtt        int64 // round trip of the newest segment that did
	owed       int64 // time by which segments came sooner than without the loss since the newest that counted
}

// heard is an acknowledgement.
type heard struct {
	ref    rdma.Ref
	stamp  uint32 // its timestamp
	acked  uint64
	late   int64 // nanoseconds by which it came later than its timestamp says
	window uint16
	scale  int8
	// released says that it may have let the sender send more; others only change the window.
	released bool
}

const (
	newsStart = 4
	newsMost  = 512 // acknowledgements of one direction
	// idleTime is less than any retransmission timeout in common use: after one without traffic
	// the sender reduces its window to the initial one (RFC 5681, section 4.1).
	idleTime = 200_000_000
	// rateBytes is how much traffic the rate before a loss is taken of, at least.
	rateBytes = 8 << 10
	rateMost  = 1 << 20
)

// acknowledge notes an acknowledgement that the receiver has sent.
func (w *window) acknowledge(r *Recorder, k *conn, s *rdma.Sighting) {
	h := heard{ref: s.Ref, stamp: k.c.Stamp.Value, acked: s.Acked, window: s.Window, scale: s.WindowScale}
	if k.c.Stamp.Present {
		h.late = w.clock.late(s.Ref.Time, h.stamp)
	}
	newest := &w.known
	if w.count > 0 {
		newest = w.heard(w.count - 1)
	}
	// A duplicate tells the sender that a segment has arrived (RFC 5681, section 3.2; RFC 6675, section 3).
	h.released = h.acked > newest.acked || s.Start == s.End && h.acked < w.end
	switch {
	case h.acked < newest.acked || !h.released && h.window == newest.window && newest.ref.Seen():
		return
	case w.count > 0 && newest.released == h.released && (!k.c.Stamp.Present || newest.stamp == h.stamp):
		h.ref, h.late = newest.ref, newest.late // of the first with this timestamp
		*newest = h
		return
	}
	if w.count == len(w.news) {
		size := max(2*w.count, newsStart)
		if size > newsMost || w.count > 0 && r.steps+size-w.count > maxTrails/16*r.scale {
			w.first = (w.first + 1) & (len(w.news) - 1) // the sender is taken to know less than it may
			w.count--
		} else {
			r.steps += size - w.count
			news := make([]heard, size)
			n := copy(news, w.news[w.first:])
			copy(news[n:], w.news[:w.first])
			w.news, w.first = news, 0
		}
	}
	*w.heard(w.count) = h
	w.count++
}

// heard is the place of an acknowledgement among those that the sender may have, counted from the oldest. The length of the ring is
// a power of two.
func (w *window) heard(i int) *heard { return &w.news[(w.first+i)&(len(w.news)-1)] }

// learn takes what a segment shows that its sender knows: the acknowledgements up to the timestamp that
// it echoes (RFC 7323, section 4.3), or all of them if it has no timestamp. It returns the first that
// was news and acknowledged something.
func (w *window) learn(stamp rdma.Stamp) (released heard) {
	for w.count > 0 {
		n := w.heard(0)
		if stamp.Present && int32(stamp.Echo-n.stamp) < 0 {
			break
		}
		if !released.ref.Seen() && n.released {
			released = *n
		}
		w.known = *n
		w.first = (w.first + 1) & (len(w.news) - 1)
		w.count--
	}
	return released
}

// room is the receiver's window of the newest acknowledgement that the sender has.
func (w *window) room() uint64 {
	scale := w.known.scale
	if scale < 0 {
		scale = w.scale
	}
	return uint64(w.known.window) << scale
}

// allowed is how much would have been in flight at most, had nothing been lost.
//
// The initial slow start ends with a loss, if not before: the first threshold is arbitrarily high
// (RFC 5681, section 3.1). So if the capture has the setup of the connection, and the window was
// still growing when the first loss reduced it, it would have grown by what was acknowledged since.
func (w *window) allowed() uint64 {
	if !w.reduced && !w.idle {
		return w.peak
	}
	return w.allowedLess()
}

// allowedLess is allowed if a loss has reduced the window, or the sender was idle.
func (w *window) allowedLess() uint64 {
	n, initial := w.peak, min(10*w.segment, max(2*w.segment, 14600)) // RFC 6928, section 2
	if w.reduced && w.growing {
		n = max(n, initial) + w.known.acked - min(w.base, w.known.acked)
	}
	if w.idle {
		n = min(n, initial+w.known.acked-min(w.resumed, w.known.acked))
	}
	return n
}

// grown reports whether what is in flight is more than was seen before, or no less than there would be without the loss.
func (w *window) grown(flight uint64) bool {
	if !w.reduced {
		return flight > w.peak // which most is not
	}
	return flight >= w.peak && flight >= w.allowed()
}

// paced reports whether the pace is known.
func (w *window) paced() bool { return w.sent >= rateBytes || w.close >= rateBytes }

// pace is how long a number of bytes takes if the sender does not wait; 0 if too little was seen.
func (w *window) pace(size uint64) int64 {
	switch {
	case w.sent >= rateBytes:
		return int64(float64(size) * float64(w.took) / float64(w.sent))
	case w.close >= rateBytes: // each segment came after an acknowledgement
		return int64(float64(size) * float64(w.usual>>paceBits) / float64(w.segment))
	}
	return 0
}

// expected is how long a segment would have taken without the loss: it would have followed at once, or, if
// the sender had had enough in flight that it waited for acknowledgements all the same, with the rate of
// that much in each round trip.
func (w *window) expected(size, allowed uint64) int64 {
	return max(w.pace(size), int64(float64(size)*float64(w.rtt)/float64(max(allowed, 1))))
}

// lost notes that something was lost, and sent again. high is how much has been sent.
func (w *window) lost(high uint64) {
	if !w.lossy {
		w.lossy = true
		w.growing = !w.steady && w.known.ref.Seen() && w.known.scale >= 0
	}
	if !w.reduced {
		w.reduced, w.base, w.owed, w.rtt = true, w.known.acked, 0, 0
	}
	w.recover, w.held, w.pieces, w.level = high, 0, 0, 0
}

// repaired handles a segment that was sent again, and not in vain. missed says that the capture has not
// seen it before.
func (w *window) repaired(t *stream, e *Episode, missed bool) {
	w.busy = true
	// A probe of the tail (RFC 8985, section 7) comes sooner than any timeout, and may be needless.
	if missed || t.dups > 0 || e.Notice == ByDupAcks || e.Waited >= idleTime {
		w.lost(t.high)
	}
}

// next handles a segment of new payload.
func (w *window) next(r *Recorder, k *conn, s *rdma.Sighting) {
	d := &k.dirs[s.From]
	t := &d.stream
	if !s.Inside {
		w.message++
	}
	known, acked, edge, allowed := w.known.ref.Seen(), w.known.acked, w.edge, w.allowed()
	released := w.learn(k.c.Stamp)
	size := s.End - s.Start
	w.segment = max(w.segment, size)
	if w.known.ref.Seen() {
		if w.known.scale < 0 {
			// No sender exceeds the window: it is scaled at least that much.
			for w.scale < maxScale && s.End > w.known.acked+w.room() {
				w.scale++
			}
		}
		w.edge = w.known.acked + w.room()
	}
	if known && acked <= w.end && w.last.Seen() && s.Start == w.end && s.Ref.Time >= w.last.Time {
		w.follows(r, d, s, released, acked, allowed, edge)
	}
	if w.known.acked >= w.end && d.LastSent.Seen() && s.Ref.Time-d.LastSent.Time >= idleTime {
		w.owed, w.held, w.pieces, w.stop = 0, 0, 0, 0 // the window starts again
		if idle(k, s.From, d.LastSent.Time, s.Ref.Time) {
			w.idle, w.resumed = true, s.Start // and would have without losses
		}
	}
	// While acknowledgements are repeated, more than the window may be on its way (RFC 3042; RFC 6675,
	// section 5).
	flight := s.End - min(w.known.acked, s.Start)
	if w.grown(flight) && w.known.ref.Seen() && t.dups == 0 && !d.active && w.known.acked >= w.recover {
		w.peak, w.reduced, w.idle, w.owed = flight, false, false, 0
	}
	w.last, w.end = s.Ref, s.End
}

// idle reports whether a sender that sent nothing between two times had nothing to send so long that its
// window had to start again. What the other side lost does not count: the sender waited for that.
func idle(k *conn, side rdma.Side, from, to int64) bool {
	n := to - from
	if n < idleTime {
		return false
	}
	l := k.dirs[side.Other()].stalls.list
	for i := len(l) - 1; i >= 0 && n >= idleTime; i-- {
		s := &l[i]
		if a, b := max(s.From, from), min(s.To, to); a < b && s.Cause != rdma.CauseReadSlot {
			n -= scaled(b-a, s.Lost, s.To-s.From)
		}
	}
	return n >= idleTime
}

// turn is a segment right behind the one before.
type turn struct {
	gap          int64 // since that one
	size, flight uint64
	acked        uint64 // as the sender knew before
	released     heard
	reaction     int64 // since the newest acknowledgement that it has: it may have been busy when the first came
	stuck        bool  // the window may have been full
	limited      bool  // and a loss has made it so small
}

// follows handles a segment right behind the one before. released is the acknowledgement that reached the
// sender in between; acked, allowed and edge are of the time before that.
func (w *window) follows(r *Recorder, d *direction, s *rdma.Sighting, released heard, acked, allowed, edge uint64) {
	t := turn{
		gap: s.Ref.Time - w.last.Time, size: s.End - s.Start, flight: w.end - acked, acked: acked,
		released: released, reaction: s.Ref.Time - w.known.ref.Time,
	}
	// No window is less than a segment, nor much less than what has been in flight since the newest loss. It may
	// count bytes (RFC 5681, section 2) or, as in Linux, segments, however short.
	if t.stuck = released.ref.Seen() && t.flight+t.size > w.segment; t.stuck && t.flight+t.size <= w.held-w.held/4 {
		n, ok := d.stream.sent.behind(acked)
		t.stuck = ok && n >= w.pieces-1 && w.pieces > 1
	}
	if acked >= w.recover {
		w.held = max(w.held, t.flight)
		if w.reduced {
			n, _ := d.stream.sent.behind(acked)
			w.pieces = max(w.pieces, n)
		}
	}
	t.limited = w.reduced && t.stuck && t.flight+t.size <= allowed && s.End <= edge
	if t.limited {
		if at := d.stream.sent.get(w.known.acked - 1); at.Seen() {
			w.rtt = s.Ref.Time - at.Time
		}
	}
	if !s.Inside && !w.full(&t) {
		if t.gap > 4*w.pace(w.segment) { // it had nothing to send, or the window may have been full
			if w.busy && t.gap > w.trip(d) {
				d.stalls.drained(w.last.Time)
				w.busy = false
			}
			w.owed, w.rtt = 0, 0
			return
		}
		t.limited = false
	}
	more := t.gap - w.expected(t.size, allowed)
	more = w.charge(r, d, s, &t, more)
	if s.Inside {
		if t.stuck && more > 0 {
			w.waited(&t)
		}
		w.measure(d, &t)
	}
}

// full reports whether the sender had the message that it now begins at least since the acknowledgement that
// released it: its window was full.
func (w *window) full(t *turn) bool {
	return t.stuck && w.level > 0 && t.flight+w.segment > w.level && t.reaction <= w.reaction>>paceBits*2
}

// trip is a round trip of the sender: no wait for an acknowledgement takes longer.
func (w *window) trip(d *direction) int64 {
	at := d.stream.sent.get(w.known.acked - 1)
	if !at.Seen() || !w.known.ref.Seen() {
		return 0
	}
	return max(0, w.known.ref.Time-at.Time) + w.reaction>>paceBits
}

// charge counts what of a turn was lost; more is by how much it took longer than without the loss. It returns
// how much of that the sender waited.
func (w *window) charge(r *Recorder, d *direction, s *rdma.Sighting, t *turn, more int64) int64 {
	x := Stall{From: w.last.Time, To: s.Ref.Time, Lost: t.gap, Cause: rdma.CauseUnknown, Between: !s.Inside, message: w.message}
	switch {
	case t.limited && !w.paced():
	case t.limited && more > 0:
		// It waited until the acknowledgement came; then something else kept it from sending. Had the
		// acknowledgement not been late, the wait would have ended sooner, whatever the window.
		more = min(more, max(0, t.released.ref.Time-t.released.late+w.reaction>>paceBits-w.last.Time))
		more = min(more, max(0, t.gap-(w.known.ref.Time-t.released.ref.Time)))
		x.Lost, x.Cause = more-min(more, w.owed), rdma.CauseCongestion
		w.owed -= more - x.Lost
	default:
		if w.reduced && w.paced() {
			w.owed = max(0, w.owed-more)
		}
		return more
	}
	w.busy = true
	d.stalls.slow(r, x)
	return more
}

// waited notes that the sender waited for an acknowledgement within a message.
func (w *window) waited(t *turn) {
	w.level = t.flight
	switch {
	case w.lossy || !w.paced():
	case t.flight > w.stop+w.stop/2:
		w.stop, w.stopAcked = t.flight, t.acked
	case t.flight >= w.stop-w.stop/4 && t.acked-min(w.stopAcked, t.acked) >= 2*t.flight:
		w.steady = true
	}
}

// measure notes how long a turn within a message took.
func (w *window) measure(d *direction, t *turn) {
	long := t.size >= w.segment/2
	if !w.reduced && long && t.gap < idleTime {
		w.close += t.size
		if g := t.gap << paceBits; w.usual == 0 || g < w.usual {
			w.usual = max(g, 1)
		} else {
			w.usual += (min(g, 4*w.usual) - w.usual) >> paceBits
		}
	}
	switch {
	case t.gap >= idleTime:
	case !t.released.ref.Seen():
		if !long || d.active || d.stream.dups > 0 {
			return
		}
		n := t.gap
		if p := w.pace(t.size); p > 0 {
			n = min(n, 4*p)
		}
		w.took += n
		w.sent += int64(t.size)
		if w.sent > rateMost {
			w.took, w.sent = w.took/2, w.sent/2
		}
	case w.reaction == 0:
		w.reaction = max(t.reaction, 1) << paceBits
	case t.reaction >= 0:
		w.reaction += (min(t.reaction<<paceBits, 4*w.reaction) - w.reaction) >> paceBits
	}
}

// maxScale is the largest shift count of a window (RFC 7323, section 2.3).
const maxScale = 14

func (w *window) reset(r *Recorder) {
	if w != nil {
		r.steps -= len(w.news)
		*w = window{}
	}
}
