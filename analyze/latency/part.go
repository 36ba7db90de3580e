package latency

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"
)

// part is what a tap saw of one connection, or of several that it did not tell apart.
type part struct {
	groups []*group // without two of the same labels
	order  []*group // as Slot.ran counts them; not saved

	series series // settled
	again  counts // troubles of transactions over time
	events counts // those of connections

	kinds         [numTroubles]uint64 // events of connections
	retransmitted uint64              // packets that connections saw again
	troubles      [numTroubles]trouble

	slow  []*Slow      // in any order
	conns []Connection // in the order of their numbers

	// What exceeded limits.
	groupsLost uint64 // transactions in "other"
	groupsMost int    // limit of groups
	unlisted   uint64 // transactions with more kinds of trouble than they list
	auditLost  uint64 // connections that are not in conns
	levelLost  uint64 // ends of calls and Reads that found no room
	several    uint64 // groups that add up what hosts of several networks did whose addresses are equal
	flowsLost  bool
	scarce     bool // memory was scarce: histograms lost digits
}

// part is what a Recorder found. The Recorder must not be used afterwards.
func (r *Recorder) part() *part {
	p := &part{
		order: r.order, series: r.series, again: r.again, events: r.wire.events, kinds: r.wire.kinds, troubles: r.troubles, slow: append(r.slow.heap, r.setup.heap...),
		groupsLost: r.groupsLost, groupsMost: r.maxGroups, unlisted: r.unlisted, auditLost: r.wire.lost, flowsLost: r.flowsLost,
		retransmitted: r.wire.retransmitted,
	}
	byLabels := make(map[string]*group)
	for _, g := range r.order {
		g.settle(&r.mem)
		if g.handle != nil && r.names != nil {
			// The name became known later.
			if path := r.names.At(g.server).Path(g.handle); path != "" {
				g.labels[g.filePart] = string(clip([]byte(path)))
			}
		}
		k := joinLabels(g.labels)
		if have := byLabels[k]; have != nil {
			if have.tenant != g.tenant && !have.several {
				have.several = true
				p.several++
			}
			have.merge(g, &r.mem)
			continue
		}
		byLabels[k] = g
		p.groups = append(p.groups, g)
	}
	for _, f := range r.flows {
		for i := range f.calls {
			f.calls[i].finish(&r.events)
			f.reads[i].finish(&r.events)
			p.levelLost += f.calls[i].lost + f.reads[i].lost
		}
	}
	p.levelLost += r.all.lost
	p.scarce = r.mem.scarce
	p.series.settle()
	sort.Slice(r.wire.closed, func(i, j int) bool { return r.wire.closed[i].ID < r.wire.closed[j].ID })
	for i := range r.wire.closed {
		c := &r.wire.closed[i]
		p.retransmitted += c.retransmitted()
		if f := r.flows[c.ID]; f != nil || c.listed() {
			p.conns = append(p.conns, connectionModel(&c.Connection, c.client, f))
		}
	}
	return p
}

// listed reports whether a connection without transactions is in the report.
func (c *ended) listed() bool { return isRDMA(c.Fabric) || c.Sent[0].Sends+c.Sent[1].Sends > 0 }

func (c *ended) retransmitted() uint64 { return c.Sent[0].Retransmitted + c.Sent[1].Retransmitted }

func joinLabels(labels []string) string {
	var b []byte
	for _, l := range labels {
		b = append(b, l...)
		b = append(b, 0)
	}
	return string(b)
}

// merge moves what o has to g.
func (g *group) merge(o *group, m *memory) (overflow bool) {
	add := func(bad bool) { overflow = overflow || bad }
	g.settle(m)
	o.settle(m)
	add(g.Counts.merge(&o.Counts))
	add(g.total.join(&o.total, m))
	for i := range g.phases {
		add(g.phases[i].join(&o.phases[i], m))
	}
	add(g.chunks.merge(&o.chunks))
	for i := range o.inline {
		add(g.inline[i].merge(&o.inline[i]))
	}
	if o.lost != nil {
		if g.lost == nil {
			g.lost = new(lost)
		}
		add(g.lost.merge(o.lost))
	}
	add(g.clean.merge(&o.clean))
	if o.touched != nil {
		if g.touched == nil {
			g.touched = new([numTroubles]touched)
		}
		for k := range o.touched {
			add(g.touched[k].merge(&o.touched[k]))
		}
	}
	return overflow
}

func (t *touched) merge(o *touched) (overflow bool) {
	t.sum += o.sum
	return saturated(&t.count, o.count)
}

// merge adds what another group lost.
func (l *lost) merge(o *lost) (overflow bool) {
	n, times := l.fields()
	on, otimes := o.fields()
	for i := range n {
		overflow = saturated(n[i], *on[i]) || overflow
	}
	for i := range times {
		sum := saturate(*times[i], *otimes[i])
		overflow = overflow || sum == math.MaxInt64
		*times[i] = sum
	}
	return overflow
}

// fields are all counts and times of l.
func (l *lost) fields() (counts []*uint64, times []*int64) {
	counts = []*uint64{&l.n, &l.credit.n, &l.slot.n}
	times = []*int64{&l.time, &l.credit.time, &l.slot.time}
	for ph := range l.sums {
		for c := range l.sums[ph] {
			times = append(times, &l.sums[ph][c])
		}
	}
	for c := range l.touched {
		counts = append(counts, &l.touched[c])
	}
	return counts, times
}

// maxSamples is how many values a distribution may have: that of all groups must not overflow.
const maxSamples = 1 << 50

// join moves the values of o to d. If there are too many, o is left out.
func (d *dist) join(o *dist, m *memory) (overflow bool) {
	if d.count > maxSamples-min(o.count, maxSamples) {
		return true
	}
	d.merge(o, m)
	return false
}

// saturated adds n to v, and reports whether the sum has more than 64 bits: it is the largest number then.
func saturated(v *uint64, n uint64) bool {
	sum, carry := bits.Add64(*v, n, 0)
	if carry != 0 {
		*v = math.MaxUint64
		return true
	}
	*v = sum
	return false
}

// saturatedAll adds numbers pairwise.
func saturatedAll(v, n []*uint64) (overflow bool) {
	for i := range v {
		overflow = saturated(v[i], *n[i]) || overflow
	}
	return overflow
}

// grow makes the intervals of a series longer, once.
func (s *series) grow() {
	f := s.factor()
	last := floorDiv(s.first+int64(s.n)-1, f)
	s.coarsen(f)
	s.first = floorDiv(s.first, f)
	s.n = int(last-s.first) + 1
	s.interval *= f
}

// merge moves what o has to s. Both began with the same length of intervals. The length afterwards is the least with
// which everything fits, whatever was merged first.
func (s *series) merge(o *series, m *memory) (overflow bool) {
	if !o.started {
		return false
	}
	if !s.started {
		mem := s.mem
		*s, *o = *o, series{}
		s.mem, s.from, s.to = mem, 0, 0
		return false
	}
	o.mem = m
	lo, hi := align(&s.spans, &o.spans, s.grow, o.grow)
	s.slots = spread(s.slots, s.first, lo, hi, slot{latency: dist{small: 1}})
	for i := range o.slots {
		overflow = s.slots[o.first+int64(i)-lo].merge(&o.slots[i], m) || overflow
	}
	s.first, s.n, s.from, s.to = lo, len(s.slots), 0, 0
	return overflow
}

// align makes two series have the same interval, so that both fit into one. It returns the first and the last
// interval of both.
func align(a, b *spans, growA, growB func()) (lo, hi int64) {
	for {
		switch lo, hi = min(a.first, b.first), max(a.first+int64(a.n), b.first+int64(b.n))-1; {
		case a.interval < b.interval:
			growA()
		case b.interval < a.interval:
			growB()
		case hi-lo < int64(a.most):
			return lo, hi
		default:
			growA()
			growB()
		}
	}
}

// spread extends slots, the first of which is interval first, to the intervals from lo to hi.
func spread[T any](slots []T, first, lo, hi int64, empty T) []T {
	out := make([]T, hi-lo+1)
	for i := range out {
		out[i] = empty
	}
	copy(out[first-lo:], slots)
	return out
}

// grow makes the intervals longer, once.
func (c *counts) grow() {
	f := c.factor()
	last := floorDiv(c.first+int64(c.n)-1, f)
	c.coarsen(f)
	c.first = floorDiv(c.first, f)
	c.n = int(last-c.first) + 1
	c.interval *= f
}

// merge adds what o has to c, like series.merge.
func (c *counts) merge(o *counts) {
	if !o.started {
		return
	}
	if !c.started {
		*c, *o = *o, counts{}
		return
	}
	lo, hi := align(&c.spans, &o.spans, c.grow, o.grow)
	c.slots = spread(c.slots, c.first, lo, hi, [numTroubles]uint32{})
	for i := range o.slots {
		x := &c.slots[o.first+int64(i)-lo]
		for k, n := range o.slots[i] {
			x[k] += min(n, math.MaxUint32-x[k])
		}
	}
	c.first, c.n = lo, len(c.slots)
}

// merge adds what was seen of another connection.
func (t *trouble) merge(o *trouble) (overflow bool) {
	overflow = saturated(&t.transactions, o.transactions)
	overflow = saturated(&t.packets, o.packets) || overflow
	overflow = saturated(&t.unfinished, o.unfinished) || overflow
	t.xids = append(t.xids, o.xids...)
	slices.SortStableFunc(t.xids, func(a, b TroubleXID) int { return a.compare(&b) })
	t.xids = t.xids[:min(len(t.xids), maxXIDs)]
	return overflow
}

// renumber replaces the numbers of connections; those that are not in numbers become 0.
func (p *part) renumber(by []Key, numbers map[int]int) {
	at := slices.Index(by, ByConnection)
	for _, g := range p.groups {
		if at < 0 || g.labels[at] == otherName {
			continue
		}
		id, _ := strconv.Atoi(g.labels[at])
		if n, ok := numbers[id]; ok {
			g.labels[at] = strconv.Itoa(n)
		} else {
			g.labels[at] = otherName
		}
	}
	for _, x := range p.slow {
		x.Connection = numbers[x.Connection]
	}
	for k := range p.troubles {
		for i := range p.troubles[k].xids {
			x := &p.troubles[k].xids[i]
			x.Connection = numbers[x.Connection]
		}
	}
	for i := range p.conns {
		p.conns[i].Connection = numbers[p.conns[i].Connection]
	}
}
