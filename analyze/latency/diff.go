package latency

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// DiffSchema is the value of the key "schema" of a Diff.
const DiffSchema = "rpcrdma.diff/1"

// Diff is the change from one report to another. Durations are in nanoseconds, sizes in bytes. It is
// documented in docs/reference/schema.md.
type Diff struct {
	Schema string     `json:"schema"`
	By     []string   `json:"by"`
	Filter string     `json:"filter,omitempty"`
	A      DiffSide   `json:"a"`
	B      DiffSide   `json:"b"`
	All    *DiffGroup `json:"all"`
	// Adjusted is the mean latency of the groups that both have, with as many transactions of each as A has; null if there are none.
	Adjusted *Change      `json:"adjusted_mean_ns"`
	Groups   []*DiffGroup `json:"groups"` // worst change first: slower, faster, the largest change of total time first; noise last
	Notes    []string     `json:"notes"`
}

// DiffSide is one of the two captures.
type DiffSide struct {
	Inputs  []string `json:"inputs"`
	Start   Moment   `json:"start"`
	Span    Span     `json:"span_ns"`
	Packets uint64   `json:"packets"`
}

// When is for readers: how long the capture lasted, and from when.
func (s *DiffSide) When() string {
	if s.Packets == 0 {
		return "no packets"
	}
	return "in " + s.Span.String() + " from " + s.Start.String()
}

// Change is a number in both captures. A side that has no transactions has 0.
type Change struct {
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	Delta float64 `json:"delta"`
	// Percent is the change in percent of A; null if A is 0.
	Percent *float64 `json:"percent"`
}

func change(a, b float64) Change {
	c := Change{A: a, B: b, Delta: b - a}
	if a != 0 {
		p := 100 * (b - a) / a
		c.Percent = &p
	}
	return c
}

// between is the change of a rate; 0 if one of the two is not known.
func between(a, b Rate) Change {
	if a < 0 || b < 0 {
		return Change{}
	}
	return change(float64(a), float64(b))
}

// Quantile is a percentile in both captures, each with its 95 % confidence interval for the traffic as a
// whole, assuming independent transactions: the values of the ranks n·q ± 1.96·√(n·q·(1−q)). An end is null
// if there are too few values.
type Quantile struct {
	Change
	LowA  *int64 `json:"a_low"`
	HighA *int64 `json:"a_high"`
	LowB  *int64 `json:"b_low"`
	HighB *int64 `json:"b_high"`
	// Apart means that the two intervals certainly do not overlap.
	Apart bool `json:"apart"`
}

// DiffGroup is one group in both captures.
type DiffGroup struct {
	Key         []string          `json:"key"`
	In          string            `json:"in"` // "both", "a" or "b"
	Count       Change            `json:"count"`
	Timed       Change            `json:"timed"` // with a latency
	Rate        Change            `json:"per_second"`
	Errors      Change            `json:"errors"`
	NoReply     Change            `json:"no_reply"`
	NoCall      Change            `json:"no_call"`
	Incomplete  Change            `json:"incomplete"`
	Retransmits Change            `json:"retransmits"`
	CallBytes   Change            `json:"call_bytes"`
	ReplyBytes  Change            `json:"reply_bytes"`
	ReadBytes   Change            `json:"rdma_read_bytes"`
	WriteBytes  Change            `json:"rdma_write_bytes"`
	ByteRate    Change            `json:"bytes_per_second"`
	Statuses    map[string]Change `json:"errors_by_status"`

	Sum  Change   `json:"sum_ns"`
	Mean Change   `json:"mean_ns"`
	P50  Quantile `json:"p50_ns"`
	P99  Quantile `json:"p99_ns"`
	Max  Change   `json:"max_ns"`

	Phases map[string]DiffPhase `json:"phases"`

	// Lost is the time lost to each cause, the rest included; null unless both sides
	// know it. Explained is the part of Sum.Delta that is not in the rest: null if Sum
	// did not change.
	Lost      map[string]Change `json:"lost_ns"`
	Explained *float64          `json:"explained"`

	// Verdict is the result of Test: "slower", "faster", "noise", "few" if there are too few values to
	// decide, or "" if one side has none. Of all transactions it is "mix" if their mean changed only
	// because there are more of some groups and fewer of others.
	Verdict string `json:"verdict"`
	Test    *Test  `json:"test"` // null if one side has no latency
}

// DiffPhase is one phase in both captures. Transactions without the phase count as 0.
type DiffPhase struct {
	Mean Change `json:"mean_ns"`
	P50  Change `json:"p50_ns"`
	P99  Change `json:"p99_ns"`
}

// Verdicts.
const (
	Slower = "slower"
	Faster = "faster"
	Noise  = "noise"
	Few    = "few"
	Mix    = "mix"
)

// sameMix is the largest change of the adjusted mean, as a fraction, of which it is said that only the mix of groups changed.
const sameMix = 0.02

// Compare compares report b with report a. Both must have been built with the same Options.
func Compare(a, b *Report) *Diff {
	d := &Diff{
		Schema: DiffSchema, By: a.By, Filter: a.Filter,
		A:     DiffSide{a.Inputs, a.Start, a.Span, a.Packets},
		B:     DiffSide{b.Inputs, b.Start, b.Span, b.Packets},
		All:   diffGroup(a.All, b.All),
		Notes: []string{}, Groups: []*DiffGroup{},
	}
	for _, side := range []struct {
		name string
		r    *Report
	}{{"a", a}, {"b", b}} {
		for _, n := range side.r.Notes {
			d.Notes = append(d.Notes, side.name+": "+n)
		}
	}
	key := func(g *Group) string { return strings.Join(g.Key, "\x00") }
	right := make(map[string]*Group)
	for _, g := range b.Groups {
		right[key(g)] = g
	}
	for _, g := range a.Groups {
		o := right[key(g)]
		delete(right, key(g))
		d.Groups = append(d.Groups, diffGroup(g, o))
	}
	for _, g := range b.Groups {
		if right[key(g)] != nil {
			d.Groups = append(d.Groups, diffGroup(nil, g))
		}
	}
	d.adjust()
	slices.SortStableFunc(d.Groups, func(x, y *DiffGroup) int {
		return cmp.Or(
			cmp.Compare(x.rank(), y.rank()), cmp.Compare(magnitude(y.Sum.Delta), magnitude(x.Sum.Delta)),
			slices.Compare(x.Key, y.Key),
		)
	})
	return d
}

// rank orders groups by their verdicts.
func (d *DiffGroup) rank() int {
	return slices.Index([]string{Slower, Faster, "", Few, Noise}, d.Verdict)
}

// adjust compares the means of the groups that both have, in the mix of A.
func (d *Diff) adjust() {
	var n, a, b float64
	same := true // no group has the verdict of all transactions
	for _, g := range d.Groups {
		if g.Timed.A > 0 && g.Timed.B > 0 {
			n += g.Timed.A
			a += g.Timed.A * g.Mean.A
			b += g.Timed.A * g.Mean.B
			same = same && g.Verdict != d.All.Verdict
		}
	}
	if n == 0 {
		return
	}
	c := change(a/n, b/n)
	d.Adjusted = &c
	if v := d.All.Verdict; (v == Slower || v == Faster) && same && len(d.Groups) > 1 && magnitude(c.Delta) <= sameMix*c.A {
		d.All.Verdict = Mix
	}
}

func magnitude(f float64) float64 { return max(f, -f) }

func diffGroup(a, b *Group) *DiffGroup {
	d := &DiffGroup{In: "both", Statuses: map[string]Change{}, Phases: map[string]DiffPhase{}}
	none := &Group{Latency: &Distribution{}}
	switch {
	case a == nil:
		d.In, d.Key, a = "b", b.Key, none
	case b == nil:
		d.In, d.Key, b = "a", a.Key, none
	default:
		d.Key = a.Key
	}
	n := func(x, y uint64) Change { return change(float64(x), float64(y)) }
	d.Count, d.Timed, d.Rate = n(a.Count, b.Count), n(a.Latency.Count, b.Latency.Count), between(a.Rate, b.Rate)
	d.Errors, d.NoReply, d.NoCall, d.Incomplete = n(a.Errors, b.Errors), n(a.NoReply, b.NoReply), n(a.NoCall, b.NoCall), n(a.Incomplete, b.Incomplete)
	d.Retransmits = n(a.Retransmits, b.Retransmits)
	d.CallBytes, d.ReplyBytes = n(a.CallBytes, b.CallBytes), n(a.ReplyBytes, b.ReplyBytes)
	d.ReadBytes, d.WriteBytes = n(a.ReadBytes, b.ReadBytes), n(a.WriteBytes, b.WriteBytes)
	d.ByteRate = between(a.ByteRate, b.ByteRate)
	for s := range a.Statuses {
		d.Statuses[s] = n(a.Statuses[s], b.Statuses[s])
	}
	for s := range b.Statuses {
		d.Statuses[s] = n(a.Statuses[s], b.Statuses[s])
	}
	x, y := a.Latency, b.Latency
	i := func(x, y int64) Change { return change(float64(x), float64(y)) }
	d.Sum, d.Mean, d.Max = i(x.Sum, y.Sum), i(x.Mean, y.Mean), i(x.Max, y.Max)
	d.P50, d.P99 = quantile(x, y, 50), quantile(x, y, 99)
	for p := range transaction.AllPhases() {
		s, t := a.Phase(p), b.Phase(p)
		d.Phases[p.String()] = DiffPhase{Mean: i(s.Mean, t.Mean), P50: i(s.P50, t.P50), P99: i(s.P99, t.P99)}
	}
	d.lost(a, b)
	if x.Count > 0 && y.Count > 0 {
		d.Test = mannWhitney(x, y)
		d.Verdict = d.Test.verdict(x.Count, y.Count)
	}
	return d
}

// lost compares what time was lost to.
func (d *DiffGroup) lost(a, b *Group) {
	if !a.Lost.Looked() || !b.Lost.Looked() {
		return
	}
	d.Lost = make(map[string]Change)
	for c := range rdma.Cause(rdma.NumCauses) {
		d.Lost[c.String()] = change(float64(a.Lost.To(c).Time), float64(b.Lost.To(c).Time))
	}
	if whole := float64(b.Lost.Time - a.Lost.Time); whole != 0 {
		part := (whole - d.Lost[rdma.CauseRest.String()].Delta) / whole
		d.Explained = &part
	}
}

func quantile(a, b *Distribution, p float64) Quantile {
	q := Quantile{Change: change(float64(a.Percentile(p)), float64(b.Percentile(p)))}
	q.LowA, q.HighA = a.confidence(p)
	q.LowB, q.HighB = b.confidence(p)
	below := func(x, y *int64) bool { return x != nil && y != nil && *x < *y }
	q.Apart = below(q.HighA, q.LowB) || below(q.HighB, q.LowA)
	return q
}
