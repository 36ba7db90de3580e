package run

import (
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// sendDue sends the calls that are due, and sets the alarm for the next one.
func (e *engine) sendDue() {
	wait := e.sendPostponed()
	// A call that is sent, or cannot be sent, can make room for waiting calls, and the end of
	// those makes others due.
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

// sendPostponed sends the postponed calls that are due again, and returns the time until the next
// one; 0 if there is none.
func (e *engine) sendPostponed() time.Duration {
	now := time.Now()
	for c := e.later.due(now); c != nil; c = e.later.due(now) {
		e.step(c.entry, schedule.Again)
		if why := c.clone.Omitted(c.form.Op); why != verdict.None && c.form.Note == verdict.Restarted {
			e.dropped(c, verdict.Omitted, verdict.Reason{Code: why}) // its state is lost
			continue
		}
		e.issue(c)
	}
	return e.later.next()
}

// sendHeld sends calls that have waited for a session slot, or for room on a connection.
func (e *engine) sendHeld() {
	for c := e.slots.next(); c != nil; c = e.slots.next() {
		e.step(c.entry, schedule.Slot)
		e.issue(c)
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

// sendScheduled sends the scheduled calls that are due, and reports whether there were any.
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
		until = max(until, time.Until(e.count.lastSend.Add(schedule.Span(float64(time.Second)/e.opt.MaxRate))))
	}
	return until
}

// admit makes a call from an op and issues it, unless it cannot be sent or has to wait for room
// on its connection.
func (e *engine) admit(n *schedule.Entry) {
	if e.capped() {
		e.sched.Return(n)
		return
	}
	w := e.clones[n.Clone]
	l := e.lines.of(n)
	if l == nil {
		e.unsent(n, verdict.Explained, verdict.Reason{Code: verdict.NoLocks})
		return
	}
	if !l.room() {
		e.step(n, schedule.NoRoom)
		l.wait = append(l.wait, n)
		return
	}
	if n.Op.Modifies && !e.opt.Write {
		// If the plan is right, the guard would not let it pass.
		e.unsent(n, verdict.NotSent, verdict.Reason{Code: verdict.Refused, Detail: (&guard.Refused{Reason: guard.ReadOnly}).Error()})
		return
	}
	if why := w.Omitted(n.Op); why != verdict.None {
		e.unsent(n, verdict.Omitted, verdict.Reason{Code: why})
		return
	}
	if e.leftovers(n, w, l) || e.awaitGrant(n, w) {
		return
	}
	c := e.get(n, l)
	if e.locks.uncalled(n, w) {
		c.form.Note = verdict.Uncalled
	}
	c.due = e.start.Add(n.Due())
	e.issue(c)
}

// capped ends the run when a limit is reached.
func (e *engine) capped() bool {
	switch {
	case e.opt.MaxOps > 0 && e.count.sent-e.before.sent >= e.opt.MaxOps:
		e.stop(fmt.Sprintf("%d calls were sent, and no more were allowed", e.count.sent-e.before.sent))
	case e.opt.MaxBytes > 0 && e.count.bytes-e.before.bytes >= e.opt.MaxBytes:
		e.stop(fmt.Sprintf("%d bytes were moved, and no more were allowed", e.count.bytes-e.before.bytes))
	}
	return e.stopping != ""
}

// awaitGrant lets an op wait for the server's call. It reports whether it has to.
func (e *engine) awaitGrant(n *schedule.Entry, w *bindings.Clone) bool {
	if !e.locks.await(n, w, time.Now().Add(e.opt.CallbackWait)) {
		return false
	}
	e.step(n, schedule.Precede)
	time.AfterFunc(e.opt.CallbackWait+time.Millisecond, e.inbox.rouse)
	return true
}

// grantsArrived goes on with the ops whose call has come, or has not come in time.
func (e *engine) grantsArrived() {
	for _, n := range e.locks.arrived(e.stopping != "") {
		e.step(n, schedule.Follow)
		e.sched.Return(n)
	}
}
