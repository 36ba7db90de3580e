package planner

import (
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// Add adds a transaction. Transactions have to come in the order of their calls.
func (b *Builder) Add(v *rpc.View) error {
	if b.err != nil {
		return b.err
	}
	b.summary.Transactions++
	tx := v.Tx
	if !b.started {
		b.started, b.start = true, tx.First().Time
		b.end = b.start
	}
	c := &b.call
	*c = call{v: v, form: c.form, deps: c.deps, reasons: c.reasons[:0], scratch: c.scratch, effects: effects{objs: c.effects.objs[:0]}}
	c.effects.outcome, c.effects.deps, c.effects.space, c.effects.about = &c.outcome, &c.deps, &b.space, &c.about
	c.conn = b.connection(v)
	if tx.Call.Seen() && !tx.Backward && !c.conn.called {
		c.conn.called, c.conn.first = true, tx.XID
	}
	c.server = b.ids.real(b.t.Connections[c.conn.id-1].Server)
	c.start, c.end = tx.First().Time-b.start, -1
	if tx.Reply.Seen() {
		c.end = max(tx.Reply.Last.Time-b.start, c.start)
		b.end = max(b.end, tx.Reply.Last.Time)
	}
	if asynchronous(tx) {
		c.end = max(c.end, c.start) // it is over when it is sent: later calls may rely on it
	}
	b.end = max(b.end, tx.First().Time)
	class, reason, before := b.judge(c)
	if reason != "" {
		b.skip(c, class, reason)
		return b.err
	}
	b.ids.look(c)
	b.add(c, before)
	return b.err
}

// judge says why a call is not replayed. If it is, before is how much earlier it was sent for the first time.
func (b *Builder) judge(c *call) (class plan.Class, reason string, before int64) {
	if class, reason = unfit(c.v); reason != "" {
		if reason == mounts {
			b.mounted(c)
		}
		return class, reason, 0
	}
	if callsBack(c.v.Tx) && !b.grant(c) {
		return plan.Exact, "a callback: NLM GRANTED for a LOCK that is not in the capture", 0
	}
	is, before := b.resent.again(c.v, c.start)
	if is {
		return plan.Exact, "sent again: replayed once", 0
	}
	return "", "", before
}

// mounted learns the root of a mount from a reply of MOUNT.
func (b *Builder) mounted(c *call) {
	a, ok := c.v.Args().(*mount.DirpathMessage)
	if !ok {
		return
	}
	if r, ok := c.v.Result().(*mount.Mountres3); ok && c.v.ResultErr == nil && r.FhsStatus == mount.MNT3_OK {
		if b.ids.handle(c, r.Mountinfo.Fhandle) {
			c.server = b.ids.real(c.server)
		}
		if o := b.space.of(c.server, r.Mountinfo.Fhandle); o != nil && o.origin == plan.Before {
			o.isBase, o.own().base, o.typ, o.nameClass = true, string(a.Dirpath), "dir", plan.Exact
			b.room.take(len(a.Dirpath))
		}
	}
}

// service is how long the server took for a call, in nanoseconds; -1 if that is not known.
func service(tx *transaction.Transaction) int64 {
	if p, ok := tx.Phases(); ok && p.Divided() {
		return int64(p.Server)
	}
	return -1
}

// add makes an op of the transaction.
func (b *Builder) add(c *call, before int64) {
	v, tx := c.v, c.v.Tx
	b.ops++
	c.op = &plan.Op{
		ID: b.ops, XID: tx.XID, Connection: c.conn.id, Program: tx.Program, Version: tx.Version, Procedure: tx.Procedure,
		Role: plan.Workload, Class: plan.Exact, Time: c.start, Latency: -1, Service: -1, Before: max(0, before),
	}
	o := c.op
	c.effects.op = o
	c.deps.Begin(order.Flight{Op: o.ID, End: c.end}, c.start, &b.uses)
	if !acl3(tx) && !isNLM(tx) {
		b.version(c.server, strings.TrimPrefix(program(c.v), "nfs"))
	}
	o.Credential = b.creds.of(v, &c.reasons)
	c.conn.advance(c.start)
	if c.conn.last.Op != 0 {
		o.After, o.Think = c.conn.last.Op, c.start-c.conn.last.End
	}
	if c.end >= 0 {
		o.Latency = c.end - c.start
		o.Service = service(tx)
		c.conn.add(o.ID, c.end)
	} else {
		c.reasons.add(plan.Inferred, "no reply captured: its outcome is not compared")
	}
	x := &b.t.Connections[c.conn.id-1]
	if x.Ops == 0 {
		x.First = c.start
	}
	x.Ops++
	x.Last = max(x.Last, c.end, c.start)
	x.MaxInFlight = max(x.MaxInFlight, len(c.conn.inFlight))

	// Of truncated results the beginning counts: the status and the handle.
	readable := v.ResultErr == nil || v.ResultCut && len(v.ReplyBody().Data) >= 4
	c.replied = v.ReplyErr == nil && tx.Reply.Seen() && v.Reply().Succeeded() && v.Result() != nil && readable
	b.space.deaf = v.ResultErr != nil && tx.Version == 3
	c.ok = c.replied && !v.StatusFailed()
	if o.Layout = layout(tx); o.Layout != nil {
		x.CreditsAsked, x.CreditsGranted = max(x.CreditsAsked, o.Layout.Credits), max(x.CreditsGranted, o.Layout.Granted)
	}
	if s, ok := v.Result().(xdr.Status); ok {
		c.status, _ = s.StatusCode()
	}
	reason := ""
	switch {
	case tx.Procedure == 0:
		o.Role = plan.Ping
	case isNLM(tx):
		reason = (&callNLM{c, &b.states, &b.waiting}).fill()
	case tx.Version == 4:
		reason = "no COMPOUND"
		if a, ok := v.Args().(*nfs4.CompoundArgs); ok {
			reason = newCompound(c, a, b).fill(a)
		}
	case c.refusedWith(uint32(nfs3.NFS3ERR_JUKEBOX)):
		reason = putOff
	default:
		o.Modifies = modifies(ops.Procedure(tx.Program, tx.Version, tx.Procedure), v.Args())
		(&call3{c, &b.space, &b.content}).fill()
	}
	if reason != "" {
		b.ops--
		b.unadd(c)
		if reason == lostState {
			b.skip(c, plan.Impossible, reason)
		} else {
			b.skip(c, plan.Exact, reason)
		}
		return
	}
	b.expect(c)
	o.What = c.about.of(v)
	b.write(c)
}

// expect adds the reply that a replay should get.
func (b *Builder) expect(c *call) {
	switch {
	case c.granted != nil:
		c.op.Expect = grantedReply(c.op.Version, !b.opt.NoResults)
	case !asynchronous(c.v.Tx):
		var reason string
		if c.op.Expect, reason = expect(c.v, !b.opt.NoResults); reason != "" {
			c.reasons.add(plan.Inferred, reason)
		}
	}
}

// unadd undoes the counting of add.
func (b *Builder) unadd(c *call) {
	b.t.Connections[c.conn.id-1].Ops--
	f := c.conn.inFlight
	for i := range f {
		if f[i].Op == c.op.ID {
			c.conn.inFlight = append(f[:i], f[i+1:]...)
			return
		}
	}
}

// modifies reports whether a procedure or operation may change something. A COPY from
// another server, which is never replayed, does.
func modifies(e *ops.Entry, args xdr.Message) bool {
	if e == nil {
		return false
	}
	var act ops.Act
	e.Act(args, &act)
	return act.Class == ops.Changes || act.Class == ops.Never && e.Class == ops.Changes
}

// grant finds the LOCK that a GRANTED is for, and makes the call one of its connection.
func (b *Builder) grant(c *call) bool {
	a, ok := lockArgs(c.v.Args())
	if !ok {
		return false
	}
	// The server is the caller.
	server := b.servers[c.v.Tx.Client().Addr.String()]
	if server == 0 {
		return false
	}
	c.server = b.ids.real(server)
	w := b.waiting.locks[a.key(c.server)]
	if s, ok := c.v.Result().(xdr.Status); w == nil || ok && failed(s) {
		return false
	}
	c.conn, c.granted = w.conn, w
	return true
}
