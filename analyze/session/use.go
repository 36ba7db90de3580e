package session

import (
	"cmp"
	"encoding/hex"
	"slices"

	"github.com/rpcrdma/toolkit/decode/link"
)

// maxPast is how many intervals a Use tells of.
const maxPast = 64

// Use is what a session, or a client of a version without sessions, has used so far, for a view while packets pass.
type Use struct {
	Number         int    // tells it from all others
	ID             string // of the session, in hexadecimal digits; empty for a client
	Version        string // of NFS, for a client
	Client, Server string // addresses of its first connection
	Owner          string // of the client, if EXCHANGE_ID was captured
	Limit          uint32 // slots: the smaller of grant and target; 0 if not known
	InUse, Most    int    // slots; calls without a reply for a client
	Destroyed      bool
	Refused        uint64 // SEQUENCEs that failed
	Callbacks      uint64
	Now, Total     Tally     // of the interval before the newest Roll; since the beginning
	Past           []float64 // slots in use on average in each of the latest intervals, oldest first
	Connections    []Connection
}

// Tally counts what was used in a time.
type Tally struct {
	Time  int64 // its length, ns
	Calls uint64
	Bytes uint64 // read and written
	Area  int64  // sum of the times that slots were in use, ns
	Full  int64  // time with all slots in use, ns
	After uint64 // calls that came after all slots had been in use
}

// Mean is how many slots were in use on average.
func (t *Tally) Mean() float64 {
	if t.Time <= 0 {
		return 0
	}
	return float64(t.Area) / float64(t.Time)
}

func (t *Tally) minus(o *Tally) Tally {
	return Tally{t.Time - o.Time, t.Calls - o.Calls, t.Bytes - o.Bytes, t.Area - o.Area, t.Full - o.Full, t.After - o.After}
}

// meter measures intervals.
type meter struct {
	number int
	mark   Tally // at the end of the latest interval
	now    Tally
	past   []float64
	last   int64 // when the newest call began
	calls  uint64
	bytes  uint64
}

// count takes a call that has ended.
func (m *meter) count(bytes uint64) {
	m.calls++
	m.bytes += bytes
}

// tally is what was used up to a time.
func (m *meter) tally(t *table, at int64) Tally {
	x := Tally{Calls: m.calls, Bytes: m.bytes, Area: t.area, Full: t.full, After: t.after}
	if !t.begun {
		return x
	}
	if d := at - t.since; d > 0 {
		x.Area += d * int64(t.inUse)
		if t.isFull() {
			x.Full += d
		}
	}
	x.Time = max(at, t.since) - t.start
	return x
}

func (m *meter) roll(t *table, at, span int64) {
	x := m.tally(t, at)
	m.now, m.mark = x.minus(&m.mark), x
	m.now.Time = max(span, m.now.Time) // more, if the intervals between had no packets and were left out
	if len(m.past) == maxPast {
		m.past = m.past[:copy(m.past, m.past[1:])]
	}
	m.past = append(m.past, m.now.Mean())
}

// Live makes the Recorder drop what was idle longest when a limit is reached, instead of what comes new: for input
// without an end.
func (r *Recorder) Live() { r.live = true }

// SlotsOnly makes the Recorder do nothing but fill in Transaction.Slots: Transaction need not be called. Calls of versions
// without sessions are not looked at.
func (r *Recorder) SlotsOnly() { r.slots = true }

// Roll ends an interval of a length at a time, both in nanoseconds.
func (r *Recorder) Roll(at, span int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.order {
		x.meter.roll(&x.fore, at, span)
	}
	for _, g := range r.byOrder {
		g.meter.roll(&g.calls, at, span)
	}
}

// Restart forgets the intervals that Roll has ended.
func (r *Recorder) Restart(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.order {
		x.meter.mark, x.meter.now, x.meter.past = x.meter.tally(&x.fore, at), Tally{}, nil
	}
	for _, g := range r.byOrder {
		g.meter.mark, g.meter.now, g.meter.past = g.meter.tally(&g.calls, at), Tally{}, nil
	}
}

// Uses are the sessions and clients that were busy last, as of a time, and how many more there are. At the end of the input the
// time is 0, and totals are, as in a Report, of the time from the first call or reply of a session to its last one; those of
// sessions that were destroyed always are.
func (r *Recorder) Uses(at int64, most int) (list []Use, rest int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	type ref struct {
		m *meter
		s *session
		g *client
	}
	all := make([]ref, 0, len(r.order)+len(r.byOrder))
	for _, x := range r.order {
		all = append(all, ref{m: &x.meter, s: x})
	}
	for _, g := range r.byOrder {
		all = append(all, ref{m: &g.meter, g: g})
	}
	if len(all) > most {
		slices.SortFunc(all, func(a, b ref) int { return cmp.Or(cmp.Compare(b.m.last, a.m.last), a.m.number-b.m.number) })
		all = all[:most]
	}
	slices.SortFunc(all, func(a, b ref) int { return a.m.number - b.m.number })
	for _, x := range all {
		if x.s != nil {
			list = append(list, x.s.use(at))
		} else {
			list = append(list, x.g.use(at))
		}
	}
	return list, r.number - len(list) // those that made room are among the rest
}

func (m *meter) use(t *table, at int64) Use {
	return Use{Number: m.number, InUse: t.inUse, Most: t.most, Now: m.now, Total: m.tally(t, at), Past: slices.Clone(m.past)}
}

func (x *session) use(at int64) Use {
	if x.destroyed.Seen() {
		at = 0
	}
	u := x.meter.use(&x.fore, at)
	u.ID, u.Owner, u.Limit, u.Destroyed, u.Connections = hex.EncodeToString(x.id[:]), x.owner.client, x.fore.limit, x.destroyed.Seen(), x.conns.report()
	if len(u.Connections) > 0 {
		u.Client, u.Server = u.Connections[0].Client, u.Connections[0].Server
	}
	for _, n := range x.failed {
		u.Refused += n
	}
	for _, c := range u.Connections {
		u.Callbacks += c.Callbacks
	}
	return u
}

func (g *client) use(at int64) Use {
	u := g.meter.use(&g.calls, at)
	u.Version, u.Client, u.Server, u.Connections = version(g.version), link.AddrString(g.clientKey.client), link.AddrString(g.server), g.conns.report()
	for i := range u.Connections {
		u.Connections[i].Bound = ""
	}
	return u
}
