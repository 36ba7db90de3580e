package fabric

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// copyGap is the time within which a packet seen again, without a NAK, is a copy made by the
// network or the capture: no requester times out so fast. The tracker uses the same value.
const copyGap = 100_000

// direction is what a side sends as a requester, and the answers to it.
type direction struct {
	open ring

	rdma.Run // all of it is kept up to date, whether or not the tracker notes anything in it

	hasAnswer bool
	answered  uint32 // PSN of the newest Read Response
	answers   sightings

	gaps       holes // in requests
	answerGaps holes // in Read Responses

	late late

	again  uint32 // payload of the newest packet that was sent again, bytes
	asked  asked
	active bool
	ep     *Episode // nil before the first
	serial uint32   // of ep

	stalls       stalls
	wait, answer waits  // for a request, and for a Read Response, to come again
	run          uint32 // PSN of the newest packet behind the end of a stall

	reads  int      // under way
	fullAt rdma.Ref // since when the maximum is in use
	passed passed

	stream stream // iWARP
}

// late are missing packets that have come without a NAK: either they were overtaken, or the
// sender begins to retransmit.
type late struct {
	ref   rdma.Ref // of the first
	psn   uint32   // of the first
	count uint32
	bytes uint64
	hole  hole
	since rdma.Ref // what the sender had waited for
}

// has reports whether a packet is one of them.
func (l *late) has(psn uint32) bool {
	d := rdma.PSNDiff(psn, l.psn)
	return l.ref.Seen() && d >= 0 && d < int32(l.count)
}

// came handles a packet that was missing from g.
func (r *Recorder) came(d *direction, g *hole, s *rdma.Sighting) {
	l := &d.late
	if !l.ref.Seen() || s.PSN != rdma.PSNAdd(l.psn, l.count) {
		r.totals.Reordered += uint64(l.count)
		*l = late{ref: s.Ref, psn: s.PSN, hole: *g, since: later(d.LastSent, d.Progress)}
	}
	l.count++
	l.bytes += uint64(s.Bytes)
	d.gaps.take(s.PSN)
}

// request handles a request of a side.
func (r *Recorder) request(k *conn, side rdma.Side, s *rdma.Sighting) {
	d := &k.dirs[side]
	switch s.Novelty {
	case rdma.NoveltyNew:
		if s.Gap > 0 && d.Begun {
			d.gaps.add(hole{start: uint64(rdma.PSNAdd(s.PSN, -s.Gap)), count: uint64(s.Gap), ref: s.Ref})
		}
		d.requested(r, s.PSN, max(s.Count, 1), s.Ref)
		return
	case rdma.NoveltyLate:
		g := d.gaps.find(s.PSN)
		switch {
		case d.active && (d.ep.NAK.Seen() || d.ep.First.Seen()):
			r.resent(k, d, s)
		case g != nil:
			r.came(d, g, s)
		}
	case rdma.NoveltyAgain:
		if s.Read {
			d.repeated(s.PSN)
		}
		if !d.active {
			if at := d.sent().get(s.PSN); at.Seen() && s.Ref.Time-at.Time < copyGap && s.Ref.Time >= at.Time && !s.Read {
				r.totals.Copies++
				break
			}
			r.unasked(k, side, d, s)
		}
		r.resent(k, d, s)
	}
	d.sent().put(r, s.PSN, s.Ref, d.span())
	d.LastSent = s.Ref
}

// begin starts an episode.
func (r *Recorder) begin(k *conn, side rdma.Side, d *direction, notice Notice, psn uint32) *Episode {
	if d.ep == nil {
		d.ep = new(Episode)
	}
	e := d.ep
	*e = Episode{Connection: k.c, From: side, Notice: notice, psn: psn}
	e.Lost = e.ranges[:0]
	d.active = true
	d.serial++
	return e
}

// unasked begins an episode with a packet that is retransmitted without a NAK.
func (r *Recorder) unasked(k *conn, side rdma.Side, d *direction, s *rdma.Sighting) {
	waited := later(d.LastSent, d.Progress)
	psn := s.PSN
	if s.Read {
		g := d.answerGaps.find(s.PSN)
		if g != nil || d.hasAnswer && rdma.PSNDiff(d.answered, s.PSN) > 0 {
			e := r.begin(k, side, d, ByRead, psn)
			e.Responses = true
			if g != nil {
				g.used = true
				e.Exact, e.Detected = true, g.ref
				e.lose(uint32(g.start), g.count)
			} else {
				e.lose(psn, 1)
				e.LostAt = d.answers.get(psn)
				e.Detected = d.answers.after(psn, e.LostAt)
			}
			d.answer.wait(e.Start(), psn, rdma.CauseRecovery)
			return
		}
	}
	e := r.begin(k, side, d, ByTimeout, psn)
	if l := &d.late; l.ref.Seen() && s.PSN == rdma.PSNAdd(l.psn, l.count) {
		// The lost packets were sent first; they had not been seen before.
		waited = l.since
		e.psn = l.psn
		e.Exact, e.Detected = true, l.hole.ref
		e.lose(uint32(l.hole.start), l.hole.count)
		e.First, e.last, e.reached = l.ref, rdma.PSNAdd(l.psn, l.count-1), rdma.PSNAdd(l.psn, 1<<24-1)
		e.Resent, e.ResentBytes, e.Timeouts = l.count, l.bytes, 1
		r.aim(d, e)
		d.stalls.add(r, Stall{
			From: l.hole.ref.Time, To: l.ref.Time, Lost: l.ref.Time - l.hole.ref.Time, Cause: rdma.CauseRecovery,
			Late: l.ref.Number, LateTo: l.ref.Number + uint64(l.count) - 1, episode: d.serial,
		})
		r.totals.Resent += uint64(l.count)
		r.totals.ResentBytes += l.bytes
		*l = late{}
	} else {
		e.Responses = s.Read && d.hasAnswer && rdma.PSNDiff(d.answered, s.PSN) >= 0
		e.lose(psn, 1)
		sent := d.sent()
		if e.Responses {
			sent = &d.answers
		}
		e.LostAt = sent.get(psn)
		e.Detected = sent.after(psn, e.LostAt)
		if e.Responses {
			d.answer.wait(later(e.LostAt, d.Progress), psn, rdma.CauseRecovery)
		}
	}
	first := e.First
	if !first.Seen() {
		first = s.Ref
	}
	e.Waited, _ = between(waited, first)
	e.Announced = k.ackTimeout()
	if e.Waited < e.Announced*earlier/10 {
		e.Notice, e.Timeouts = Unasked, 0
	}
}

// earlier is how many tenths of the announced timeout must have passed for a timeout: the capture
// sees packets at other times than the sender. A timeout lasts at least as long as announced
// (IBTA volume 1, section 9.7.6.1.3).
const earlier = 9

// later is the later of two packets, if they were seen.
func later(a, b rdma.Ref) rdma.Ref {
	if b.Number > a.Number {
		return b
	}
	return a
}

// ackTimeout is the timeout announced in the connection's setup.
func (k *conn) ackTimeout() time.Duration {
	for side := range k.c.Setup {
		if s := &k.c.Setup[side]; s.Message == rdma.SetupREQ && s.AckTimeout != 0 {
			return 4096 * time.Nanosecond << (s.AckTimeout & 31)
		}
	}
	return 0
}

// aim sets what must be acknowledged before the sender has caught up.
func (r *Recorder) aim(d *direction, e *Episode) {
	e.target = rdma.PSNAdd(d.High, 1<<24-1)
	if n := rdma.PSNDiff(e.target, e.psn); n > 0 {
		behind := int64(n)
		for _, g := range e.Lost {
			if uint32(g.Start) == e.psn {
				behind -= int64(g.Count) - 1
			} else {
				behind -= int64(g.Count)
			}
		}
		e.Behind = uint32(max(behind, 0))
	}
}

// resent handles a packet that was sent again, or came late, during an episode.
func (r *Recorder) resent(k *conn, d *direction, s *rdma.Sighting) {
	e := d.ep
	again := !e.First.Seen() || rdma.PSNDiff(s.PSN, e.last) <= 0 && rdma.PSNDiff(s.PSN, e.reached) <= 1
	r.repaired(d, s, again)
	switch {
	case !e.First.Seen():
		e.First, e.last, e.reached, e.nakked = s.Ref, s.PSN, rdma.PSNAdd(s.PSN, 1<<24-1), false
		if rdma.PSNDiff(s.PSN, e.psn) < 0 && e.NAK.Seen() {
			e.reached = rdma.PSNAdd(e.psn, 1<<24-1) // what the NAK acknowledges
		}
		r.aim(d, e)
		switch {
		case e.Notice == ByTimeout:
			e.Timeouts++
		case e.Notice == ByRNR:
			e.Waited, _ = between(e.NAK, s.Ref)
		}
	case rdma.PSNDiff(s.PSN, e.last) <= 0 && rdma.PSNDiff(s.PSN, e.reached) <= 1:
		// It begins again.
		if wait, ok := between(later(d.LastSent, d.Progress), s.Ref); !e.nakked && ok && wait >= max(k.ackTimeout()*earlier/10, copyGap) {
			e.Timeouts++
		}
		if s.Read && e.Responses {
			d.answer.wait(d.answers.get(s.PSN), s.PSN, rdma.CauseRecovery)
		}
		e.nakked = false
		r.aim(d, e)
		e.last = s.PSN
	case s.Read && e.Responses && rdma.PSNDiff(s.PSN, e.last) > 0:
		if g := d.answerGaps.find(s.PSN); g != nil && !g.used {
			g.used = true
			e.lose(uint32(g.start), g.count)
			d.answer.wait(g.ref, s.PSN, rdma.CauseRecovery)
		}
		e.last = s.PSN
	default:
		e.last = s.PSN
	}
	e.tried(s.PSN, d.again)
	e.Resent++
	e.ResentBytes += uint64(s.Bytes)
	r.totals.Resent++
	r.totals.ResentBytes += uint64(s.Bytes)
	if d.HasAcked && rdma.PSNDiff(s.PSN, d.Acked) <= 0 && !s.Read {
		e.Needless++
		r.totals.Needless++
	}
	if rdma.PSNDiff(s.PSN, e.psn) > 0 && !e.lost(s.PSN) {
		e.BehindResent++
	}
}

// response handles an answer to requests of a side.
func (r *Recorder) response(k *conn, side rdma.Side, s *rdma.Sighting) {
	d := &k.dirs[side]
	switch s.Class {
	case rdma.ClassAck:
		r.advance(k, d, s.PSN, s.Ref)
	case rdma.ClassReadResponse:
		switch s.Novelty {
		case rdma.NoveltyNew:
			if s.Gap > 0 {
				d.answerGaps.add(hole{start: uint64(rdma.PSNAdd(s.PSN, -s.Gap)), count: uint64(s.Gap), ref: s.Ref})
			}
			if !d.hasAnswer || rdma.PSNDiff(s.PSN, d.answered) > 0 {
				d.hasAnswer, d.answered = true, s.PSN
			}
		case rdma.NoveltyAgain, rdma.NoveltyLate:
			if a := &d.asked; a.attempts > 0 && s.PSN == a.psn {
				a.payload = d.again
			}
			if d.active && d.ep.First.Seen() && s.Ref.Number > d.ep.First.Number {
				d.ep.Resent++
				d.ep.ResentBytes += uint64(s.Bytes)
				r.totals.Resent++
				r.totals.ResentBytes += uint64(s.Bytes)
			}
		}
		d.answers.put(r, s.PSN, s.Ref, max(d.Window, 64)) // how many Read Responses may be requested again
		if d.answer.since.Seen() && rdma.PSNDiff(s.PSN, d.answer.psn) >= 0 && s.Novelty != rdma.NoveltyNew {
			d.over(r, &d.answer, s)
		}
		if d.active && d.ep.Responses && d.ep.First.Seen() && s.PSN == d.ep.psn {
			d.ep.rewound = true
		}
		r.advance(k, d, s.PSN, s.Ref)
	case rdma.ClassNAK:
		r.advance(k, d, rdma.PSNAdd(s.PSN, 1<<24-1), s.Ref)
		if roce.Syndrome(s.Syndrome) == roce.NAKPSNSequence {
			r.refused(k, side, d, ByNAK, s)
		} else {
			r.fatal(k, side, s)
		}
	case rdma.ClassRNR:
		r.advance(k, d, rdma.PSNAdd(s.PSN, 1<<24-1), s.Ref)
		r.refused(k, side, d, ByRNR, s)
	}
}

// refused handles a NAK after which the sender continues.
func (r *Recorder) refused(k *conn, side rdma.Side, d *direction, notice Notice, s *rdma.Sighting) {
	e := d.ep
	if !d.active {
		e = r.begin(k, side, d, notice, s.PSN)
		e.LostAt = d.sent().get(s.PSN)
		if notice == ByNAK {
			g := d.gaps.find(s.PSN)
			switch {
			case g != nil:
				g.used = true
				e.Exact, e.Detected = true, g.ref
				e.lose(uint32(g.start), g.count)
				e.LostAt = rdma.Ref{}
			case d.late.has(s.PSN):
				e.Overtaken = true
				r.totals.Overtaken++
			default:
				e.lose(s.PSN, 1)
				e.Detected = d.sent().after(s.PSN, e.LostAt)
			}
		}
	} else if notice == ByNAK {
		if g := d.gaps.find(s.PSN); g != nil {
			g.used = true
			e.lose(uint32(g.start), g.count)
		} else {
			e.lose(s.PSN, 1)
		}
	}
	cause := rdma.CauseRecovery
	since := d.sent().get(s.PSN)
	if notice == ByRNR {
		cause = rdma.CauseNotReady
	} else if g := d.gaps.find(s.PSN); g != nil {
		since = g.ref
	}
	if !since.Seen() {
		since = s.Ref
	}
	d.wait.wait(since, s.PSN, cause)
	if !e.NAK.Seen() {
		e.NAK = s.Ref
	}
	e.nakked = true
	if notice == ByNAK {
		e.NAKs++
		return
	}
	e.RNRs++
	if e.Notice == ByRNR && e.Announced == 0 {
		e.Announced = roce.Syndrome(s.Syndrome).RNRTimer()
	}
}

// advance notes that everything up to psn has been received.
func (r *Recorder) advance(k *conn, d *direction, psn uint32, ref rdma.Ref) {
	if !d.HasAcked || rdma.PSNDiff(psn, d.Acked) > 0 {
		d.HasAcked, d.Acked, d.Progress = true, psn, ref
		d.acknowledged(r, psn, ref)
		if len(d.gaps.list) > 0 {
			r.totals.NotCaptured += d.gaps.before(psn)
		}
	}
	if d.late.ref.Seen() && rdma.PSNDiff(psn, d.late.psn) >= 0 {
		r.totals.Reordered += uint64(d.late.count)
		d.late = late{}
	}
	if !d.active {
		return
	}
	e := d.ep
	if !e.First.Seen() || e.Responses && !e.rewound {
		return
	}
	if rdma.PSNDiff(psn, e.reached) > 0 {
		e.reached = psn
	}
	if rdma.PSNDiff(e.reached, e.target) >= 0 {
		e.CaughtUp = ref
		r.finish(k, d)
	}
}

// finish ends the episode of a direction.
func (r *Recorder) finish(k *conn, d *direction) {
	d.active = false
	e := d.ep
	if e.CaughtUp.Seen() {
		e.Repeat = e.repeat()
		if d.stream.window == nil { // of TCP see stalls.drained
			d.stalls.caughtUp(d.serial, e.CaughtUp.Time)
		}
	}
	e.Service = k.service(r)
	e.Connection = k.c
	r.episode(k, e)
}

// abandon ends what is open in a direction that ends or restarts.
func (r *Recorder) abandon(k *conn, side rdma.Side) {
	d := &k.dirs[side]
	if d.active {
		r.finish(k, d)
	}
	k.unread(side, d)
	r.totals.Reordered += uint64(d.late.count)
	for _, g := range d.gaps.list {
		switch {
		case g.used:
		case !d.HasAcked && k.c.Fabric != rdma.IWARP:
			r.totals.Unproven += g.count
		default:
			r.totals.NotCaptured += g.count
		}
	}
	d.sent().reset(r)
	d.answers.reset(r)
	d.stream.sent.reset(r)
	d.stream.window.reset(r)
	*d = direction{open: d.open, ep: d.ep, serial: d.serial, stalls: d.stalls, Run: rdma.Run{Sends: d.Sends}}
}

// fatal handles a NAK that ends the connection (IBTA volume 1, section 9.9.2.1).
func (r *Recorder) fatal(k *conn, side rdma.Side, s *rdma.Sighting) {
	r.totals.FatalNAKs++
	k.fatal++
	if len(r.fatals) < maxFatals {
		r.fatals = append(r.fatals, FatalNAK{
			Connection: k.c, From: side.Other(), PSN: s.PSN, Code: roce.Syndrome(s.Syndrome).String(), At: s.Ref,
		})
	}
}

// maxFatals is how many fatal NAKs the report names.
const maxFatals = 64
