package latency

import (
	"math"

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
	// Backwards are the places where the time goes back.
	Backwards decode.Backwards
	// Account says what became of every packet; nil if unknown.
	Account *decode.Account
}

// Report builds the report. The Recorder must not be used afterwards.
func (r *Recorder) Report(src Source) *Report { return r.State(src).Report() }

// model converts a group, which is settled, to its model.
func (g *group) model() *Group {
	x := &Group{
		Key: g.labels, Counts: g.Counts, Latency: g.total.distribution(), Chunks: g.chunks, Inline: g.inline, Lost: g.lost.model(), size: g.size,
	}
	if x.Statuses == nil {
		x.Statuses = map[string]uint64{}
	}
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
func (x *Group) finish(s Span) {
	x.Rate, x.ByteRate = s.per(float64(x.Count)), s.per(float64(x.CallBytes)+float64(x.ReplyBytes))
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
	if isRDMA(c.Fabric) && c.Declared(0) && c.Declared(1) {
		x.InlineCall = rdma.InlineThreshold(&a.Private, &b.Private)
		x.InlineReply = rdma.InlineThreshold(&b.Private, &a.Private)
	}
	if isRDMA(c.Fabric) && c.Terms() {
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
	if s.Terms() && isRDMA(c.Fabric) {
		e.Setup = &SetupInfo{
			ResponderDepth: s.ResponderDepth, InitiatorDepth: s.InitiatorDepth, RetryCount: s.RetryCount,
			RNRRetryCount: s.RNRRetryCount, AckTimeout: ackTimeout(s.AckTimeout), MPARevision: s.MPARevision,
			Markers: s.Markers, CRC: s.CRC, Private: s.Private.Present, PrivateCut: !c.Declared(side), SendSize: s.Private.SendSize,
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
		LargestCall: f.largest[way][0], LargestReply: f.largest[way][1],
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
