package run

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// corrections find the call that the plan does not have, and without which this server would go on in another state than
// the captured one.
type corrections struct {
	tables   *plan.Tables
	confirms map[int]bool        // states that the plan confirms, as far as it was read
	args     *workload.Arguments // of the call at hand
}

// after is the call that has to follow a reply; nil if there is none. The call of the plan ends with it.
func (f *corrections) after(c *call, res xdr.Message) *plan.Op {
	for _, find := range []func(*call, xdr.Message) *plan.Op{f.confirm, f.tidy, surplus, surplusOpen} {
		if o := find(c, res); o != nil {
			return o
		}
	}
	return nil
}

// confirm is an OPEN_CONFIRM if this server wants it and the plan has none.
func (f *corrections) confirm(c *call, res xdr.Message) *plan.Op {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	if !ok || o.Compound == nil || o.Compound.Minor != 0 {
		return nil
	}
	for i := range o.Binds {
		b := &o.Binds[i]
		open, ok := bindings.Body(r, b.At).(*nfs4.OPEN4res)
		if !ok || b.Kind != plan.FieldState || b.State == plan.DelegationState || open.Status != nfs4.NFS4_OK ||
			open.Resok4.Rflags&nfs4.OPEN4_RESULT_CONFIRM == 0 {
			continue
		}
		c.clone.States[b.Ref].Unconfirmed = true
		s := &f.tables.States[b.Ref-1]
		if f.confirms[b.Ref] || s.Object == 0 || s.Owner == 0 {
			continue
		}
		return like(o, 0, openConfirm(s, b.Ref), plan.Bind{At: 1, Kind: plan.FieldState, Ref: b.Ref})
	}
	return nil
}

// tidy undoes an effect that only this server had: it closes a file that this server opened and
// the captured one did not, since the plan has no CLOSE for it, with its delegation, and gives back such a lock.
func (f *corrections) tidy(c *call, res xdr.Message) *plan.Op {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	x := o.Expect
	if !ok || o.Compound == nil || x == nil || x.Status == 0 {
		return nil
	}
	for i := range r.Ops {
		if l, ok := r.Ops[i].Body.(*nfs4.LOCK4res); ok && l.Status == nfs4.NFS4_OK && (i >= len(x.Ops) || x.Ops[i] != 0) {
			if undo := f.unlock(c, i, l); undo != nil {
				return undo
			}
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
		list := []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: handle}}},
			{Op: uint32(nfs4.OP_CLOSE), Args: []plan.Field{seqid, rawState("open_stateid", &open.Resok4.Stateid)}},
		}
		if id := delegated(open); id != nil {
			list = append(list, delegreturn(id))
		}
		if c.form.Session != 0 {
			list = append([]plan.CompoundOp{sequence(c.form.Session)}, list...)
		}
		return like(o, o.Compound.Minor, list)
	}
	return nil
}

// unlock gives back what the LOCK that is operation i has locked. An owner who may have had other locks of the
// file keeps it: they would be lost, too.
func (f *corrections) unlock(c *call, i int, res *nfs4.LOCK4res) *plan.Op {
	o := c.form.Op
	m, ok := f.args.Of(o).(*nfs4.CompoundArgs)
	if !ok || i >= len(m.Ops) {
		return nil
	}
	l, ok := m.Ops[i].Body.(*nfs4.LOCK4args)
	object := workload.ObjectAt(o, i)
	if !ok || !l.Locker.NewLockOwner || object == 0 {
		return nil
	}
	seqid := plan.Field{N: "seqid", Kind: plan.FieldU32}
	for _, a := range o.Compound.Ops[i].Args {
		if a.Kind == plan.FieldSeqid {
			seqid = a // the last one is the lock owner's
		}
	}
	list := []plan.CompoundOp{put(object), {Op: uint32(nfs4.OP_LOCKU), Args: []plan.Field{
		{N: "locktype", Kind: plan.FieldU32, Value: uint64(l.Locktype)}, seqid, rawState("lock_stateid", &res.Resok4.LockStateid),
		{N: "offset", Kind: plan.FieldU64, Value: l.Offset}, {N: "length", Kind: plan.FieldU64, Value: l.Length}}}}
	if c.form.Session != 0 {
		list = append([]plan.CompoundOp{sequence(c.form.Session)}, list...)
	}
	return like(o, o.Compound.Minor, list)
}

// surplus returns a delegation that only this server gave: the plan has no DELEGRETURN
// for it, and the server would consider the client busy when it ends.
func surplus(c *call, res xdr.Message) *plan.Op {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	if !ok || o.Compound == nil {
		return nil
	}
	for i := range r.Ops {
		id, handle := delegated(r.Ops[i].Body), opened(c, r, i)
		if id == nil || handle == nil || slices.ContainsFunc(o.Binds, func(b plan.Bind) bool {
			return b.At == i && b.Kind == plan.FieldState && b.State == plan.DelegationState
		}) {
			continue
		}
		list := []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: handle}}},
			delegreturn(id),
		}
		if c.form.Session != 0 {
			list = append([]plan.CompoundOp{sequence(c.form.Session)}, list...)
		}
		return like(o, o.Compound.Minor, list)
	}
	return nil
}

// surplusOpen closes an open that this server gave in addition to a delegation. The captured server gave only the delegation, so the plan
// has no CLOSE.
func surplusOpen(c *call, res xdr.Message) *plan.Op {
	r, ok := res.(*nfs4.CompoundRes)
	o := c.form.Op
	if !ok || o.Compound == nil || o.Compound.Minor == 0 || o.Expect == nil || o.Expect.Status != 0 {
		return nil
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
		list := []plan.CompoundOp{
			sequence(c.form.Session),
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldText, Bytes: handle}}},
			{Op: uint32(nfs4.OP_CLOSE), Args: []plan.Field{{N: "seqid", Kind: plan.FieldU32}, rawState("open_stateid", &open.Resok4.Stateid)}},
		}
		return like(o, o.Compound.Minor, list)
	}
	return nil
}

// delegated is the state id of the delegation that an operation has given; nil if there is none.
func delegated(res xdr.Message) *nfs4.Stateid4 {
	var o ops.Outcome
	switch res.(type) {
	case *nfs4.OPEN4res:
		ops.Operation(uint32(nfs4.OP_OPEN)).Outcome(res, &o)
	case *nfs4.GET_DIR_DELEGATION4res:
		ops.Operation(uint32(nfs4.OP_GET_DIR_DELEGATION)).Outcome(res, &o)
	}
	return o.Delegation
}

// delegreturn returns a delegation of the current file.
func delegreturn(id *nfs4.Stateid4) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(nfs4.OP_DELEGRETURN), Args: []plan.Field{rawState("deleg_stateid", id)}}
}

// opened is the handle of the file that OPEN, operation i, has opened, or of the current one of another operation; nil if it is not known.
func opened(c *call, r *nfs4.CompoundRes, i int) []byte {
	if i+1 < len(r.Ops) {
		if fh, ok := r.Ops[i+1].Body.(*nfs4.GETFH4res); ok && fh.Status == nfs4.NFS4_OK {
			return slices.Clone(fh.Resok4.Object)
		}
	}
	if id := workload.ObjectAt(c.form.Op, i); id > 0 {
		return c.clone.Objects[id].Handle
	}
	return nil
}
