package latency

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Source describes the capture of a Report.
type Source struct {
	Inputs  []string
	Filter  string
	Packets uint64
	Bytes   uint64
	// First and Last are the first and the last packet.
	First, Last rdma.Ref
	// Account says what became of every packet; nil if unknown.
	Account *decode.Account
}

// Report builds the report. The Recorder must not be used afterwards.
func (r *Recorder) Report(src Source) *Report {
	var total *account.Account
	if src.Account != nil {
		total = account.New(src.Account)
	}
	rep := &Report{
		Account: total,
		Schema:  Schema, Inputs: src.Inputs, Filter: src.Filter, By: []string{},
		Start: utc(src.First.Time), End: utc(src.Last.Time), Span: max(src.Last.Time-src.First.Time, 0),
		Packets: src.Packets, Bytes: src.Bytes,
		Notes: []string{},
	}
	for _, k := range r.opt.By {
		rep.By = append(rep.By, k.String())
	}
	rep.groups(r)
	for _, f := range r.flows {
		for i := range f.calls {
			f.calls[i].finish(&r.events)
			f.reads[i].finish(&r.events)
		}
	}
	r.all.finish(&r.events)
	rep.series(r)
	rep.connections(r)
	rep.troubles(r)
	rep.Slowest = r.slow.list()
	rep.note(r)
	return rep
}

func utc(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// groups builds the groups, and the group of all transactions.
func (rep *Report) groups(r *Recorder) {
	byKey := make(map[string]*Group)
	for _, g := range r.order {
		if g.handle != nil && r.names != nil {
			// The name became known later.
			if path := r.names.Path(g.handle); path != "" {
				g.labels[g.filePart] = string(clip([]byte(path)))
			}
		}
		x := g.model()
		k := strings.Join(x.Key, "\x00")
		if have := byKey[k]; have != nil {
			have.merge(x)
			continue
		}
		byKey[k] = x
		rep.Groups = append(rep.Groups, x)
	}
	all := &Group{Key: []string{}, Counts: Counts{Statuses: map[string]uint64{}}, Inline: make([]Inline, len(r.opt.Inline)), Latency: &Distribution{}}
	for i, t := range r.opt.Inline {
		all.Inline[i].Threshold = t
		for _, g := range rep.Groups {
			g.Inline[i].Threshold = t
		}
	}
	all.merge(rep.Groups...)
	rep.All = all
	seconds := float64(rep.Span) / 1e9
	for _, g := range append(rep.Groups, all) {
		g.finish(seconds)
	}
	slices.SortStableFunc(rep.Groups, func(a, b *Group) int {
		return cmp.Or(
			cmp.Compare(a.size, b.size),
			cmp.Compare(b.Latency.Sum, a.Latency.Sum),
			cmp.Compare(b.Count, a.Count),
			slices.Compare(a.Key, b.Key),
		)
	})
	if rep.Groups == nil {
		rep.Groups = []*Group{}
	}
}

// model converts a group to its model.
func (g *group) model() *Group {
	x := &Group{
		Key: g.labels, Counts: g.Counts, Latency: g.total.distribution(), Chunks: g.chunks, Inline: g.inline, Lost: g.lost.model(), size: g.size,
	}
	if x.Statuses == nil {
		x.Statuses = map[string]uint64{}
	}
	g.settle()
	for i := range g.phases {
		x.phases[i] = &Share{Distribution: g.phases[i].distribution()}
	}
	return x
}

// merge adds what other groups counted.
func (x *Group) merge(others ...*Group) {
	var totals []*Distribution
	var phases [transaction.NumPhases][]*Distribution
	for _, o := range others {
		x.Counts.merge(&o.Counts)
		x.Chunks.merge(&o.Chunks)
		x.Lost = x.Lost.merge(o.Lost)
		for i := range o.Inline {
			x.Inline[i].merge(&o.Inline[i])
		}
		totals = append(totals, o.Latency)
		for p := range phases {
			phases[p] = append(phases[p], o.Phase(transaction.Phase(p)).Distribution)
		}
	}
	x.Latency.merge(totals...)
	for p := range phases {
		if x.phases[p] == nil {
			x.phases[p] = &Share{Distribution: &Distribution{}}
		}
		x.phases[p].merge(phases[p]...)
	}
}

// finish computes the values that follow from the sums.
func (x *Group) finish(seconds float64) {
	if seconds > 0 {
		x.Rate = float64(x.Count) / seconds
		x.ByteRate = (float64(x.CallBytes) + float64(x.ReplyBytes)) / seconds
	}
	x.Lost.finish()
	x.Histogram = x.Latency.Histogram()
	if x.Histogram == nil {
		x.Histogram = []Bin{}
	}
	x.Phases = make(map[string]*Share, transaction.NumPhases)
	for p, s := range x.phases {
		if x.Latency.Sum > 0 {
			s.Share = float64(s.Sum) / float64(x.Latency.Sum)
		}
		x.Phases[transaction.Phase(p).String()] = s
	}
}

// series puts transactions and events on one time axis.
func (rep *Report) series(r *Recorder) {
	s := &r.series
	asked := newSpans(r.opt.Interval)
	rep.Series.Slots = []Slot{}
	if !s.started {
		rep.Series.Interval = asked.interval
		return
	}
	// All three start their intervals at multiples of the interval length; the longest length is a multiple
	// of the others.
	for s.interval < max(r.again.interval, r.wire.events.interval) {
		f := s.factor()
		last := floorDiv(s.first+int64(s.n)-1, f)
		s.coarsen(f)
		s.first = floorDiv(s.first, f)
		s.n = int(last-s.first) + 1
		s.interval *= f
	}
	s.settle()
	rep.Series.Interval = s.interval
	rep.Series.Coarser = !asked.auto && s.interval != asked.interval
	for i := range s.slots {
		x := &s.slots[i]
		d := x.latency.distribution()
		mean := x.area / float64(s.interval)
		rep.Series.Slots = append(rep.Series.Slots, Slot{
			Start: utc((s.first + int64(i)) * s.interval), Calls: x.calls, Errors: x.errors, Bytes: x.bytes, RDMABytes: x.data,
			Timed: d.Count, Mean: d.Mean, P50: d.P50, P99: d.P99, Max: d.Max,
			InFlight: mean, MostFlight: max(x.most, int(math.Round(mean))), CreditsUsed: x.creditsUsed, Granted: x.granted,
			Retransmits: x.retransmits, Events: map[string]uint64{}, latency: d, ran: x.ran,
		})
		rep.Series.Slots[i].describe(r.order)
	}
	for _, c := range []*counts{&r.again, &r.wire.events} {
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

// connections collects how connections were set up and what was in flight on them.
func (rep *Report) connections(r *Recorder) {
	rep.Connections = []Connection{}
	sort.Slice(r.wire.closed, func(i, j int) bool { return r.wire.closed[i].ID < r.wire.closed[j].ID })
	for i := range r.wire.closed {
		c := &r.wire.closed[i]
		f := r.flows[c.ID]
		if f == nil && !isRDMA(c.Fabric) && c.Sent[0].Sends+c.Sent[1].Sends == 0 {
			continue
		}
		rep.Connections = append(rep.Connections, connectionModel(&c.Connection, c.client, f))
	}
}

func connectionModel(c *rdma.Connection, client rdma.Side, f *flow) Connection {
	x := Connection{
		Connection: c.ID, Fabric: c.Fabric.String(), First: utc(c.First.Time), Last: utc(c.Last.Time),
		Client: endpointModel(c, client), Server: endpointModel(c, client.Other()),
		State: c.State.String(), Ending: c.Terminated, MTU: c.MTU, Depth: -1,
	}
	if c.Terminated == "" && c.State == rdma.Closed {
		x.State = "open"
	}
	a, b := &c.Setup[client], &c.Setup[client.Other()]
	if isRDMA(c.Fabric) && a.Seen && b.Seen {
		x.InlineCall = rdma.InlineThreshold(&a.Private, &b.Private)
		x.InlineReply = rdma.InlineThreshold(&b.Private, &a.Private)
		x.Depth = int(min(b.InitiatorDepth, a.ResponderDepth))
	}
	if f != nil {
		x.Forward, x.Backward = f.model(0), f.model(1)
		x.Reads = readsModel(&f.reads[client.Other()], x.Depth)
	}
	x.Remarks = audit(c, client, &x)
	return x
}

func endpointModel(c *rdma.Connection, side rdma.Side) Endpoint {
	n, s := &c.Sent[side], &c.Setup[side]
	e := Endpoint{
		Address: link.AddrString(c.Ends[side].Addr), Endpoint: c.Ends[side].QPN,
		Packets: n.Packets, Bytes: n.Bytes, Retransmits: n.Retransmitted, NAKs: n.NAKs, RNRs: n.RNRs,
		CNPs: n.CNPs, ECN: n.ECN, Gaps: n.Gaps, BadCRC: n.BadCRC,
	}
	if e.Endpoint == 0 {
		e.Endpoint = uint32(c.Ends[side].Port)
	}
	if s.Seen && isRDMA(c.Fabric) {
		e.Setup = &SetupInfo{
			ResponderDepth: s.ResponderDepth, InitiatorDepth: s.InitiatorDepth, RetryCount: s.RetryCount,
			RNRRetryCount: s.RNRRetryCount, AckTimeout: ackTimeout(s.AckTimeout), MPARevision: s.MPARevision,
			Markers: s.Markers, CRC: s.CRC, Private: s.Private.Present, SendSize: s.Private.SendSize,
			ReceiveSize: s.Private.ReceiveSize, RemoteInvalidate: s.Private.RemoteInvalidate,
		}
	}
	return e
}

func (f *flow) model(way int) *Flow {
	l := &f.calls[way]
	if !l.started && f.unanswered[way] == 0 {
		return nil
	}
	x := &Flow{
		Most: l.most, Levels: l.levels(), Unanswered: f.unanswered[way],
		Requested: f.requested[way].model(), Granted: f.granted[way].model(),
		AtLimit: clampFloat(l.limited), Known: clampFloat(l.known),
	}
	x.Mean, x.Busy = l.mean()
	return x
}

func readsModel(l *level, depth int) *Reads {
	if !l.started {
		return nil
	}
	x := &Reads{Most: l.most, Levels: l.levels()}
	x.Mean, x.Busy = l.mean()
	if depth > 0 {
		x.AtLimit = clampFloat(l.atLeast(depth))
	}
	return x
}

func (l *level) levels() []Level {
	out := []Level{}
	for n, t := range l.time {
		if t > 0 {
			out = append(out, Level{n, clampFloat(t)})
		}
	}
	return out
}

func (c *credits) model() Credits {
	return Credits{Min: c.least, Max: c.most, Last: c.last, Changes: c.changes}
}

func clampFloat(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// troubles compares affected transactions with unaffected ones of the same groups.
func (rep *Report) troubles(r *Recorder) {
	rep.Troubles = []Trouble{}
	for k := range TroubleKind(numTroubles) {
		t := &r.troubles[k]
		x := Trouble{
			Kind: k.String(), Events: r.wire.kinds[k], Transactions: t.transactions, Unfinished: t.unfinished, XIDs: t.xids,
		}
		switch k {
		case Retransmit:
			for i := range r.wire.closed {
				x.Events += r.wire.closed[i].Sent[0].Retransmitted + r.wire.closed[i].Sent[1].Retransmitted
			}
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
		var sum, expected float64
		for _, g := range r.order {
			if g.touched == nil || g.clean.count == 0 {
				continue
			}
			n := g.touched[k].count
			x.Compared += n
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
func (rep *Report) note(r *Recorder) {
	add := func(format string, args ...any) { rep.Notes = append(rep.Notes, fmt.Sprintf(format, args...)) }
	if r.groupsLost > 0 {
		add("more than %d groups: %d transactions are in the group %q", r.maxGroups, r.groupsLost, otherName)
	}
	if r.flowsLost {
		add("more than %d connections: calls in flight are not known of the others", maxConnections)
	}
	if r.wire.lost > 0 {
		add("more than %d connections: %d are not listed", maxAudited, r.wire.lost)
	}
	lost := r.all.lost
	for _, f := range r.flows {
		for i := range f.calls {
			lost += f.calls[i].lost + f.reads[i].lost
		}
	}
	if lost > 0 {
		add("more than %d calls and Reads in flight: their number is not exact", maxEvents)
	}
	if r.mem.scarce {
		add("memory for histograms is short: some percentiles are up to 6 %% too high; see \"precision\"")
	}
	if rep.Series.Coarser {
		add("more than %d intervals of the length that was asked for: they are %v long", maxSlots, time.Duration(rep.Series.Interval))
	}
	if r.unlisted > 0 {
		add("transactions list their first 256 troubles: of %d with more, some are not in the time series, and some kinds may be missing", r.unlisted)
	}
	if n := rep.All.OddClock; n > 0 {
		add("%d transactions have a reply from before their call: the clock of the capture went backwards", n)
	}
}
