package judge

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// moments finds the replies that depend on the order in which a server executed concurrent calls:
// for example the size of a file during a WRITE that extends it, or who of two gets a lock. Such a
// difference is not the server's fault.
//
// It holds the calls that were in flight in the capture together with one that has not been judged
// yet. Of the others it has only the number.
type moments struct {
	load    *workload.Workload
	relaxed bool
	locks   locksOf
	changes map[changeable]*changes
	held    held       // all calls in changes that have a reply
	silent  []*plan.Op // those without one, which are in flight for ever
	text    int        // bytes of the plan, of held
	dropped int        // calls for which there was no room
	// Calls that were read and sent before: when the first of them began, and the last one ends.
	since, until int64
}

// changeable is what a call may change: an object, or the locks of a file.
type changeable struct {
	object int
	locks  bool
}

// changes are the calls that change one of them.
type changes struct {
	list  []*plan.Op // that may have been in flight together with others, by time
	n     int        // how many there were so far
	first int        // the first of all
}

func newMoments(w *workload.Workload, relaxed bool) *moments {
	m := &moments{load: w, relaxed: relaxed, since: math.MaxInt64, until: math.MinInt64, locks: newLocksOf(w), changes: map[changeable]*changes{}}
	for _, o := range w.Ops {
		m.add(o, 0)
	}
	return m
}

// Limits of moments.
const (
	// maxTogether is how many earlier calls are examined for each one, so that the time for a file
	// with very many changes does not grow with their square.
	maxTogether = 1024
	// maxHeld is how many calls are held, and maxHeldText how many bytes of the plan they take. A
	// plan may say of any number of calls that they were in flight together.
	maxHeld     = 1 << 17
	maxHeldText = 64 << 20
	// maxSilent is how many calls without a reply are held.
	maxSilent = 1 << 12
)

// add takes in a call, whose line in the plan has the given length.
func (m *moments) add(o *plan.Op, text int) {
	some := false
	for _, at := range m.about(o) {
		some = true
		c := m.changes[at]
		if c == nil {
			c = &changes{first: o.ID}
			m.changes[at] = c
		}
		c.n++
		i := len(c.list)
		for i > 0 && began(c.list[i-1]) > began(o) && len(c.list)-i < maxTogether {
			i--
		}
		c.list = slices.Insert(c.list, i, o)
	}
	if o.Before > 0 && m.load.Streams() {
		m.since, m.until = min(m.since, began(o)), max(m.until, endOf(o))
	}
	switch {
	case !some:
	case o.Latency < 0:
		if m.silent = append(m.silent, o); len(m.silent) > maxSilent && m.load.Streams() {
			m.remove(m.silent[0])
			m.silent = slices.Delete(m.silent, 0, 1)
			m.dropped++
		}
	case m.load.Streams():
		heap.Push(&m.held, held1{o, endOf(o), text})
		for m.text += text; len(m.held) > maxHeld || m.text > maxHeldText && len(m.held) > 1; m.dropped++ {
			m.drop()
		}
	}
}

// about is what a call may change.
func (m *moments) about(o *plan.Op) (list []changeable) {
	if o.Modifies {
		for _, id := range m.load.Objects(o) {
			list = append(list, changeable{object: id})
		}
	}
	for _, a := range m.locks.acts(o) {
		if at := (changeable{a.object, true}); a.does != tests && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}

// began is when a call was sent for the first time. The captured server may have executed it then, and repeated the reply, with
// the attributes of that time, later.
func began(o *plan.Op) int64 {
	if o.Before <= 0 || o.Time < math.MinInt64+o.Before {
		return o.Time
	}
	return o.Time - o.Before
}

// endOf is when a reply came.
func endOf(o *plan.Op) int64 {
	if o.Latency < 0 || o.Time > math.MaxInt64-o.Latency {
		return math.MaxInt64
	}
	return o.Time + o.Latency
}

// forget gives up the calls that had ended before a time: all that will be judged began later, except for those that
// were sent before.
func (m *moments) forget(before int64) {
	if before > m.until {
		m.since, m.until = math.MaxInt64, math.MinInt64
	}
	before = min(before, m.since)
	for len(m.held) > 0 && m.held[0].end < before {
		m.drop()
	}
}

func (m *moments) drop() {
	x := heap.Pop(&m.held).(held1)
	m.text -= x.text
	m.remove(x.op)
}

func (m *moments) remove(o *plan.Op) {
	for _, at := range m.about(o) {
		c := m.changes[at]
		if i := slices.Index(c.list, o); i >= 0 {
			c.list = slices.Delete(c.list, i, i+1)
		}
		if len(c.list) == 0 {
			c.list = nil
		}
	}
}

// reason is the reason why what a reply says about an object depends on the order of concurrent
// calls; its Code is None if it does not. again says that the call was sent again, and so later.
func (m *moments) reason(o *plan.Op, again bool) (why verdict.Reason) {
	for _, id := range m.load.Objects(o) {
		c := m.changes[changeable{object: id}]
		if c == nil || c.n == 1 && c.first == o.ID {
			continue
		}
		switch {
		case again:
			why = verdict.Reason{Code: verdict.SentAgain}
		case m.relaxed:
			why = verdict.Reason{Code: verdict.AnyOrder}
		}
		m.together(o, changeable{object: id}, func(c *plan.Op) bool {
			why = verdict.Reason{Code: verdict.Together, Was: o.What, Call: verdict.Call{ID: c.ID, XID: c.XID}}
			return false
		})
		if why.Code == verdict.Together {
			return why
		}
	}
	return why
}

// together calls f for calls that may change something and were in flight together with an op, until
// f returns false.
func (m *moments) together(o *plan.Op, at changeable, f func(*plan.Op) bool) {
	all := m.changes[at]
	if all == nil {
		return
	}
	// Those that began before its end, the latest first: concurrent calls are close together.
	list, n := all.list, len(all.list)
	if end := endOf(o); end < math.MaxInt64 {
		n, _ = slices.BinarySearchFunc(list, end+1, func(c *plan.Op, t int64) int { return cmp.Compare(began(c), t) })
	}
	for _, c := range slices.Backward(list[max(0, n-maxTogether):n]) {
		if c != o && (o.Latency < 0 || began(o) <= endOf(c)) && !f(c) {
			return
		}
	}
}

// held are calls, that with the earliest end first.
type held []held1

type held1 struct {
	op   *plan.Op
	end  int64 // captured
	text int
}

func (l held) Len() int           { return len(l) }
func (l held) Less(i, j int) bool { return l[i].end < l[j].end }
func (l held) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *held) Push(x any) { *l = append(*l, x.(held1)) }

// Pop implements heap.Interface.
func (l *held) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = held1{}
	*l = (*l)[:last]
	return x
}
