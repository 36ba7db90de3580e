package run

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// dropped ends a call that was not sent.
func (e *engine) dropped(c *call, v verdict.Verdict, why verdict.Reason) {
	if c.own {
		e.dropOwn(c, &why)
		return
	}
	n := c.entry
	c.line.flying--
	e.put(c)
	e.unsent(n, v, why)
}

// unsent ends an op that was not sent.
func (e *engine) unsent(n *schedule.Entry, v verdict.Verdict, why verdict.Reason) {
	e.step(n, schedule.GiveUp)
	e.judge.Unsent(n.Clone, n.Op, v)
	e.outcome(n, nil, verdict.Of(v, why), 0)
	e.release(n)
}

// endOwn handles the reply to a call that is not in the plan; res is nil if there is no readable
// reply, and err says why.
func (e *engine) endOwn(c *call, res xdr.Message, err error) {
	name := lastName(c.form.Op)
	if err != nil {
		e.record.Note("a call of our own (%s) had no reply: %v", name, err)
	} else if code, symbol := judge.StatusOf(res); code != 0 {
		e.record.Note("a call of our own (%s) failed: %s", name, judge.StatusName(code, symbol))
	} else if c.behind != nil && workload.Has(c.form.Op, nfs4.OP_LOCKU) {
		e.judge.Unlocked(c.clone.Number, c.behind.form.Op)
	}
	e.step(c.entry, schedule.Finish)
	e.passOn(c)
}

// dropOwn ends a call of our own that was not sent.
func (e *engine) dropOwn(c *call, why *verdict.Reason) {
	e.record.Note("a call of our own (%s) was not sent: %s", lastName(c.form.Op), report.Sentence(why))
	e.step(c.entry, schedule.GiveUp)
	e.passOn(c)
}

// passOn releases a call of our own, and goes on with the call that waits for it.
func (e *engine) passOn(c *call) {
	behind := c.behind
	c.line.flying--
	e.put(c)
	switch {
	case behind == nil:
	case behind.follows: // its turn has come now
		n := behind.entry
		behind.line.flying--
		e.put(behind)
		e.step(n, schedule.Follow)
		e.sched.Return(n)
	default:
		e.end(behind)
	}
}

// settle records the outcome of a call, which may not be over yet.
// inline is how many bytes of data stand in the stream of the reply.
func (e *engine) settle(c *call, j verdict.Judgement, inline uint64) {
	n := c.moved() + inline
	e.outcome(c.entry, c, j, n)
	e.count.bytes += n
}

// outcome records the outcome of an op, with the number of bytes of its data. c is nil if it was not sent.
func (e *engine) outcome(n *schedule.Entry, c *call, j verdict.Judgement, data uint64) {
	o := &e.last
	*o = report.Outcome{Clone: n.Clone, Op: n.Op, Verdict: j.Verdict, Reasons: j.Reasons, Bytes: data}
	if c != nil {
		o.XID, o.Status, o.Due, o.Again = c.XID, c.status, c.due, c.tries > 1
		o.Queued, o.Sent, o.Replied = c.Times.Queued, c.Times.Sent, c.Times.Replied
		if o.Queued.IsZero() {
			o.Queued = e.start
		}
	}
	status := "not sent"
	if c != nil {
		status = c.status
	}
	e.roots.missing(n, c != nil, status, j.Reasons)
	e.record.Add(o)
	if e.opt.Observe != nil {
		kept := *o // the observer may keep it
		e.opt.Observe(&kept)
	}
}

// end returns a call whose outcome is settled to the pool, and releases what waits for its op.
func (e *engine) end(c *call) {
	n := c.entry
	e.step(n, schedule.Finish)
	c.line.flying--
	e.put(c)
	e.release(n)
}

// release ends an op, and releases those that have waited for it.
func (e *engine) release(n *schedule.Entry) {
	e.count.left--
	e.count.done++
	if err := e.sched.Ended(n, time.Since(e.start)); err != nil {
		e.mistake(err)
	}
}

// learn stores the values that a reply provides.
func (e *engine) learn(c *call, res xdr.Message) {
	c.clone.Learn(c.form.Op, res)
	for _, id := range c.clone.TakeOpened() {
		s := &c.clone.Sessions[id]
		e.slots.opened(s)
		e.provision.made[s] = c.line
	}
}
