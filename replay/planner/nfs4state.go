package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// stateOps are the operations on locks, delegations and layouts, and those on all kinds of state ids.
var stateOps = opTable{
	nfs4.OP_CLOSE:              op4(close4),
	nfs4.OP_DELEGRETURN:        op4(delegreturn4),
	nfs4.OP_LOCK:               op4(lock4),
	nfs4.OP_LOCKT:              op4(lockt4),
	nfs4.OP_LOCKU:              op4(locku4),
	nfs4.OP_RELEASE_LOCKOWNER:  op4(releaseLockowner4),
	nfs4.OP_FREE_STATEID:       op4(freeStateid4),
	nfs4.OP_GET_DIR_DELEGATION: op4(getDirDelegation4),
	nfs4.OP_GETDEVICEINFO:      kept4,
	nfs4.OP_LAYOUTCOMMIT:       kept4,
	nfs4.OP_LAYOUTGET:          op4(layoutget4),
	nfs4.OP_LAYOUTRETURN:       kept4,
	nfs4.OP_TEST_STATEID:       op4(testStateid4),
	nfs4.OP_WANT_DELEGATION:    kept4,
	nfs4.OP_LAYOUTERROR:        kept4,
	nfs4.OP_LAYOUTSTATS:        kept4,
}

func close4(c *compound, a *nfs4.CLOSE4args, r *nfs4.CLOSE4res) {
	o := c.Current.real()
	st := c.ids.stateOf(&a.OpenStateid, plan.OpenState, o)
	c.ids.seqid("seqid", c.ids.ownerOf(st, "open"), a.Seqid)
	c.ids.stateid("open_stateid", &a.OpenStateid, plan.OpenState, o, order.Writes)
	if r != nil && st != nil && r.OpenStateid.Other == a.OpenStateid.Other {
		st.seqid = r.OpenStateid.Seqid
	}
}

func delegreturn4(c *compound, a *nfs4.DELEGRETURN4args, _ *nfs4.Status4res) {
	c.ids.stateid("deleg_stateid", &a.DelegStateid, plan.DelegationState, c.Current.real(), order.Writes)
}

func getDirDelegation4(c *compound, a *nfs4.GET_DIR_DELEGATION4args, r *nfs4.GET_DIR_DELEGATION4res) {
	f := &c.form
	f.bool("gdda_signal_deleg_avail", a.GddaSignalDelegAvail)
	f.raw("gdda_notification_types", &a.GddaNotificationTypes)
	f.raw("gdda_child_attr_delay", &a.GddaChildAttrDelay)
	f.raw("gdda_dir_attr_delay", &a.GddaDirAttrDelay)
	f.raw("gdda_child_attributes", &a.GddaChildAttributes)
	f.raw("gdda_dir_attributes", &a.GddaDirAttributes)
	if r != nil && r.GddrResNonFatal4.GddrnfStatus == nfs4.GDD4_OK {
		c.ids.given(c.at, &r.GddrResNonFatal4.GddrnfResok4.GddrStateid, plan.DelegationState, c.Current.real(), nil)
	}
}

func freeStateid4(c *compound, a *nfs4.FREE_STATEID4args, _ *nfs4.Status4res) {
	c.ids.stateid("fsa_stateid", &a.FsaStateid, plan.LockState, c.Current.real(), order.Writes)
}

func testStateid4(c *compound, a *nfs4.TEST_STATEID4args, _ *nfs4.TEST_STATEID4res) {
	c.form.u32("ts_stateids", uint32(len(a.TsStateids)))
	for i := range a.TsStateids {
		c.ids.stateid("stateid", &a.TsStateids[i], plan.OpenState, nil, order.Reads)
	}
}

func lock4(c *compound, a *nfs4.LOCK4args, r *nfs4.LOCK4res) {
	f := &c.form
	o := c.Current.real()
	f.u32("locktype", uint32(a.Locktype))
	f.bool("reclaim", a.Reclaim)
	f.u64("offset", a.Offset)
	f.u64("length", a.Length)
	f.bool("new_lock_owner", a.Locker.NewLockOwner)
	var w *owner
	if a.Locker.NewLockOwner {
		l := &a.Locker.OpenOwner
		st := c.ids.stateOf(&l.OpenStateid, plan.OpenState, o)
		c.ids.seqid("open_seqid", c.ids.ownerOf(st, "open"), l.OpenSeqid)
		c.ids.stateid("open_stateid", &l.OpenStateid, plan.OpenState, o, order.Reads)
		w = c.states.owner(c.ids.clientOf(l.LockOwner.Clientid), "lock", l.LockOwner.Owner)
		c.ids.seqid("lock_seqid", w, l.LockSeqid)
		c.ids.clientID("lock_owner.clientid", l.LockOwner.Clientid)
		f.text("lock_owner.owner", l.LockOwner.Owner)
	} else {
		l := &a.Locker.LockOwner
		st := c.ids.stateid("lock_stateid", &l.LockStateid, plan.LockState, o, order.Writes)
		w = c.ids.ownerOf(st, "lock")
		c.ids.seqid("lock_seqid", w, l.LockSeqid)
	}
	locksRange(c, o, a.Offset, a.Length)
	if r != nil {
		c.ids.given(c.at, &r.Resok4.LockStateid, plan.LockState, o, w)
	}
}

func locku4(c *compound, a *nfs4.LOCKU4args, r *nfs4.LOCKU4res) {
	f := &c.form
	o := c.Current.real()
	f.u32("locktype", uint32(a.Locktype))
	st := c.ids.stateOf(&a.LockStateid, plan.LockState, o)
	c.ids.seqid("seqid", c.ids.ownerOf(st, "lock"), a.Seqid)
	c.ids.stateid("lock_stateid", &a.LockStateid, plan.LockState, o, order.Writes)
	f.u64("offset", a.Offset)
	f.u64("length", a.Length)
	locksRange(c, o, a.Offset, a.Length)
	if r != nil {
		c.ids.given(c.at, &r.LockStateid, plan.LockState, o, nil)
	}
}

func lockt4(c *compound, a *nfs4.LOCKT4args, _ *nfs4.LOCKT4res) {
	f := &c.form
	f.u32("locktype", uint32(a.Locktype))
	f.u64("offset", a.Offset)
	f.u64("length", a.Length)
	c.ids.clientID("owner.clientid", a.Owner.Clientid)
	f.text("owner.owner", a.Owner.Owner)
	locksRange(c, c.Current, a.Offset, a.Length)
}

func releaseLockowner4(c *compound, a *nfs4.RELEASE_LOCKOWNER4args, _ *nfs4.Status4res) {
	cl := c.ids.clientID("lock_owner.clientid", a.LockOwner.Clientid)
	c.form.text("lock_owner.owner", a.LockOwner.Owner)
	w := c.states.owner(cl, "lock", a.LockOwner.Owner)
	c.deps.After(w.last, plan.DepSeqid)
	w.last = c.deps.Flight
}

func layoutget4(c *compound, a *nfs4.LAYOUTGET4args, r *nfs4.LAYOUTGET4res) {
	f := &c.form
	o := c.Current.real()
	f.bool("loga_signal_layout_avail", a.LogaSignalLayoutAvail)
	f.u32("loga_layout_type", uint32(a.LogaLayoutType))
	f.u32("loga_iomode", uint32(a.LogaIomode))
	f.u64("loga_offset", a.LogaOffset)
	f.u64("loga_length", a.LogaLength)
	f.u64("loga_minlength", a.LogaMinlength)
	c.ids.stateid("loga_stateid", &a.LogaStateid, plan.OpenState, o, order.Reads)
	f.u32("loga_maxcount", a.LogaMaxcount)
	if r != nil {
		c.ids.given(c.at, &r.LogrResok4.LogrStateid, plan.LayoutState, o, nil)
	}
}

// locksRange orders an operation on locks of a range.
func locksRange(c *compound, o *obj, offset, length uint64) {
	if o = o.real(); o == nil || !c.executed {
		return
	}
	end := offset + length
	if length == order.Forever || end < offset {
		end = order.Forever
	}
	c.about.span(offset, length)
	c.effects.locks(o, offset, end, order.Writes)
}
