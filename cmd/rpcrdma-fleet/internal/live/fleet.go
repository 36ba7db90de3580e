package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
)

// Limits of a Fleet.
const (
	maxTaps    = 10_000
	maxHistory = 60
	// silentAfter is the number of intervals without a summary after which a tap counts as silent; of short intervals, silentTime.
	silentAfter = 2
	silentTime  = 5 * time.Second
	maxSources  = 8 // agents of a tap that are remembered
)

// Fleet is what the taps have sent of late.
type Fleet struct {
	taps map[string]*Tap
	// Refused counts messages that are no summaries, and TooMany those of taps beyond
	// the first 10,000.
	Refused, TooMany uint64
	// Wrong is why the latest one was refused.
	Wrong string
}

// Tap is what is known of one tap.
type Tap struct {
	Name    string
	Last    *Summary  // the latest
	History []Sample  // oldest first, that of Last included
	Missing uint64    // summaries of the present agent that have not come
	Came    time.Time // when Last came
	Agents  int       // how many have spoken for the tap, one after another or at once
	Quiet   time.Time // since when all summaries have been without packets; zero if the latest one has some

	sources []source // those heard last, the latest at the end
}

// source is what is known of an agent.
type source struct {
	agent           string
	number, missing uint64 // of its latest summary; how many before it have not come
}

// Sample is what is remembered of an interval.
type Sample struct {
	Start, Span                         int64
	Transactions, Errors, Bytes, Resent uint64
	P99                                 int64
}

// Add takes a message of the stream. One that was delivered before changes nothing.
func (f *Fleet) Add(m Message) {
	if m.None {
		return
	}
	s, err := Decode(m.Data)
	if err != nil {
		f.refuse(err.Error())
		return
	}
	if m.Subject != SubjectOf(s) { // permissions of NATS are about subjects
		f.refuse("tap " + s.Tap + ": its subject is another's")
		return
	}
	t := f.taps[s.Tap]
	if t == nil {
		if len(f.taps) >= maxTaps {
			f.TooMany++
			return
		}
		if f.taps == nil {
			f.taps = make(map[string]*Tap)
		}
		t = &Tap{Name: s.Tap}
		f.taps[s.Tap] = t
	}
	t.add(s, m.Time)
}

// add takes a summary that came at a time.
func (t *Tap) add(s *Summary, came time.Time) {
	i := slices.IndexFunc(t.sources, func(x source) bool { return x.agent == s.Agent })
	known := i >= 0
	// Of an agent that is new here, earlier summaries may have been stored too long ago to be read.
	x := source{s.Agent, s.Number, min(s.Dropped, s.Number-1)}
	if known {
		old := t.sources[i]
		if s.Number <= old.number {
			return // it has come before
		}
		x.missing = old.missing + s.Number - old.number - 1
		t.sources = slices.Delete(t.sources, i, i+1)
	} else {
		t.Agents++
	}
	if len(t.sources) == maxSources {
		t.sources = slices.Delete(t.sources, 0, 1)
	}
	t.sources = append(t.sources, x)
	if t.Last != nil && t.Last.Agent != s.Agent && !t.gives(s, known, came) {
		return
	}
	switch {
	case s.Packets > 0:
		t.Quiet = time.Time{}
	case t.Quiet.IsZero() && !s.End:
		t.Quiet = came.Add(-time.Duration(s.Span))
	}
	t.Last, t.Came, t.Missing = s, came, x.missing
	t.History = append(t.History, Sample{s.Start, s.Span, s.Transactions, s.Errors, s.Bytes, s.RDMA.Retransmits, s.P99})
	if n := len(t.History) - maxHistory; n > 0 {
		t.History = slices.Delete(t.History, 0, n)
	}
}

// gives says whether the present agent of the tap gives way to the one of a summary. Of two at once, the one that began last
// speaks for the tap as long as it speaks. Which one that is, the time of what they saw does not tell: a clock may have been set
// back, and a capture that is replayed may be an old one. So it decides only of agents whose beginning was not seen.
func (t *Tap) gives(s *Summary, known bool, came time.Time) bool {
	return t.Last.End || t.Silent(came) || !known && (s.Number == 1 || s.Start >= t.Last.Start)
}

func (f *Fleet) refuse(why string) {
	f.Refused++
	f.Wrong = cut(why)
}

// Silent reports that a tap should have sent something.
func (t *Tap) Silent(now time.Time) bool {
	return !t.Last.End && now.Sub(t.Came) > max(silentAfter*time.Duration(t.Last.Span), silentTime)
}

// Tap finds a tap; nil if there is none of that name.
func (f *Fleet) Tap(name string) *Tap { return f.taps[name] }

// Order is what taps are listed by.
type Order uint8

// Orders.
const (
	ByP99 Order = iota
	ByTime
	ByTransactions
	ByErrors
	ByRetransmits
	ByStuck
	ByTap
	NumOrders = iota
)

var orderNames = [NumOrders]string{"p99", "time", "transactions", "errors", "retransmits", "stuck", "tap"}

func (o Order) String() string { return orderNames[o] }

// ParseOrder finds an order by its name.
func ParseOrder(s string) (Order, bool) {
	i := slices.Index(orderNames[:], s)
	return Order(max(i, 0)), i >= 0
}

// OrderNames are the names of all orders.
func OrderNames() []string { return orderNames[:] }

// value is what comes first if it is large.
func (o Order) value(s *Summary) float64 {
	switch o {
	case ByP99:
		return float64(s.P99)
	case ByTime:
		return float64(s.Time) / float64(s.Span)
	case ByTransactions:
		return float64(s.Transactions) / float64(s.Span)
	case ByErrors:
		return float64(s.Errors)
	case ByRetransmits:
		return float64(s.RDMA.Retransmits)
	case ByStuck:
		return float64(s.Open.Stuck)
	}
	return 0
}

// Taps lists all taps. Those that are silent come last.
func (f *Fleet) Taps(by Order, now time.Time) []*Tap {
	list := make([]*Tap, 0, len(f.taps))
	for _, t := range f.taps {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Tap) int {
		if x, y := a.Silent(now), b.Silent(now); x != y {
			if x {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(by.value(b.Last), by.value(a.Last)), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Totals are the latest summaries of all taps that are not silent, added up.
type Totals struct {
	Taps, Silent, Ended int
	Quiet               int // of Taps: they see no packets
	// Rates are per second, since intervals of taps may differ in length.
	Transactions, Errors, Bytes, Packets float64
	P50, P99                             int64 // upper ends of bands of half an octave; 0 if there were no transactions
	Max                                  int64
	Open, Stuck                          int
	Retransmits                          float64
	PacketsLost                          uint64 // in the latest intervals
	Missing                              uint64 // summaries
	Alarms                               int    // taps with an alarm
}

// Totals adds up.
func (f *Fleet) Totals(now time.Time) (x Totals) {
	var heat [monitor.HeatBands]uint64
	for _, t := range f.taps {
		s := t.Last
		x.Missing += t.Missing
		switch {
		case t.Silent(now):
			x.Silent++
			continue
		case s.End:
			x.Ended++
			continue
		}
		x.Taps++
		if !t.Quiet.IsZero() {
			x.Quiet++
		}
		seconds := float64(s.Span) / 1e9
		x.Transactions += float64(s.Transactions) / seconds
		x.Errors += float64(s.Errors) / seconds
		x.Bytes += float64(s.Bytes) / seconds
		x.Packets += float64(s.Packets) / seconds
		x.Retransmits += float64(s.RDMA.Retransmits) / seconds
		x.Max = max(x.Max, s.Max)
		x.Open += s.Open.Calls
		x.Stuck += s.Open.Stuck
		x.PacketsLost += s.Lost
		if len(s.Over) > 0 {
			x.Alarms++
		}
		for _, h := range s.Heat {
			heat[h.Band] += uint64(h.Count)
		}
	}
	x.P50, x.P99 = quantile(&heat, 50), quantile(&heat, 99)
	if x.Max > 0 { // of the last band nothing else is known
		x.P50, x.P99 = min(x.P50, x.Max), min(x.P99, x.Max)
	}
	return x
}

// quantile is the upper end of the band that holds the p-th percentile by nearest rank.
func quantile(heat *[monitor.HeatBands]uint64, p uint64) int64 {
	var sum uint64
	for _, n := range heat {
		sum += n
	}
	if sum == 0 {
		return 0
	}
	// rank is ⌈p/100·sum⌉; the counts are sums of at most 10,000 numbers of 32 bits.
	rank := (sum*p + 99) / 100
	for band, n := range heat {
		if n >= rank {
			if band == len(heat)-1 {
				return maxTime
			}
			return monitor.HeatFrom(band + 1)
		}
		rank -= n
	}
	return maxTime
}
