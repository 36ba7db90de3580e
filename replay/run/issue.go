package run

import (
	"errors"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// issue sends a call once it has a slot, or lets it wait for one.
func (e *engine) issue(c *call) {
	var slot uint64
	c.form.Session, slot = bindings.SessionOf(c.form.Op)
	c.form.Slot = -1
	if s := c.session(); s != nil && s.Bound {
		if c.form.Slot = s.Take(slot); c.form.Slot < 0 {
			if s.Lost {
				e.dropped(c, verdict.NotSent, verdict.Reason{Code: verdict.NoSlot})
				return
			}
			e.step(c.entry, schedule.NoSlot)
			e.slots.wait(s, c)
			return
		}
	}
	c.remember(clientOf(&e.load.Tables, c.form.Op))
	if err := e.codec.build(c); err != nil {
		e.slots.give(c)
		v, why := e.unbuilt(c, err)
		e.dropped(c, v, why)
		return
	}
	e.locks.issued(c)
	e.delegations.reached = max(e.delegations.reached, c.form.Op.Time+c.form.Op.Latency)
	e.judge.Issued(c.clone.Number, c.form.Op)
	c.tries++
	e.count.flying++
	e.count.sent++
	e.count.lastSend = time.Now()
	e.step(c.entry, schedule.Hand)
	c.line.req.Start(&c.Call.Call)
}

// unbuilt handles a call that could not be encoded.
func (e *engine) unbuilt(c *call, err error) (verdict.Verdict, verdict.Reason) {
	why := verdict.Reason{Code: verdict.NoValue, Detail: err.Error()}
	var u *bindings.Unbound
	switch {
	case !errors.As(err, &u):
		return verdict.NotSent, why
	case c.clone.Absent(c.form.Op, u):
		return verdict.Omitted, why
	case e.judge.CutBefore(c.form.Op):
		why.Code = verdict.Cut
		return verdict.Explained, why
	}
	if e.opt.Shared && e.opt.Write {
		return verdict.Explained, verdict.Reason{Code: verdict.Shared}
	}
	if root, ok := e.roots.follows(c.clone.Number, err); ok {
		why = root
	}
	return verdict.NotSent, why
}
