package judge

import (
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// cutsOf are the calls of which the capture lacks a part, by time.
func cutsOf(w *workload.Workload) (cuts []*plan.Skip) {
	for _, s := range w.Skips {
		if s.Cut() {
			cuts = append(cuts, s)
		}
	}
	slices.SortStableFunc(cuts, func(a, b *plan.Skip) int { return int(min(max(a.Time-b.Time, -1), 1)) })
	return cuts
}

// CutBefore reports whether the capture lacks a part of a call that came before an op,
// so that what the op needs may have been made by that call.
func (j *Judge) CutBefore(o *plan.Op) bool { return len(j.cuts) > 0 && j.cuts[0].Time <= o.Time }

// cutBefore explains replies that came after a call which the capture has only in part, if
// all that differs is something that such a call could have changed.
func cutBefore(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	why := verdict.Reason{Code: verdict.Cut}
	if !j.CutBefore(r.Op) {
		return why, false
	}
	found := false // reasons of what makes no difference may have left no room for others
	for i := range v.Reasons {
		d := &v.Reasons[i]
		found = found || differs(d.Code)
		if differs(d.Code) && !slices.ContainsFunc(j.cuts, func(s *plan.Skip) bool { return j.touched(s, r, d) }) {
			return why, false
		}
	}
	return why, found
}

// differs reports whether a reason is one of a worse or different reply.
func differs(c verdict.Code) bool { return c >= verdict.RPCExecuted && c < verdict.Cut }

// touched reports whether a call could have changed what a reason is about.
func (j *Judge) touched(s *plan.Skip, r *Reply, d *verdict.Reason) bool {
	if s.Time > r.Op.Time || s.Reads {
		return false
	}
	switch d.Code {
	case verdict.WrittenLost, verdict.HoleFilled, verdict.PatternDiffers, verdict.DataShort, verdict.ChunkDiffers, verdict.RPCFailed, verdict.RPCDiffers:
		return false // whatever the captured call did, it is not on this server
	case verdict.DataDiffer:
		return j.touchedData(s, r, d)
	}
	if len(s.Touches) == 0 {
		return true
	}
	return slices.ContainsFunc(s.Touches, func(t plan.Touch) bool { return j.touches(&t, r, d) })
}

// touchedData reports whether a call could have changed bytes that a READ returned. What
// this run has written since is as it wrote it.
func (j *Judge) touchedData(s *plan.Skip, r *Reply, d *verdict.Reason) bool {
	from, to := d.M, rangeEnd(d.M, d.N)
	for i := range r.Op.Expect.Data {
		x := &r.Op.Expect.Data[i]
		if x.Offset != d.M || uint64(x.Length) != d.N {
			continue
		}
		object := objectOf(r.Op, x.At)
		could := len(s.Touches) == 0
		for k := range s.Touches {
			t := &s.Touches[k]
			could = could || t.Object == 0 || j.leadsTo(t, object) && (!t.Ranged || t.Offset < to && from < rangeEnd(t.Offset, t.Length))
		}
		left := false
		j.history(r.World).files[object].each(from, to, func(p filled) { left = left || p.kind != written && p.kind != empty })
		if could && left {
			return true
		}
	}
	return false
}

// leadsTo reports whether a touch names an object, or one of its names.
func (j *Judge) leadsTo(t *plan.Touch, object int) bool {
	if !t.Named {
		return t.Object == object
	}
	if object <= 0 || object > len(j.load.Tables.Objects) {
		return false
	}
	name := workload.Text(t.Name, t.NameBytes)
	o := &j.load.Tables.Objects[object-1]
	is := func(parent int, n string) bool { return parent == t.Object && (name == "" || n == name) }
	return is(o.Parent, workload.Name(o)) || slices.ContainsFunc(o.Links, func(l plan.Link) bool { return is(l.Parent, workload.Text(l.Name, l.NameBytes)) })
}

// touches reports whether a difference is about what a touch may have changed.
func (j *Judge) touches(t *plan.Touch, r *Reply, d *verdict.Reason) bool {
	if t.Object == 0 {
		return true
	}
	name := workload.Text(t.Name, t.NameBytes)
	switch {
	case d.At.Listed:
		// An entry of a listing: the object of that name.
		if t.Named {
			return name == "" || d.At.Entry == name
		}
		return t.Object <= len(j.load.Tables.Objects) && workload.Name(&j.load.Tables.Objects[t.Object-1]) == d.At.Entry
	case d.Code == verdict.NamesMissing || d.Code == verdict.NamesAdded:
		return t.Named && j.lists(r.Op, t.Object) && (name == "" || !slices.ContainsFunc(j.names, func(n string) bool { return n != name }))
	}
	if t.Ranged && d.Code == verdict.FieldDiffers && !ofContent(d.At.Field) {
		return false // a change of bytes leaves mode and owner alone
	}
	if t.Named && j.mentions(r.Op, t.Object, name) {
		return true
	}
	return slices.ContainsFunc(j.load.Objects(r.Op), func(id int) bool { return j.leadsTo(t, id) })
}

// lists reports whether an op lists a directory.
func (j *Judge) lists(o *plan.Op, dir int) bool { return objectOf(o, readdir(o)) == dir }

// mentions reports whether an op is about a name in a directory.
func (j *Judge) mentions(o *plan.Op, dir int, name string) bool {
	if !slices.Contains(j.load.Objects(o), dir) {
		return false
	}
	in := func(list []plan.Field) bool {
		return slices.ContainsFunc(list, func(f plan.Field) bool { return f.Kind == plan.FieldName && (name == "" || string(f.Opaque()) == name) })
	}
	if o.Compound == nil {
		return in(o.Args)
	}
	return slices.ContainsFunc(o.Compound.Ops, func(c plan.CompoundOp) bool { return in(c.Args) })
}

// ofContent reports whether a field follows from the bytes of a file.
func ofContent(field string) bool {
	switch strings.ToLower(field) {
	case "size", "eof", "data", "count", "sr_offset", "sr_eof":
		return true
	}
	return false
}

// catchUp takes in the cut calls that came before an op. Where one has changed a file whose
// bytes were captured, nobody knows what it wrote.
func (j *Judge) catchUp(world int, o *plan.Op) {
	if len(j.cuts) == 0 || j.load.Tables.Header.Payload != plan.Captured {
		return
	}
	h := j.history(world)
	for ; h.cuts < len(j.cuts) && j.cuts[h.cuts].Time <= o.Time; h.cuts++ {
		for i := range j.cuts[h.cuts].Touches {
			if t := &j.cuts[h.cuts].Touches[i]; t.Object > 0 && !t.Named {
				from, to := uint64(0), uint64(forever)
				if t.Ranged {
					from, to = t.Offset, rangeEnd(t.Offset, t.Length)
				}
				h.fill(t.Object, from, to, fill{kind: anything})
			}
		}
	}
}
