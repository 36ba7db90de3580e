package decode

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

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

func (d *Decoder) newGroup(index, limit int) *group {
	g := &group{index: index}
	opt := d.opt
	opt.Trackers, opt.Group, opt.Concurrent = 0, nil, false
	opt.Memory = limit
	opt.Observers = nil
	if d.observer.Closed != nil {
		opt.Observe(Observer{Closed: g.closed})
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
	d.flushFragments()
	phases := [...]func(){
		func() { d.roce.Flush(last) }, func() { d.tcp.flush(last) }, func() { d.udp.flush(last) }, d.tx.Flush,
	}
	for i, f := range phases {
		g.flushing = endOf | uint64(i)<<phaseShift
		g.at = g.flushing
		f()
	}
	g.at = endOf | uint64(len(phases))<<phaseShift
	g.done()
}

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
