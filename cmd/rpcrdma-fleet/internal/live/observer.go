package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
)

// Observer makes summaries of the snapshots of one model, which must be taken in
// order.
type Observer struct {
	Tap, Agent string

	number uint64
	health monitor.Health
	lost   uint64
}

// Interval is the summary of the latest interval of a snapshot.
func (o *Observer) Interval(s *monitor.Snapshot) *Summary {
	o.number++
	n := &s.Now
	x := &Summary{
		Schema: Schema, Tap: o.Tap, Agent: o.Agent, Number: o.number,
		Start: max(n.Start, 0), Span: max(int64(s.NowSpan), 1),
		Packets: s.Packets, Wire: s.Wire,
		Counts: Counts{n.Count, n.Errors, n.Bytes, n.Data, bounded(n.Time), bounded(n.Max)},
		P50:    bounded(n.P50), P99: bounded(n.P99),
		Open: OpenCalls{s.Open, s.Stuck, bounded(s.Oldest)},
		Heat: []HeatBand{}, Over: []string{},
	}
	if s.HasDrops {
		x.Lost = since(&o.lost, s.Drops)
	}
	for band, count := range n.Heat {
		if count > 0 {
			x.Heat = append(x.Heat, HeatBand{band, count})
		}
	}
	for _, a := range s.Over {
		x.Over = append(x.Over, a.String())
	}
	o.fabric(x, s)
	x.operations(s)
	x.connections(s)
	x.Clients, x.Rest.Clients = usages(s.Clients, s.ClientsNow)
	x.Files, x.Rest.Files = usages(s.Files, s.FilesNow)
	x.slowest(s)
	return x
}

// Nothing is the summary of an interval in which nothing was seen.
func (o *Observer) Nothing(start int64, span time.Duration) *Summary {
	o.number++
	x := &Summary{Schema: Schema, Tap: o.Tap, Agent: o.Agent, Number: o.number, Start: max(start, 0), Span: max(int64(span), 1)}
	x.Lists()
	return x
}

// since is how much a counter has grown. A connection that is forgotten takes its
// counts with it; then nothing is known of the interval, and the count begins anew.
func since(before *uint64, now uint64) uint64 {
	d := now - min(*before, now)
	*before = now
	return d
}

func (o *Observer) fabric(x *Summary, s *monitor.Snapshot) {
	h, b := &s.Health, &o.health
	x.RDMA = Fabric{
		Retransmits: since(&b.Retransmits, h.Retransmits), NAKs: since(&b.NAKs, h.NAKs), RNRs: since(&b.RNRs, h.RNRs),
		CNPs: since(&b.CNPs, h.CNPs), Marked: since(&b.ECN, h.ECN), Missing: since(&b.Gaps, h.Gaps), BadCRC: since(&b.BadCRC, h.BadCRC),
	}
	for i := range s.Fabric {
		x.RDMA.Stalled = bounded(x.RDMA.Stalled + s.Fabric[i].Now.Stalled())
	}
}

func (x *Summary) operations(s *monitor.Snapshot) {
	x.Ops = []Operation{}
	for i := range s.Ops {
		o := &s.Ops[i]
		if o.Now.Count == 0 {
			continue
		}
		x.Ops = append(x.Ops, Operation{
			cut(o.Name), Counts{o.Now.Count, o.Errors, o.Now.Bytes, o.Data, bounded(o.Time), bounded(o.Max)}, bounded(o.Now.P50), bounded(o.Now.P99),
		})
	}
	x.Ops, x.Rest.Operations = most(x.Ops, maxOperations, func(o *Operation) int64 { return o.Time })
}

func (x *Summary) connections(s *monitor.Snapshot) {
	shared := make(map[string]bool)
	for i := range s.Clients {
		if u := &s.Clients[i]; u.Shared {
			shared[u.Name] = true
		}
	}
	x.Conn = []Connection{}
	for i := range s.Connections {
		c := &s.Connections[i]
		if c.Now.Count == 0 && c.Stuck == 0 {
			continue
		}
		client := c.Client.Address + " " + c.Client.Endpoint
		if shared[c.Client.Address] {
			client += " in " + text.NetworkName(c.Tunnel)
		}
		x.Conn = append(x.Conn, Connection{
			Fabric: cut(c.Fabric), Client: cut(client), Server: cut(c.Server.Address + " " + c.Server.Endpoint),
			State: cut(c.State), Counts: counts(&c.Now), Stuck: c.Stuck,
		})
	}
	x.Conn, x.Rest.Connections = most(x.Conn, maxConnections, func(c *Connection) int64 { return int64(min(c.Bytes, 1<<62)) + int64(c.Stuck)<<40 })
}

// usages lists the files or clients with the most time, of those that the interval has transactions of, and counts the others.
func usages(list []monitor.Usage, all int) ([]Usage, int) {
	out := []Usage{}
	for i := range list {
		u := &list[i]
		if u.Now.Count == 0 {
			continue
		}
		name := u.Name
		if u.Shared {
			name += " in " + text.NetworkName(u.Tunnel)
		}
		out = append(out, Usage{cut(name), counts(&u.Now)})
	}
	out, _ = most(out, maxUsages, func(u *Usage) int64 { return u.Time })
	return out, all - len(out)
}

// slowest lists what a person would look at: stuck calls, then the slowest that ended.
func (x *Summary) slowest(s *monitor.Snapshot) {
	x.Slow = []Slow{}
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Age < 0 || r.Open && !r.Stuck || !r.Open && r.Ended < x.Start {
			continue
		}
		x.Slow = append(x.Slow, Slow{
			XID: r.XID, Client: cut(r.Client), Server: cut(r.Server), Operation: cut(r.Operation), Subject: cut(r.Subject), Chunks: cut(r.Chunks),
			Start: r.Start, Latency: bounded(r.Age), Open: r.Open, Status: cut(r.Status),
		})
	}
	x.Slow, _ = most(x.Slow, maxSlowest, func(t *Slow) int64 { return t.Latency })
}

// most keeps the n elements with the largest values, and counts the others.
func most[T any](list []T, n int, value func(*T) int64) ([]T, int) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(value(&b), value(&a)) })
	if len(list) <= n {
		return list, 0
	}
	return list[:n:n], len(list) - n
}

func counts(t *monitor.Tally) Counts {
	return Counts{t.Count, t.Errors, t.Bytes, t.Data, bounded(t.Time), bounded(t.Max)}
}

func bounded(t int64) int64 { return min(max(t, 0), maxTime) }
