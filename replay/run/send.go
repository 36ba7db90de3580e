package run

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/internal/world"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verdict"
)

// sendDue sends what is due, and sets the alarm for the next.
func (e *engine) sendDue() {
	wait := e.sendPostponed()
	// What is sent, or turns out not to be sent, can make room for calls that wait for
	// it, and what ends those makes others due.
	for e.sendHeld(); e.sendScheduled(); e.sendHeld() {
	}
	if e.stopping != "" {
		return
	}
	if next, due := e.sched.Next(); next != nil {
		if until := e.until(due); wait == 0 || until < wait {
			wait = max(until, time.Nanosecond)
		}
	}
	if wait > 0 {
		e.alarm.Set(wait)
	}
}

// postponed is a call that is to be sent once more.
type postponed struct {
	at   time.Time
	call *call
}

// sendPostponed sends again what is due, and returns the time until the next; 0 if
// there is none.
func (e *engine) sendPostponed() time.Duration {
	now := time.Now()
	for i := 0; i < len(e.later); {
		if e.later[i].at.After(now) {
			i++
			continue
		}
		c := e.later[i].call
		e.later = slices.Delete(e.later, i, i+1)
		e.step(c.entry, schedule.Again)
		e.issue(c)
	}
	var next time.Duration
	for i := range e.later {
		if d := time.Until(e.later[i].at); next == 0 || d < next {
			next = max(d, time.Microsecond)
		}
	}
	return next
}

// sendHeld sends what has waited for a slot of a session, or for room on a connection.
func (e *engine) sendHeld() {
	for len(e.freed) > 0 {
		s := e.freed[0]
		e.freed = e.freed[1:]
		for len(e.blocked[s]) > 0 && (s.Lost || s.Vacant()) {
			c := e.blocked[s][0]
			e.blocked[s] = e.blocked[s][1:]
			e.step(c.entry, schedule.Slot)
			e.issue(c)
		}
	}
	for _, c := range e.lines.all {
		for len(c.wait) > 0 && c.room() && e.stopping == "" {
			n := c.wait[0]
			c.wait = c.wait[1:]
			e.step(n, schedule.Room)
			e.admit(n)
		}
	}
}

// sendScheduled sends what is due, and reports whether there was anything.
func (e *engine) sendScheduled() (any bool) {
	for e.stopping == "" {
		next, due := e.sched.Next()
		if next == nil || e.until(due) > 0 {
			break
		}
		e.admit(e.sched.Take())
		any = true
	}
	return any
}

// until is the time until a call that is due may be sent.
func (e *engine) until(due time.Duration) time.Duration {
	until := time.Until(e.start.Add(due))
	if e.opt.MaxRate > 0 && !e.count.lastSend.IsZero() {
		until = max(until, time.Until(e.count.lastSend.Add(time.Duration(float64(time.Second)/e.opt.MaxRate))))
	}
	return until
}

// admit makes a call of an op and issues it, or finds that it cannot be sent, or lets
// it wait for room on its connection.
func (e *engine) admit(n *schedule.Entry) {
	if e.capped() {
		e.sched.Return(n)
		return
	}
	w := e.worlds[n.World]
	l := e.lines.of(n)
	if !l.room() {
		e.step(n, schedule.NoRoom)
		l.wait = append(l.wait, n)
		return
	}
	if n.Op.Modifies && !e.opt.Write {
		// The guard would not let it pass, if the plan is right.
		e.unsent(n, verdict.NotSent, verdict.Reason{Code: verdict.Refused, Detail: (&guard.Refused{Reason: guard.ReadOnly}).Error()})
		return
	}
	if why := w.Omitted(n.Op); why != verdict.None {
		e.unsent(n, verdict.Omitted, verdict.Reason{Code: why})
		return
	}
	if e.leftovers(n, w, l) {
		return
	}
	c := e.get(n, l)
	c.due = e.start.Add(n.Due())
	e.issue(c)
}

// capped ends the run when a limit is reached.
func (e *engine) capped() bool {
	switch {
	case e.opt.MaxOps > 0 && e.count.sent >= e.opt.MaxOps:
		e.stop(fmt.Sprintf("%d calls were sent, and no more were allowed", e.count.sent))
	case e.opt.MaxBytes > 0 && e.count.bytes >= e.opt.MaxBytes:
		e.stop(fmt.Sprintf("%d bytes were moved, and no more were allowed", e.count.bytes))
	}
	return e.stopping != ""
}

// issue finds a slot for a call, or lets it wait for one, and sends it.
func (e *engine) issue(c *call) {
	var slot uint64
	c.form.Session, slot = world.SessionOf(c.form.Op)
	c.form.Slot = -1
	if s := c.session(); s != nil && s.Bound {
		if c.form.Slot = s.Take(slot); c.form.Slot < 0 {
			if s.Lost {
				e.dropped(c, verdict.NotSent, verdict.Reason{Code: verdict.NoSlot})
				return
			}
			e.step(c.entry, schedule.NoSlot)
			e.blocked[s] = append(e.blocked[s], c)
			return
		}
	}
	if err := e.build(c); err != nil {
		e.giveSlot(c)
		v, why := e.unbuilt(c, err)
		e.dropped(c, v, why)
		return
	}
	c.tries++
	e.count.flying++
	e.count.sent++
	e.count.lastSend = time.Now()
	e.step(c.entry, schedule.Hand)
	c.line.req.Start(&c.Call.Call)
}

// build encodes a call and readies it for its reply.
func (e *engine) build(c *call) error {
	e.values = world.Values{World: c.world, Form: &c.form, Memory: c, Callback: e.probe.listener}
	if err := e.encode(c, &e.values); err != nil {
		return err
	}
	c.XID, c.Err, c.Layout = 0, nil, nil
	c.Timeout, c.Done, c.User = e.opt.Timeout, done, c
	asCaptured := e.opt.Layout && c.form.Op.Layout != nil && !c.relaid && !c.line.plain
	if err := room(c, asCaptured); err != nil {
		return err
	}
	if asCaptured {
		c.Layout = c.form.Op.Layout.Transport()
	}
	return nil
}

// encode makes the bytes of a call.
func (e *engine) encode(c *call, values plan.Resolver) error {
	o := c.form.Op
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: o.Program, Version: o.Version, Procedure: o.Procedure}
	if o.Credential > 0 && o.Credential < len(e.creds) {
		h.Cred = e.creds[o.Credential]
	}
	stream, items, err := c.world.Rewritten(&c.form).AppendArgs(h.Append(c.stream[:0]), c.Items[:0], values)
	c.stream, c.Items = stream, items
	if err != nil {
		return err
	}
	c.Message = transport.Message{Stream: stream, Items: items}
	return nil
}

// unbuilt says what becomes of a call that could not be encoded.
func (e *engine) unbuilt(c *call, err error) (verdict.Verdict, verdict.Reason) {
	why := verdict.Reason{Code: verdict.NoValue, Detail: err.Error()}
	var u *world.Unbound
	switch {
	case !errors.As(err, &u):
		return verdict.NotSent, why
	case c.world.Absent(c.form.Op, u):
		return verdict.Omitted, why
	case e.judge.CutBefore(c.form.Op):
		why.Code = verdict.Cut
		return verdict.Explained, why
	}
	return verdict.NotSent, why
}

// giveSlot gives a slot back.
func (e *engine) giveSlot(c *call) {
	s := c.session()
	if s == nil || c.form.Slot < 0 {
		return
	}
	s.Give(c.form.Slot)
	c.form.Slot = -1
	if len(e.blocked[s]) > 0 {
		e.freed = append(e.freed, s)
	}
}

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
	e.outcome(n, nil, verdict.Of(v, why))
	e.release(n)
}
