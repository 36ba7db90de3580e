package run

import (
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// again is a call that is to be sent once more.
type again struct {
	at time.Time
	f  *flight
}

// later are the statuses with which a server asks for patience.
func later(o *plan.Op, code uint32) bool {
	if o.Compound == nil {
		return code == 10008 // NFS3ERR_JUKEBOX
	}
	return code == uint32(nfs4.NFS4ERR_DELAY) || code == uint32(nfs4.NFS4ERR_GRACE)
}

// retry puts a call back that the server wants to have later, or with a newer
// state id, unless that is what the captured server said.
func (e *engine) retry(f *flight, rpc string, res xdr.Message) bool {
	if rpc != "" || f.node == nil || e.stopping != "" || f.tries > e.opt.Retries {
		return false
	}
	code, _ := statusOf(res)
	old := f.op.Compound != nil && code == uint32(nfs4.NFS4ERR_OLD_STATEID)
	if !later(f.op, code) && !old || f.op.Expect != nil && (later(f.op, f.op.Expect.Status) || f.op.Expect.Status == code) {
		return false
	}
	if c, ok := res.(*nfs4.CompoundRes); ok && f.op.Compound != nil {
		e.compoundState(f.world, f.op, c) // what came before the failure counts
	}
	e.retried++
	f.release()
	wait := min(10*time.Millisecond<<min(f.tries, 8), time.Second)
	e.leave(f)
	f.note = "done at the second attempt or later: the server had asked for patience"
	if old {
		// An OPEN that was under way together with it came first here, and
		// counted the state id on. Clients take the new one and try again.
		wait /= 10
		f.note, f.newest = "done at the second attempt or later: a call under way together with it had moved its state id on", true
	}
	e.again = append(e.again, again{time.Now().Add(wait), f})
	return true
}

// retries sends again what is due, and returns the time until the next; 0 if
// there is none.
func (e *engine) retries() time.Duration {
	now := time.Now()
	for i := 0; i < len(e.again); {
		if e.again[i].at.After(now) {
			i++
			continue
		}
		f := e.again[i].f
		e.again = slices.Delete(e.again, i, i+1)
		e.board(f)
	}
	var next time.Duration
	for i := range e.again {
		if d := time.Until(e.again[i].at); next == 0 || d < next {
			next = max(d, time.Microsecond)
		}
	}
	return next
}

// confirm sends OPEN_CONFIRM if this server wants it and the plan has none. The
// op's node is over when that is done.
func (e *engine) confirm(f *flight, res xdr.Message) bool {
	c, ok := res.(*nfs4.CompoundRes)
	if !ok || f.op.Compound == nil || f.op.Compound.Minor != 0 {
		return false
	}
	for i := range f.op.Binds {
		b := &f.op.Binds[i]
		r, ok := body(c, b.At).(*nfs4.OPEN4res)
		if !ok || b.Kind != plan.FieldState || b.State == plan.DelegationState || r.Status != nfs4.NFS4_OK ||
			r.Resok4.Rflags&nfs4.OPEN4_RESULT_CONFIRM == 0 {
			continue
		}
		f.world.states[b.Ref].unconfirmed = true
		s := &e.load.Tables.States[b.Ref-1]
		if e.confirms[b.Ref] || s.Object == 0 {
			continue
		}
		o := &plan.Op{ID: f.op.ID, Connection: f.op.Connection, Credential: f.op.Credential, Program: f.op.Program, Version: f.op.Version, Procedure: f.op.Procedure,
			Compound: &plan.Compound{Ops: []plan.CompoundOp{
				{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldHandle, Ref: s.Object}}},
				{Op: uint32(nfs4.OP_OPEN_CONFIRM), Args: []plan.Field{{N: "open_stateid", Kind: plan.FieldState, Ref: b.Ref}, {N: "seqid", Kind: plan.FieldSeqid, Ref: s.Owner}}},
			}},
			Binds: []plan.Bind{{At: 1, Kind: plan.FieldState, Ref: b.Ref}},
		}
		if s.Owner == 0 {
			continue
		}
		e.send(o, f.world, f.conn, f)
		return true
	}
	return false
}

// tidy undoes what only this server did: a file that it opened and the captured
// one did not is closed, since the plan has no CLOSE for it.
func (e *engine) tidy(f *flight, res xdr.Message) bool {
	c, ok := res.(*nfs4.CompoundRes)
	x := f.op.Expect
	if !ok || f.op.Compound == nil || x == nil || x.Status == 0 {
		return false
	}
	for i := range c.Ops {
		r, ok := c.Ops[i].Body.(*nfs4.OPEN4res)
		if !ok || i >= len(f.op.Compound.Ops) || r.Status != nfs4.NFS4_OK || i < len(x.Ops) && x.Ops[i] == 0 || i+1 >= len(c.Ops) {
			continue
		}
		fh, ok := c.Ops[i+1].Body.(*nfs4.GETFH4res)
		var handle []byte
		if ok && fh.Status == nfs4.NFS4_OK {
			handle = append(handle, fh.Resok4.Object...)
		} else if id := objectAt(f.op, i); id > 0 {
			handle = f.world.objects[id].handle
		}
		if handle == nil {
			continue
		}
		stateid := append(binaryU32(r.Resok4.Stateid.Seqid), r.Resok4.Stateid.Other[:]...)
		seqid := plan.Field{N: "seqid", Kind: plan.FieldU32}
		for k := range f.op.Compound.Ops[i].Args {
			if a := f.op.Compound.Ops[i].Args[k]; a.Kind == plan.FieldSeqid {
				seqid = a
			}
		}
		ops := []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: handle}}},
			{Op: uint32(nfs4.OP_CLOSE), Args: []plan.Field{seqid, {N: "open_stateid", Kind: plan.FieldRaw, Bytes: stateid}}},
		}
		if f.session != 0 {
			ops = append([]plan.CompoundOp{sequenceOp(f.session)}, ops...)
		}
		e.send(&plan.Op{ID: f.op.ID, Connection: f.op.Connection, Credential: f.op.Credential, Program: f.op.Program, Version: f.op.Version, Procedure: f.op.Procedure,
			Compound: &plan.Compound{Minor: f.op.Compound.Minor, Ops: ops}}, f.world, f.conn, f)
		return true
	}
	return false
}

// leftovers ends sessions that the captured server had forgotten and this one
// has not, before their client id is to go. It reports whether there are any.
func (e *engine) leftovers(n *node, c *conn) bool {
	if n.op.Compound == nil {
		return false
	}
	for i := range n.op.Compound.Ops {
		d := &n.op.Compound.Ops[i]
		if nfs4.NfsOpnum4(d.Op) != nfs4.OP_DESTROY_CLIENTID || len(d.Args) == 0 || d.Args[0].Kind != plan.FieldClient {
			continue
		}
		for id := range n.world.sessions {
			s := &n.world.sessions[id]
			if !s.bound || e.load.Tables.Sessions[id-1].Client != d.Args[0].Ref {
				continue
			}
			s.bound = false
			raw := append([]byte(nil), s.id[:]...)
			f := e.get()
			f.node, f.op, f.world, f.conn = n, n.op, n.world, c
			c.flying++
			e.send(&plan.Op{ID: n.op.ID, Connection: n.op.Connection, Credential: n.op.Credential, Program: n.op.Program, Version: n.op.Version, Procedure: n.op.Procedure,
				Compound: &plan.Compound{Minor: n.op.Compound.Minor, Ops: []plan.CompoundOp{
					{Op: uint32(nfs4.OP_DESTROY_SESSION), Args: []plan.Field{{N: "dsa_sessionid", Kind: plan.FieldRaw, Bytes: raw}}}}}},
				n.world, c, f)
			f.resume = true
			return true
		}
	}
	return false
}

// send sends a call that the plan does not have. If behind is set its node is
// over when this call is.
func (e *engine) send(o *plan.Op, w *world, c *conn, behind *flight) {
	f := e.get()
	f.node, f.op, f.world, f.conn, f.behind = nil, o, w, c, behind
	f.due = time.Now()
	c.flying++
	e.extra++
	e.board(f)
}

// synthetic deals with the reply to a call that the plan does not have.
func (e *engine) synthetic(f *flight, res xdr.Message) {
	behind := f.behind
	f.behind = nil
	if res != nil {
		if code, symbol := statusOf(res); code != 0 {
			e.record.note("a call of our own (%s) failed: %s", extraName(f.op), statusName(code, symbol))
		}
	} else if why := guarded(f.Err); why != nil {
		e.record.note("a call of our own (%s) was not sent: %v", extraName(f.op), why)
	} else if f.Err != nil {
		e.record.note("a call of our own (%s) had no reply: %v", extraName(f.op), f.Err)
	}
	e.end(f)
	switch {
	case behind == nil:
	case behind.resume: // its turn has come now
		n, c := behind.node, behind.conn
		c.flying--
		e.put(behind)
		e.depart(n)
	default:
		e.end(behind)
	}
}

func extraName(o *plan.Op) string {
	if o.Compound == nil || len(o.Compound.Ops) == 0 {
		return "?"
	}
	return nfs4.OpName(o.Compound.Ops[len(o.Compound.Ops)-1].Op)
}

// giveBack returns a delegation that the server recalls, before the captured
// client would have: the server makes others wait for it.
func (e *engine) giveBack(r *recall) {
	var w *world
	ref := 0
	for _, d := range e.worlds {
		if i, ok := d.byOther[r.stateid.Other]; ok {
			w, ref = d, i
		}
	}
	if w == nil {
		w = e.worlds[0]
	} else {
		if w.states[ref].closed {
			return
		}
		w.states[ref].closed = true
	}
	session := 0
	for i := range w.sessions {
		if w.sessions[i].bound && (ref == 0 || e.load.Tables.Sessions[i-1].Client == e.load.Tables.States[ref-1].Client) {
			session = i
		}
	}
	stateid := append(binaryU32(r.stateid.Seqid), r.stateid.Other[:]...)
	ops := []plan.CompoundOp{
		{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: r.handle}}},
		{Op: uint32(nfs4.OP_DELEGRETURN), Args: []plan.Field{{N: "deleg_stateid", Kind: plan.FieldRaw, Bytes: stateid}}},
	}
	minor := uint32(0)
	if session != 0 {
		minor = e.load.minorOf(session)
		ops = append([]plan.CompoundOp{sequenceOp(session)}, ops...)
	}
	for i := range e.load.Ops {
		o := e.load.Ops[i]
		if o.Compound == nil {
			continue
		}
		n := &plan.Op{Connection: o.Connection, Credential: o.Credential, Program: o.Program, Version: o.Version, Procedure: o.Procedure,
			Compound: &plan.Compound{Minor: minor, Ops: ops}}
		e.send(n, w, e.connFor(&node{op: o, world: w}), nil)
		return
	}
}

func binaryU32(v uint32) []byte { return xdr.AppendUint32(nil, v) }

func (w *Workload) minorOf(session int) uint32 {
	if c := w.Tables.Sessions[session-1].Client; c > 0 {
		return w.Tables.Clients[c-1].Minor
	}
	return 1
}

// sequenceOp is a SEQUENCE of a call that the plan does not have.
func sequenceOp(session int) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(nfs4.OP_SEQUENCE), Args: []plan.Field{
		{N: "sa_sessionid", Kind: plan.FieldSession, Ref: session},
		{N: "sa_sequenceid", Kind: plan.FieldSequence, Ref: session},
		{N: "sa_slotid", Kind: plan.FieldSlot, Ref: session},
		{N: "sa_highest_slotid", Kind: plan.FieldHighest, Ref: session},
		{N: "sa_cachethis", Kind: plan.FieldU32},
	}}
}
