package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/callback"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Calls that are not in the plan are needed where this server behaves differently from the
// captured one.

// completeAfter is how often a call is refused before RECLAIM_COMPLETE is sent: that of the plan may be under way.
const completeAfter = 3

// complete says for a client that it reclaims nothing (RECLAIM_COMPLETE): until then it may open and lock nothing, grace period
// or not (RFC 8881, section 18.51.3). The plan has such a call, unless the capture lacks it.
func (e *engine) complete(c *call) {
	of, minor := c.lives.client, c.form.Op.Compound.Minor
	k := [2]int{c.clone.Number, of}
	if of == 0 || minor == 0 || c.clone.Clients[of].Complete || e.completed[k] {
		return
	}
	session := c.clone.SessionFor(of)
	if session == 0 {
		return
	}
	if e.completed == nil {
		e.completed = map[[2]int]bool{}
	}
	e.completed[k] = true
	e.record.Note("the capture does not show that client %d had nothing to reclaim (RECLAIM_COMPLETE): the run has said so", of)
	ops := []plan.CompoundOp{sequence(session), {Op: uint32(nfs4.OP_RECLAIM_COMPLETE), Args: []plan.Field{u32("rca_one_fs", 0)}}}
	e.sendOwn(like(c.form.Op, minor, ops), c.clone, c.line, nil)
}

// leftovers ends a session that the captured server had forgotten and this one has not, before
// its client id is destroyed. It reports whether there is one; the op then follows.
func (e *engine) leftovers(n *schedule.Entry, w *bindings.Clone, l *line) bool {
	if n.Op.Compound == nil {
		return false
	}
	for i := range n.Op.Compound.Ops {
		d := &n.Op.Compound.Ops[i]
		if nfs4.NfsOpnum4(d.Op) != nfs4.OP_DESTROY_CLIENTID || len(d.Args) == 0 || d.Args[0].Kind != plan.FieldClient {
			continue
		}
		id := w.SessionFor(d.Args[0].Ref)
		if id == 0 {
			continue
		}
		s := &w.Sessions[id]
		s.Bound = false
		e.step(n, schedule.Precede)
		c := e.get(n, l)
		c.follows = true
		ops := []plan.CompoundOp{{Op: uint32(nfs4.OP_DESTROY_SESSION), Args: []plan.Field{{N: "dsa_sessionid", Kind: plan.FieldRaw, Bytes: slices.Clone(s.ID[:])}}}}
		// The client has another connection by now, to which the session is not bound (RFC 8881, section 18.37.3).
		if at := e.provision.made[s]; at != nil {
			l = at
		}
		e.sendOwn(like(n.Op, n.Op.Compound.Minor, ops), w, l, c)
		return true
	}
	return false
}

// giveBack returns a recalled delegation earlier than the captured client did, since the server
// makes others wait for it.
func (e *engine) giveBack(r *callback.Recall) {
	w, ref := e.delegations.find(r)
	client := -1
	if ref != 0 {
		if w.States[ref].Closed {
			return
		}
		w.States[ref].Closed = true
		client = e.load.Tables.States[ref-1].Client
	}
	ops := []plan.CompoundOp{
		{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: r.Handle}}},
		delegreturn(&r.Stateid),
	}
	minor := uint32(0)
	if session := w.LastSessionFor(client); session != 0 {
		minor = e.load.Minor(session)
		ops = append([]plan.CompoundOp{sequence(session)}, ops...)
	}
	example := e.load.Example(0)
	if example == nil {
		return
	}
	o := like(example, minor, ops)
	e.sendOwn(o, w, e.lines.of(&schedule.Entry{Op: o, Clone: w.Number}), nil)
}

// answerQuestions tells servers what the client has of files with delegations.
func (e *engine) answerQuestions() {
	for _, q := range e.inbox.questions() {
		var a cached
		a.change, a.size, a.known = e.judge.Cached(q.handle)
		q.answer <- a
	}
}

// recall gives a delegation back, or holds the recall.
func (e *engine) recall(r *callback.Recall) {
	if !e.delegations.hold(r) {
		e.giveBack(r)
		return
	}
	e.heldRecalls()
}

// heldRecalls gives back what is held no longer.
func (e *engine) heldRecalls() { e.delegations.release(e.count.done, e.giveBack) }

// busy reports whether calls are under way, or will be.
func (e *engine) busy() bool {
	return (e.count.flying > 0 || len(e.later.list) > 0) && e.stopping == ""
}

// sendOwn sends a call that is not in the plan. A call of the plan may depend on it, and ends
// with it or follows it.
func (e *engine) sendOwn(o *plan.Op, w *bindings.Clone, l *line, behind *call) {
	c := e.get(e.sched.Extra(o, w.Number), l)
	c.own, c.behind, c.due = true, behind, time.Now()
	e.count.extra++
	e.issue(c)
}

// callOwn makes one call that is not in the plan, for a client, and waits for the reply. Without a line it takes the
// connection of an example.
func (e *engine) callOwn(ctx context.Context, l *line, w *bindings.Clone, of int, ops []plan.CompoundOp, binds ...plan.Bind) error {
	example := e.load.Example(of)
	if example == nil {
		return errors.New("no call of the plan is of NFSv4")
	}
	minor := uint32(0)
	if of > 0 {
		minor = e.load.Tables.Clients[of-1].Minor
	}
	o := like(example, minor, ops, binds...)
	n := e.sched.Extra(o, w.Number)
	if l == nil {
		l = e.lines.captured[w.Number][example.Connection]
	}
	c := e.get(n, l)
	defer func() {
		c.line.flying--
		e.put(c)
	}()
	c.form.Session, _ = bindings.SessionOf(o)
	if s := c.session(); s != nil && s.Bound {
		c.form.Slot = s.Take(0)
	}
	c.remember(clientOf(&e.load.Tables, c.form.Op))
	if err := e.codec.build(c); err != nil {
		e.slots.give(c)
		return err
	}
	c.Done = nil
	if err := c.line.req.Do(ctx, &c.Call.Call); err != nil {
		return err
	}
	c.keep()
	rpc, res, err := e.codec.decode(c)
	if err != nil {
		return err
	}
	if rpc != "" {
		return fmt.Errorf("%s: %s", lastName(o), rpc)
	}
	if r, ok := res.(*nfs4.CompoundRes); ok && c.session() != nil && c.form.Slot >= 0 {
		c.session().Sequence(c.form.Slot, r)
	}
	e.slots.give(c)
	e.learn(c, res)
	e.provision.result = res
	if code, symbol := judge.StatusOf(res); code != 0 {
		return &client.StatusError{Operation: lastName(o), Code: code, Symbol: symbol}
	}
	return nil
}
