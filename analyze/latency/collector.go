package latency

import (
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
	rest   *Recorder      // connections that are not distinguished, and what concerns all
	kinds  compound.Kinds // for all
	cells  map[int]*cell
	last   *cell
	lastID int
	limit  int // bytes of cells
	cost   int // bytes of cells, approximately
	limits int // bytes of histograms
	used   int
	beyond uint64 // transactions that went to rest

	mu       sync.Mutex
	events   map[int]*wire // of connections that were seen in trouble
	closed   []ended
	merged   []int               // connections that are a part of others now
	taken    int                 // connections that Ended has taken out
	networks map[string]*network // by the labels of a group
	added    uint64              // groups that have several
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
		opt: rest.opt, rest: rest, cells: make(map[int]*cell), events: make(map[int]*wire), networks: make(map[string]*network),
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
		c.merged = append(c.merged, k.ID)
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

// network is the network of a group's hosts, and whether it has hosts of another one, too.
type network struct {
	tenant  uint64
	several bool
}

// several counts the groups in which several networks are added up once the connections are: like Recorder.part, which
// sees one of them.
func (c *Collector) several(pieces []*piece) {
	if !slices.ContainsFunc(c.opt.By, Key.ofHosts) {
		return
	}
	for _, x := range pieces {
		for _, g := range x.part.groups {
			k := joinLabels(g.labels)
			have := c.networks[k]
			switch {
			case have == nil && len(c.networks) < maxNetworks:
				c.networks[k] = &network{g.tenant, g.several}
			case have != nil && have.tenant != g.tenant && !have.several:
				have.several = true
				c.added++
			}
		}
	}
}

// alone reports whether a connection without transactions is listed.
func (c *Collector) alone(e *ended) bool {
	return c.cells[e.ID] == nil && c.rest.flows[e.ID] == nil && e.listed()
}

// piece takes a connection out. e is the connection at its end, nil if that has not come.
func (c *Collector) piece(id int, e *ended) *piece {
	var seen state.Seen
	k := c.cells[id]
	if k == nil {
		k = &cell{rec: New(c.opt)}
	} else {
		seen = k.seen
		delete(c.cells, id)
		c.cost -= k.sized
		c.used -= k.rec.mem.used
	}
	r := k.rec
	if w := c.events[id]; w != nil {
		r.wire.merge(w)
		delete(c.events, id)
	}
	if r.wire.closed = nil; e != nil {
		r.wire.closed = []ended{*e}
		seen = state.NewSeen(&e.Connection, state.Calls{})
	}
	seen.Calls = k.calls
	events := r.events
	r.events = c.rest.events
	p := r.part()
	c.rest.events, r.events = r.events, events
	for i := range p.series.slots {
		p.series.slots[i].most = 0 // over all connections: rest has it
	}
	return newPiece(id, &seen, p)
}

// Ended takes out what was found of connections that ended before a packet: nothing more of them will be added. The state of the
// others is to be completed with it: see Join.
func (c *Collector) Ended(before rdma.Ref, filter string) (s state.Section, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pieces []*piece
	left := c.closed[:0]
	for i := range c.closed {
		e := c.closed[i]
		switch {
		case !e.Last.Before(before) || c.taken >= maxEnded || c.rest.flows[e.ID] != nil:
			left = append(left, e)
		case c.cells[e.ID] != nil || c.alone(&e):
			pieces = append(pieces, c.piece(e.ID, &e))
			c.taken++
		default: // it is not listed
			c.rest.wire.retransmitted += e.retransmitted()
		}
	}
	clear(c.closed[len(left):])
	c.closed = left
	for _, id := range c.merged {
		if c.cells[id] != nil && c.taken < maxEnded {
			pieces = append(pieces, c.piece(id, nil))
			c.taken++
		}
	}
	c.merged, c.last = nil, nil
	c.several(pieces)
	x := &State{terms: termsOf(&c.opt, filter), tap: newTap(Source{}, pieces)}
	return x.Section(), len(pieces) > 0
}

// State is what the Collector found. It must not be used afterwards.
func (c *Collector) State(src Source) *State {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := make(map[int]*ended)
	alone := 0
	for i := range c.closed {
		e := &c.closed[i]
		switch {
		case c.cells[e.ID] != nil:
		case c.alone(e) && len(c.cells)+alone < maxParts-1:
			alone++
		default:
			c.rest.wire.closed = append(c.rest.wire.closed, *e)
			continue
		}
		at[e.ID] = e
	}
	ids := slices.Concat(slices.Collect(maps.Keys(c.cells)), slices.Collect(maps.Keys(at)))
	slices.Sort(ids)
	var pieces []*piece
	for _, id := range slices.Compact(ids) {
		pieces = append(pieces, c.piece(id, at[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(c.events)) {
		c.rest.wire.merge(c.events[id])
	}
	slices.SortFunc(pieces, (*piece).order)
	pieces = append(pieces, newPiece(0, nil, c.rest.part()))
	c.several(pieces)
	pieces[len(pieces)-1].part.several += c.added
	t := newTap(src, pieces)
	t.beyond = c.beyond
	return &State{terms: termsOf(&c.opt, src.Filter), tap: t, mem: memory{limit: c.limits}}
}
