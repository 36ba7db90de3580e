package fabric

import (
	"math/bits"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Stall is a time in which what one side had requested did not progress.
type Stall struct {
	From, To int64 // nanoseconds since 1970, as the times of packets
	// Lost is how much of it was lost: less than To−From if it is several stalls
	// with short times between them.
	Lost  int64
	Cause rdma.Cause
	// Late and LateTo are the packets that ended it, if they had been lost before the capture
	// point, so that they were first seen then; otherwise 0.
	Late, LateTo uint64
	// From2 and To2 are the times of the last packet that was sent again with the first, or the
	// same two if it was the only one: the packets behind the lost one had been sent in vain.
	From2, To2 int64
	// Until is when the sender had caught up; over TCP, when it had nothing more to send. It is 0 if that had
	// not been seen when the stall was returned.
	Until int64
	// Between says that the sender waited between two messages: it may have got the second only then,
	// unless both belong to something that it had as a whole.
	Between bool

	episode uint32
	message uint32 // of a window that a loss has reduced
	vain    int64  // as in waits
}

const (
	stallsStart = 4
	maxStalls   = 64      // of one direction
	allStalls   = 1 << 15 // of all together
)

// stalls are the latest stalls of a direction, ordered by their ends.
type stalls struct {
	list      []Stall
	forgotten int64 // end of the latest that is no longer remembered
	lost      Share // of all, since the beginning
}

// add adds a stall.
func (l *stalls) add(r *Recorder, s Stall) {
	if s.To <= s.From {
		return
	}
	r.unstalled = nil
	s.Lost = min(s.Lost, s.To-s.From)
	s.From2, s.To2 = s.From, s.To
	l.lost[s.Cause] += s.Lost
	n := len(l.list)
	if s.Cause == rdma.CauseCongestion || s.Cause == rdma.CauseReadSlot {
		for i := n - 1; i >= 0 && i >= n-2; i-- {
			if p := &l.list[i]; p.Cause == s.Cause && p.message == s.message && p.Between == s.Between && s.From >= p.From && s.From-p.To <= (p.To-p.From)/4 {
				p.Lost += s.Lost
				p.To = max(p.To, s.To)
				p.To2 = p.To
				p.Lost = min(p.Lost, p.To-p.From)
				if i == n-2 {
					l.list[i], l.list[n-1] = l.list[n-1], l.list[i]
				}
				return
			}
		}
	}
	if n == cap(l.list) {
		size := max(2*n, stallsStart)
		if size > maxStalls || r.stalled+size-n > allStalls/16*r.scale {
			if n == 0 {
				l.forgotten = max(l.forgotten, s.To)
				return
			}
			l.forgotten = max(l.forgotten, l.list[0].To)
			l.list = l.list[:copy(l.list, l.list[1:])]
		} else {
			r.stalled += size - n
			list := make([]Stall, n, size)
			copy(list, l.list)
			l.list = list
		}
	}
	l.list = append(l.list, s)
}

// slow adds a stall of a sender whose window a loss has reduced. There may be many of a message:
// they become one.
func (l *stalls) slow(r *Recorder, s Stall) {
	if s.Lost <= 0 {
		return
	}
	for i := len(l.list) - 1; i >= 0 && i >= len(l.list)-3; i-- {
		if p := &l.list[i]; p.message == s.message && p.Cause == s.Cause && p.Between == s.Between && p.To <= s.From {
			l.lost[s.Cause] += s.Lost
			p.Lost += s.Lost
			p.To, p.To2 = s.To, s.To
			return
		}
	}
	l.add(r, s)
}

// drained notes when a sender of TCP had nothing more to send, for all stalls.
func (l *stalls) drained(at int64) {
	for i := len(l.list) - 1; i >= 0; i-- {
		if s := &l.list[i]; s.Until == 0 {
			s.Until = at
		}
	}
}

// caughtUp notes when the sender had, for all stalls of an episode.
func (l *stalls) caughtUp(episode uint32, at int64) {
	for i := len(l.list) - 1; i >= 0; i-- {
		if s := &l.list[i]; s.episode == episode && s.Until == 0 {
			s.Until = at
		}
	}
}

func (l *stalls) reset(r *Recorder) {
	r.stalled -= cap(l.list)
	*l = stalls{}
}

// Stalls calls f for the stalls that a side of a connection had as a requester and that ended
// after a time, the latest first. before is the end of the latest one that is no longer
// remembered: earlier times are unknown. ok is false if nothing is known about the connection.
func (r *Recorder) Stalls(c *rdma.Connection, side rdma.Side, after int64, f func(*Stall)) (before int64, ok bool) {
	k, ok := r.known(c)
	if k == nil {
		return 0, ok
	}
	l := &k.dirs[side].stalls
	for i := len(l.list) - 1; i >= 0; i-- {
		if s := &l.list[i]; s.To2 > after {
			f(s)
		}
	}
	return l.forgotten, true
}

// known is the state of c; nil if there is none, and ok then says that there was nothing to
// follow yet.
func (r *Recorder) known(c *rdma.Connection) (k *conn, ok bool) {
	if c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		return nil, false
	}
	if k, ok = c.Watched.(*conn); ok {
		return k, true
	}
	ok = true
	c.EachWatched(func(x any) {
		switch x := x.(type) {
		case *conn:
			if x.owner == r {
				k = x
			}
		case over:
			ok = false
		}
	})
	return k, ok || k != nil
}

// Unstalled reports whether nothing stalled on the connection since a time; false also
// if nothing is known of it.
func (r *Recorder) Unstalled(c *rdma.Connection, since int64) bool {
	return c == r.unstalled && r.unstalledFrom <= since || r.unstalledSince(c, since)
}

// unstalledSince is Unstalled for any connection.
func (r *Recorder) unstalledSince(c *rdma.Connection, since int64) bool {
	k := r.last
	if k == nil || k.c != c {
		if k, _ = r.known(c); k == nil {
			return false
		}
	}
	a, b := &k.dirs[0].stalls, &k.dirs[1].stalls
	if len(a.list)|len(b.list) == 0 { // most connections stall never
		r.unstalled, r.unstalledFrom = c, max(a.forgotten, b.forgotten)
		return r.unstalledFrom <= since
	}
	return a.none(since) && b.none(since)
}

// none reports whether nothing stalled since a time.
func (l *stalls) none(since int64) bool {
	for i := range l.list {
		if l.list[i].To2 > since {
			return false
		}
	}
	return l.forgotten <= since
}

// Before cuts off the part after a time; false if nothing is left.
func (s *Stall) Before(at int64) bool {
	if at < s.To {
		if at <= s.From {
			return false
		}
		s.Lost = scaled(at-s.From, s.Lost, s.To-s.From)
		s.To = at
	}
	return true
}

// After cuts off the part before a time; false if nothing is left.
func (s *Stall) After(at int64) bool {
	if at > s.From {
		if at >= s.To {
			return false
		}
		s.Lost = scaled(s.To-at, s.Lost, s.To-s.From)
		s.From = at
	}
	return true
}

// At is the stall as seen by a packet that was waited for until a time: a packet behind the lost
// one was delayed from when it was first sent to when it was sent again.
func (s Stall) At(end int64) Stall {
	switch {
	case s.To2 <= s.To || end <= s.To:
		return s
	case end >= s.To2:
		s.From, s.To = s.From2, s.To2
	default:
		s.From += scaled(s.From2-s.From, end-s.To, s.To2-s.To)
		s.To = end
	}
	s.Lost = s.To - s.From
	return s
}

// Patience is the least time that a sender waits before it retransmits, if something was lost on
// the connection before; 0 if nothing was, or if its setup did not say. A packet lost before the
// capture point, with nothing behind it, is seen once and that much later: silence of that length
// may be a loss.
func (r *Recorder) Patience(c *rdma.Connection) int64 {
	k, _ := r.known(c)
	if k == nil || k.dirs[0].serial+k.dirs[1].serial == 0 {
		return 0
	}
	return int64(k.ackTimeout()) * earlier / 10
}

// Work is what a server has to do for a call, as far as its connection shows it.
type Work uint8

// Kinds of Work.
const (
	WorkInline Work = iota // call and reply are messages
	WorkPull               // the argument is read from the client, or pushed before the call
	WorkPush               // the result is written to the client
	numWorks
)

// Served notes how long a server took for a call that nothing had held up.
func (r *Recorder) Served(c *rdma.Connection, server rdma.Side, w Work, took int64) {
	if k, _ := r.known(c); k != nil && w < numWorks {
		k.served[server][w].add(took)
	}
}

// Service is how long a server usually takes for a call of this kind, nothing held up; 0 if too few were seen.
func (r *Recorder) Service(c *rdma.Connection, server rdma.Side, w Work) int64 {
	if k, _ := r.known(c); k != nil && w < numWorks {
		return k.served[server][w].median()
	}
	return 0
}

// middle estimates the median of times that change: it moves by an eighth of itself towards each.
type middle struct {
	value int64
	count int32
}

// middleLeast is how many times an estimate takes.
const middleLeast = 4

func (m *middle) add(n int64) {
	switch {
	case n <= 0:
		return
	case m.count < middleLeast: // of the first few, their mean
		m.value = (m.value*int64(m.count) + n) / int64(m.count+1)
	case n < m.value:
		m.value = max(n, m.value-m.value>>3)
	default:
		m.value = min(n, m.value+max(m.value>>3, 1))
	}
	m.count += min(1, middleLeast+1-m.count)
}

func (m *middle) median() int64 {
	if m.count < middleLeast {
		return 0
	}
	return m.value
}

// Share is the time from a to b divided by cause.
type Share [rdma.NumCauses]int64

// rank orders causes that apply at once: see rdma.Cause.
func rank(c rdma.Cause) int { return int(c+rdma.NumCauses-1) % rdma.NumCauses }

// Divide divides the time from a to b among the causes of stalls, which need not be
// in order. Time that no stall covers is CauseRest, or CauseUnknown before a given time. The
// parts sum to b−a. scratch is reused and returned.
func Divide(a, b int64, list []Stall, before int64, scratch []int64) (s Share, _ []int64) {
	if b <= a {
		return s, scratch
	}
	cuts := append(scratch[:0], a, b)
	cut := func(x int64) {
		if x > a && x < b {
			cuts = append(cuts, x)
		}
	}
	cut(before)
	for i := range list {
		cut(list[i].From)
		cut(list[i].To)
	}
	sortTimes(cuts)
	for i := 1; i < len(cuts); i++ {
		from, to := cuts[i-1], cuts[i]
		if from == to {
			continue
		}
		var best *Stall
		for j := range list {
			if x := &list[j]; x.From <= from && x.To >= to && (best == nil || rank(x.Cause) < rank(best.Cause)) {
				best = x
			}
		}
		n := to - from
		switch {
		case best == nil && to <= before:
			s[rdma.CauseUnknown] += n
		case best == nil:
			s[rdma.CauseRest] += n
		default:
			lost := scaled(n, best.Lost, best.To-best.From)
			s[best.Cause] += lost
			s[rdma.CauseRest] += n - lost
		}
	}
	return s, cuts
}

// scaled is n·part/whole, part at most whole.
func scaled(n, part, whole int64) int64 {
	if part >= whole {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(max(part, 0)))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}

// sortTimes sorts a few times, mostly in order.
func sortTimes(list []int64) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// waits is an open stall.
type waits struct {
	since rdma.Ref
	psn   uint32 // that has to come again
	cause rdma.Cause
	// Packets behind it were sent again without it, since it was lost once more: the last of them, and when it had been
	// sent before; 0 if there were none.
	behind uint32
	vain   int64
}

// inVain notes a packet that was sent again and is of no use.
func (w *waits) inVain(psn uint32, before rdma.Ref) {
	if before.Seen() && before.Time >= w.since.Time && (w.vain == 0 || rdma.PSNDiff(psn, w.behind) > 0) {
		w.behind, w.vain = psn, before.Time
	}
}

// wait begins a stall, unless one is open.
func (w *waits) wait(since rdma.Ref, psn uint32, cause rdma.Cause) {
	if !w.since.Seen() && since.Seen() {
		*w = waits{since: since, psn: psn, cause: cause}
	}
}

// over ends a stall with a packet.
func (d *direction) over(r *Recorder, w *waits, s *rdma.Sighting) {
	x := Stall{From: w.since.Time, To: s.Ref.Time, Lost: s.Ref.Time - w.since.Time, Cause: w.cause, episode: d.serial, vain: w.vain}
	if s.Novelty == rdma.NoveltyLate {
		x.Late, x.LateTo = s.Ref.Number, s.Ref.Number
	}
	*w = waits{}
	d.run = s.PSN
	d.stalls.add(r, x)
}

// repaired checks whether a retransmitted packet ends a stall: the one that a NAK has requested,
// or the first after a timeout.
func (r *Recorder) repaired(d *direction, s *rdma.Sighting, first bool) {
	switch {
	case s.Read && d.ep.Responses: // the responses end it
	case d.HasAcked && rdma.PSNDiff(s.PSN, d.Acked) <= 0:
		// Needless: the acknowledgement was lost, or late. The sender that waits for it may not
		// continue: it has been silent since its last packet. But without a NAK, and before the announced
		// timeout, it waited for nothing.
		if first && d.ep.Notice != Unasked {
			d.wait.wait(d.LastSent, s.PSN, rdma.CauseRecovery)
			d.over(r, &d.wait, s)
		}
	case d.wait.since.Seen():
		if rdma.PSNDiff(s.PSN, d.wait.psn) <= 0 {
			d.over(r, &d.wait, s)
		} else {
			d.wait.inVain(s.PSN, d.sent().get(s.PSN))
		}
	case first:
		since := d.sent().get(s.PSN)
		if !since.Seen() {
			since = later(d.LastSent, d.Progress)
		}
		d.wait.wait(since, s.PSN, rdma.CauseRecovery)
		d.over(r, &d.wait, s)
	case s.PSN == rdma.PSNAdd(d.run, 1) && len(d.stalls.list) > 0:
		d.run = s.PSN
		x := &d.stalls.list[len(d.stalls.list)-1]
		if x.Cause != rdma.CauseRecovery && x.Cause != rdma.CauseNotReady || s.Ref.Time < x.To2 {
			break
		}
		x.To2 = s.Ref.Time
		if at := d.sent().get(s.PSN); s.Novelty == rdma.NoveltyAgain && at.Seen() && at.Time >= x.From && at.Time < x.To {
			x.From2 = at.Time
			if x.vain != 0 {
				x.From2 = min(at.Time, x.vain)
			}
		}
		if x.Late != 0 && s.Novelty == rdma.NoveltyLate {
			x.LateTo = s.Ref.Number
		}
	}
}

// acknowledged ends a stall whose last packet the capture lacks.
func (d *direction) acknowledged(r *Recorder, psn uint32, ref rdma.Ref) {
	if d.wait.since.Seen() && rdma.PSNDiff(psn, d.wait.psn) >= 0 {
		d.over(r, &d.wait, &rdma.Sighting{Ref: ref, PSN: d.wait.psn})
	}
}

// ready handles an RTU that answers a REP which was sent again: an earlier RTU, or the REP, was
// lost. The passive side acknowledges calls, but in Linux its upper layer does not get them before
// the RTU. If it has sent something, it was needless.
func (r *Recorder) ready(k *conn, s *rdma.Sighting) {
	if !k.dirs[1].Begun {
		at := k.c.Setup[1].Frame.Time
		k.dirs[0].stalls.add(r, Stall{From: at, To: s.Ref.Time, Lost: s.Ref.Time - at, Cause: rdma.CauseRecovery})
	}
}

// paced handles two consecutive packets of one transfer, before marks: after a CNP it counts the
// excess over the usual time between two.
func (r *Recorder) paced(d *direction, m *congestion, last, ref rdma.Ref) {
	gap := ref.Time - last.Time
	if gap < 0 {
		return
	}
	if !m.limited {
		m.went(gap)
		return
	}
	if m.pace == 0 {
		d.stalls.add(r, Stall{From: last.Time, To: ref.Time, Lost: gap, Cause: rdma.CauseUnknown})
		return
	}
	usual := m.pace >> paceBits
	if gap <= usual+usual/4 {
		if m.steady++; m.steady >= steadyPackets {
			m.limited, m.steady = false, 0
		}
		return
	}
	m.steady = 0
	d.stalls.add(r, Stall{From: last.Time, To: ref.Time, Lost: gap - usual, Cause: rdma.CauseCongestion})
}

// went notes a time between two packets of a sender that is not limited.
func (m *congestion) went(gap int64) {
	if gap <<= paceBits; m.pace == 0 || gap < m.pace {
		m.pace = max(gap, 1)
	} else {
		m.pace += (min(gap, 4*m.pace) - m.pace) >> paceBits
	}
}

const (
	paceBits = 4 // fraction of congestion.usual
	// steadyPackets in a row at the usual pace say that the sender is no longer
	// limited.
	steadyPackets = 16
)

// depth is how many RDMA Reads a side may have outstanding; 0 if unknown.
func (k *conn) depth(side rdma.Side) int {
	a, b := &k.c.Setup[side], &k.c.Setup[side.Other()]
	if !a.Seen() || !b.Seen() || a.InitiatorDepth == 0 || b.ResponderDepth == 0 {
		return 0
	}
	return int(min(a.InitiatorDepth, b.ResponderDepth))
}
