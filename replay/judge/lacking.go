package judge

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// lacking is what this server lacks, or has too much, because ops did not happen here: they were not sent, or failed.
type lacking struct {
	names  map[int]map[string]*verdict.Call // by directory: those that an op would have given or taken
	named  int                              // how many they are
	rights map[int]*verdict.Call            // objects whose owner, mode or access control list it would have set
}

// name returns the op that would have given or taken a name; nil if there is none.
func (k *lacking) name(n expected.Name) *verdict.Call { return k.names[n.Dir][n.Name] }

// put notes the op that would have given or taken a name.
func (k *lacking) put(n expected.Name, c *verdict.Call) {
	if k.name(n) == nil {
		if k.named >= maxLacking {
			return
		}
		k.named++
	}
	if k.names == nil {
		k.names = map[int]map[string]*verdict.Call{}
	}
	if k.names[n.Dir] == nil {
		k.names[n.Dir] = map[string]*verdict.Call{}
	}
	k.names[n.Dir][n.Name] = c
}

// drop forgets a name.
func (k *lacking) drop(n expected.Name) {
	if k.name(n) == nil {
		return
	}
	k.named--
	if delete(k.names[n.Dir], n.Name); len(k.names[n.Dir]) == 0 {
		delete(k.names, n.Dir)
	}
}

// maxLacking bounds both. What does not fit explains nothing.
const maxLacking = 1 << 16

// lose notes what an op did not change: owners, modes and lists, and names as well if it did nothing.
func (k *lacking) lose(l *expected.State, o *plan.Op, c *verdict.Call, names bool) {
	l.Changed(o, func(n expected.Name) {
		if names {
			k.put(n, c)
		}
	}, func(object int) {
		if k.rights == nil {
			k.rights = map[int]*verdict.Call{}
		}
		if len(k.rights) < maxLacking {
			k.rights[object] = c
		}
	})
}

// agree notes that an op has changed the same on both servers.
func (k *lacking) agree(l *expected.State, o *plan.Op) {
	if k.named == 0 && len(k.rights) == 0 {
		return
	}
	l.Changed(o, k.drop, func(object int) { delete(k.rights, object) })
}

// consequence explains a call that fails because of what an earlier one did not do here: a name that it was to give is not
// there, one that it was to take still is, or a mode is another. What this run knows to be there must be there all the same.
func consequence(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	code, _ := StatusOf(r.Result)
	if code == 0 || r.RPC != "" || r.Op.Program == nlm.NLM_PROG {
		return verdict.Reason{}, false
	}
	for i := range v.Reasons {
		if c := v.Reasons[i].Code; differs(c) && c != verdict.Fails && c != verdict.StatusDiffers {
			return verdict.Reason{}, false
		}
	}
	at := -1
	if c, ok := r.Result.(*nfs4.CompoundRes); ok {
		if at = len(c.Ops) - 1; at < 0 || r.Op.Compound == nil || at >= len(r.Op.Compound.Ops) {
			return verdict.Reason{}, false
		}
	}
	// The statuses of NFSv3 that matter here have the numbers of NFSv4.
	switch st := nfs4.Nfsstat4(code); st {
	case nfs4.NFS4ERR_ACCESS, nfs4.NFS4ERR_PERM:
		var found *verdict.Call
		for _, id := range j.load.Objects(r.Op) {
			if c := j.history(r.Clone).lacking.rights[id]; c != nil {
				found = c
			}
		}
		return because(r, found)
	case nfs4.NFS4ERR_NOENT, nfs4.NFS4ERR_EXIST, nfs4.NFS4ERR_NOTEMPTY, nfs4.NFS4ERR_NOTDIR, nfs4.NFS4ERR_ISDIR:
		return j.misnamed(r, at, st)
	}
	return verdict.Reason{}, false
}

// because is the reason that another call did not happen; c is nil if there is none.
func because(r *Reply, c *verdict.Call) (verdict.Reason, bool) {
	if c == nil {
		return verdict.Reason{}, false
	}
	return verdict.Reason{Code: verdict.Unhappened, Call: *c}, c.ID != r.Op.ID
}

// misnamed is consequence for operation at of a call, -1 outside of a COMPOUND, that fails with a status about names.
func (j *Judge) misnamed(r *Reply, at int, st nfs4.Nfsstat4) (verdict.Reason, bool) {
	h := j.history(r.Clone)
	var found *verdict.Call
	var prepared *plan.Object
	eachMention(r.Op, at, func(n expected.Name, object int) {
		is := h.expected.Presence(n)
		switch {
		case st == nfs4.NFS4ERR_NOENT && is != expected.Present, st == nfs4.NFS4ERR_EXIST && is != expected.Absent,
			st == nfs4.NFS4ERR_NOTDIR, st == nfs4.NFS4ERR_ISDIR:
			if c := h.lacking.name(n); c != nil {
				found = c
			}
		}
		if c := h.within(object); c != nil && (st == nfs4.NFS4ERR_NOTEMPTY || st == nfs4.NFS4ERR_EXIST) {
			found = c
		}
		if o := j.elsewhere(n, object); o != nil && st == nfs4.NFS4ERR_NOENT && found == nil {
			prepared = o
		}
	})
	if found == nil && prepared != nil {
		return verdict.Reason{Code: verdict.Planned, Detail: prepared.Notes[slices.IndexFunc(prepared.Notes, isElsewhere)].String()}, true
	}
	return because(r, found)
}

// unlisted explains names in a listing that calls were to give or to take, and did not here. Entries that differ as well have to be
// those of objects that they did not change.
func unlisted(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	for i := range v.Reasons {
		d := &v.Reasons[i]
		if differs(d.Code) && !aboutNames(*d) && (!d.At.Listed || j.history(r.Clone).named[d.At.Entry] == nil) {
			return verdict.Reason{}, false
		}
	}
	if len(j.names) == 0 || lister(r.Op) != readdir(r.Op) { // or names of extended attributes
		return verdict.Reason{}, false
	}
	dir := objectOf(r.Op, readdir(r.Op))
	var found *verdict.Call
	for _, n := range j.names {
		if found = j.history(r.Clone).lacking.name(expected.Name{Dir: dir, Name: n}); found == nil {
			return verdict.Reason{}, false
		}
	}
	return verdict.Reason{Code: verdict.Unhappened, Call: *found}, true
}

// within is the op that was to take a name in a directory, or to give one, if the name may be there; nil if there is none.
func (h *history) within(dir int) (found *verdict.Call) {
	if dir == 0 {
		return nil
	}
	for name, c := range h.lacking.names[dir] {
		if h.expected.Presence(expected.Name{Dir: dir, Name: name}) != expected.Absent && (found == nil || c.ID < found.ID) {
			found = c
		}
	}
	return found
}

func isElsewhere(n plan.Note) bool { return n.Kind == plan.NoteElsewhere }

// elsewhere is an object that the capture shows under a name in a directory which an op makes, so that it is prepared under another
// name; nil if there is none.
func (j *Judge) elsewhere(n expected.Name, object int) *plan.Object {
	if object == 0 {
		object = j.moved[n.Name]
	}
	if n.Dir <= 0 || object <= 0 || j.load.Tables.Objects[n.Dir-1].Origin != plan.Created {
		return nil
	}
	o := &j.load.Tables.Objects[object-1]
	if !slices.ContainsFunc(o.Notes, func(x plan.Note) bool { return isElsewhere(x) && x.Name == n.Name }) {
		return nil
	}
	return o
}

// moved are the objects that are prepared elsewhere, by the name that they had.
func moved(w *workload.Workload) map[string]int {
	m := map[string]int{}
	for i := range w.Tables.Objects {
		for _, n := range w.Tables.Objects[i].Notes {
			if isElsewhere(n) {
				m[n.Name] = i + 1
			}
		}
	}
	return m
}

// twofold is the reason why nothing is known of an object that may be there twice.
func (j *Judge) twofold(object int) (verdict.Reason, bool) {
	if !j.load.Twofold(object) {
		return verdict.Reason{}, false
	}
	notes := j.load.Tables.Objects[object-1].Notes
	return verdict.Reason{Code: verdict.Planned, Detail: notes[slices.IndexFunc(notes, isElsewhere)].String()}, true
}

// otherOne explains what differs of an object that was prepared elsewhere: this may be another one, which a call has made where the
// captured client found it.
func otherOne(j *Judge, r *Reply, v *verdict.Judgement) (why verdict.Reason, ok bool) {
	for i := range v.Reasons {
		d := &v.Reasons[i]
		switch {
		case !differs(d.Code):
		case d.Code != verdict.FieldDiffers:
			return why, false
		default:
			if why, ok = j.twofold(j.describes(r, &d.At)); !ok {
				return why, false
			}
		}
	}
	return why, ok
}

// eachMention calls f for the names in the arguments of operation at, -1 outside of a COMPOUND, and the objects that they refer to; 0
// if that is not known.
func eachMention(o *plan.Op, at int, f func(n expected.Name, object int)) {
	if o.Compound == nil {
		dir := 0
		for i := range o.Args {
			switch a := &o.Args[i]; a.Kind {
			case plan.FieldHandle:
				dir = a.Ref
			case plan.FieldName:
				f(expected.Name{Dir: dir, Name: string(a.Opaque())}, a.Ref)
			}
		}
		return
	}
	dir, saved := workload.ObjectAt(o, at-1), 0
	for i := range at {
		if e := ops.Operation(o.Compound.Ops[i].Op); e != nil && e.Effect == ops.Saves {
			saved = workload.ObjectAt(o, i)
		}
	}
	in := dir
	if o.Compound.Ops[at].Op == uint32(nfs4.OP_RENAME) {
		in = saved // the first one
	}
	for i := range o.Compound.Ops[at].Args {
		if a := &o.Compound.Ops[at].Args[i]; a.Kind == plan.FieldName {
			f(expected.Name{Dir: in, Name: string(a.Opaque())}, a.Ref)
			in = dir
		}
	}
}
