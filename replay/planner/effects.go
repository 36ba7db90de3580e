package planner

import (
	"hash/fnv"
	"strconv"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// effects are what a procedure or operation does to names and objects: later ops wait for it, or not.
type effects struct {
	*outcome
	op    *plan.Op
	deps  *order.Deps
	space *space
	about *description
	wrote *obj   // what the call has written to
	objs  []*obj // that its reply may tell about
}

// saw notes an object that the reply may tell about.
func (e *effects) saw(o *obj) {
	if o = o.real(); o != nil && len(e.objs) < 16 {
		e.objs = append(e.objs, o)
	}
}

// renames is the outcome of RENAME.
func (e *effects) renames(from *obj, old []byte, to *obj, name []byte) {
	s := e.space
	e.changes(from, old)
	e.changes(to, name)
	from, to = from.real(), to.real()
	if !e.ok || from == nil || to == nil {
		return
	}
	o := s.find(from, old, nil).real()
	if o != nil {
		e.deps.After(o.created, plan.DepCreate)
	}
	// The replaced object must no longer be in use.
	if n := s.names[nameKey{to, string(name)}]; n != nil && n.obj != nil && n.obj.real() != o {
		e.removes(n.obj.real())
	}
	s.rename(e.deps.Flight, from, old, to, name)
}

// unmade is the outcome of REMOVE and RMDIR of something that is of the type
// if nothing else is known.
func (e *effects) unmade(d *obj, name []byte, typ string) {
	s := e.space
	if d = d.real(); d == nil {
		return
	}
	if !e.ok {
		// It may have failed because of what is in the directory.
		if n := s.names[nameKey{d, string(name)}]; n != nil && n.obj != nil && e.deps.End >= 0 {
			e.deps.Use(&n.obj.real().own().dir, 0, order.Forever, order.Reads, plan.DepName)
		}
		return
	}
	if o := s.find(d, name, nil).real(); o != nil {
		if o.typ == "" {
			o.typ = typ
		}
		e.removes(o)
	}
	s.remove(e.deps.Flight, d, name)
}

// removes records the removal of an object: all earlier uses must come first.
func (e *effects) removes(o *obj) {
	e.deps.After(o.created, plan.DepCreate)
	if o.count > 1 {
		e.alters(o) // the number of its links
		return
	}
	e.deps.Use(&o.attr, 0, 1, order.Writes, plan.DepName)
	e.deps.Use(&o.own().bytes, 0, order.Forever, order.Writes, plan.DepName)
	if !o.dir.Empty() {
		e.deps.Use(&o.own().dir, 0, order.Forever, order.Writes, plan.DepName)
	}
	if !o.locks.Empty() { // NLM locks nothing that is gone
		e.deps.Use(&o.own().locks, 0, order.Forever, order.Writes, plan.DepName)
	}
}

// changes records a change of a name.
func (e *effects) changes(d *obj, name []byte) {
	if d = d.real(); d != nil {
		p := point(name)
		e.deps.Use(&d.own().dir, p, p+1, order.Writes, plan.DepName)
		e.deps.Use(&d.attr, 0, 1, order.Commutes, plan.DepSize)
	}
}

// looks records a lookup of a name.
func (e *effects) looks(d *obj, name []byte) {
	if d = d.real(); d != nil {
		p := point(name)
		e.deps.Use(&d.own().dir, p, p+1, order.Reads, plan.DepName)
	}
}

// lists records a READDIR.
func (e *effects) lists(d *obj) {
	if d = d.real(); d != nil {
		d.typ = "dir"
		e.deps.Use(&d.own().dir, 0, order.Forever, order.Reads, plan.DepName)
	}
}

// alters records a change of the attributes.
func (e *effects) alters(o *obj) {
	if o = o.real(); o != nil {
		e.deps.Use(&o.attr, 0, 1, order.Writes, plan.DepSize)
	}
}

// inspects records a read of the attributes. Those in the reply to a WRITE depend on
// the other calls in flight and therefore impose no order.
func (e *effects) inspects(o *obj) {
	if o = o.real(); o != nil && o != e.wrote {
		e.deps.Use(&o.attr, 0, 1, order.Reads, plan.DepSize)
	}
}

// writing records a change of a range.
func (e *effects) writing(o *obj, offset, count uint64) {
	e.about.span(offset, count)
	if o = o.real(); o == nil {
		return
	}
	end := offset + count
	if end < offset {
		end = order.Forever
	}
	e.wrote = o
	e.deps.Use(&o.own().bytes, offset, end, order.Writes, plan.DepRange)
	e.deps.Use(&o.attr, 0, 1, order.Commutes, plan.DepSize)
	if e.ok || !e.replied {
		o.writes(offset, end)
	}
	o.sizeChanged = o.sizeChanged || e.ok || !e.replied
}

// resized records a change of the size.
func (e *effects) resized(o *obj, size uint64) {
	e.about.detail += " size=" + strconv.FormatUint(size, 10)
	if o = o.real(); o == nil {
		return
	}
	// It also moves the end: a READ between the two sizes returns something else before it.
	e.deps.Use(&o.own().bytes, min(size, o.latest), order.Forever, order.Writes, plan.DepSize)
	if e.ok || !e.replied {
		o.writes(size, order.Forever)
		o.sizeChanged = true
	}
}

// committing records a COMMIT of a range.
func (e *effects) committing(o *obj, offset uint64, count uint32) {
	e.about.span(offset, uint64(count))
	if o = o.real(); o == nil {
		return
	}
	end := offset + uint64(count)
	if end < offset || count == 0 {
		end = order.Forever
	}
	// It is not a reader that a later WRITE would have to wait for.
	e.deps.Look(&o.bytes, offset, end, order.Reads, plan.DepCommit)
	// Most of these edges follow from one to the COMMIT before.
	e.deps.After(o.commit, plan.DepCommit)
	if e.deps.End >= 0 {
		o.own().commit = e.deps.Flight
	}
	e.wrote = o
	e.deps.Use(&o.attr, 0, 1, order.Commutes, plan.DepSize)
}

// copied records the source of COPY and CLONE.
func (e *effects) copied(o *obj, offset, count uint64) {
	if o = o.real(); o == nil {
		return
	}
	e.deps.Needs(o.created.Op, plan.DepCreate)
	end := offset + count
	if count == 0 || end < offset {
		end = order.Forever
	}
	e.deps.Use(&o.own().bytes, offset, end, order.Reads, plan.DepRange)
}

// reading records a READ of a range.
func (e *effects) reading(o *obj, offset uint64, count uint32, eof bool) {
	e.about.span(offset, uint64(count))
	if o = o.real(); o == nil {
		return
	}
	end := offset + uint64(count)
	if end < offset || eof {
		end = order.Forever
	}
	e.deps.Use(&o.own().bytes, offset, end, order.Reads, plan.DepRange)
}

// object records that the call is about an object.
func (e *effects) object(o *obj) {
	if o = o.real(); o == nil {
		return
	}
	e.deps.Needs(o.created.Op, plan.DepCreate)
	e.deps.After(o.removed, plan.DepName)
	e.saw(o)
	if e.about.path == "" {
		e.about.path = e.space.path(o)
	}
}

// bind records that the reply contains the handle of an object.
func (e *effects) bind(at int, o *obj) {
	if o = o.real(); o == nil {
		return
	}
	o.bound[e.version()] = true
	e.saw(o)
	e.op.Binds = append(e.op.Binds, plan.Bind{At: at, Kind: plan.FieldHandle, Ref: e.space.ref(o)})
}

// version tells NFSv3 from NFSv4, which may have other handles on another server.
func (e *effects) version() int {
	if e.op.Compound == nil {
		return 0
	}
	return 1
}

// bindEntry is bind for a directory entry, unless its handle is known already.
func (e *effects) bindEntry(at int, o *obj, name []byte) {
	if o = o.real(); o == nil || o.bound[e.version()] {
		return
	}
	o.bound[e.version()] = true
	x := plan.Bind{At: at, Kind: plan.FieldHandle, Ref: e.space.ref(o)}
	x.Name, x.NameBytes = text(string(name))
	e.op.Binds = append(e.op.Binds, x)
}

// point is the place of a name in the history of a directory.
func point(name []byte) uint64 {
	f := fnv.New64a()
	f.Write(name)
	return f.Sum64() >> 1
}

// locks orders operations on locks of overlapping ranges.
func (e *effects) locks(o *obj, offset, end uint64, how order.Access) {
	if o = o.real(); o != nil {
		e.deps.Use(&o.own().locks, offset, end, how, plan.DepRange)
	}
}
