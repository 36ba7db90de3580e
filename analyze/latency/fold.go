package latency

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/units"
)

// terms are the options that determine what a report has. States with different ones cannot be merged.
type terms struct {
	by       []Key
	interval time.Duration
	top      int
	inline   []uint32
	filter   string
}

func termsOf(opt *Options, filter string) terms {
	return terms{by: opt.By, interval: opt.Interval, top: opt.Top, inline: opt.Inline, filter: filter}
}

// fold adds up parts, in an order that depends on nothing but the parts, and makes the report. What is added up is
// therefore the same whoever collected the parts, and in whatever order they came.
type fold struct {
	terms
	mem    memory
	most   int // groups
	groups map[string]*group
	order  []*group
	ran    []*group // as Slot.ran counts them

	series      series
	again       counts
	events      counts
	kinds       [numTroubles]uint64
	retransmits uint64
	troubles    [numTroubles]trouble
	slow        []*Slow
	conns       []Connection

	groupsLost, auditLost, levelLost, unlisted uint64
	several                                    uint64
	groupsMost                                 int
	flowsLost, overflow                        bool
	input                                      state.Input // of the tap that is added
}

func newFold(t terms, mem memory) *fold {
	f := &fold{terms: t, mem: mem, most: maxGroups, groups: make(map[string]*group)}
	f.series = series{spans: newSpans(t.interval), mem: &f.mem}
	f.again.spans, f.events.spans = newSpans(t.interval), newSpans(t.interval)
	return f
}

// place says where the rows of a part are found: at which tap, in which file.
func (f *fold) place(p *part, seen *state.Seen) {
	key := ""
	if seen != nil {
		key = string(rpc.AppendConnectionKey(nil, seen.Connection()))
	}
	for _, x := range p.slow {
		x.Tap, x.Key = f.input.Tap, key
		x.Capture, x.Packet = f.input.Of(x.number)
	}
	for i := range p.conns {
		p.conns[i].Tap, p.conns[i].Key = f.input.Tap, key
	}
}

// add adds what a part has, and takes it over; seen is its connection, if it is of one.
func (f *fold) add(p *part, seen *state.Seen) {
	check := func(bad bool) { f.overflow = f.overflow || bad }
	for _, g := range p.groups {
		check(f.group(g))
	}
	check(f.series.merge(&p.series, &f.mem))
	f.again.merge(&p.again)
	f.events.merge(&p.events)
	check(saturated(&f.retransmits, p.retransmitted))
	for k := range p.troubles {
		check(saturated(&f.kinds[k], p.kinds[k]))
		check(f.troubles[k].merge(&p.troubles[k]))
	}
	if f.input.Tap != "" {
		f.place(p, seen)
	}
	if f.slow = append(f.slow, p.slow...); len(f.slow) > 4*f.top+1024 {
		f.slowest()
	}
	if f.conns = append(f.conns, p.conns...); len(f.conns) > 2*maxAudited {
		f.earliest()
	}
	check(saturated(&f.groupsLost, p.groupsLost))
	check(saturated(&f.auditLost, p.auditLost))
	check(saturated(&f.levelLost, p.levelLost))
	check(saturated(&f.unlisted, p.unlisted))
	check(saturated(&f.several, p.several))
	f.groupsMost = max(f.groupsMost, p.groupsMost)
	f.flowsLost = f.flowsLost || p.flowsLost
	f.mem.scarce = f.mem.scarce || p.scarce
}

// group adds a group.
func (f *fold) group(g *group) (overflow bool) {
	k := joinLabels(g.labels)
	have := f.groups[k]
	if have == nil {
		isOther := len(g.labels) > 0 && !slices.ContainsFunc(g.labels, func(l string) bool { return l != otherName })
		if len(f.order) >= f.most && !isOther {
			overflow = saturated(&f.groupsLost, g.Count)
			f.groupsMost = max(f.groupsMost, f.most)
			labels := slices.Repeat([]string{otherName}, len(g.labels))
			if k = joinLabels(labels); f.groups[k] == nil {
				f.insert(k, &group{labels: labels, inline: make([]Inline, len(f.inline))})
			}
			return f.groups[k].merge(g, &f.mem) || overflow
		}
		f.insert(k, g)
		return false
	}
	return have.merge(g, &f.mem)
}

func (f *fold) insert(key string, g *group) {
	f.groups[key] = g
	f.order = append(f.order, g)
}

// slowest keeps as many of the slowest as are listed, the slowest first, of setup and of the others.
func (f *fold) slowest() {
	slices.SortStableFunc(f.slow, func(a, b *Slow) int { return a.compare(b) })
	setup, others := 0, 0
	f.slow = slices.DeleteFunc(f.slow, func(x *Slow) bool {
		n := &others
		if x.Setup() {
			n = &setup
		}
		*n++
		return *n > f.top
	})
}

// earliest keeps as many of the connections as are listed: those with the lowest numbers.
func (f *fold) earliest() {
	slices.SortStableFunc(f.conns, func(a, b Connection) int { return cmp.Compare(a.Connection, b.Connection) })
	if n := len(f.conns) - maxAudited; n > 0 {
		f.overflow = saturated(&f.auditLost, uint64(n)) || f.overflow
		clear(f.conns[maxAudited:])
		f.conns = f.conns[:maxAudited]
	}
}

// report makes the report. The fold must not be used afterwards.
func (f *fold) report(src *source) *Report {
	notes := src.finish()
	rep := &Report{
		Account: src.account(),
		Schema:  Schema, Inputs: src.inputs, Filter: f.filter, By: []string{},
		Start: moment(src.packets, src.first), End: moment(src.packets, src.last), Span: spanOf(src.first, src.last),
		Packets: src.packets, Bytes: src.bytes,
		Notes: []string{},
	}
	for _, k := range f.by {
		rep.By = append(rep.By, k.String())
	}
	rep.groups(f)
	rep.series(f)
	f.earliest()
	rep.Connections = append([]Connection{}, f.conns...)
	rep.troubles(f)
	f.slowest()
	rep.Slowest = append([]*Slow{}, f.slow[:min(len(f.slow), f.top)]...)
	rep.working = slices.DeleteFunc(f.slow, (*Slow).Setup)
	rep.note(f)
	rep.Notes = append(rep.Notes, notes...)
	return rep
}

func utc(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// groups builds the groups, and the group of all transactions.
func (rep *Report) groups(f *fold) {
	rep.Groups = []*Group{}
	slices.SortFunc(f.order, func(a, b *group) int { return slices.Compare(a.labels, b.labels) })
	for _, g := range f.order {
		rep.Groups = append(rep.Groups, g.model())
	}
	all := &Group{Key: []string{}, Counts: Counts{Statuses: map[string]uint64{}}, Inline: make([]Inline, len(f.inline)), Latency: &Distribution{}}
	for i, t := range f.inline {
		all.Inline[i].Threshold = t
		for _, g := range rep.Groups {
			g.Inline[i].Threshold = t
		}
	}
	all.merge(rep.Groups...)
	rep.All = all
	for _, g := range append(rep.Groups, all) {
		g.finish(rep.Span)
	}
	slices.SortStableFunc(rep.Groups, func(a, b *Group) int {
		return cmp.Or(
			cmp.Compare(a.size, b.size),
			cmp.Compare(b.Latency.Sum, a.Latency.Sum),
			cmp.Compare(b.Count, a.Count),
			slices.Compare(a.Key, b.Key),
		)
	})
}

// series puts transactions and events on one time axis.
func (rep *Report) series(f *fold) {
	s := &f.series
	asked := newSpans(f.interval)
	rep.Series.Slots = []Slot{}
	if !s.started {
		rep.Series.Interval = asked.interval
		return
	}
	// All three start their intervals at multiples of the interval length; the longest length is a multiple
	// of the others.
	for s.interval < max(f.again.interval, f.events.interval) {
		s.grow()
	}
	rep.Series.Interval = s.interval
	rep.Series.Coarser = !asked.auto && s.interval != asked.interval
	for i := range s.slots {
		x := &s.slots[i]
		d := x.latency.distribution()
		mean := x.area / float64(s.interval)
		rep.Series.Slots = append(rep.Series.Slots, Slot{
			Start: utc((s.first + int64(i)) * s.interval), Calls: x.calls, Errors: x.errors, Bytes: x.bytes, RDMABytes: x.data,
			Timed: d.Count, Mean: d.Mean, P50: d.P50, P99: d.P99, Max: d.Max,
			InFlight: mean, MostFlight: max(x.most, int(min(math.Round(mean), math.MaxInt32))), CreditsUsed: x.creditsUsed, Granted: x.granted,
			Retransmits: x.retransmits, Events: map[string]uint64{}, latency: d, ran: x.ran,
		})
		rep.Series.Slots[i].describe(f.ran)
	}
	for _, c := range []*counts{&f.again, &f.events} {
		for i := range c.slots {
			at := floorDiv((c.first+int64(i))*c.interval, s.interval) - s.first
			for k, n := range c.slots[i] {
				if n == 0 {
					continue
				}
				if at = min(max(at, 0), int64(len(rep.Series.Slots))-1); at >= 0 {
					rep.Series.Slots[at].Events[TroubleKind(k).String()] += uint64(n)
				}
			}
		}
	}
}

// troubles compares affected transactions with unaffected ones of the same groups.
func (rep *Report) troubles(f *fold) {
	rep.Troubles = []Trouble{}
	for k := range TroubleKind(numTroubles) {
		t := &f.troubles[k]
		x := Trouble{
			Kind: k.String(), Events: f.kinds[k], Transactions: t.transactions, Unfinished: t.unfinished, XIDs: t.xids,
		}
		switch k {
		case Retransmit:
			f.overflow = saturated(&x.Events, f.retransmits) || f.overflow
			x.Events = max(x.Events, t.packets)
		case Reconnect, RepeatedCall, RepeatedReply:
			x.Events = t.transactions
		}
		if x.Events == 0 && x.Transactions == 0 {
			continue
		}
		if x.XIDs == nil {
			x.XIDs = []TroubleXID{}
		}
		for i := range x.XIDs {
			x.XIDs[i].XIDHex = units.XID(x.XIDs[i].XID)
		}
		var sum, expected float64
		for _, g := range f.order {
			if g.touched == nil || g.clean.count == 0 {
				continue
			}
			n := g.touched[k].count
			f.overflow = saturated(&x.Compared, n) || f.overflow
			sum += g.touched[k].sum
			expected += float64(n) * g.clean.sum / float64(g.clean.count)
		}
		if x.Compared > 0 {
			x.Mean = clampFloat(sum / float64(x.Compared))
			x.Others = clampFloat(expected / float64(x.Compared))
		}
		rep.Troubles = append(rep.Troubles, x)
	}
}

// note says which limits were reached.
func (rep *Report) note(f *fold) {
	add := func(format string, args ...any) { rep.Notes = append(rep.Notes, fmt.Sprintf(format, args...)) }
	if f.groupsLost > 0 {
		add("more than %d groups: %d transactions are in the group %q", f.groupsMost, f.groupsLost, otherName)
	}
	if f.several > 0 {
		apart := ""
		if !slices.Contains(f.by, ByTunnel) {
			apart = fmt.Sprintf(": --by tunnel,%s tells apart those whose outermost wrappings differ", strings.Join(rep.By, ","))
		}
		add("in %s, several networks with equal addresses are added up%s", units.Plural(f.several, "group"), apart)
	}
	if f.flowsLost {
		add("more than %d connections: calls in flight are not known of the others", maxConnections)
	}
	if f.auditLost > 0 {
		add("more than %d connections: %d are not listed", maxAudited, f.auditLost)
	}
	if f.levelLost > 0 {
		add("more than %d calls and Reads in flight: their number is not exact", maxEvents)
	}
	if f.mem.scarce {
		add("memory for histograms is short: some percentiles are up to 6 %% too high; see \"precision\"")
	}
	if rep.Series.Coarser {
		add("more than %d intervals of the length that was asked for: they are %v long", maxSlots, time.Duration(rep.Series.Interval))
	}
	if n := rep.untimed(); n > 0 && len(rep.Series.Slots) > 0 {
		add("of the packets seen again, %d are not in the time series: no transaction lists them", n)
	}
	if f.unlisted > 0 {
		add("transactions list their first 256 troubles: of %d with more, some kinds may be missing", f.unlisted)
	}
	if n := rep.All.OddClock; n > 0 {
		add("%d transactions have a reply from before their call: the clock of the capture went backwards", n)
	}
	if n := rep.All.Undivided; n > 0 {
		add("of %s the capture lacks chunk lists, or RDMA Reads or Writes: %s of latency cannot be divided into phases",
			units.Plural(n, "transaction"), units.Duration(int64(min(rep.All.UndividedTime, math.MaxInt64))))
	}
	if f.overflow {
		add("some sums do not fit into 64 bits: they are the largest numbers that do")
	}
}

// untimed is how many packets that were seen again are in no interval.
func (rep *Report) untimed() (n uint64) {
	for i := range rep.Troubles {
		if t := &rep.Troubles[i]; t.Kind == Retransmit.String() {
			n = t.Events
		}
	}
	for i := range rep.Series.Slots {
		n -= min(n, rep.Series.Slots[i].Events[Retransmit.String()])
	}
	return n
}

// compare orders slow transactions, the slowest first; of equal ones, the one with the lower packet number.
func (s *Slow) compare(o *Slow) int {
	return cmp.Or(
		cmp.Compare(o.Total, s.Total), cmp.Compare(s.number, o.number), s.Time.Compare(o.Time),
		cmp.Compare(s.Connection, o.Connection), cmp.Compare(s.XID, o.XID), strings.Compare(s.Operation, o.Operation),
	)
}

// compare orders transactions by their beginning.
func (x *TroubleXID) compare(o *TroubleXID) int {
	return cmp.Or(cmp.Compare(x.time, o.time), cmp.Compare(x.Frame, o.Frame), cmp.Compare(x.Connection, o.Connection), cmp.Compare(x.XID, o.XID))
}
