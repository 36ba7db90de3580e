package planner

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// nfs3 fills the op with an NFSv3 call: its arguments by symbols, what it
// depends on, and what its reply says of the name space.
func (c *call) nfs3() {
	c.form.reset()
	c.args3()
	if !c.form.matches(c.v.Args, c.scratch) {
		c.form.reset()
		c.form.raw("arguments", c.v.Args)
		c.worse(plan.Inferred, "arguments kept as they are: handles in them mean nothing to another server")
	}
	c.op.Args = c.form.fields
}

// fh adds a file handle of the arguments and returns its object.
func (c *call) fh(n string, h []byte) *obj {
	o := c.b.space.of(c.server, h)
	if o == nil {
		c.form.text(n, h)
		if len(h) > 0 {
			c.worse(plan.Inferred, "a file handle that is not followed: sent as captured")
		}
		return nil
	}
	c.form.handle(n, c.b.space.ref(o), h)
	c.object(o)
	if c.replied {
		o.heard(c.status3())
	}
	return o
}

// status3 is the status of the results; NFSv4 has one for each operation.
func (c *call) status3() uint32 {
	if c.v.Tx.Version == 4 {
		if x := c.compound.ops[c.compound.at]; x.Result != nil {
			return x.Code
		}
		return uint32(nfs3.NFS3ERR_JUKEBOX)
	}
	s, ok := c.v.Result.(xdr.Status)
	if !ok {
		return 0
	}
	code, _ := s.StatusCode()
	return code
}

// heard notes whether the server knows a handle. The numbers are the same in
// NFSv3 and NFSv4.
func (o *obj) heard(status uint32) {
	switch nfs3.Nfsstat3(status) {
	case nfs3.NFS3ERR_STALE, nfs3.NFS3ERR_BADHANDLE:
		o.stale = true
	case nfs3.NFS3ERR_JUKEBOX:
	default:
		o.alive = true
	}
}

// object notes that the call goes to an object.
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

// dirop adds a diropargs3.
func (c *call) dirop(dir, n string, a *nfs3.Diropargs3) *obj {
	d := c.fh(dir, a.Dir.Data)
	c.form.name(n, a.Name, c.leads(d, a.Name))
	return d
}

// leads is the object that a name leads to at present, if there is a handle.
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

// at sets the path to a name in the directory that was named last.
func (c *call) at(name []byte) {
	if len(c.path) > maxWhat {
		return // nobody sees more of it
	}
	name = name[:min(len(name), maxWhat)]
	switch c.path {
	case "", "/":
		c.path = string(name)
	default:
		c.path += "/" + string(name)
	}
}

func (c *call) looks(d *obj, name []byte) {
	if d = d.real(); d != nil {
		p := point(name)
		c.use(&d.own().dir, p, p+1, reads, plan.DepName)
	}
}

func (c *call) changes(d *obj, name []byte) {
	c.op.Modifies = true
	if d = d.real(); d != nil {
		p := point(name)
		c.use(&d.own().dir, p, p+1, writes, plan.DepName)
		c.use(&d.attr, 0, 1, commutes, plan.DepSize)
	}
}

// writes notes that a range has other content than before the capture. Beyond
// the memory that there is for it, that holds of all that follows.
func (o *obj) writes(from, to uint64) {
	d := o.own()
	if o.s.b.room.full() {
		to = forever
	}
	n := len(d.written)
	d.written.add(from, to)
	if len(d.written) > n {
		o.s.b.room.take(spanSize)
	}
}

// leadsTo notes the target of a symlink.
func (o *obj) leadsTo(target []byte) {
	if o.s.b.room.full() || o.target == string(target) {
		return
	}
	o.own().target = string(target)
	o.s.b.room.take(len(target))
}

// inspects is a look at the attributes. Those that come with the reply of a
// WRITE depend on what else is under way, so that they order nothing.
func (c *call) inspects(o *obj) {
	if o = o.real(); o != nil && o != c.wrote {
		c.use(&o.attr, 0, 1, reads, plan.DepSize)
	}
}

func (c *call) alters(o *obj) {
	c.op.Modifies = true
	if o = o.real(); o != nil {
		c.use(&o.attr, 0, 1, writes, plan.DepSize)
	}
}

// reading is a READ of a range.
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

// writing is a change of a range. known says that its end is certain.
func (c *call) writing(o *obj, offset, count uint64) {
	c.op.Modifies = true
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

func (c *call) committing(o *obj, offset uint64, count uint32) {
	c.op.Modifies = true
	c.span(offset, uint64(count))
	if o = o.real(); o == nil {
		return
	}
	end := offset + uint64(count)
	if end < offset || count == 0 {
		end = forever
	}
	// It is no reader that a later WRITE would have to wait for.
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

// resized is a change of the size.
func (c *call) resized(o *obj, size uint64) {
	c.op.Modifies = true
	c.detail += " size=" + strconv.FormatUint(size, 10)
	if o = o.real(); o == nil {
		return
	}
	c.use(&o.own().bytes, size, forever, writes, plan.DepSize)
	if c.ok || !c.replied {
		o.writes(size, forever)
		o.sizeChanged = true
	}
}

func (c *call) span(offset, count uint64) {
	c.detail = "@" + strconv.FormatUint(offset, 10) + "+" + strconv.FormatUint(count, 10)
}

// bind says that the reply gives an object its handle.
func (c *call) bind(at int, o *obj) {
	if o = o.real(); o == nil {
		return
	}
	o.bound = true
	c.saw(o)
	c.op.Binds = append(c.op.Binds, plan.Bind{At: at, Kind: plan.FieldHandle, Ref: c.b.space.ref(o)})
}

func (c *call) sattr3(n string, a *nfs3.Sattr3, o *obj) {
	c.form.raw(n, a)
	if a.Mode.SetIt {
		c.detail += " mode=0" + strconv.FormatUint(uint64(a.Mode.Mode), 8)
	}
	if o = o.real(); o != nil && (c.ok || !c.replied) {
		o.modeChanged = o.modeChanged || a.Mode.SetIt
		o.ownerChanged = o.ownerChanged || a.Uid.SetIt || a.Gid.SetIt
	}
	if a.Size.SetIt {
		c.resized(o, a.Size.Size)
	}
}

func handle3(f *nfs3.PostOpFh3) []byte {
	if f.HandleFollows {
		return f.Handle.Data
	}
	return nil
}

// wcc learns from weak cache consistency data.
func wcc3(o *obj, w *nfs3.WccData) {
	if o = o.real(); o != nil {
		o.pre3(&w.Before)
		o.post3(&w.After)
	}
}

// made is the outcome of CREATE, MKDIR, SYMLINK and MKNOD. sure says that a
// success means that there was nothing before.
func (c *call) made(d *obj, name []byte, typ string, sure bool, status nfs3.Nfsstat3, fh *nfs3.PostOpFh3, attrs *nfs3.PostOpAttr, dir *nfs3.WccData) *obj {
	s := &c.b.space
	switch {
	case !c.replied:
		if d != nil {
			if n := s.state(d.real(), name); n.obj == nil {
				n.pending = c.op.ID
			}
		}
		return nil
	case status == nfs3.NFS3ERR_EXIST:
		s.find(d, name, nil)
		return nil
	case status != nfs3.NFS3_OK:
		return nil
	}
	h := handle3(fh)
	existed := false
	if d = d.real(); d != nil && !sure {
		n := s.state(d, name)
		switch {
		case n.obj != nil:
			existed = true
		case n.touched || n.absent:
		case dir.Before.AttributesFollow && dir.After.AttributesFollow:
			existed = dir.Before.Attributes.Mtime == dir.After.Attributes.Mtime
		}
	}
	var o *obj
	if existed {
		if o = s.find(d, name, h); o != nil {
			c.alters(o)
		}
	} else {
		o = s.create(c, d, name, h, typ)
	}
	if attrs.AttributesFollow && o.real() != nil {
		o.attrs3(&attrs.Attributes)
	}
	wcc3(d, dir)
	c.bind(0, o)
	return o
}

// unmade is the outcome of REMOVE and RMDIR of something that is of the type
// if nothing else is known.
func (c *call) unmade(d *obj, name []byte, typ string) {
	s := &c.b.space
	if d = d.real(); d == nil {
		return
	}
	if !c.ok {
		// That it failed may be due to what is in it.
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

// removes is the removal of an object: whoever uses it has to come before.
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
}

func (c *call) args3() {
	f, s := &c.form, &c.b.space
	switch a := c.v.Args.(type) {
	case *nfs3.GETATTR3args:
		o := c.fh("object", a.Object.Data)
		c.inspects(o)
		if r, is := c.v.Result.(*nfs3.GETATTR3res); is && c.ok && o != nil {
			o.attrs3(&r.Resok.ObjAttributes)
		}
	case *nfs3.SETATTR3args:
		o := c.fh("object", a.Object.Data)
		c.alters(o)
		if r, is := c.v.Result.(*nfs3.SETATTR3res); is && c.ok && o != nil {
			o.pre3(&r.Resok.ObjWcc.Before)
		}
		c.sattr3("new_attributes", &a.NewAttributes, o)
		f.bool("check", a.Guard.Check)
		switch {
		case a.Guard.Check && o == nil:
			f.raw("obj_ctime", &a.Guard.ObjCtime)
		case a.Guard.Check:
			f.symbol(plan.Field{N: "obj_ctime", Kind: plan.FieldCtime, Ref: s.ref(o)}, a.Guard.ObjCtime.Append(nil))
		}
		if r, is := c.v.Result.(*nfs3.SETATTR3res); is && c.ok && o != nil {
			o.post3(&r.Resok.ObjWcc.After)
		}
	case *nfs3.LOOKUP3args:
		d := c.fh("dir", a.What.Dir.Data)
		c.at(a.What.Name)
		c.looks(d, a.What.Name)
		var o *obj
		if r, is := c.v.Result.(*nfs3.LOOKUP3res); is && c.replied {
			switch r.Status {
			case nfs3.NFS3_OK:
				o = s.find(d, a.What.Name, r.Resok.Object.Data)
				if o != nil {
					o.post3(&r.Resok.ObjAttributes)
				}
				if d != nil {
					d.post3(&r.Resok.DirAttributes)
				}
				c.bind(0, o)
			case nfs3.NFS3ERR_NOENT:
				s.missing(d, a.What.Name)
			}
		}
		f.name("name", a.What.Name, s.refIfHandle(o))
		if o != nil && o.created != 0 {
			c.dep(o.created, o.createdAt, plan.DepCreate)
		}
	case *nfs3.ACCESS3args:
		o := c.fh("object", a.Object.Data)
		f.u32("access", a.Access)
		c.inspects(o)
		if r, is := c.v.Result.(*nfs3.ACCESS3res); is && c.ok && o != nil {
			o.post3(&r.Resok.ObjAttributes)
		}
	case *nfs3.READLINK3args:
		o := c.fh("symlink", a.Symlink.Data)
		c.inspects(o)
		if r, is := c.v.Result.(*nfs3.READLINK3res); is && c.ok && o != nil {
			o.typ = "symlink"
			o.post3(&r.Resok.SymlinkAttributes)
			o.leadsTo(c.item(r.Resok.Data, true))
		}
	case *nfs3.READ3args:
		o := c.fh("file", a.File.Data)
		f.u64("offset", a.Offset)
		f.u32("count", a.Count)
		r, is := c.v.Result.(*nfs3.READ3res)
		is = is && c.ok
		c.reading(o, a.Offset, a.Count, is && r.Resok.Eof)
		if is && o != nil {
			o.post3(&r.Resok.FileAttributes)
			c.read(o, a.Offset, r.Resok.Data, r.Resok.Eof)
		}
	case *nfs3.WRITE3args:
		o := c.fh("file", a.File.Data)
		if r, is := c.v.Result.(*nfs3.WRITE3res); is && c.ok && o != nil {
			o.pre3(&r.Resok.FileWcc.Before)
		}
		f.u64("offset", a.Offset)
		f.u32("count", a.Count)
		f.u32("stable", uint32(a.Stable))
		c.writing(o, a.Offset, uint64(a.Count))
		f.data("data", c.payload(o, a.Offset, a.Data), a.Data)
		if r, is := c.v.Result.(*nfs3.WRITE3res); is && c.ok && o != nil {
			o.post3(&r.Resok.FileWcc.After)
		}
	case *nfs3.CREATE3args:
		d := c.dirop("dir", "name", &a.Where)
		c.at(a.Where.Name)
		c.changes(d, a.Where.Name)
		f.u32("mode", uint32(a.How.Mode))
		var o *obj
		if r, is := c.v.Result.(*nfs3.CREATE3res); is || !c.replied {
			if !is {
				r = new(nfs3.CREATE3res)
			}
			o = c.made(d, a.Where.Name, "file", a.How.Mode != nfs3.UNCHECKED, r.Status, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
		}
		if a.How.Mode == nfs3.EXCLUSIVE {
			f.rawBytes("verf", a.How.Verf[:])
		} else {
			if o != nil && o.created == c.op.ID {
				o = nil // nothing that was there is changed
			}
			c.sattr3("obj_attributes", &a.How.ObjAttributes, o)
		}
	case *nfs3.MKDIR3args:
		d := c.dirop("dir", "name", &a.Where)
		c.at(a.Where.Name)
		c.changes(d, a.Where.Name)
		c.sattr3("attributes", &a.Attributes, nil)
		r, is := c.v.Result.(*nfs3.MKDIR3res)
		if !is {
			r = new(nfs3.MKDIR3res)
		}
		c.made(d, a.Where.Name, "dir", true, r.Status, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
	case *nfs3.SYMLINK3args:
		d := c.dirop("dir", "name", &a.Where)
		c.at(a.Where.Name)
		c.changes(d, a.Where.Name)
		c.sattr3("symlink_attributes", &a.Symlink.SymlinkAttributes, nil)
		c.linkText("symlink_data", a.Symlink.SymlinkData)
		r, is := c.v.Result.(*nfs3.SYMLINK3res)
		if !is {
			r = new(nfs3.SYMLINK3res)
		}
		c.made(d, a.Where.Name, "symlink", true, r.Status, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
	case *nfs3.MKNOD3args:
		d := c.dirop("dir", "name", &a.Where)
		c.at(a.Where.Name)
		c.changes(d, a.Where.Name)
		f.raw("what", &a.What)
		r, is := c.v.Result.(*nfs3.MKNOD3res)
		if !is {
			r = new(nfs3.MKNOD3res)
		}
		c.made(d, a.Where.Name, types3[a.What.Type], true, r.Status, &r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc)
	case *nfs3.REMOVE3args:
		d := c.dirop("dir", "name", &a.Object)
		c.at(a.Object.Name)
		c.changes(d, a.Object.Name)
		c.unmade(d, a.Object.Name, "file")
	case *nfs3.RMDIR3args:
		d := c.dirop("dir", "name", &a.Object)
		c.at(a.Object.Name)
		c.changes(d, a.Object.Name)
		c.unmade(d, a.Object.Name, "dir")
	case *nfs3.RENAME3args:
		from := c.dirop("from.dir", "from.name", &a.From)
		c.at(a.From.Name)
		to := c.dirop("to.dir", "to.name", &a.To)
		c.detail = "-> " + string(a.To.Name)
		c.renames(from, a.From.Name, to, a.To.Name)
	case *nfs3.LINK3args:
		o := c.fh("file", a.File.Data)
		d := c.dirop("link.dir", "link.name", &a.Link)
		c.detail = "-> " + string(a.Link.Name)
		c.changes(d, a.Link.Name)
		c.alters(o)
		if c.ok {
			s.link(o, d, a.Link.Name)
		}
	case *nfs3.READDIR3args:
		d := c.fh("dir", a.Dir.Data)
		c.cookies(d, a.Cookie, a.Cookieverf)
		f.u32("count", a.Count)
		c.lists(d)
		if r, is := c.v.Result.(*nfs3.READDIR3res); is && c.ok && d != nil {
			d.post3(&r.Resok.DirAttributes)
			for i := range r.Resok.Reply.Entries {
				c.listed(d, r.Resok.Reply.Entries[i].Name, nil)
			}
			c.remember(d, len(r.Resok.Reply.Entries), func(i int) uint64 { return r.Resok.Reply.Entries[i].Cookie }, r.Resok.Cookieverf)
		}
	case *nfs3.READDIRPLUS3args:
		d := c.fh("dir", a.Dir.Data)
		c.cookies(d, a.Cookie, a.Cookieverf)
		f.u32("dircount", a.Dircount)
		f.u32("maxcount", a.Maxcount)
		c.lists(d)
		if r, is := c.v.Result.(*nfs3.READDIRPLUS3res); is && c.ok && d != nil {
			d.post3(&r.Resok.DirAttributes)
			for i := range r.Resok.Reply.Entries {
				e := &r.Resok.Reply.Entries[i]
				o := c.listed(d, e.Name, handle3(&e.NameHandle))
				if o != nil && e.NameAttributes.AttributesFollow {
					c.inspects(o)
					o.post3(&e.NameAttributes)
				}
				if o != nil && e.NameHandle.HandleFollows && !dots(e.Name) {
					c.bindEntry(0, o, e.Name)
				}
			}
			c.remember(d, len(r.Resok.Reply.Entries), func(i int) uint64 { return r.Resok.Reply.Entries[i].Cookie }, r.Resok.Cookieverf)
		}
	case *nfs3.FSSTAT3args:
		c.fh("fsroot", a.Fsroot.Data)
	case *nfs3.FSINFO3args:
		c.fh("fsroot", a.Fsroot.Data)
	case *nfs3.PATHCONF3args:
		c.fh("object", a.Object.Data)
	case *nfs3.COMMIT3args:
		o := c.fh("file", a.File.Data)
		f.u64("offset", a.Offset)
		f.u32("count", a.Count)
		c.committing(o, a.Offset, a.Count)
		if r, is := c.v.Result.(*nfs3.COMMIT3res); is && c.ok && o != nil {
			o.pre3(&r.Resok.FileWcc.Before)
		}
	default:
		if !c.acl(a) {
			f.raw("arguments", c.v.Args)
		}
	}
}

// refIfHandle is ref for an object that has a handle.
func (s *space) refIfHandle(o *obj) int {
	if o = o.real(); o == nil || o.handle == "" {
		return 0
	}
	return s.ref(o)
}

// linkText adds the target of a symlink.
func (c *call) linkText(n string, d xdr.Data) {
	b := c.item(d, false)
	p := &plan.Payload{Length: d.Length, Source: plan.Captured}
	if len(b) < int(d.Length) {
		c.worse(plan.Synthesised, "data missing from the capture: made up")
		p.Source = plan.Pattern
		for len(b) < int(d.Length) {
			b = append(b[:len(b):len(b)], 'x')
		}
	}
	p.Text = append([]byte{}, b...)
	p.Hash = plan.HashData(b)
	c.detail = "-> " + string(b)
	c.form.data(n, p, d)
}

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
	// What is replaced must not be in use any more.
	if n := s.names[nameKey{to, string(name)}]; n != nil && n.obj != nil && n.obj.real() != o {
		c.removes(n.obj.real())
	}
	s.rename(c, from, old, to, name)
}

// lists is a READDIR.
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

// bindEntry is bind for an entry of a directory, unless the handle is known
// already.
func (c *call) bindEntry(at int, o *obj, name []byte) {
	if o = o.real(); o == nil || o.bound {
		return
	}
	o.bound = true
	x := plan.Bind{At: at, Kind: plan.FieldHandle, Ref: c.b.space.ref(o)}
	x.Name, x.NameBytes = text(string(name))
	c.op.Binds = append(c.op.Binds, x)
}
