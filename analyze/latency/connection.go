package latency

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// flow is one connection while its transactions arrive. Calls of the client and of the server are followed
// separately, because each direction has its own credits (RFC 8167, section 4.2).
type flow struct {
	calls      [2]level // forward, backward
	reads      [2]level // by the side that starts the Reads
	requested  [2]credits
	granted    [2]credits
	unanswered [2]uint64 // unanswered calls, which do not count as in flight here
	largest    [2][2]int // Sends: calls, replies
}

// credits are the values of one credit field over time.
type credits struct {
	least, most, last uint32
	changes           uint64
	seen              bool
}

func (c *credits) add(v uint32) {
	if !c.seen {
		*c = credits{least: v, most: v, last: v, seen: true}
		return
	}
	if v == c.last {
		return // as most are
	}
	c.least, c.most = min(c.least, v), max(c.most, v)
	c.changes++
	c.last = v
}

// flow returns the state of a connection; nil beyond the limit.
func (r *Recorder) flow(c *rdma.Connection) *flow {
	recent := &r.recentFlows[uint(c.ID)%uint(len(r.recentFlows))]
	f := recent.f
	if f == nil || recent.id != c.ID {
		if f = r.flows[c.ID]; f == nil {
			if len(r.flows) >= maxConnections {
				r.flowsLost = true
				return nil
			}
			f = &flow{}
			r.flows[c.ID] = f
		}
		recent.f, recent.id = f, c.ID
	}
	return f
}

// recentFlow is the flow of a connection that was found lately.
type recentFlow struct {
	id int
	f  *flow // nil: none
}

// follow records a transaction as in flight and returns how many calls of the connection are now in flight; 0
// if the connection is not followed.
func (r *Recorder) follow(tx *transaction.Transaction) int {
	f := r.flow(tx.Connection)
	if f == nil {
		return 0
	}
	way := 0
	if tx.Backward {
		way = 1
	}
	if tx.Call.Seen() && tx.Call.Transport {
		f.requested[way].add(tx.Call.Header.Credits)
		f.largest[way][0] = max(f.largest[way][0], tx.Call.SendBytes)
	}
	granted := uint32(0)
	if tx.Reply.Seen() && tx.Reply.Transport {
		granted = tx.Reply.Header.Credits
		f.granted[way].add(granted)
		f.largest[way][1] = max(f.largest[way][1], tx.Reply.SendBytes)
	}
	if !tx.Call.Seen() || !tx.Reply.Seen() {
		if tx.Call.Seen() {
			f.unanswered[way]++
		}
		return 0
	}
	start, end := tx.Call.First.Time, tx.Reply.Last.Time
	if end < start {
		return 0
	}
	l := &f.calls[way]
	l.enter(start, end, granted, &r.events)
	s := r.series.at(start)
	s.most = max(s.most, r.all.enter(start, end, 0, &r.events))
	if isRDMA(tx.Connection.Fabric) && way == 0 {
		s.creditsUsed = max(s.creditsUsed, l.n)
		if granted > 0 && (s.granted == 0 || granted < s.granted) {
			s.granted = granted
		}
	}
	r.series.flight(start, end)

	if tx.Reads > 0 {
		r.followReads(f, tx, start)
	}
	return l.n
}

// followReads records the RDMA Reads of a transaction as in flight, from the Read Request to the last packet
// of the response. They start after their call, so all Reads that start before this call are known.
func (r *Recorder) followReads(f *flow, tx *transaction.Transaction, start int64) {
	for i := range f.reads {
		f.reads[i].advance(start, &r.events)
	}
	for i := range tx.Operations {
		o := &tx.Operations[i]
		if o.Kind != rdma.Read || !o.First.Seen() || !o.Last.Seen() || o.Last.Time < o.First.Time {
			continue
		}
		l := &f.reads[o.From&1]
		l.push(event{at: o.First.Time, change: 1}, &r.events)
		l.push(event{at: o.Last.Time, change: -1}, &r.events)
	}
}
