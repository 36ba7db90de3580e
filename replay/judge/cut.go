package judge

import (
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// cuts holds what incompletely captured calls may have changed. It is indexed by object and name,
// so that the time of a query does not grow with their number: for most places only the earliest
// call matters.
type cuts struct {
	some  bool
	first int64 // time of the first cut call, whatever it does
	any   moment1
	// objects are those that may have changed as a whole, and parts those of which bytes may
	// have changed.
	objects map[int]moment1
	parts   map[int]*parts
	names   map[place1]moment1 // a name "" stands for any
	byName  map[place1][]int   // objects
	// kept is how many names, objects and ranges there are, and more how many were too many.
	kept, more int
}

// place1 is a name in a directory.
type place1 struct {
	dir  int
	name string
}

// moment1 is the earliest time of something; the zero value means never.
type moment1 struct {
	at    int64
	known bool
}

func (m moment1) before(t int64) bool { return m.known && m.at <= t }

func earlier[K comparable](m map[K]moment1, k K, at int64) {
	if was := m[k]; !was.known || at < was.at {
		m[k] = moment1{at, true}
	}
}

func newCuts(w *workload.Workload) *cuts {
	c := &cuts{objects: map[int]moment1{}, parts: map[int]*parts{}, names: map[place1]moment1{}}
	for _, s := range w.Skips {
		c.add(w, s)
	}
	return c
}

// maxCuts is how many names, objects and ranges that cut calls may have changed are kept. The
// others explain nothing.
const maxCuts = 1 << 20

// add takes in a transaction that is not replayed.
func (c *cuts) add(w *workload.Workload, s *plan.Skip) {
	if !s.Cut() {
		return
	}
	if !c.some {
		c.byName = map[place1][]int{}
		for i := range w.Tables.Objects {
			o := &w.Tables.Objects[i]
			for _, p := range namesOf(o) {
				c.byName[p] = append(c.byName[p], i+1)
			}
		}
	}
	if !c.some || s.Time < c.first {
		c.some, c.first = true, s.Time
	}
	if s.Reads {
		return
	}
	anything := len(s.Touches) == 0
	for i := range s.Touches {
		if c.kept >= maxCuts && s.Touches[i].Object != 0 {
			c.more++
			continue
		}
		c.kept++
		switch t := &s.Touches[i]; {
		case t.Object == 0:
			anything = true
		case t.Named:
			earlier(c.names, place1{t.Object, workload.Text(t.Name, t.NameBytes)}, s.Time)
		case t.Ranged:
			p := c.parts[t.Object]
			if p == nil {
				p = &parts{}
				c.parts[t.Object] = p
			}
			p.add(span{from: t.Offset, to: rangeEnd(t.Offset, t.Length), at: s.Time})
		default:
			earlier(c.objects, t.Object, s.Time)
		}
	}
	if anything && (!c.any.known || s.Time < c.any.at) {
		c.any = moment1{s.Time, true}
	}
}

// namesOf are the names of an object.
func namesOf(o *plan.Object) []place1 {
	list := []place1{{o.Parent, workload.Name(o)}}
	for _, l := range o.Links {
		list = append(list, place1{l.Parent, workload.Text(l.Name, l.NameBytes)})
	}
	return list
}

// CutBefore reports whether an incompletely captured call came before an op, which may have
// created what the op needs.
func (j *Judge) CutBefore(o *plan.Op) bool { return j.cuts.some && j.cuts.first <= o.Time }

// cutBefore explains replies that came after an incompletely captured call, if such a call could
// have changed everything that differs.
func cutBefore(j *Judge, r *Reply, v *verdict.Judgement) (verdict.Reason, bool) {
	why := verdict.Reason{Code: verdict.Cut}
	if !j.CutBefore(r.Op) {
		return why, false
	}
	found := false // harmless reasons may have left no room for others
	for i := range v.Reasons {
		d := &v.Reasons[i]
		found = found || differs(d.Code)
		if differs(d.Code) && !j.touched(r, d) {
			return why, false
		}
	}
	return why, found
}

// differs reports whether a reason is one of a worse or different reply.
func differs(c verdict.Code) bool { return c >= verdict.RPCExecuted && c < verdict.Cut }

// touched reports whether a cut call could have changed what a reason is about.
func (j *Judge) touched(r *Reply, d *verdict.Reason) bool {
	c, now := j.cuts, r.Op.Time
	switch d.Code {
	case verdict.ChunkDiffers, verdict.RPCFailed, verdict.RPCDiffers:
		return false
	}
	switch {
	case d.Code.Written():
		return false // whatever the captured call did, it is not on this server
	case c.any.before(now):
		return true
	case d.Code == verdict.DataDiffer:
		return j.touchedData(r, d)
	case d.At.Listed:
		return c.entry(objectOf(r.Op, readdir(r.Op)), d.At.Entry, now)
	case d.Code == verdict.NamesMissing || d.Code == verdict.NamesAdded:
		dir := objectOf(r.Op, readdir(r.Op))
		return !slices.ContainsFunc(j.names, func(n string) bool { return !c.named(dir, n, now) })
	}
	// A change of bytes does not change mode and owner.
	bytes := d.Code != verdict.FieldDiffers || ofContent(d.At.Field)
	ids := j.load.Objects(r.Op)
	return slices.ContainsFunc(ids, func(id int) bool { return c.object(j.load, id, now, bytes) || j.mentioned(r.Op, id, now) })
}

// touchedData reports whether a cut call could have changed bytes that a READ returned. Bytes
// that this run has written are compared separately.
func (j *Judge) touchedData(r *Reply, d *verdict.Reason) bool {
	from, to, now := d.M, rangeEnd(d.M, d.N), r.Op.Time
	for i := range r.Op.Expect.Data {
		x := &r.Op.Expect.Data[i]
		if x.Offset != d.M || uint64(x.Length) != d.N {
			continue
		}
		object := objectOf(r.Op, x.At)
		if j.cuts.object(j.load, object, now, false) || j.cuts.parts[object].overlap(from, to, now) {
			return true
		}
	}
	return false
}

// named reports whether a name in a directory may have changed.
func (c *cuts) named(dir int, name string, now int64) bool {
	return c.names[place1{dir, name}].before(now) || c.names[place1{dir, ""}].before(now)
}

// object reports whether an object may have changed, or whether another one may have got its
// name. bytes says that a change of bytes counts.
func (c *cuts) object(load *workload.Workload, id int, now int64, bytes bool) bool {
	if id <= 0 || id > len(load.Tables.Objects) {
		return false
	}
	if c.objects[id].before(now) || bytes && c.parts[id].overlap(0, forever, now) {
		return true
	}
	return slices.ContainsFunc(namesOf(&load.Tables.Objects[id-1]), func(p place1) bool { return c.named(p.dir, p.name, now) })
}

// entry reports whether what a listing shows of a name may have changed.
func (c *cuts) entry(dir int, name string, now int64) bool {
	if c.named(dir, name, now) {
		return true
	}
	return slices.ContainsFunc(c.byName[place1{dir, name}], func(id int) bool {
		return c.objects[id].before(now) || c.parts[id].overlap(0, forever, now)
	})
}

// mentioned reports whether an op names an entry of a directory that may have changed.
func (j *Judge) mentioned(o *plan.Op, dir int, now int64) bool {
	found := false
	eachName(o, func(name string) { found = found || j.cuts.named(dir, name, now) })
	return found
}

// eachName calls f for the names that an op has.
func eachName(o *plan.Op, f func(string)) {
	in := func(list []plan.Field) {
		for i := range list {
			if list[i].Kind == plan.FieldName {
				f(string(list[i].Opaque()))
			}
		}
	}
	in(o.Args)
	if o.Compound != nil {
		for i := range o.Compound.Ops {
			in(o.Compound.Ops[i].Args)
		}
	}
}

// mentions reports whether an op is about a name in a directory.
func (j *Judge) mentions(o *plan.Op, dir int, name string) bool {
	if !slices.Contains(j.load.Objects(o), dir) {
		return false
	}
	found := false
	eachName(o, func(n string) { found = found || n == name })
	return found
}

// ofContent reports whether a field follows from the bytes of a file.
func ofContent(field string) bool {
	switch strings.ToLower(field) {
	case "size", "eof", "data", "count", "sr_offset", "sr_eof":
		return true
	}
	return false
}

const forever = 1<<64 - 1

func rangeEnd(offset, count uint64) uint64 {
	if offset+count < offset {
		return forever
	}
	return offset + count
}
