package planner

import (
	"hash/fnv"
	"strconv"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// renames is the outcome of RENAME.
func (c *call) renames(from *obj, old []byte, to *obj, name []byte) {
	s := &c.b.space
	c.changes(from, old)
	c.changes(to, name)
	from, to = from.real(), to.real()
	if !c.ok || from == nil || to == nil {
		return
	}
	o := s.find(from, old, nil).real()
	if o != nil && o.created.Op != 0 {
		c.deps.After(o.created, plan.DepCreate)
	}
	// The replaced object must no longer be in use.
	if n := s.names[nameKey{to, string(name)}]; n != nil && n.obj != nil && n.obj.real() != o {
		c.removes(n.obj.real())
	}
	s.rename(c, from, old, to, name)
}

// unmade is the outcome of REMOVE and RMDIR of something that is of the type
// if nothing else is known.
func (c *call) unmade(d *obj, name []byte, typ string) {
	s := &c.b.space
	if d = d.real(); d == nil {
		return
	}
	if !c.ok {
		// It may have failed because of what is in the directory.
		if n := s.names[nameKey{d, string(name)}]; n != nil && n.obj != nil && c.end >= 0 {
			c.deps.Use(&n.obj.real().own().dir, 0, order.Forever, order.Reads, plan.DepName)
		}
		return
	}
	if o := s.find(d, name, nil).real(); o != nil {
		if o.typ == "" {
			o.typ = typ
		}
		c.removes(o)
	}
	s.remove(c, d, name)
}

// removes records the removal of an object: all earlier uses must come first.
func (c *call) removes(o *obj) {
	if o.created.Op != 0 {
		c.deps.After(o.created, plan.DepCreate)
	}
	if o.count > 1 {
		c.alters(o) // the number of its links
		return
	}
	c.deps.Use(&o.attr, 0, 1, order.Writes, plan.DepName)
	c.deps.Use(&o.own().bytes, 0, order.Forever, order.Writes, plan.DepName)
	if !o.dir.Empty() {
		c.deps.Use(&o.own().dir, 0, order.Forever, order.Writes, plan.DepName)
	}
	if !o.locks.Empty() { // NLM locks nothing that is gone
		c.deps.Use(&o.own().locks, 0, order.Forever, order.Writes, plan.DepName)
	}
}

// changes records a change of a name.
func (c *call) changes(d *obj, name []byte) {
	if d = d.real(); d != nil {
		p := point(name)
		c.deps.Use(&d.own().dir, p, p+1, order.Writes, plan.DepName)
		c.deps.Use(&d.attr, 0, 1, order.Commutes, plan.DepSize)
	}
}

// looks records a lookup of a name.
func (c *call) looks(d *obj, name []byte) {
	if d = d.real(); d != nil {
		p := point(name)
		c.deps.Use(&d.own().dir, p, p+1, order.Reads, plan.DepName)
	}
}

// leads is the object that a name currently refers to, if its handle is known.
func (c *call) leads(d *obj, name []byte) int {
	if d = d.real(); d == nil {
		return 0
	}
	if n := c.b.space.names[nameKey{d, string(name)}]; n != nil && n.obj != nil {
		if o := n.obj.real(); o.handle != "" || o.id != 0 {
			return c.b.space.ref(o)
		}
	}
	return 0
}

// lists records a READDIR.
func (c *call) lists(d *obj) {
	if d = d.real(); d != nil {
		d.typ = "dir"
		c.deps.Use(&d.own().dir, 0, order.Forever, order.Reads, plan.DepName)
	}
}

// listed is an entry of a directory.
func (c *call) listed(d *obj, name, handle []byte) *obj {
	s := &c.b.space
	if d = d.real(); d == nil || dots(name) {
		return nil
	}
	n := s.names[nameKey{d, string(name)}]
	if n != nil && n.touched && n.obj == nil {
		return nil // removed in the meantime
	}
	if n != nil && n.obj != nil {
		o := n.obj.real()
		if o.handle == "" && len(handle) > 0 {
			return s.find(d, name, handle)
		}
		return o
	}
	return s.find(d, name, handle)
}

// alters records a change of the attributes.
func (c *call) alters(o *obj) {
	if o = o.real(); o != nil {
		c.deps.Use(&o.attr, 0, 1, order.Writes, plan.DepSize)
	}
}

// inspects records a read of the attributes. Those in the reply to a WRITE depend on
// the other calls in order.Flight and therefore impose no order.
func (c *call) inspects(o *obj) {
	if o = o.real(); o != nil && o != c.wrote {
		c.deps.Use(&o.attr, 0, 1, order.Reads, plan.DepSize)
	}
}

// writing records a change of a range. known says that its end is known.
func (c *call) writing(o *obj, offset, count uint64) {
	c.span(offset, count)
	if o = o.real(); o == nil {
		return
	}
	end := offset + count
	if end < offset {
		end = order.Forever
	}
	c.wrote = o
	c.deps.Use(&o.own().bytes, offset, end, order.Writes, plan.DepRange)
	c.deps.Use(&o.attr, 0, 1, order.Commutes, plan.DepSize)
	if c.ok || !c.replied {
		o.writes(offset, end)
	}
	o.sizeChanged = o.sizeChanged || c.ok || !c.replied
}

// resized records a change of the size.
func (c *call) resized(o *obj, size uint64) {
	c.detail += " size=" + strconv.FormatUint(size, 10)
	if o = o.real(); o == nil {
		return
	}
	// It also moves the end: a READ between the two sizes returns something else before it.
	c.deps.Use(&o.own().bytes, min(size, o.latest), order.Forever, order.Writes, plan.DepSize)
	if c.ok || !c.replied {
		o.writes(size, order.Forever)
		o.sizeChanged = true
	}
}

// committing records a COMMIT of a range.
func (c *call) committing(o *obj, offset uint64, count uint32) {
	c.op.Modifies = true // it is left out where nothing may be written
	c.span(offset, uint64(count))
	if o = o.real(); o == nil {
		return
	}
	end := offset + uint64(count)
	if end < offset || count == 0 {
		end = order.Forever
	}
	// It is not a reader that a later WRITE would have to wait for.
	c.deps.Look(&o.bytes, offset, end, order.Reads, plan.DepCommit)
	// Most of these edges follow from one to the COMMIT before.
	c.deps.After(o.commit, plan.DepCommit)
	if c.end >= 0 {
		o.own().commit = c.deps.Flight
	}
	c.wrote = o
	c.deps.Use(&o.attr, 0, 1, order.Commutes, plan.DepSize)
}

// copied records the source of COPY and CLONE.
func (c *call) copied(o *obj, offset, count uint64) {
	if o = o.real(); o == nil {
		return
	}
	if o.created.Op != 0 {
		c.deps.Needs(o.created.Op, plan.DepCreate)
	}
	end := offset + count
	if count == 0 || end < offset {
		end = order.Forever
	}
	c.deps.Use(&o.own().bytes, offset, end, order.Reads, plan.DepRange)
}

// reading records a READ of a range.
func (c *call) reading(o *obj, offset uint64, count uint32, eof bool) {
	c.span(offset, uint64(count))
	if o = o.real(); o == nil {
		return
	}
	end := offset + uint64(count)
	if end < offset || eof {
		end = order.Forever
	}
	c.deps.Use(&o.own().bytes, offset, end, order.Reads, plan.DepRange)
}

// object records that the call is about an object.
func (c *call) object(o *obj) {
	if o = o.real(); o == nil {
		return
	}
	if o.created.Op != 0 {
		c.deps.Needs(o.created.Op, plan.DepCreate)
	}
	if o.removed.Op != 0 {
		c.deps.After(o.removed, plan.DepName)
	}
	c.saw(o)
	if c.path == "" {
		c.path = c.b.space.path(o)
	}
}

// bind records that the reply contains the handle of an object.
func (c *call) bind(at int, o *obj) {
	if o = o.real(); o == nil {
		return
	}
	o.bound = true
	c.saw(o)
	c.op.Binds = append(c.op.Binds, plan.Bind{At: at, Kind: plan.FieldHandle, Ref: c.b.space.ref(o)})
}

// bindEntry is bind for a directory entry, unless its handle is known already.
func (c *call) bindEntry(at int, o *obj, name []byte) {
	if o = o.real(); o == nil || o.bound {
		return
	}
	o.bound = true
	x := plan.Bind{At: at, Kind: plan.FieldHandle, Ref: c.b.space.ref(o)}
	x.Name, x.NameBytes = text(string(name))
	c.op.Binds = append(c.op.Binds, x)
}

// point is the place of a name in the history of a directory.
func point(name []byte) uint64 {
	f := fnv.New64a()
	f.Write(name)
	return f.Sum64() >> 1
}
