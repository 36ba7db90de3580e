package decode

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Trackers side by side: connections are divided by the pair of their hosts into groups, each with a tracker
// of its own. What a group's tracker finds depends on the packets of the group alone; how many goroutines the
// groups are spread over makes no difference. What all groups share is decided outside of them, in the order of
// the capture:
//
//	route: tunnels, fragments, clock ──► groups ──► merge: numbers of connections, order of transactions, memory
//
// See docs/design/0075-trackers-side-by-side.md.

const (
	// maxGroups is how many groups there are. Pairs of hosts go to them in turn, in the order in which they
	// appear.
	maxGroups = 64
	// maxPairs bounds the pairs of hosts that are remembered. Those beyond are divided by their addresses.
	maxPairs = 1 << 16
)

// leastGrouped is the least memory that is divided among groups. Tests change it.
var leastGrouped = 16 << 20

// Trackers is how many trackers Run uses side by side: 0 means one for everything. That is so without
// Options.Trackers; with callbacks that have to see packets or operations in the order of the capture (Packet,
// Ordinary, Observer, Watcher, and Attribute, Ended and Withdrawn of transactions); with limits on the number of connections
// or calls, which are limits on all of them together; and with less than 16 MiB of Memory.
func (d *Decoder) Trackers() int {
	o := &d.opt
	t := &o.Transactions
	switch {
	case o.Trackers <= 0, d.memory.budget.Limit() < leastGrouped,
		o.Packet != nil, o.Ordinary != nil, o.Observer != nil, o.Alone != nil, o.Watcher != nil, t.Attribute != nil, t.Ended != nil, t.Withdrawn != nil,
		t.Open > 0, t.Held > 0, o.RoCE.Connections > 0, o.RoCE.Assembly > 0, o.TCP.Connections > 0:
		return 0
	}
	return min(o.Trackers, maxGroups)
}

// groups are the trackers, and what they share.
type groups struct {
	list  [maxGroups]*group
	of    map[hostPair]uint16 // numbers of groups, from 1
	next  int                 // the group of the next pair
	limit int                 // bytes that all groups may hold together
	begin sync.Mutex          // of Options.Group
}

// hostPair are two addresses in ascending order.
type hostPair struct{ low, high netip.Addr }

// all iterates over the groups that have had packets.
func (g *groups) all() iter.Seq[*group] {
	return func(yield func(*group) bool) {
		if g == nil {
			return
		}
		for _, x := range &g.list {
			if x != nil && !yield(x) {
				return
			}
		}
	}
}

// group finds the group of two hosts.
func (g *groups) group(src, dst netip.Addr) uint16 {
	key := hostPair{src, dst}
	if dst.Less(src) {
		key = hostPair{dst, src}
	}
	n := g.of[key]
	if n == 0 {
		if len(g.of) >= maxPairs {
			return 1 + key.spread()
		}
		n = uint16(g.next) + 1
		g.next = (g.next + 1) % maxGroups
		g.of[key] = n
	}
	return n
}

// spread is a number below maxGroups. It depends on nothing but the addresses.
func (k *hostPair) spread() uint16 {
	h := uint32(2166136261) // FNV-1a
	for _, a := range [...]netip.Addr{k.low, k.high} {
		for _, b := range a.As16() {
			h = (h ^ uint32(b)) * 16777619
		}
	}
	return uint16(h>>16^h) % maxGroups
}

// group is the tracker of a group, and what it has found since the merger looked.
type group struct {
	index int
	d     *Decoder
	out   *[]event // where what it finds goes: of the worker and batch at hand
	at    uint64   // the place of what happens now, see event

	away     int    // bytes of transactions on their way; not in the budget, since giving up more does not bring them back
	numbered int    // connections that have been told of
	oldest   uint64 // the last mark that was told
	lazy     bool   // marks are told after each batch: nearly all transactions are consumed here, and few wait for them
	flushing uint64 // at of the phase, while everything is ended
}

// event is something that the merger puts into the order of the capture.
type event struct {
	// at is 2 n + 1 for the n-th packet, and 2 n for the beginning of a batch with it. At the end of the capture, it
	// is made of endOf, the phase, and the first packet of the connection or transaction.
	at    uint64
	group uint16
	kind  eventKind
	n     uint64                   // mark: the first packet of the oldest transaction; number: the connection
	bytes int                      // transaction: what it holds
	tx    *transaction.Transaction // ended
	c     *rdma.Connection         // closed
}

type eventKind uint8

const (
	eventTransaction eventKind = iota + 1
	eventMark                  // the group has another oldest transaction
	eventNumber                // the group has numbered a connection
	eventClosed
)

const (
	endOf      = 1 << 63
	phaseShift = 56
	lastPhase  = 3 // in which the connections are gone
	noMark     = ^uint64(0)
)

func (d *Decoder) newGroup(index, limit int) *group {
	g := &group{index: index, oldest: noMark}
	opt := d.opt
	opt.Trackers, opt.Group, opt.Concurrent = 0, nil, false
	opt.Memory = limit
	opt.Closed = nil
	if d.opt.Closed != nil {
		opt.Closed = g.closed
	}
	opt.Transactions.Detach = true
	if g.lazy = d.opt.Group != nil; g.lazy {
		d.groups.begin.Lock()
		take := d.opt.Group(index)
		d.groups.begin.Unlock()
		opt.Transactions.Take = func(tx *transaction.Transaction) bool {
			if !take(tx) {
				return false
			}
			g.d.stats.Transactions++
			return true
		}
	}
	g.d = New(opt, g.emit)
	g.d.group = g
	return g
}

// emit passes an ended transaction on.
func (g *group) emit(tx *transaction.Transaction) {
	g.numbers()
	bytes := tx.Memory()
	g.away += bytes
	at := g.at
	if g.flushing == endOf|lastPhase<<phaseShift {
		at = g.flushing | tx.First().Number&(1<<phaseShift-1)
	}
	*g.out = append(*g.out, event{at: at, group: uint16(g.index), kind: eventTransaction, tx: tx, bytes: bytes})
}

// numbers tells of connections that have been numbered.
func (g *group) numbers() {
	for n := g.d.numbers.Count(); g.numbered < n; {
		g.numbered++
		*g.out = append(*g.out, event{at: g.at, group: uint16(g.index), kind: eventNumber, n: uint64(g.numbered)})
	}
}

// closing prepares for the end of a connection.
func (g *group) closing(c *rdma.Connection) {
	if g.flushing != 0 {
		g.done()
		g.at = g.flushing | c.First.Number&(1<<phaseShift-1)
	}
	g.numbers()
}

// closed tells of the end of a connection, of which stragglers may follow.
func (g *group) closed(c *rdma.Connection) {
	x := transaction.Copy(c)
	if into := x.MergedInto; into != nil {
		x.MergedInto = transaction.Copy(into)
	}
	*g.out = append(*g.out, event{at: g.at, group: uint16(g.index), kind: eventClosed, c: x})
}

// done tells what a packet has changed.
func (g *group) done() {
	if g.d.numbers.Count() != g.numbered {
		g.numbers()
	}
	if !g.lazy {
		g.mark()
	}
}

// mark tells of another oldest transaction.
func (g *group) mark() {
	oldest, ok := g.d.tx.Oldest()
	if !ok {
		oldest = noMark
	}
	if oldest != g.oldest {
		g.oldest = oldest
		*g.out = append(*g.out, event{at: g.at, group: uint16(g.index), kind: eventMark, n: oldest})
	}
}

// flush ends everything that is open, in the phases in which a Decoder does.
func (g *group) flush(last rdma.Ref) {
	d := g.d
	d.at = place{}
	d.stats.Last = last
	phases := [...]func(){
		func() { d.roce.Flush(last) }, func() { d.tcp.flush(last) }, func() { d.udp.flush(last) }, d.tx.Flush,
	}
	for i, f := range phases {
		g.flushing = endOf | uint64(i)<<phaseShift
		g.at = g.flushing
		f()
	}
	d.stats.Connections = d.numbers.Count()
	g.at = endOf | uint64(len(phases))<<phaseShift
	g.done()
	g.mark()
}

// routed is a packet on its way to a group.
type routed struct {
	tenant uint64
	packet int32
	whole  int32 // the datagram that it completes, in grouped.wholes; -1: none
	group  uint16
	tap    uint16
}

// whole is a datagram that was put together from fragments.
type whole struct {
	full
	roce []roce.Packet
}

// grouped is a batch on its way through the pipeline. Batches take their places in turn: with a batch, its
// groups get back what was consumed of the one that has had its place before, and learn how much they may hold.
// So both depend on the capture alone.
type grouped struct {
	job
	dissected chan struct{} // or there is an error
	parts     []part        // by worker
	worker    [maxGroups]uint8
	wholes    []whole
	base      uint64 // packets before it
	last      bool   // there are no packets: everything is ended
	end       rdma.Ref
	left      atomic.Int32
	done      chan struct{}  // all workers have done their parts
	caps      [maxGroups]int // bytes that a group may hold; 0: as before
	used      [maxGroups]int // bytes that it holds, with what is on its way
}

// part is what one worker has to do with a batch.
type part struct {
	packets []routed
	out     []event
	back    []event // transactions that were consumed
}

// route divides the packets of a batch among the workers. What it does is done in the order of the capture.
func (d *Decoder) route(j *grouped) {
	if j.last = j.err != nil || d.stop.Load(); j.last {
		j.batch.Packets = j.batch.Packets[:0]
		j.end = d.stats.Last
	}
	j.base = d.stats.Packets
	j.wholes = j.wholes[:0]
	for i := range j.parts {
		j.parts[i].packets = j.parts[i].packets[:0]
	}
	send := func(r *routed) {
		r.group-- // from 0
		p := &j.parts[j.worker[r.group%maxGroups]]
		p.packets = append(p.packets, *r)
	}
	for i := range j.batch.Packets {
		p := &j.batch.Packets[i]
		u := &j.units[i]
		if d.opt.Clock == ClockERSPAN && u.Full >= 0 {
			p.Time = d.clock.adjust(&j.full[u.Full].frame, p.Time)
		}
		d.stats.seen(p)
		r := routed{packet: int32(i), whole: -1, tap: p.Tap}
		if u.Full < 0 {
			if r.group = u.Lean.Route.Group; r.group == 0 {
				r.group = d.groups.group(u.Lean.Route.Src, u.Lean.Route.Dst)
				u.Lean.Route.Group = r.group
			}
			if d.tunnels.seen {
				r.tap, r.tenant = d.tunnels.ordinary(p)
			}
			send(&r)
			continue
		}
		f := &j.full[u.Full].frame
		if !d.tunnels.seen && len(f.Tunnels) > 0 {
			d.tunnels.begin(j.batch.Packets[:i])
		}
		if f.Proto == link.Fragment {
			if f = d.defragment(p, &j.full[u.Full]); f == nil {
				continue
			}
			r.whole = j.addWhole(f)
		}
		r.tap, r.tenant = d.place(p, f)
		r.group = 1
		switch f.Proto {
		case link.UDP, link.TCP, link.RoCEv1, link.InfiniBand:
			r.group = d.groups.group(f.Src, f.Dst)
		}
		send(&r)
	}
	d.memory.budget.Enforce()
}

// addWhole keeps a copy of a datagram whose bytes are to be used for the next one.
func (j *grouped) addWhole(f *link.Frame) int32 {
	w := whole{full: full{frame: *f}}
	g := &w.frame
	g.Net, g.Transport, g.Payload = slices.Clone(f.Net), slices.Clone(f.Transport), slices.Clone(f.Payload)
	g.Tunnels = slices.Clone(f.Tunnels)
	packets := j.roce
	j.roce = nil // its packets are their own
	j.upper(&w.full)
	w.roce, j.roce = j.roce, packets
	j.wholes = append(j.wholes, w)
	return int32(len(j.wholes) - 1)
}

// worker runs the trackers of some groups, as many as there are workers apart.
type worker struct {
	d     *Decoder // the whole
	index int
}

// batch takes a worker's part of a batch.
func (w *worker) batch(j *grouped) {
	p := &j.parts[w.index]
	p.out = p.out[:0]
	list := &w.d.groups.list
	workers := len(j.parts)
	for i := range p.back {
		b := &p.back[i]
		g := list[b.group]
		g.away -= b.bytes
		g.d.tx.Recycle(b.tx)
		*b = event{}
	}
	p.back = p.back[:0]
	for i := w.index; i < maxGroups; i += workers {
		g := list[i]
		if g == nil {
			continue
		}
		g.out = &p.out
		if n := j.caps[i]; n > 0 && n != g.d.memory.budget.Limit() {
			g.d.memory.budget.SetLimit(n)
		}
		if b := g.d.memory.budget; b.Over() {
			g.at = 2 * j.base
			b.Enforce()
			g.done()
		}
	}
	for i := range p.packets {
		r := &p.packets[i]
		g := list[r.group]
		if g == nil {
			g = w.d.newGroup(int(r.group), w.d.groups.limit)
			g.out = &p.out
			list[r.group] = g
		}
		g.packet(j, r)
	}
	for i := w.index; i < maxGroups && !j.last; i += workers {
		if g := list[i]; g != nil && g.lazy {
			g.at = 2 * (j.base + uint64(len(j.batch.Packets)))
			g.mark()
		}
	}
	if j.last {
		for i := w.index; i < maxGroups; i += workers {
			if g := list[i]; g != nil {
				g.flush(j.end)
			}
		}
		slices.SortStableFunc(p.out, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.group, b.group)) })
	}
	for i := w.index; i < maxGroups; i += workers {
		if g := list[i]; g != nil {
			j.used[i] = g.d.memory.budget.Used() + g.away
		}
	}
}

// packet takes a packet of the group.
func (g *group) packet(j *grouped, r *routed) {
	p := &j.batch.Packets[r.packet]
	u := &j.units[r.packet]
	d := g.d
	g.at = 2*(j.base+uint64(r.packet)) + 1
	ref := rdma.Ref{Time: p.Time, Number: p.Number}
	d.stats.Last = ref
	switch {
	case u.Full < 0:
		d.ordinary(p, u, r.tap, r.tenant)
		g.done()
		return
	case r.whole >= 0:
		w := &j.wholes[r.whole]
		d.placed(p, &w.full, w.roce[w.first:w.first+w.count], ref, r.tap, r.tenant)
	default:
		f := &j.full[u.Full]
		d.placed(p, f, j.roce[f.first:f.first+f.count], ref, r.tap, r.tenant)
	}
	d.memory.budget.Enforce()
	g.done()
}

// caps says how much each group may hold from now on, given how much each holds.
func (g *groups) caps(used *[maxGroups]int, caps *[maxGroups]int) {
	total, n := 0, 0
	for _, u := range used {
		if u > 0 {
			n++
		}
		total += u
	}
	room := g.limit - total
	level := 0
	if room < 0 {
		level = g.level(used)
	}
	for i, u := range used {
		switch {
		case total <= g.limit/4:
			caps[i] = g.limit
		case room >= 0: // they may not all need it at once
			caps[i] = u + max(room/max(n, 1), room/8)
		default:
			caps[i] = level
		}
		caps[i] = max(caps[i], g.limit/(4*maxGroups))
	}
}

// level is what each group may hold at most so that all together hold what they may: those that hold less need
// not give up anything.
func (g *groups) level(used *[maxGroups]int) int {
	sorted := *used
	slices.Sort(sorted[:])
	left := g.limit
	for i, u := range sorted {
		if share := left / (maxGroups - i); u > share {
			return share
		}
		left -= u
	}
	return g.limit
}
