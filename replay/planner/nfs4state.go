package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// stateOps are the operations on locks, delegations and layouts, and those on all kinds of state ids.
var stateOps = opTable{
	nfs4.OP_CLOSE:             op4((*call).close4),
	nfs4.OP_DELEGRETURN:       op4((*call).delegreturn4),
	nfs4.OP_LOCK:              op4((*call).lock4),
	nfs4.OP_LOCKT:             op4((*call).lockt4),
	nfs4.OP_LOCKU:             op4((*call).locku4),
	nfs4.OP_RELEASE_LOCKOWNER: op4((*call).releaseLockowner4),
	nfs4.OP_FREE_STATEID:      op4((*call).freeStateid4),
	nfs4.OP_GETDEVICEINFO:     kept4,
	nfs4.OP_LAYOUTCOMMIT:      kept4,
	nfs4.OP_LAYOUTGET:         op4((*call).layoutget4),
	nfs4.OP_LAYOUTRETURN:      kept4,
	nfs4.OP_TEST_STATEID:      op4((*call).testStateid4),
	nfs4.OP_WANT_DELEGATION:   kept4,
	nfs4.OP_LAYOUTERROR:       kept4,
	nfs4.OP_LAYOUTSTATS:       kept4,
}

func (c *call) close4(a *nfs4.CLOSE4args, r *nfs4.CLOSE4res) {
	o := c.compound.Current.real()
	st := c.stateOf(&a.OpenStateid, plan.OpenState, o)
	c.seqid("seqid", c.ownerOf(st, "open"), a.Seqid)
	c.stateid("open_stateid", &a.OpenStateid, plan.OpenState, o, order.Writes)
	if r != nil && st != nil && r.OpenStateid.Other == a.OpenStateid.Other {
		st.seqid = r.OpenStateid.Seqid
	}
}

func (c *call) delegreturn4(a *nfs4.DELEGRETURN4args, _ *nfs4.Status4res) {
	c.stateid("deleg_stateid", &a.DelegStateid, plan.DelegationState, c.compound.Current.real(), order.Writes)
}

func (c *call) freeStateid4(a *nfs4.FREE_STATEID4args, _ *nfs4.Status4res) {
	c.stateid("fsa_stateid", &a.FsaStateid, plan.LockState, c.compound.Current.real(), order.Writes)
}

func (c *call) testStateid4(a *nfs4.TEST_STATEID4args, _ *nfs4.TEST_STATEID4res) {
	c.form.u32("ts_stateids", uint32(len(a.TsStateids)))
	for i := range a.TsStateids {
		c.stateid("stateid", &a.TsStateids[i], plan.OpenState, nil, order.Reads)
	}
}

func (c *call) lock4(a *nfs4.LOCK4args, r *nfs4.LOCK4res) {
	f := &c.form
	o := c.compound.Current.real()
	f.u32("locktype", uint32(a.Locktype))
	f.bool("reclaim", a.Reclaim)
	f.u64("offset", a.Offset)
	f.u64("length", a.Length)
	f.bool("new_lock_owner", a.Locker.NewLockOwner)
	var w *owner
	if a.Locker.NewLockOwner {
		l := &a.Locker.OpenOwner
		st := c.stateOf(&l.OpenStateid, plan.OpenState, o)
		c.seqid("open_seqid", c.ownerOf(st, "open"), l.OpenSeqid)
		c.stateid("open_stateid", &l.OpenStateid, plan.OpenState, o, order.Reads)
		w = c.b.states.owner(c.clientOf(l.LockOwner.Clientid), "lock", l.LockOwner.Owner)
		c.seqid("lock_seqid", w, l.LockSeqid)
		c.clientID("lock_owner.clientid", l.LockOwner.Clientid)
		f.text("lock_owner.owner", l.LockOwner.Owner)
	} else {
		l := &a.Locker.LockOwner
		st := c.stateid("lock_stateid", &l.LockStateid, plan.LockState, o, order.Writes)
		w = c.ownerOf(st, "lock")
		c.seqid("lock_seqid", w, l.LockSeqid)
	}
	c.locks(o, a.Offset, a.Length)
	if r != nil {
		c.renewed(&r.Resok4.LockStateid, plan.LockState, o, w)
	}
}

func (c *call) locku4(a *nfs4.LOCKU4args, r *nfs4.LOCKU4res) {
	f := &c.form
	o := c.compound.Current.real()
	f.u32("locktype", uint32(a.Locktype))
	st := c.stateOf(&a.LockStateid, plan.LockState, o)
	c.seqid("seqid", c.ownerOf(st, "lock"), a.Seqid)
	c.stateid("lock_stateid", &a.LockStateid, plan.LockState, o, order.Writes)
	f.u64("offset", a.Offset)
	f.u64("length", a.Length)
	c.locks(o, a.Offset, a.Length)
	if r != nil {
		c.renewed(&r.LockStateid, plan.LockState, o, nil)
	}
}

func (c *call) lockt4(a *nfs4.LOCKT4args, _ *nfs4.LOCKT4res) {
	f := &c.form
	f.u32("locktype", uint32(a.Locktype))
	f.u64("offset", a.Offset)
	f.u64("length", a.Length)
	c.clientID("owner.clientid", a.Owner.Clientid)
	f.text("owner.owner", a.Owner.Owner)
	c.locks(c.compound.Current.real(), a.Offset, a.Length)
}

func (c *call) releaseLockowner4(a *nfs4.RELEASE_LOCKOWNER4args, _ *nfs4.Status4res) {
	cl := c.clientID("lock_owner.clientid", a.LockOwner.Clientid)
	c.form.text("lock_owner.owner", a.LockOwner.Owner)
	w := c.b.states.owner(cl, "lock", a.LockOwner.Owner)
	c.deps.After(w.last, plan.DepSeqid)
	w.last = c.deps.Flight
}

func (c *call) layoutget4(a *nfs4.LAYOUTGET4args, r *nfs4.LAYOUTGET4res) {
	f := &c.form
	o := c.compound.Current.real()
	f.bool("loga_signal_layout_avail", a.LogaSignalLayoutAvail)
	f.u32("loga_layout_type", uint32(a.LogaLayoutType))
	f.u32("loga_iomode", uint32(a.LogaIomode))
	f.u64("loga_offset", a.LogaOffset)
	f.u64("loga_length", a.LogaLength)
	f.u64("loga_minlength", a.LogaMinlength)
	c.stateid("loga_stateid", &a.LogaStateid, plan.OpenState, o, order.Reads)
	f.u32("loga_maxcount", a.LogaMaxcount)
	if r != nil {
		c.renewed(&r.LogrResok4.LogrStateid, plan.LayoutState, o, nil)
	}
}

// locks orders operations on locks of overlapping ranges.
func (c *call) locks(o *obj, offset, length uint64) {
	if o = o.real(); o == nil || !c.executed() {
		return
	}
	end := offset + length
	if length == order.Forever || end < offset {
		end = order.Forever
	}
	c.span(offset, length)
	c.deps.Use(&o.own().locks, offset, end, order.Writes, plan.DepRange)
}

// renewed takes the state id from a result.
func (c *call) renewed(id *nfs4.Stateid4, kind plan.StateKind, o *obj, w *owner) {
	c.b.states.result(c, c.compound.at, id, kind, o, w)
}
