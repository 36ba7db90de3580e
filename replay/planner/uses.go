package planner

import (
	"strconv"

	"github.com/rpcrdma/toolkit/replay/plan"
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
	if o != nil && o.created != 0 {
		c.dep(o.created, o.createdAt, plan.DepCreate)
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
			c.use(&n.obj.real().own().dir, 0, forever, reads, plan.DepName)
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
	if o.created != 0 {
		c.dep(o.created, o.createdAt, plan.DepCreate)
	}
	if o.count > 1 {
		c.alters(o) // the number of its links
		return
	}
	c.use(&o.attr, 0, 1, writes, plan.DepName)
	c.use(&o.own().bytes, 0, forever, writes, plan.DepName)
	if len(o.dir.list) > 0 {
		c.use(&o.own().dir, 0, forever, writes, plan.DepName)
	}
	if len(o.locks.list) > 0 { // NLM locks nothing that is gone
		c.use(&o.own().locks, 0, forever, writes, plan.DepName)
	}
}

// changes records a change of a name.
func (c *call) changes(d *obj, name []byte) {
	if d = d.real(); d != nil {
		p := point(name)
		c.use(&d.own().dir, p, p+1, writes, plan.DepName)
		c.use(&d.attr, 0, 1, commutes, plan.DepSize)
	}
}

// looks records a lookup of a name.
func (c *call) looks(d *obj, name []byte) {
	if d = d.real(); d != nil {
		p := point(name)
		c.use(&d.own().dir, p, p+1, reads, plan.DepName)
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
		c.use(&d.own().dir, 0, forever, reads, plan.DepName)
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
		c.use(&o.attr, 0, 1, writes, plan.DepSize)
	}
}

// inspects records a read of the attributes. Those in the reply to a WRITE depend on
// the other calls in flight and therefore impose no order.
func (c *call) inspects(o *obj) {
	if o = o.real(); o != nil && o != c.wrote {
		c.use(&o.attr, 0, 1, reads, plan.DepSize)
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
		end = forever
	}
	c.wrote = o
	c.use(&o.own().bytes, offset, end, writes, plan.DepRange)
	c.use(&o.attr, 0, 1, commutes, plan.DepSize)
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
	c.use(&o.own().bytes, min(size, o.latest), forever, writes, plan.DepSize)
	if c.ok || !c.replied {
		o.writes(size, forever)
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
		end = forever
	}
	// It is not a reader that a later WRITE would have to wait for.
	own := entry{lo: offset, hi: max(end, offset+1), op: c.op.ID, end: c.end, how: reads}
	for i := range o.bytes.list {
		c.against(&o.bytes.list[i], &own, plan.DepCommit)
	}
	// Most of these edges follow from one to the COMMIT before.
	c.dep(o.commit.op, o.commit.end, plan.DepCommit)
	if c.end >= 0 {
		o.own().commit = flight{c.op.ID, c.end}
	}
	c.wrote = o
	c.use(&o.attr, 0, 1, commutes, plan.DepSize)
}

// copied records the source of COPY and CLONE.
func (c *call) copied(o *obj, offset, count uint64) {
	if o = o.real(); o == nil {
		return
	}
	if o.created != 0 {
		c.must(o.created, plan.DepCreate)
	}
	end := offset + count
	if count == 0 || end < offset {
		end = forever
	}
	c.use(&o.own().bytes, offset, end, reads, plan.DepRange)
}

// reading records a READ of a range.
func (c *call) reading(o *obj, offset uint64, count uint32, eof bool) {
	c.span(offset, uint64(count))
	if o = o.real(); o == nil {
		return
	}
	end := offset + uint64(count)
	if end < offset || eof {
		end = forever
	}
	c.use(&o.own().bytes, offset, end, reads, plan.DepRange)
}

// object records that the call is about an object.
func (c *call) object(o *obj) {
	if o = o.real(); o == nil {
		return
	}
	if o.created != 0 {
		c.must(o.created, plan.DepCreate)
	}
	if o.removed != 0 {
		c.dep(o.removed, o.removedAt, plan.DepName)
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
