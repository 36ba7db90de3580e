package latency

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Collector collects what a Recorder collects, connection by connection, so that a connection that another tap saw
// too can be left out when states are merged. Its methods may be called like those of a Recorder.
//
// A connection takes some memory of its own. Those that come when half of Options.Memory is in use are not told
// apart; the state says so.
type Collector struct {
	opt    Options
	rest   *Recorder      // connections that are not told apart, and what concerns all
	kinds  compound.Kinds // for all
	cells  map[int]*cell
	last   *cell
	lastID int
	limit  int // bytes of cells
	cost   int // bytes of cells, approximately
	limits int // bytes of histograms
	used   int
	beyond uint64 // transactions that went to rest

	mu     sync.Mutex
	events map[int]*wire // of connections that were seen in trouble
	closed []ended
}

// cell is a connection.
type cell struct {
	rec   *Recorder
	seen  state.Seen // as far as known at the first transaction
	calls state.Calls
	sized int // what it costs, as charged
}

// Costs of a connection in bytes, approximately.
const (
	cellBytes  = 8 << 10
	slotBytes  = 320
	groupBytes = 8 << 10
	slowBytes  = 1 << 10
)

// NewCollector makes a Collector. Options.Draw and Options.Ran are not for it, nor is Options.Unordered.
func NewCollector(opt Options) *Collector {
	opt.Draw, opt.Ran, opt.Unordered = nil, false, false
	rest := New(opt)
	return &Collector{
		opt: rest.opt, rest: rest, cells: make(map[int]*cell), events: make(map[int]*wire),
		limit: rest.opt.Memory / 2, limits: rest.mem.limit,
	}
}

// fixed is what a connection takes before its first group.
func (c *Collector) fixed() int {
	return cellBytes + c.rest.series.most*slotBytes + c.opt.Top*slowBytes
}

// cell returns the cell of a connection; nil if there is no room for it.
func (c *Collector) cell(tx *transaction.Transaction) *cell {
	id := tx.Connection.ID
	if c.last != nil && c.lastID == id {
		return c.last
	}
	k := c.cells[id]
	if k == nil {
		if c.cost+c.fixed() > c.limit {
			return nil
		}
		k = &cell{rec: New(c.opt), sized: c.fixed()}
		k.seen = state.NewSeen(&rdma.Connection{
			Fabric: tx.Connection.Fabric, Ends: tx.Connection.Ends, Tenant: tx.Connection.Tenant, First: tx.First(), Last: tx.First(),
		}, state.Calls{})
		c.cells[id] = k
		c.cost += k.sized
	}
	c.last, c.lastID = k, id
	return k
}

// Add records a transaction, like Recorder.Add.
func (c *Collector) Add(v *rpc.View) {
	tx := v.Tx
	r := c.rest
	k := c.cell(tx)
	if k != nil {
		r = k.rec
		k.calls.Add(tx.Backward, tx.XID)
		k.seen.Last = max(k.seen.Last, tx.First().Time)
		if c.cost > 2*c.limit {
			r.maxGroups = min(r.maxGroups, len(r.groups))
		}
	} else {
		c.beyond++
	}
	// Histograms and the ends of calls have one limit for all.
	before := r.mem.used
	r.mem.limit = c.limits - (c.used - before)
	events := r.events
	if k != nil {
		r.events = c.rest.events
	}
	r.kinds = &c.kinds
	r.Add(v)
	if k != nil {
		c.rest.events, r.events = r.events, events
		if size := c.fixed() + groupBytes*len(r.groups); size != k.sized {
			c.cost += size - k.sized
			k.sized = size
		}
		c.inFlight(tx)
	}
	c.used += r.mem.used - before
}

// inFlight counts calls in flight over all connections, as Recorder.follow does.
func (c *Collector) inFlight(tx *transaction.Transaction) {
	r := c.rest
	if !tx.Call.Seen() || !tx.Reply.Seen() {
		return
	}
	start, end := tx.Call.First.Time, tx.Reply.Last.Time
	if end < start {
		return
	}
	s := r.series.at(start)
	s.most = max(s.most, r.all.enter(start, end, 0, &r.events))
}

// Closed records a connection at its end, or at the end of the capture.
func (c *Collector) Closed(k *rdma.Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.MergedInto != nil {
		// What was counted belongs to the connection that it is part of.
		if w := c.events[k.ID]; w != nil {
			delete(c.events, k.ID)
			c.wire(k.Resolve().ID).merge(w)
		}
		return
	}
	if len(c.closed) >= maxAudited {
		c.rest.wire.lost++
		return
	}
	client, _ := transaction.ClientOf(k)
	c.closed = append(c.closed, ended{k.Copy(), client})
}

// wire is what counts the events of a connection.
func (c *Collector) wire(id int) *wire {
	w := c.events[id]
	if w == nil {
		if len(c.events) >= maxConnections {
			return &c.rest.wire
		}
		w = &wire{}
		w.events.spans = newSpans(c.opt.Interval)
		c.events[id] = w
	}
	return w
}

func (w *wire) merge(o *wire) {
	w.events.merge(&o.events)
	for k, n := range o.kinds {
		saturated(&w.kinds[k], n)
	}
}

// Observer returns what counts each event of a connection once, and records connections at their end.
func (c *Collector) Observer() decode.Observer {
	return decode.Observer{Event: c.event, Closed: c.Closed}
}

func (c *Collector) event(k *rdma.Connection, _ rdma.Side, what rdma.Event, _ uint32, ref rdma.Ref) {
	kind, ok := troubleOf(what)
	if !ok {
		return
	}
	c.mu.Lock()
	w := c.wire(k.Resolve().ID)
	w.kinds[kind]++
	w.events.add(ref.Time, kind)
	c.mu.Unlock()
}

// networks counts the groups in which several networks are added up once the connections are: like Recorder.part, which
// sees one of them.
func (c *Collector) networks(pieces []*piece) {
	if !slices.ContainsFunc(c.opt.By, Key.ofHosts) {
		return
	}
	first := make(map[string]*group)
	rest := pieces[len(pieces)-1]
	for _, x := range pieces {
		for _, g := range x.part.groups {
			k := joinLabels(g.labels)
			have := first[k]
			if have == nil {
				first[k] = g
			} else if have.tenant != g.tenant && !have.several {
				have.several = true
				rest.part.several++
			}
		}
	}
}

// State is what the Collector found. It must not be used afterwards.
func (c *Collector) State(src Source) *State {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, k := range c.cells {
		k.rec.wire.closed = nil
		if w := c.events[id]; w != nil {
			k.rec.wire.merge(w)
			delete(c.events, id)
		}
	}
	alone := make(map[int]*Recorder) // listed, without transactions
	for _, e := range c.closed {
		k := c.cells[e.ID]
		switch {
		case k != nil:
			k.rec.wire.closed = append(k.rec.wire.closed, e)
			continue
		case c.rest.flows[e.ID] == nil && e.listed() && len(c.cells)+len(alone) < maxParts-1:
			r := New(c.opt)
			if w := c.events[e.ID]; w != nil {
				r.wire.merge(w)
				delete(c.events, e.ID)
			}
			r.wire.closed = []ended{e}
			alone[e.ID] = r
		default:
			c.rest.wire.closed = append(c.rest.wire.closed, e)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.events)) {
		c.rest.wire.merge(c.events[id])
	}
	var pieces []*piece
	for id, k := range c.cells {
		seen := k.seen
		if len(k.rec.wire.closed) > 0 {
			seen = state.NewSeen(&k.rec.wire.closed[0].Connection, state.Calls{})
		}
		seen.Calls = k.calls
		p := k.rec.part()
		for i := range p.series.slots {
			p.series.slots[i].most = 0 // over all connections: rest has it
		}
		pieces = append(pieces, newPiece(id, &seen, p))
	}
	for id, r := range alone {
		seen := state.NewSeen(&r.wire.closed[0].Connection, state.Calls{})
		pieces = append(pieces, newPiece(id, &seen, r.part()))
	}
	slices.SortFunc(pieces, func(a, b *piece) int { return cmp.Compare(a.conns[0].id, b.conns[0].id) })
	pieces = append(pieces, newPiece(0, nil, c.rest.part()))
	c.networks(pieces)
	t := newTap(src, pieces)
	t.beyond = c.beyond
	return &State{terms: termsOf(&c.opt, src.Filter), tap: t, mem: memory{limit: c.limits}}
}
