package judge

import (
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// unprepared explains owners, modes, permissions, sizes and link counts of objects from before the start that are not
// as captured because nobody could make them so: the directory given is its owner's, and the capture does not show
// what the others had. What a call of this run was to set is not explained.
func unprepared(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	var why verdict.Reason
	for i := range v.Reasons {
		d := &v.Reasons[i]
		if !differs(d.Code) {
			continue
		}
		detail := j.unprepared(r, d)
		if detail == "" { // or no field at all
			return verdict.Reason{}, false
		}
		why = verdict.Reason{Code: verdict.Planned, Detail: detail}
	}
	return why, why.Code != verdict.None
}

// unprepared says why an attribute could not be prepared; it is empty if it could.
func (j *Judge) unprepared(r *Reply, d *verdict.Reason) string {
	at := &d.At
	mode, owner := false, false // what the attribute depends on
	switch at.Field {
	case "mode":
		mode = true
	case "uid", "gid", "owner", "owner_group":
		owner = true
	case "access": // of ACCESS
		mode, owner = true, true
	case "nlink", "numlinks", "size":
	default:
		return ""
	}
	id := j.describes(r, at)
	if id == 0 {
		return ""
	}
	o := &j.load.Tables.Objects[id-1]
	if o.Origin != plan.Before {
		return ""
	}
	asked := j.history(r.Clone).expected.Asked(id)
	switch {
	case at.Field == "size":
		return longer(o, d, asked.Size)
	case !mode && !owner:
		return unnamed(o, d)
	}
	// Of several that it depends on, one that is not known is enough; one that was set must be right.
	mode = mode && !asked.Mode && (o.Base || o.Mode == nil)
	owner = owner && !asked.Owner && (o.Base || owns(o, at.Field))
	switch {
	case !mode && !owner:
		return ""
	case o.Base:
		return "owner and mode of the directory given are its own"
	}
	return "the capture does not show which owner and mode the object had at the start"
}

// longer says whether a file is too short because its size at the start was concluded from what was read, which is
// the least that it can have been. A size that was set, or that an attribute showed, must be right.
func longer(o *plan.Object, d *verdict.Reason, set bool) string {
	was, now, ok := counts(d)
	if !ok || set || was <= now || o.Type != "file" || o.SizeClass == plan.Exact {
		return ""
	}
	return "the capture does not show how long the file was at the start"
}

// counts are the captured value and that of this server.
func counts(d *verdict.Reason) (was, now uint64, ok bool) {
	was, err1 := strconv.ParseUint(d.Was, 10, 64)
	now, err2 := strconv.ParseUint(d.Now, 10, 64)
	return was, now, err1 == nil && err2 == nil
}

// unnamed says whether the number of a file's links differs by as many as were prepared too few or too many.
func unnamed(o *plan.Object, d *verdict.Reason) string {
	was, now, ok := counts(d)
	shown := uint64(1 + len(o.Links))
	switch {
	case !ok || o.Type == "dir" || o.Nlink == 0 || was+shown != now+uint64(o.Nlink):
		return ""
	case was < now:
		return "the object did not have all of its names at the same time"
	}
	return "the object had names that the capture does not show"
}

// owns reports whether the plan does not say, as a number, to whom an object belongs.
func owns(o *plan.Object, field string) bool {
	number := func(n *uint32, text string) bool {
		_, err := strconv.ParseUint(text, 10, 32)
		return n != nil || err == nil
	}
	switch field {
	case "uid", "owner":
		return !number(o.UID, o.Owner)
	case "gid", "owner_group":
		return !number(o.GID, o.Group)
	}
	return !number(o.UID, o.Owner) || !number(o.GID, o.Group)
}

// describes is the object that a field of the results is about; 0 if that is not clear.
func (j *Judge) describes(r *Reply, at *verdict.Place) int {
	o := r.Op
	if at.Listed {
		return j.history(r.Clone).expected.Named(expected.Name{Dir: objectOf(o, readdir(o)), Name: at.Entry})
	}
	first, rest, _ := strings.Cut(at.Path, ".")
	if o.Compound != nil {
		_, n, _ := strings.Cut(strings.TrimSuffix(first, "]"), "[")
		i, err := strconv.Atoi(n)
		if err != nil || i >= len(o.Compound.Ops) {
			return 0
		}
		return workload.ObjectAt(o, i)
	}
	// The results of a procedure describe its object, or a directory and an object in it.
	names, child := 0, 0
	for i := range o.Args {
		if a := &o.Args[i]; a.Kind == plan.FieldName {
			names, child = names+1, a.Ref
		}
	}
	switch dir, _, _ := strings.Cut(rest, "."); {
	case names > 1: // RENAME
		return 0
	case names == 0, dir == "dir_attributes", dir == "dir_wcc":
		return workload.ObjectAt(o, -1)
	case child == 0 && len(o.Binds) > 0 && o.Binds[0].Kind == plan.FieldHandle:
		return o.Binds[0].Ref
	}
	return child
}
