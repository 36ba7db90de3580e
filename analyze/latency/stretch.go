package latency

import (
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// stretch is a part of a capture in which calm transactions follow one another: the calls of a connection, each after the reply to the one
// before, in an interval, with the same credits, and no others. What the connection and the interval count of them follows from a few
// sums: settleStretch adds it. The transaction that a stretch begins with was counted as others are; the sums are of those behind it.
type stretch struct {
	connection         int
	requested, granted uint32
	end                int64 // of the newest transaction
	to                 int64 // where the interval ends; 0 if there is no stretch
	begun              int64 // when the newest transaction began

	n, errors uint64
	bytes     uint64
	busy      int64 // sum of the latencies
}

// continues reports whether a transaction that CalmUsual takes continues the stretch.
func (x *stretch) continues(tx *transaction.Transaction) bool {
	call, reply := &tx.Call, &tx.Reply
	return call.First.Time >= x.end && reply.Last.Time < x.to && tx.Connection.ID == x.connection &&
		call.Header.Credits == x.requested && reply.Header.Credits == x.granted
}

// add adds a transaction that continues the stretch.
func (x *stretch) add(tx *transaction.Transaction, took int64, failed bool) {
	x.begun, x.end = tx.Call.First.Time, tx.Reply.Last.Time
	x.n++
	x.busy += took
	x.bytes += tx.Call.Bytes + tx.Reply.Bytes
	if failed {
		x.errors++
	}
}

// showCalm is the part of Add for what is shown of single transactions.
func (r *Recorder) showCalm(v *rpc.View, g *group, took int64, inFlight int) {
	if r.opt.Ran {
		r.ran(&r.series.slots[r.series.last], g, v, took)
	}
	if r.slow.wants(took) {
		var p transaction.Phases
		v.Tx.SetPhases(&p)
		r.slowIf(v, &p, 0, inFlight)
	}
}

// followCalm is what follow, series.at and slot.add do for a calm transaction, with which a stretch may begin. It returns how many calls
// of the connection are in flight.
func (r *Recorder) followCalm(tx *transaction.Transaction, failed bool) (inFlight int) {
	r.settleStretch()
	start, end := tx.Call.First.Time, tx.Reply.Last.Time
	f, x := r.flow(tx.Connection), &r.series
	if f == nil || tx.Backward || start < x.from || end >= x.to || !tx.Call.Transport || !tx.Reply.Transport {
		inFlight = r.follow(tx)
		r.series.at(start).add(tx, failed)
		return inFlight
	}
	requested, granted := tx.Call.Header.Credits, tx.Reply.Header.Credits
	f.requested[0].add(requested)
	f.granted[0].add(granted)
	s, l := &x.slots[x.last], &f.calls[0]
	all := 0
	if len(l.heap) == 1 {
		all = r.all.follows(l, start, end, granted, s.most, &r.events)
	}
	switch {
	case all == 0: // not after the only one in flight
		all = r.all.enter(l, start, end, granted, s.most, &r.events)
	case r.all.sole != nil && x.to-x.from <= longestStretch:
		r.stretch = stretch{connection: r.lastID, requested: requested, granted: granted, end: end, to: x.to}
	}
	s.most = max(s.most, all)
	if isRDMA(tx.Connection.Fabric) {
		s.creditsUsed = max(s.creditsUsed, l.n)
		if granted > 0 && (s.granted == 0 || granted < s.granted) {
			s.granted = granted
		}
	}
	s.area += float64(end - start)
	s.calls++
	s.bytes += tx.Call.Bytes + tx.Reply.Bytes
	if failed {
		s.errors++
	}
	return l.n
}

// longestStretch is how long a stretch may be, in ns: a float64 has all sums of its times.
const longestStretch = 1 << 52

// settleStretch adds what follows from a stretch, and ends it.
func (r *Recorder) settleStretch() {
	if r.stretch.n > 0 {
		r.addStretch()
	}
	r.stretch.to = 0
}

// addStretch adds what follows from a stretch.
func (r *Recorder) addStretch() {
	x := &r.stretch
	r.lastFlow.calls[0].stretched(x)
	s := &r.series.slots[r.series.last]
	s.area += float64(x.busy)
	s.calls += x.n
	s.bytes += x.bytes
	s.errors += x.errors
	x.n = 0
}

// stretched is what follows has left to do for a stretch: the transaction that it began with is alone in flight. The newest one is
// afterwards.
func (l *level) stretched(x *stretch) {
	e := &l.heap[0]
	l.passed(e.at, e.granted)
	// All but the newest have ended. Their replies granted the same.
	busy := x.busy - (x.end - x.begun)
	idle := x.begun - e.at - busy
	l.time[0] += float64(idle)
	l.time[1] += float64(busy)
	if l.granted > 0 {
		l.known += float64(idle) + float64(busy)
		if l.granted == 1 {
			l.limited += float64(busy)
		}
	}
	l.now, e.at = x.begun, x.end
}
