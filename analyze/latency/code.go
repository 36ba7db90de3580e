package latency

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Limits of what is read. Nothing that this package saves exceeds them.
const (
	maxParts     = 1 << 14
	maxEnded     = 1 << 15 // connections that Collector.Ended takes out
	maxNetworks  = 1 << 16
	maxText      = 4096
	maxInFlight  = 1 << 40
	maxEncoded   = 1 << 20 // one connection, or one slow transaction, as JSON
	maxStateSlow = maxTop
)

// code codes a dist. most is the number of values that it keeps as they are.
func (d *dist) code(c *state.Coder, small uint8, m *memory) {
	state.Number(c, &d.zeros)
	state.Enum(c, &d.digits, len(magnitudes))
	var values, counts []uint64
	if !c.Reading() {
		last := int64(0)
		d.each(func(low, _ int64, n uint64) {
			values = append(values, uint64(low-last))
			counts = append(counts, n)
			last = low
		})
	}
	n := len(values)
	c.Count(&n, 2, math.MaxInt32)
	if c.Reading() {
		d.small = small
		d.read(c, n, m)
	} else {
		for i := range values {
			state.Number(c, &values[i])
			state.Number(c, &counts[i])
		}
	}
	if d.count == 0 {
		return
	}
	state.Number(c, &d.sumHigh)
	state.Number(c, &d.sum)
	state.Signed(c, &d.least)
	state.Signed(c, &d.longest)
	if c.Reading() && (d.sumHigh >= d.count || d.least < 0 || d.longest < d.least) {
		c.Fail("a distribution contradicts itself")
	}
}

// read reads n values with their counts.
func (d *dist) read(c *state.Coder, n int, m *memory) {
	exact, limit := d.most()
	if d.digits != 0 && d.digits != limit && d.digits != 1 {
		c.Fail("a histogram of %d digits", d.digits)
		return
	}
	if d.count = d.zeros; d.zeros > maxSamples {
		c.Fail("a distribution of too many values")
		return
	}
	magnitude := magnitudes[d.digits]
	d.counts.magnitude = magnitude
	at := int64(0)
	for range n {
		var step, count uint64
		state.Number(c, &step)
		state.Number(c, &count)
		switch {
		case c.Err() != nil:
			return
		case step == 0 || step > uint64(math.MaxInt64-at):
			c.Fail("the values of a distribution are not in order")
			return
		case count == 0 || count > maxSamples-d.count:
			c.Fail("a distribution of no, or too many, equal values")
			return
		}
		at += int64(step)
		d.count += count
		switch {
		case d.digits == 0 && d.count-d.zeros >= uint64(exact):
			c.Fail("a distribution of too many values that are exact")
			return
		case d.digits == 0:
			for range count {
				d.exact = append(d.exact, at)
			}
		case !begins(at, magnitude):
			c.Fail("a histogram has no bucket that begins with %d", at)
			return
		default:
			d.record(at, count, m)
		}
	}
	if d.digits != 0 && n == 0 {
		c.Fail("a histogram without values")
	}
}

// begins reports whether a bucket begins with a value.
func begins(v int64, magnitude uint8) bool {
	least, _ := boundsOf(bucketOf(min(v, maxValue), magnitude), magnitude)
	return v == least
}

// code codes a group.
func (g *group) code(c *state.Coder, t *terms, m *memory) {
	if g.settle(m); c.Reading() {
		g.labels, g.inline, g.filePart, g.apart = make([]string, len(t.by)), make([]Inline, len(t.inline)), -1, true
	}
	for i := range g.labels {
		c.Text(&g.labels[i], maxText)
	}
	state.Number(c, &g.size)
	numbers(c, g.Counts.counters())
	codeMap(c, &g.Statuses, maxStatuses+1)
	numbers(c, g.chunks.counters())
	for i := range g.inline {
		numbers(c, g.inline[i].counters())
	}
	g.total.code(c, 0, m)
	for i := range g.phases {
		g.phases[i].code(c, 0, m)
	}
	has := g.lost != nil
	if c.Flag(&has); has {
		if g.lost == nil {
			g.lost = new(lost)
		}
		counts, times := g.lost.fields()
		numbers(c, counts)
		for _, v := range times {
			state.Number(c, v)
		}
	}
	g.clean.code(c)
	has = g.touched != nil
	if c.Flag(&has); has {
		if g.touched == nil {
			g.touched = new([numTroubles]touched)
		}
		for k := range g.touched {
			g.touched[k].code(c)
		}
	}
}

func (t *touched) code(c *state.Coder) {
	state.Number(c, &t.count)
	if t.count > 0 {
		c.Float(&t.sum)
	}
}

// numbers codes counts. Most are zero.
func numbers(c *state.Coder, list []*uint64) {
	for _, v := range list {
		state.Number(c, v)
	}
}

// codeMap codes counts by name, in the order of the names.
func codeMap(c *state.Coder, m *map[string]uint64, most int) {
	keys := slices.Sorted(maps.Keys(*m))
	n := len(keys)
	c.Count(&n, 2, most)
	if c.Reading() {
		keys = make([]string, n)
	}
	for i := range n {
		k, v := keys[i], (*m)[keys[i]]
		c.Text(&k, maxText)
		state.Number(c, &v)
		if !c.Reading() {
			continue
		}
		if keys[i] = k; i > 0 && keys[i-1] >= k {
			c.Fail("names are not in order")
			return
		}
		if *m == nil {
			*m = make(map[string]uint64)
		}
		(*m)[k] = v
	}
}

// code codes the spans of a series that was collected with an interval.
func (s *spans) code(c *state.Coder, asked time.Duration) {
	if c.Reading() {
		*s = newSpans(asked)
	}
	c.Flag(&s.started)
	if !s.started {
		return
	}
	steps := 0
	for x := newSpans(asked); !c.Reading() && x.interval < s.interval; steps++ {
		x.interval *= x.factor()
	}
	state.Number(c, &steps)
	for ; c.Reading() && steps > 0; steps-- {
		if s.interval > longestInterval/10 {
			c.Fail("intervals of more than %v", time.Duration(s.interval))
			return
		}
		s.interval *= s.factor()
	}
	state.Signed(c, &s.first)
	c.Count(&s.n, 1, s.most)
	if c.Reading() && (s.n == 0 || s.first < math.MinInt64/s.interval+2 || s.first > math.MaxInt64/s.interval-int64(s.most)-2) {
		c.Fail("a series of %d intervals from %d × %v", s.n, s.first, time.Duration(s.interval))
	}
}

func (s *series) code(c *state.Coder, asked time.Duration, m *memory) {
	if s.spans.code(c, asked); c.Err() != nil || !s.started {
		return
	}
	if c.Reading() {
		s.mem, s.slots = m, make([]slot, s.n)
	}
	for i := range s.slots {
		if s.slots[i].code(c, m); c.Err() != nil {
			return
		}
	}
}

// code codes an interval; most of those of a short connection are empty.
func (x *slot) code(c *state.Coder, m *memory) {
	x.latency.small = 1
	some := x.calls > 0 || x.area > 0 || x.most > 0
	if c.Flag(&some); !some {
		return
	}
	numbers(c, x.counters())
	x.latency.code(c, 1, m)
	c.Float(&x.area)
	state.Number(c, &x.most)
	state.Number(c, &x.creditsUsed)
	state.Number(c, &x.granted)
}

func (x *counts) code(c *state.Coder, asked time.Duration) {
	if x.spans.code(c, asked); c.Err() != nil || !x.started {
		return
	}
	if c.Reading() {
		x.slots = make([][numTroubles]uint32, x.n)
	}
	for i := range x.slots {
		some := x.slots[i] != [numTroubles]uint32{}
		if c.Flag(&some); !some {
			continue
		}
		for k := range x.slots[i] {
			state.Number(c, &x.slots[i][k])
		}
	}
}

func (x *TroubleXID) code(c *state.Coder) {
	state.Number(c, &x.XID)
	state.Number(c, &x.Connection)
	state.Number(c, &x.Frame)
	state.Signed(c, &x.time)
}

func (t *trouble) code(c *state.Coder) {
	state.Number(c, &t.transactions)
	state.Number(c, &t.packets)
	state.Number(c, &t.unfinished)
	state.List(c, &t.xids, maxXIDs, func(x *TroubleXID) { x.code(c) })
}

// code codes a slow transaction: its file, whose name need not be text, apart from the rest.
func (s *Slow) code(c *state.Coder) {
	state.Number(c, &s.number)
	c.Text(&s.File, maxText)
	file := s.File
	s.File = ""
	c.JSON(s, maxEncoded)
	s.File = file
	if c.Reading() {
		if s.Phases == nil || s.Troubles == nil || s.Notes == nil {
			c.Fail("a slow transaction is not whole")
		}
		for name := range s.Phases {
			if !slices.Contains(phaseNames, name) {
				c.Fail("a slow transaction has a phase %q", name)
			}
		}
	}
}

// phaseNames are the names of all phases.
var phaseNames = func() (names []string) {
	for ph := range transaction.AllPhases() {
		names = append(names, ph.String())
	}
	return names
}()

// possible reports whether a connection that was read has numbers that can be shown.
func (x *Connection) possible() bool {
	levels := func(most int, list []Level) bool {
		return most >= 0 && most <= maxInFlight && !slices.ContainsFunc(list, func(l Level) bool { return l.N < 0 || l.Time < 0 })
	}
	return (x.Forward == nil || levels(x.Forward.Most, x.Forward.Levels)) && (x.Backward == nil || levels(x.Backward.Most, x.Backward.Levels)) &&
		(x.Reads == nil || levels(x.Reads.Most, x.Reads.Levels)) && x.Remarks != nil
}

// code codes a part.
func (p *part) code(c *state.Coder, t *terms, m *memory) {
	state.List(c, &p.groups, maxGroups+1, func(g **group) {
		if *g == nil {
			*g = new(group)
		}
		(*g).code(c, t, m)
	})
	p.series.code(c, t.interval, m)
	p.again.code(c, t.interval)
	p.events.code(c, t.interval)
	for k := range p.kinds {
		state.Number(c, &p.kinds[k])
		p.troubles[k].code(c)
	}
	state.Number(c, &p.retransmitted)
	state.List(c, &p.slow, 2*min(t.top, maxStateSlow), func(s **Slow) {
		if *s == nil {
			*s = new(Slow)
		}
		(*s).code(c)
	})
	state.List(c, &p.conns, maxAudited, func(x *Connection) {
		if c.JSON(x, maxEncoded); c.Reading() && !x.possible() {
			c.Fail("a connection with impossible numbers")
		}
	})
	numbers(c, []*uint64{&p.groupsLost, &p.unlisted, &p.auditLost, &p.levelLost, &p.several})
	state.Number(c, &p.groupsMost)
	c.Flag(&p.flowsLost)
	c.Flag(&p.scarce)
}

func (t *terms) code(c *state.Coder) {
	state.List(c, &t.by, int(numKeys), func(k *Key) { state.Enum(c, k, int(numKeys)) })
	state.Number(c, &t.interval)
	state.Number(c, &t.top)
	state.List(c, &t.inline, maxThresholds, func(v *uint32) { state.Number(c, v) })
	c.Text(&t.filter, 1<<16)
	if t.by == nil {
		t.by = []Key{}
	}
	if t.top > maxTop {
		c.Fail("%d slow transactions, where at most %d are allowed", t.top, maxTop)
	}
}
