package judge

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// explanation is a cause outside the server that may explain why a reply differs.
type explanation struct {
	// find returns the reason, and whether it explains everything in v.
	find func(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool)
	// outcomes says that it also explains a different status, and not only results that differ
	// under the captured status.
	outcomes bool
	// successes says that it explains the success of a call that must fail.
	successes bool
	// instead says that the reply is then equivalent, and that the reason replaces all others.
	instead bool
}

// explanations are tried in this order; the first that fits is reported.
var explanations = []explanation{
	{find: aboveBase, instead: true},
	{find: unhappened, successes: true},
	{find: consequence, outcomes: true},
	{find: unlisted},
	{find: strangers, successes: true},
	{find: lockedOtherwise, outcomes: true, successes: true},
	{find: apart, successes: true},
	{find: unseen, successes: true},
	{find: invented},
	{find: put},
	{find: unprepared},
	{find: otherOne},
	{find: otherUser, outcomes: true},
	{find: squashed, outcomes: true},
	{find: readOnly, outcomes: true},
	{find: planned},
	{find: completed, outcomes: true},
	{find: busy, outcomes: true},
	{find: cutBefore, outcomes: true},
	{find: doneBefore, outcomes: true},
}

// explain looks for an explanation of the differences. compared says that the results were
// compared, since the status is the captured one.
func (j *Judge) explain(v *verdict.Judgement, r *Reply, compared bool) {
	if slices.ContainsFunc(v.Reasons, func(d verdict.Reason) bool { return d.Code.Written() }) {
		return // bytes that this run wrote must be as written, whatever happened elsewhere
	}
	for i := range explanations {
		e := &explanations[i]
		if !compared && e.successes && wronglyDone(v) {
			if why, ok := e.find(j, r, v); ok {
				v.Explain(why)
				return
			}
		}
		if v.Verdict != verdict.Different && (v.Verdict != verdict.Worse || !e.outcomes) || !compared && !e.outcomes {
			continue
		}
		why, ok := e.find(j, r, v)
		switch {
		case !ok:
		case e.instead:
			*v = verdict.Of(verdict.Equivalent, why)
			return
		default:
			v.Explain(why)
			return
		}
	}
}

// wronglyDone reports whether a judgement's only finding is the success of a call that must fail.
func wronglyDone(v *verdict.Judgement) bool {
	return v.Verdict == verdict.Different && slices.ContainsFunc(v.Reasons, func(r verdict.Reason) bool { return r.Code == verdict.SucceedsWrongly })
}

// sharesName reports whether two ops are about the same name in the same directory.
func (j *Judge) sharesName(a, b *plan.Op) bool {
	shares := func(list []plan.Field) bool {
		return slices.ContainsFunc(list, func(f plan.Field) bool {
			return f.Kind == plan.FieldName && slices.ContainsFunc(j.load.Objects(b), func(dir int) bool { return j.mentions(a, dir, string(f.Opaque())) })
		})
	}
	if b.Compound == nil {
		return shares(b.Args)
	}
	return slices.ContainsFunc(b.Compound.Ops, func(c plan.CompoundOp) bool { return shares(c.Args) })
}

// apart explains the success of calls that must fail: by a call that made the name here and
// failed in the capture, by a concurrent call that changes the same object, and by names that
// were prepared although the capture does not show that they existed.
func apart(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	if !wronglyDone(v) {
		return verdict.Reason{}, false
	}
	for _, o := range j.history(r.Clone).onlyHere {
		if j.sharesName(o, r.Op) {
			return verdict.Reason{Code: verdict.OnlyHere, Call: callOf(o)}, true
		}
	}
	if why := j.moments.reason(r.Op, r.again()); why.Code != verdict.None {
		return why, true
	}
	var found *plan.Object
	for _, dir := range j.load.Objects(r.Op) {
		eachName(r.Op, func(name string) {
			if o := j.doubtful[place1{dir, name}]; o != nil && found == nil {
				found = o
			}
		})
	}
	if found == nil {
		return verdict.Reason{}, false
	}
	return verdict.Reason{Code: verdict.Planned, Detail: found.Notes[0].String()}, true
}

// invented explains names in a listing that the plan has made up: the capture shows the object, and not what it was
// called, so that the captured listing has it under another name or in another directory.
func invented(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	found := false
	for i := range v.Reasons {
		d := &v.Reasons[i]
		found = found || d.Code == verdict.NamesAdded
		if differs(d.Code) && d.Code != verdict.NamesAdded {
			return verdict.Reason{}, false
		}
	}
	if !found || lister(r.Op) != readdir(r.Op) { // or names of extended attributes
		return verdict.Reason{}, false
	}
	dir := objectOf(r.Op, readdir(r.Op))
	for _, n := range j.names {
		if !j.madeUp[place1{dir, n}] {
			return verdict.Reason{}, false
		}
	}
	return verdict.Reason{Code: verdict.Planned, Detail: "the name is made up: the capture shows the object, and not its name"}, len(j.names) > 0
}

// put explains names in a listing that the captured one lacks: the preparation creates names that only a later call shows, and somebody
// outside the capture created or removed them. Objects with such names have more links, too.
func put(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	if len(j.names) == 0 || lister(r.Op) != readdir(r.Op) { // or names of extended attributes
		return verdict.Reason{}, false
	}
	h := j.history(r.Clone)
	dir := objectOf(r.Op, readdir(r.Op))
	objects := map[int]bool{}
	for _, n := range j.names {
		at := expected.Name{Dir: dir, Name: n}
		id := h.expected.Named(at)
		if id <= 0 || h.expected.Presence(at) != expected.Present || j.load.Tables.Objects[id-1].Origin != plan.Before {
			return verdict.Reason{}, false
		}
		objects[id] = true
	}
	for i := range v.Reasons {
		d := &v.Reasons[i]
		links := d.Code == verdict.FieldDiffers && (d.At.Field == "numlinks" || d.At.Field == "nlink") && objects[j.describes(r, &d.At)]
		if differs(d.Code) && d.Code != verdict.NamesAdded && !links {
			return verdict.Reason{}, false
		}
	}
	return verdict.Reason{Code: verdict.Strangers}, true
}

// madeUp are the names that the plan has made up.
func madeUp(w *workload.Workload) map[place1]bool {
	m := map[place1]bool{}
	for i := range w.Tables.Objects {
		if o := &w.Tables.Objects[i]; o.NameClass == plan.Synthesised {
			m[place1{o.Parent, workload.Name(o)}] = true
		}
	}
	return m
}

// doubtful are the objects that are prepared although the capture does not show that they
// existed, by name.
func doubtful(w *workload.Workload) map[place1]*plan.Object {
	m := map[place1]*plan.Object{}
	for i := range w.Tables.Objects {
		if o := &w.Tables.Objects[i]; o.Origin == plan.Before && len(o.Notes) > 0 {
			m[place1{o.Parent, workload.Name(o)}] = o
		}
	}
	return m
}

// doneBefore explains a call that the server may have executed before its restart, without a
// reply, or whose reply it has not kept: the name then already exists, or is gone.
func doneBefore(_ *Judge, r *Reply, _ *verdict.Judgement) (verdict.Reason, bool) {
	code, _ := StatusOf(r.Result)
	st := nfs4.Nfsstat4(code)
	fits := (r.Sent == verdict.Restarted || r.Sent == verdict.Unkept) && r.Op.Compound != nil && r.Op.Modifies && r.Op.Expect != nil && r.Op.Expect.Status == 0 &&
		(st == nfs4.NFS4ERR_EXIST || st == nfs4.NFS4ERR_NOENT)
	return verdict.Reason{Code: r.Sent}, fits
}

// completed explains a RECLAIM_COMPLETE that comes again: with a session that the plan does not create, or if the plan lacked
// it for too long, the run has sent one before.
func completed(j *Judge, r *Reply, _ *verdict.Judgement) (verdict.Reason, bool) {
	code, _ := StatusOf(r.Result)
	c := r.Op.Compound
	if c == nil || nfs4.Nfsstat4(code) != nfs4.NFS4ERR_COMPLETE_ALREADY {
		return verdict.Reason{}, false
	}
	made := r.Completed || slices.ContainsFunc(c.Ops, func(o plan.CompoundOp) bool {
		return slices.ContainsFunc(o.Args, func(f plan.Field) bool {
			return f.Kind == plan.FieldSession && f.Ref > 0 && f.Ref <= len(j.load.Tables.Sessions) && j.load.Tables.Sessions[f.Ref-1].DefinedBy == 0
		})
	})
	return verdict.Reason{Code: verdict.Planned, Detail: "the session is not from the plan: this was done when it was created"}, made
}

// busy explains that a client id cannot be destroyed: the plan has not ended all state of the client, since the capture lacks
// how that ended.
func busy(_ *Judge, r *Reply, _ *verdict.Judgement) (verdict.Reason, bool) {
	code, _ := StatusOf(r.Result)
	return verdict.Reason{Code: verdict.Planned, Detail: "the capture does not show how all opens and delegations of the client ended"},
		r.Unended && nfs4.Nfsstat4(code) == nfs4.NFS4ERR_CLIENTID_BUSY && workload.Has(r.Op, nfs4.OP_DESTROY_CLIENTID)
}

// aboveBase explains ops on directories above the base, which are the server's own.
func aboveBase(j *Judge, r *Reply, _ *verdict.Judgement) (verdict.Reason, bool) {
	above := r.Op.Role == plan.Mounting
	if c := r.Op.Compound; c != nil {
		for i := range c.Ops {
			above = above || nfs4.NfsOpnum4(c.Ops[i].Op) == nfs4.OP_PUTROOTFH || j.load.Above(workload.ObjectAt(r.Op, i))
		}
	}
	return verdict.Reason{Code: verdict.AboveBase}, above
}

// unhappened explains differences in objects that a call did not change because it failed here
// and not in the capture.
func unhappened(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	o := j.unhappened(r)
	if o == nil || lister(r.Op) == readdir(r.Op) && slices.ContainsFunc(v.Reasons, aboutNames) { // these are distinguished by name
		return verdict.Reason{}, false
	}
	return verdict.Reason{Code: verdict.Unhappened, Call: *o}, true
}

// aboutNames reports whether names are listed, or not listed, that were not so in the capture.
func aboutNames(d verdict.Reason) bool {
	return d.Code == verdict.NamesMissing || d.Code == verdict.NamesAdded
}

// unhappened is the failed call because of which the object of a reply differs from the capture;
// nil if there is none.
func (j *Judge) unhappened(r *Reply) *verdict.Call {
	h := j.history(r.Clone)
	if len(h.unhappened) == 0 {
		return nil
	}
	for _, id := range j.load.Objects(r.Op) {
		if o := h.unhappened[id]; o != nil && o.ID != r.Op.ID {
			return o
		}
	}
	// A listing shows an object by its name: each entry that differs has to be one of
	// these.
	var found *verdict.Call
	for i := range j.cmp.different {
		at := &j.cmp.different[i].At
		if !at.Listed {
			return nil
		}
		if found = h.named[at.Entry]; found == nil {
			found = h.unhappened[j.describes(r, at)] // it may have several names
		}
		if found == nil {
			return nil
		}
	}
	return found
}

// strangers explains differences in objects that, according to the plan, a client outside the
// capture has changed.
func strangers(j *Judge, r *Reply, _ *verdict.Judgement) (verdict.Reason, bool) {
	noted := func(id int) bool {
		return id > 0 && slices.ContainsFunc(j.load.Tables.Objects[id-1].Notes, plan.Note.Foreign)
	}
	found := false
	if c := r.Op.Compound; c != nil {
		for i := range c.Ops {
			found = found || noted(workload.ObjectAt(r.Op, i))
		}
	} else {
		found = slices.ContainsFunc(r.Op.Args, func(a plan.Field) bool {
			return (a.Kind == plan.FieldHandle || a.Kind == plan.FieldName) && noted(a.Ref)
		})
	}
	return verdict.Reason{Code: verdict.Strangers}, found
}

// planned explains differences of calls that the plan could not reproduce exactly.
func planned(_ *Judge, r *Reply, _ *verdict.Judgement) (verdict.Reason, bool) {
	if len(r.Op.Reasons) == 0 || r.Op.Class == plan.Exact {
		return verdict.Reason{}, false
	}
	return verdict.Reason{Code: verdict.Planned, Detail: r.Op.Reasons[0]}, true
}

func callOf(o *plan.Op) verdict.Call { return verdict.Call{ID: o.ID, XID: o.XID, What: o.What} }
