package run

import (
	"context"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/callback"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Calls that are not in the plan are needed where this server behaves differently from the
// captured one.

// confirm sends OPEN_CONFIRM if this server wants it and the plan has none, and reports
// whether it has. The call of the plan ends with it.
func (e *engine) confirm(c *call, res xdr.Message) bool {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	if !ok || o.Compound == nil || o.Compound.Minor != 0 {
		return false
	}
	for i := range o.Binds {
		b := &o.Binds[i]
		open, ok := bindings.Body(r, b.At).(*nfs4.OPEN4res)
		if !ok || b.Kind != plan.FieldState || b.State == plan.DelegationState || open.Status != nfs4.NFS4_OK ||
			open.Resok4.Rflags&nfs4.OPEN4_RESULT_CONFIRM == 0 {
			continue
		}
		c.world.States[b.Ref].Unconfirmed = true
		s := &e.load.Tables.States[b.Ref-1]
		if e.confirms[b.Ref] || s.Object == 0 || s.Owner == 0 {
			continue
		}
		e.sendOwn(like(o, 0, openConfirm(s, b.Ref), plan.Bind{At: 1, Kind: plan.FieldState, Ref: b.Ref}), c.world, c.line, c)
		return true
	}
	return false
}

// completeAfter is how often a call is refused before RECLAIM_COMPLETE is sent: that of the plan may be under way.
const completeAfter = 3

// complete says for a client that it reclaims nothing (RECLAIM_COMPLETE): until then it may open and lock nothing, grace period
// or not (RFC 8881, section 18.51.3). The plan has such a call, unless the capture lacks it.
func (e *engine) complete(c *call) {
	of, minor := c.lives.client, c.form.Op.Compound.Minor
	k := [2]int{c.world.Number, of}
	if of == 0 || minor == 0 || c.world.Clients[of].Complete || e.completed[k] {
		return
	}
	session := c.world.SessionFor(of)
	if session == 0 {
		return
	}
	if e.completed == nil {
		e.completed = map[[2]int]bool{}
	}
	e.completed[k] = true
	e.record.Note("the capture does not show that client %d had nothing to reclaim (RECLAIM_COMPLETE): the run has said so", of)
	ops := []plan.CompoundOp{sequence(session), {Op: uint32(nfs4.OP_RECLAIM_COMPLETE), Args: []plan.Field{u32("rca_one_fs", 0)}}}
	e.sendOwn(like(c.form.Op, minor, ops), c.world, c.line, nil)
}

// tidy undoes an effect that only this server had: it closes a file that this server opened and
// the captured one did not, since the plan has no CLOSE for it, with its delegation, and gives back such a lock. It reports
// whether there is one. The call of the plan ends with it.
func (e *engine) tidy(c *call, res xdr.Message) bool {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	x := o.Expect
	if !ok || o.Compound == nil || x == nil || x.Status == 0 {
		return false
	}
	for i := range r.Ops {
		if l, ok := r.Ops[i].Body.(*nfs4.LOCK4res); ok && l.Status == nfs4.NFS4_OK && (i >= len(x.Ops) || x.Ops[i] != 0) && e.unlockOwn(c, i, l) {
			return true
		}
		open, ok := r.Ops[i].Body.(*nfs4.OPEN4res)
		if !ok || i >= len(o.Compound.Ops) || open.Status != nfs4.NFS4_OK || i < len(x.Ops) && x.Ops[i] == 0 || i+1 >= len(r.Ops) {
			continue
		}
		handle := opened(c, r, i)
		if handle == nil {
			continue
		}
		seqid := plan.Field{N: "seqid", Kind: plan.FieldU32}
		if k := slices.IndexFunc(o.Compound.Ops[i].Args, func(a plan.Field) bool { return a.Kind == plan.FieldSeqid }); k >= 0 {
			seqid = o.Compound.Ops[i].Args[k]
		}
		ops := []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: handle}}},
			{Op: uint32(nfs4.OP_CLOSE), Args: []plan.Field{seqid, rawState("open_stateid", &open.Resok4.Stateid)}},
		}
		if id := delegated(open); id != nil {
			ops = append(ops, delegreturn(id))
		}
		if c.form.Session != 0 {
			ops = append([]plan.CompoundOp{sequence(c.form.Session)}, ops...)
		}
		e.sendOwn(like(o, o.Compound.Minor, ops), c.world, c.line, c)
		return true
	}
	return false
}

// unlockOwn gives back what the LOCK that is operation i has locked. An owner who may have had other locks of the
// file keeps it: they would be lost, too. It reports whether there is such a call.
func (e *engine) unlockOwn(c *call, i int, res *nfs4.LOCK4res) bool {
	o := c.form.Op
	m, ok := e.args.Of(o).(*nfs4.CompoundArgs)
	if !ok || i >= len(m.Ops) {
		return false
	}
	l, ok := m.Ops[i].Body.(*nfs4.LOCK4args)
	object := workload.ObjectAt(o, i)
	if !ok || !l.Locker.NewLockOwner || object == 0 {
		return false
	}
	seqid := plan.Field{N: "seqid", Kind: plan.FieldU32}
	for _, a := range o.Compound.Ops[i].Args {
		if a.Kind == plan.FieldSeqid {
			seqid = a // the last one is the lock owner's
		}
	}
	ops := []plan.CompoundOp{put(object), {Op: uint32(nfs4.OP_LOCKU), Args: []plan.Field{
		{N: "locktype", Kind: plan.FieldU32, Value: uint64(l.Locktype)}, seqid, rawState("lock_stateid", &res.Resok4.LockStateid),
		{N: "offset", Kind: plan.FieldU64, Value: l.Offset}, {N: "length", Kind: plan.FieldU64, Value: l.Length}}}}
	if c.form.Session != 0 {
		ops = append([]plan.CompoundOp{sequence(c.form.Session)}, ops...)
	}
	e.sendOwn(like(o, o.Compound.Minor, ops), c.world, c.line, c)
	return true
}

// surplus returns a delegation that only this server gave: the plan has no DELEGRETURN
// for it, and the server would consider the client busy when it ends. It reports whether there is
// one. The call of the plan ends with it.
func (e *engine) surplus(c *call, res xdr.Message) bool {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	if !ok || o.Compound == nil {
		return false
	}
	for i := range r.Ops {
		open, ok := r.Ops[i].Body.(*nfs4.OPEN4res)
		if !ok || i+1 >= len(r.Ops) || open.Status != nfs4.NFS4_OK {
			continue
		}
		id, handle := delegated(open), opened(c, r, i)
		if id == nil || handle == nil || slices.ContainsFunc(o.Binds, func(b plan.Bind) bool {
			return b.At == i && b.Kind == plan.FieldState && b.State == plan.DelegationState
		}) {
			continue
		}
		ops := []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: handle}}},
			delegreturn(id),
		}
		if c.form.Session != 0 {
			ops = append([]plan.CompoundOp{sequence(c.form.Session)}, ops...)
		}
		e.sendOwn(like(o, o.Compound.Minor, ops), c.world, c.line, c)
		return true
	}
	return false
}

// surplusOpen closes an open that this server gave in addition to a delegation. The captured server gave only the delegation, so the plan
// has no CLOSE. It reports whether there is such an open. The call of the plan ends with the CLOSE.
func (e *engine) surplusOpen(c *call, res xdr.Message) bool {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	if !ok || o.Compound == nil || o.Compound.Minor == 0 || o.Expect == nil || o.Expect.Status != 0 {
		return false
	}
	for i := range o.Binds {
		at := o.Binds[i].At
		open, ok := bindings.Body(r, at).(*nfs4.OPEN4res)
		if !ok || o.Binds[i].State != plan.DelegationState || open.Status != nfs4.NFS4_OK || at+1 >= len(r.Ops) || delegated(open) == nil ||
			open.Resok4.Stateid == (nfs4.Stateid4{}) || bindings.Opens(o, at) {
			continue
		}
		handle := opened(c, r, at)
		if handle == nil {
			continue
		}
		ops := []plan.CompoundOp{
			sequence(c.form.Session),
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: handle}}},
			{Op: uint32(nfs4.OP_CLOSE), Args: []plan.Field{{N: "seqid", Kind: plan.FieldU32}, rawState("open_stateid", &open.Resok4.Stateid)}},
		}
		e.sendOwn(like(o, o.Compound.Minor, ops), c.world, c.line, c)
		return true
	}
	return false
}

// delegated is the state id of the delegation that an OPEN has given; nil if there is none.
func delegated(open *nfs4.OPEN4res) *nfs4.Stateid4 {
	switch d := &open.Resok4.Delegation; d.DelegationType {
	case nfs4.OPEN_DELEGATE_READ, nfs4.OPEN_DELEGATE_READ_ATTRS_DELEG:
		return &d.Read.Stateid
	case nfs4.OPEN_DELEGATE_WRITE, nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG:
		return &d.Write.Stateid
	}
	return nil
}

// delegreturn returns a delegation of the current file.
func delegreturn(id *nfs4.Stateid4) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(nfs4.OP_DELEGRETURN), Args: []plan.Field{rawState("deleg_stateid", id)}}
}

// opened is the handle of the file that OPEN, operation i, has opened; nil if it is not
// known.
func opened(c *call, r *nfs4.CompoundRes, i int) []byte {
	if fh, ok := r.Ops[i+1].Body.(*nfs4.GETFH4res); ok && fh.Status == nfs4.NFS4_OK {
		return slices.Clone(fh.Resok4.Object)
	}
	if id := workload.ObjectAt(c.form.Op, i); id > 0 {
		return c.world.Objects[id].Handle
	}
	return nil
}

// leftovers ends a session that the captured server had forgotten and this one has not, before
// its client id is destroyed. It reports whether there is one; the op then follows.
func (e *engine) leftovers(n *schedule.Entry, w *bindings.World, l *line) bool {
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
		if at := e.made[s]; at != nil {
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
	w, ref := e.recalled(r)
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
	e.sendOwn(o, w, e.lines.of(&schedule.Entry{Op: o, World: w.Number}), nil)
}

// answerQuestions tells servers what the client has of files with delegations.
func (e *engine) answerQuestions() {
	for _, q := range e.inbox.questions() {
		var a cached
		a.change, a.size, a.known = e.judge.Cached(q.handle)
		q.answer <- a
	}
}

// recalled is the state that is recalled, and its world; 0 if nobody knows it.
func (e *engine) recalled(r *callback.Recall) (w *bindings.World, ref int) {
	w = e.worlds[0]
	for _, d := range e.worlds {
		if i := d.Find(&r.Stateid); i != 0 {
			w, ref = d, i
		}
	}
	return w, ref
}

// heldRecall is a recall that is not answered at once. It came before the reply with the delegation, which may have been lost with a
// connection, so that the call is sent again; or the plan returns the delegation, since the captured server had recalled it, too. Until then it
// opens the file with the delegation and writes what the captured client had in its memory.
type heldRecall struct {
	callback.Recall
	until, limit time.Time
	alarm        time.Time // when the engine looks again
	done         int       // calls that were over by then
}

const (
	// patience is how long a recall waits for the reply with the delegation, while calls are under way.
	patience = 500 * time.Millisecond
	// standstill is how long the recall of a delegation that the plan returns is held without progress: what comes before the return may wait for
	// the call that the server has recalled it for.
	standstill = 100 * time.Millisecond
	// maxHold is how long it is held in all: servers wait longer before they revoke a delegation.
	maxHold = 5 * time.Second
	// maxHeld is how many recalls are held at a time.
	maxHeld = 256
)

// recall gives a delegation back, or holds the recall.
func (e *engine) recall(r *callback.Recall) {
	if w, ref := e.recalled(r); len(e.recalls) >= maxHeld || !e.holds(w, ref) {
		e.giveBack(r)
		return
	}
	now := time.Now()
	e.recalls = append(e.recalls, heldRecall{Recall: *r, until: now.Add(patience), limit: now.Add(maxHold), done: -1})
	e.heldRecalls()
}

// holds reports whether a recall is not answered yet: the delegation is unknown, or the plan returns it; in a replay with the captured times,
// it does so before calls that were sent have ended in the capture.
func (e *engine) holds(w *bindings.World, ref int) bool {
	if e.count.flying == 0 && len(e.later) == 0 || e.stopping != "" {
		return false
	}
	at, returned := e.returns[ref]
	return ref == 0 || returned && (at <= e.reached || !e.opt.Timing.Paced()) && !w.States[ref].Closed
}

// heldRecalls gives back what is held no longer.
func (e *engine) heldRecalls() {
	kept := e.recalls[:0]
	for _, r := range e.recalls {
		w, ref := e.recalled(&r.Recall)
		now := time.Now()
		if ref != 0 && r.done != e.count.done && now.Before(r.limit) {
			r.done, r.until = e.count.done, now.Add(standstill)
		}
		if !e.holds(w, ref) || !now.Before(r.until) {
			e.giveBack(&r.Recall)
			continue
		}
		if !now.Before(r.alarm) {
			r.alarm = r.until
			time.AfterFunc(r.until.Sub(now)+time.Millisecond, e.inbox.rouse)
		}
		kept = append(kept, r)
	}
	e.recalls = kept
}

// returnAll returns the delegations that the plan leaves behind. Otherwise the next user of the files, such as the
// read-back, waits until the server revokes the delegations, which takes as long as a lease.
func (e *engine) returnAll(ctx context.Context) {
	kept, why := 0, error(nil)
	for _, w := range e.worlds {
		for i := range e.load.Tables.States {
			t, ref := &e.load.Tables.States[i], i+1
			s := &w.States[ref]
			if t.Kind != plan.DelegationState || !s.Bound || s.Closed || t.Object == 0 || t.Client == 0 {
				continue
			}
			ops := []plan.CompoundOp{put(t.Object), {Op: uint32(nfs4.OP_DELEGRETURN), Args: []plan.Field{
				{N: "deleg_stateid", Kind: plan.FieldState, Ref: ref}}}} // sent as CLOSE if it is an open
			if e.load.Tables.Clients[t.Client-1].Minor > 0 {
				session := w.SessionFor(t.Client)
				if session == 0 {
					session = e.sessionAgain(ctx, w, t.Client)
				}
				if session == 0 {
					continue // the server has forgotten them with the client
				}
				ops = append([]plan.CompoundOp{sequence(session)}, ops...)
			}
			if err := e.callOwn(ctx, w, t.Client, ops); err != nil {
				kept, why = kept+1, err
			}
			s.Closed = true
		}
	}
	if kept > 0 {
		e.record.Note("%d delegations could not be returned, the last because of: %v", kept, why)
	}
}

// sessionAgain makes a session for a client that has none any more and still exists, since the plan does not destroy it; 0 if there is
// no such client. It is destroyed with the client.
func (e *engine) sessionAgain(ctx context.Context, w *bindings.World, client int) int {
	i := slices.IndexFunc(e.load.Tables.Sessions, func(s plan.Session) bool { return s.Client == client })
	if i < 0 || e.createSession(ctx, w, i+1) != nil {
		return 0
	}
	e.ours = append(e.ours, ownSession{w, i + 1})
	return i + 1
}

// sendOwn sends a call that is not in the plan. A call of the plan may depend on it, and ends
// with it or follows it.
func (e *engine) sendOwn(o *plan.Op, w *bindings.World, l *line, behind *call) {
	c := e.get(e.sched.Extra(o, w.Number), l)
	c.own, c.behind, c.due = true, behind, time.Now()
	e.count.extra++
	e.issue(c)
}
