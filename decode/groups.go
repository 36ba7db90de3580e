package decode

import (
	"iter"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/internal/prefetch"
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
//	sort: tunnels, fragments, clock ──► groups ──► merge: numbers of connections, order of transactions, memory
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
	lean  roce.LeanDecoder    // finds the hosts of most packets
	full  full                // one that is another
	limit int                 // bytes that all groups may hold together
	count uint64              // batches that were sorted
	// Batch n begins with what was settled when the batch was merged that is so many older: with settled[n modulo their number].
	settled []settled
	begin   sync.Mutex // of Options.Group
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
	out   *part // where what it finds goes: of the worker and batch at hand

	away     int    // bytes of transactions on their way; not in the budget, since giving up more does not bring them back
	numbered int    // connections that have been told of
	at       uint64 // when it is what happens now, see ending; 0: with the packet at hand
	flushing uint64 // at of the phase, while everything is ended

	// With Options.Group, nearly all transactions are consumed here, several at a time: what that takes of code stays in the cache.
	take func(*transaction.Transaction) bool
	near []ending
}

// nearMost is how many transactions are consumed at a time.
const nearMost = 16

// ending is a transaction that has ended.
type ending struct {
	tx *transaction.Transaction
	// at is when: 2 n + 1 for packet number n, and 2 n for the beginning of a batch with it. At the end of the capture, it
	// is made of endOf, the phase, and the first packet of the connection or transaction.
	at    uint64
	bytes int // that it holds
	group uint16
}

// event tells of a connection: that the group has numbered another one, or which has ended.
type event struct {
	at    uint64 // as in ending
	group uint16
	c     *rdma.Connection // nil: it was numbered
}

const (
	endOf      = 1 << 63
	phaseShift = 56
	lastPhase  = 3 // in which the connections are gone
	noMark     = ^uint64(0)
)

func (d *Decoder) newGroup(index, limit int) *group {
	g := &group{index: index}
	opt := d.opt
	opt.Trackers, opt.Group, opt.Concurrent = 0, nil, false
	opt.Memory = limit
	opt.Closed = nil
	if d.opt.Closed != nil {
		opt.Closed = g.closed
	}
	opt.Transactions.Detach = true
	if d.opt.Group != nil {
		d.groups.begin.Lock()
		g.take = d.opt.Group(index)
		d.groups.begin.Unlock()
	}
	g.d = New(opt, g.emit)
	g.d.group = g
	return g
}

// now is when what happens now does, see ending.
func (g *group) now() uint64 {
	if g.at != 0 {
		return g.at
	}
	return 2*g.d.stats.Last.Number + 1
}

// emit takes an ended transaction.
func (g *group) emit(tx *transaction.Transaction) {
	g.done()
	at := g.now()
	if g.flushing == endOf|lastPhase<<phaseShift {
		at = g.flushing | tx.First().Number&(1<<phaseShift-1)
	}
	if g.take == nil {
		g.pass(tx, at)
		return
	}
	if g.near = append(g.near, ending{tx: tx, at: at}); len(g.near) == nearMost {
		g.consume()
	}
}

// consume has transactions consumed. Those that are for everybody are passed on.
func (g *group) consume() {
	for i := range g.near {
		x := &g.near[i]
		if g.take(x.tx) {
			x.tx.Release()
			g.d.tx.Recycle(x.tx)
		} else {
			g.pass(x.tx, x.at)
		}
		x.tx = nil
	}
	g.near = g.near[:0]
}

// pass passes a transaction on.
func (g *group) pass(tx *transaction.Transaction, at uint64) {
	bytes := tx.Memory()
	g.away += bytes
	g.out.endings = append(g.out.endings, ending{tx: tx, at: at, bytes: bytes, group: uint16(g.index)})
}

// numbers tells of connections that have been numbered.
func (g *group) numbers() {
	for n := g.d.numbers.Count(); g.numbered < n; {
		g.numbered++
		g.tell(nil)
	}
}

// closing prepares for the end of a connection.
func (g *group) closing(c *rdma.Connection) {
	if g.flushing != 0 {
		g.done()
		g.at = g.flushing | c.First.Number&(1<<phaseShift-1)
	}
	g.done()
}

// closed tells of the end of a connection, of which stragglers may follow.
func (g *group) closed(c *rdma.Connection) {
	x := transaction.Copy(c)
	if into := x.MergedInto; into != nil {
		x.MergedInto = transaction.Copy(into)
	}
	g.tell(x)
}

// tell tells of a connection.
func (g *group) tell(c *rdma.Connection) {
	g.out.events = append(g.out.events, event{at: g.now(), group: uint16(g.index), c: c})
}

// done tells what a packet has changed.
func (g *group) done() {
	if g.d.numbers.Count() != g.numbered { // asked for each packet, without a call
		g.numbers()
	}
}

// mark is the first packet of the oldest transaction that has not ended.
func (g *group) mark() uint64 {
	if n, ok := g.d.tx.Oldest(); ok {
		return n
	}
	return noMark
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
}

// placement is what the order of the capture tells of a packet.
type placement struct {
	known  bool // it tells more than the packet itself
	tap    uint16
	tenant uint64
	whole  *whole // the datagram that it completes, if it does
}

// whole is a datagram that was put together from fragments.
type whole struct{ full }

// settled is what groups get back of a batch, and how much they may hold then. Both depend on the capture alone, since it is a fixed number of
// batches later.
type settled struct {
	caps [maxGroups]int // bytes; 0: as before
	back [][]ending     // transactions that were consumed, by worker
}

// grouped is a batch on its way through the pipeline.
type grouped struct {
	*load
	n     uint64 // batches before it
	err   error
	parts []part // by worker

	first uint64 // number of its first packet
	last  bool   // there are no packets: everything is ended
	end   rdma.Ref
	left  int               // workers that have not done their parts
	used  [maxGroups]int    // bytes that a group holds, with what is on its way
	marks [maxGroups]uint64 // first packet of its oldest transaction that has not ended
}

// load is what a batch needs until it is tracked. The one that was used last is used again first: it is in the cache.
type load struct {
	batch   capture.Batch
	groups  []uint16           // of the packets, from 1; 0: none
	packets [maxGroups][]int32 // by group, in the order of the capture
	placed  []placement        // of the packets; empty if none has one
}

// part is what one worker has found in a batch.
type part struct {
	endings []ending
	events  []event
}

// sort divides the packets of a batch among the groups. What it does is done in the order of the capture.
func (d *Decoder) sort(j *grouped) {
	if j.last = j.err != nil || d.stop.Load(); j.last {
		j.batch.Packets = j.batch.Packets[:0]
		j.end = d.stats.Last
	}
	j.first = d.stats.Last.Number + 1
	j.n = d.groups.count
	d.groups.count++
	clear(j.placed)
	j.placed = j.placed[:0]
	for i := range j.packets {
		j.packets[i] = j.packets[i][:0]
	}
	packets := j.batch.Packets
	j.groups = slices.Grow(j.groups[:0], len(packets))[:len(packets)]
	bytes := uint64(0)
	for i := 0; i < len(packets); i++ {
		first := i
		if d.tunnels.seen {
			j.groups[i] = d.sortOne(j, i)
		} else if i += d.groups.lean.Groups(packets[i:], j.groups[i:]); i < len(packets) {
			j.groups[i] = d.sortOne(j, i)
		}
		for k := first; k <= i && k < len(packets); k++ {
			bytes += uint64(packets[k].Length)
			if n := j.groups[k]; n > 0 {
				list := &j.packets[(n-1)%maxGroups]
				*list = append(*list, int32(k))
			}
		}
	}
	d.stats.saw(packets, bytes)
	d.memory.budget.Enforce()
}

// sortOne finds the group of a packet, from 1. It returns 0 if it has none: a fragment, until all have come.
func (d *Decoder) sortOne(j *grouped, i int) uint16 {
	p := &j.batch.Packets[i]
	q := d.groups.lean.RouteOf(p)
	if q == nil {
		return d.sortFull(j, i)
	}
	if q.Group == 0 {
		q.Group = d.groups.group(q.Src, q.Dst)
	}
	if d.tunnels.seen {
		tap, tenant := d.tunnels.ordinary(p)
		j.place(i, placement{tap: tap, tenant: tenant})
	}
	return q.Group
}

// sortFull is sortOne for a packet that needs more than a look at its headers.
func (d *Decoder) sortFull(j *grouped, i int) uint16 {
	p := &j.batch.Packets[i]
	f := &d.groups.full.frame
	link.Decode(p.Link, p.Data, p.Length, f)
	f.Segment = p.Segment
	if d.opt.Clock == ClockERSPAN {
		p.Time = d.clock.adjust(f, p.Time)
	}
	if !d.tunnels.seen && len(f.Tunnels) > 0 {
		d.tunnels.begin(j.batch.Packets[:i])
	}
	var x placement
	if f.Proto == link.Fragment {
		if f = d.defragment(p, &d.groups.full); f == nil {
			return 0
		}
		x.whole = newWhole(f)
	}
	if x.tap, x.tenant = d.place(p, f); x.whole != nil || x.tap != p.Tap || x.tenant != 0 {
		j.place(i, x)
	}
	switch f.Proto {
	case link.UDP, link.TCP, link.RoCEv1, link.InfiniBand:
		return d.groups.group(f.Src, f.Dst)
	}
	return 1
}

// place keeps what the order of the capture tells of packet i.
func (j *grouped) place(i int, x placement) {
	if len(j.placed) == 0 {
		n := len(j.batch.Packets)
		j.placed = slices.Grow(j.placed, n)[:n]
	}
	x.known = true
	j.placed[i] = x
}

// placement is what the order of the capture tells of packet i.
func (j *grouped) placement(p *capture.Packet, i int32) placement {
	if len(j.placed) > 0 && j.placed[i].known {
		return j.placed[i]
	}
	return placement{tap: p.Tap}
}

// newWhole keeps a copy of a datagram whose bytes are to be used for the next one.
func newWhole(f *link.Frame) *whole {
	w := &whole{full: full{frame: *f}}
	g := &w.frame
	g.Net, g.Transport, g.Payload = slices.Clone(f.Net), slices.Clone(f.Transport), slices.Clone(f.Payload)
	g.Tunnels = slices.Clone(f.Tunnels)
	return w
}

// worker runs the trackers of some groups, as many as there are workers apart.
type worker struct {
	d     *Decoder // the whole
	index int
	far   bool // another processor may have read the packets

	// A few packets at a time are dissected and tracked: what is known of so many is in the first-level cache then.
	some   capture.Batch
	x      dissection
	joined dissection // of datagrams put together from fragments
}

// fetched is how many bytes of a packet are fetched before it is dissected. The processor fetches what follows.
const fetched = 256

func newWorker(d *Decoder, index int) *worker {
	w := &worker{d: d, index: index, far: runtime.GOMAXPROCS(0) > 1}
	w.x.set(d.opt)
	w.joined.set(d.opt)
	return w
}

// batch takes a worker's part of a batch.
func (w *worker) batch(j *grouped) {
	p := &j.parts[w.index]
	p.endings, p.events = p.endings[:0], p.events[:0]
	list := &w.d.groups.list
	from := w.d.groups.settledBefore(j)
	back := from.back[w.index]
	for i := range back {
		b := &back[i]
		g := list[b.group]
		g.away -= b.bytes
		g.d.tx.Recycle(b.tx)
		*b = ending{}
	}
	from.back[w.index] = back[:0]
	for i := w.index; i < maxGroups; i += len(j.parts) {
		packets := j.packets[i]
		g := list[i]
		switch {
		case g != nil:
			g.begin(j, from.caps[i], p)
		case len(packets) > 0:
			g = w.d.newGroup(i, w.d.groups.limit)
			g.out = p
			list[i] = g
		default:
			j.marks[i] = noMark
			continue
		}
		w.packets(g, j, packets)
		if j.last {
			g.flush(j.end)
		}
		g.consume()
		j.marks[i] = g.mark()
		j.used[i] = g.d.memory.budget.Used() + g.away
	}
}

// settledBefore is what a batch begins with, and where to settle what a later one does.
func (g *groups) settledBefore(j *grouped) *settled { return &g.settled[j.n%uint64(len(g.settled))] }

// begin lets a group give up what exceeds its limit.
func (g *group) begin(j *grouped, limit int, out *part) {
	g.out = out
	b := g.d.memory.budget
	if limit > 0 && limit != b.Limit() {
		b.SetLimit(limit)
	}
	if b.Over() {
		g.at = 2 * j.first
		b.Enforce()
		g.done()
		g.at = 0
	}
}

// packets takes packets of a group, a few at a time.
func (w *worker) packets(g *group, j *grouped, list []int32) {
	for len(list) > 0 {
		few := list[:min(len(list), dissectedAtOnce)]
		list = list[len(few):]
		some := slices.Grow(w.some.Packets[:0], dissectedAtOnce)[:len(few)]
		for k, i := range few {
			some[k] = j.batch.Packets[i]
			if w.far {
				data := some[k].Data
				prefetch.Lines(unsafe.Pointer(unsafe.SliceData(data)), uintptr(min(len(data), fetched)))
			}
		}
		w.some.Packets = some
		w.x.batch(&w.some)
		w.tracked(g, j, few)
	}
}

// tracked takes the packets that were dissected last.
func (w *worker) tracked(g *group, j *grouped, list []int32) {
	d := g.d
	some := w.some.Packets[:len(list)]
	units := w.x.units[:len(list)]
	ordinary, bytes := uint64(0), uint64(0)
	for k, i := range list {
		p, u := &some[k], &units[k]
		d.stats.Last = rdma.Ref{Time: p.Time, Number: p.Number}
		if u.Full >= 0 || len(j.placed) > 0 {
			w.packet(g, p, u, j.placement(p, i))
		} else { // as ordinary, without the call
			ordinary++
			bytes += uint64(p.Length)
			d.roce.Lean(p, p.Tap, 0, &u.Lean)
			d.memory.budget.Enforce()
		}
		g.done()
	}
	d.counted(ordinary, bytes)
}

// packet takes a packet of a group that may not be ordinary.
func (w *worker) packet(g *group, p *capture.Packet, u *roce.Unit, x placement) {
	if u.Full < 0 {
		g.d.ordinary(p, u, x.tap, x.tenant)
		return
	}
	f, packets := &w.x.full[u.Full], w.x.roce
	if x.whole != nil {
		f = &x.whole.full
		w.joined.roce = w.joined.roce[:0]
		w.joined.upper(f)
		packets = w.joined.roce
	}
	g.d.placed(p, f, packets[f.first:f.first+f.count], g.d.stats.Last, x.tap, x.tenant)
	g.d.memory.budget.Enforce()
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
