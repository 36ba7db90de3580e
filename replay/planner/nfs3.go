package planner

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// call3 puts a call of NFSv3 into the plan, or one of NFSACL.
type call3 struct {
	*call
	space   *space
	content *content
}

// fill fills the op: its arguments as symbols, its dependencies, and what its reply says about the name space.
func (c *call3) fill() {
	c.form.reset()
	if !c.args() {
		c.form.raw("arguments", c.v.Args())
	}
	if !c.form.matches(c.v.Args(), c.scratch) {
		c.form.reset()
		c.form.raw("arguments", c.v.Args())
		c.reasons.add(plan.Inferred, "arguments kept as they are: handles in them mean nothing to another server")
	}
	c.op.Args = c.form.fields
}

// args takes arguments and results; false if it does not know the procedure.
func (c *call3) args() bool {
	list := procedures3[:]
	if c.v.Tx.Program == nfsacl.NFS_ACL_PROGRAM {
		list = proceduresACL[:]
	}
	if n := c.v.Tx.Procedure; int(n) < len(list) && list[n] != nil {
		return list[n](c)
	}
	return false
}

// procedures3 has a function for each procedure of NFSv3.
var procedures3 = [...]func(c *call3) bool{
	nfs3.NFSPROC3_GETATTR:     proc(getattr3),
	nfs3.NFSPROC3_SETATTR:     proc(setattr3),
	nfs3.NFSPROC3_LOOKUP:      proc(lookup3),
	nfs3.NFSPROC3_ACCESS:      proc(access3),
	nfs3.NFSPROC3_READLINK:    proc(readlink3),
	nfs3.NFSPROC3_READ:        proc(read3),
	nfs3.NFSPROC3_WRITE:       proc(write3),
	nfs3.NFSPROC3_CREATE:      proc(create3),
	nfs3.NFSPROC3_MKDIR:       proc(mkdir3),
	nfs3.NFSPROC3_SYMLINK:     proc(symlink3),
	nfs3.NFSPROC3_MKNOD:       proc(mknod3),
	nfs3.NFSPROC3_REMOVE:      proc(remove3),
	nfs3.NFSPROC3_RMDIR:       proc(rmdir3),
	nfs3.NFSPROC3_RENAME:      proc(rename3),
	nfs3.NFSPROC3_LINK:        proc(link3),
	nfs3.NFSPROC3_READDIR:     proc(readdir3),
	nfs3.NFSPROC3_READDIRPLUS: proc(readdirplus3),
	nfs3.NFSPROC3_FSSTAT:      proc(fsstat3),
	nfs3.NFSPROC3_FSINFO:      proc(fsinfo3),
	nfs3.NFSPROC3_PATHCONF:    proc(pathconf3),
	nfs3.NFSPROC3_COMMIT:      proc(commit3),
}

// proc makes a table entry from a function. Its results are nil if the call failed or has no
// readable reply.
func proc[A, R any](f func(c *call3, a *A, r *R)) func(*call3) bool {
	return func(c *call3) bool {
		a, ok := any(c.v.Args()).(*A)
		if !ok {
			return false
		}
		r, ok := any(c.v.Result()).(*R)
		if !ok || !c.ok {
			r = nil
		}
		f(c, a, r)
		return true
	}
}

func getattr3(c *call3, a *nfs3.GETATTR3args, r *nfs3.GETATTR3res) {
	o := c.fh("object", a.Object.Data)
	c.effects.inspects(o)
	if r != nil && o != nil {
		o.attrs3(&r.Resok.ObjAttributes)
	}
}

func setattr3(c *call3, a *nfs3.SETATTR3args, r *nfs3.SETATTR3res) {
	o := c.fh("object", a.Object.Data)
	c.effects.alters(o)
	if r != nil && o != nil {
		o.pre3(&r.Resok.ObjWcc.Before)
	}
	sattr3(c, "new_attributes", &a.NewAttributes, o)
	c.form.bool("check", a.Guard.Check)
	switch {
	case a.Guard.Check && o == nil:
		c.form.raw("obj_ctime", &a.Guard.ObjCtime)
	case a.Guard.Check:
		c.form.symbol(plan.Field{N: "obj_ctime", Kind: plan.FieldCtime, Ref: c.space.ref(o)}, a.Guard.ObjCtime.Append(nil))
	}
	if r != nil && o != nil {
		o.post3(&r.Resok.ObjWcc.After)
	}
}

func lookup3(c *call3, a *nfs3.LOOKUP3args, r *nfs3.LOOKUP3res) {
	s, name := c.space, a.What.Name
	d := c.fh("dir", a.What.Dir.Data)
	c.about.at(name)
	c.effects.looks(d, name)
	var o *obj
	switch {
	case r != nil:
		if o = s.find(d, name, r.Resok.Object.Data); o != nil {
			o.post3(&r.Resok.ObjAttributes)
		}
		if d != nil {
			d.post3(&r.Resok.DirAttributes)
		}
		c.effects.bind(0, o)
	case c.refusedWith(uint32(nfs3.NFS3ERR_NOENT)):
		s.missing(d, name)
	}
	c.form.name("name", name, s.refIfHandle(o))
	if o != nil {
		c.deps.After(o.created, plan.DepCreate)
	}
}

func access3(c *call3, a *nfs3.ACCESS3args, r *nfs3.ACCESS3res) {
	o := c.fh("object", a.Object.Data)
	c.form.u32("access", a.Access)
	c.effects.inspects(o)
	if r != nil && o != nil {
		o.post3(&r.Resok.ObjAttributes)
	}
}

func readlink3(c *call3, a *nfs3.READLINK3args, r *nfs3.READLINK3res) {
	o := c.fh("symlink", a.Symlink.Data)
	c.effects.inspects(o)
	if r != nil && o != nil {
		o.typ = "symlink"
		o.post3(&r.Resok.SymlinkAttributes)
		o.leadsTo(item(c.v, r.Resok.Data, true))
	}
}

func read3(c *call3, a *nfs3.READ3args, r *nfs3.READ3res) {
	o := c.fh("file", a.File.Data)
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	c.effects.reading(o, a.Offset, a.Count, r != nil && r.Resok.Eof)
	if r != nil && o != nil {
		o.post3(&r.Resok.FileAttributes)
		c.content.read(o, a.Offset, r.Resok.Data.Length, item(c.v, r.Resok.Data, true), r.Resok.Eof)
	}
}

func write3(c *call3, a *nfs3.WRITE3args, r *nfs3.WRITE3res) {
	o := c.fh("file", a.File.Data)
	if r != nil && o != nil {
		o.pre3(&r.Resok.FileWcc.Before)
	}
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	c.form.u32("stable", uint32(a.Stable))
	c.effects.writing(o, a.Offset, uint64(a.Count))
	c.form.data("data", c.content.payload(c.space.ref(o), a.Offset, a.Data.Length, item(c.v, a.Data, false), &c.reasons), a.Data)
	if r != nil && o != nil {
		o.post3(&r.Resok.FileWcc.After)
	}
}

func create3(c *call3, a *nfs3.CREATE3args, r *nfs3.CREATE3res) {
	d := making3(c, &a.Where)
	c.form.u32("mode", uint32(a.How.Mode))
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
		if size := &a.How.ObjAttributes.Size; size.SetIt {
			m.size = size.Size
		}
	}
	o := made(c, d, a.Where.Name, "file", a.How.Mode != nfs3.UNCHECKED, m)
	if a.How.Mode == nfs3.EXCLUSIVE {
		c.form.rawBytes("verf", a.How.Verf[:])
		return
	}
	if o != nil && o.created.Op == c.op.ID {
		o = nil // no existing object is changed
	}
	sattr3(c, "obj_attributes", &a.How.ObjAttributes, o)
}

func mkdir3(c *call3, a *nfs3.MKDIR3args, r *nfs3.MKDIR3res) {
	d := making3(c, &a.Where)
	sattr3(c, "attributes", &a.Attributes, nil)
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
	}
	made(c, d, a.Where.Name, "dir", true, m)
}

func symlink3(c *call3, a *nfs3.SYMLINK3args, r *nfs3.SYMLINK3res) {
	d := making3(c, &a.Where)
	sattr3(c, "symlink_attributes", &a.Symlink.SymlinkAttributes, nil)
	c.linkText("symlink_data", a.Symlink.SymlinkData)
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
	}
	made(c, d, a.Where.Name, "symlink", true, m)
}

func mknod3(c *call3, a *nfs3.MKNOD3args, r *nfs3.MKNOD3res) {
	d := making3(c, &a.Where)
	c.form.raw("what", &a.What)
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
	}
	made(c, d, a.Where.Name, types3[a.What.Type], true, m)
}

func remove3(c *call3, a *nfs3.REMOVE3args, _ *nfs3.REMOVE3res) {
	c.effects.unmade(making3(c, &a.Object), a.Object.Name, "file")
}

func rmdir3(c *call3, a *nfs3.RMDIR3args, _ *nfs3.RMDIR3res) {
	c.effects.unmade(making3(c, &a.Object), a.Object.Name, "dir")
}

func rename3(c *call3, a *nfs3.RENAME3args, _ *nfs3.RENAME3res) {
	from := dirop(c, "from.dir", "from.name", &a.From)
	c.about.at(a.From.Name)
	to := dirop(c, "to.dir", "to.name", &a.To)
	c.about.detail = "-> " + string(a.To.Name)
	c.effects.renames(from, a.From.Name, to, a.To.Name)
}

func link3(c *call3, a *nfs3.LINK3args, _ *nfs3.LINK3res) {
	o := c.fh("file", a.File.Data)
	d := dirop(c, "link.dir", "link.name", &a.Link)
	c.about.detail = "-> " + string(a.Link.Name)
	c.effects.changes(d, a.Link.Name)
	c.effects.alters(o)
	if c.ok {
		c.space.link(o, d, a.Link.Name)
	}
}

func readdir3(c *call3, a *nfs3.READDIR3args, r *nfs3.READDIR3res) {
	d := c.fh("dir", a.Dir.Data)
	c.cookies(d, listerOf(c.v.Tx, 0), a.Cookie, a.Cookieverf)
	c.form.u32("count", a.Count)
	c.effects.lists(d)
	if r == nil || d == nil {
		return
	}
	d.post3(&r.Resok.DirAttributes)
	l := r.Resok.Reply.Entries
	for i := range l {
		c.space.listed(d, l[i].Name, nil)
	}
	c.space.remember(d, c.op.ID, listerOf(c.v.Tx, 0), len(l), func(i int) uint64 { return l[i].Cookie }, r.Resok.Cookieverf)
}

func readdirplus3(c *call3, a *nfs3.READDIRPLUS3args, r *nfs3.READDIRPLUS3res) {
	d := c.fh("dir", a.Dir.Data)
	c.cookies(d, listerOf(c.v.Tx, 0), a.Cookie, a.Cookieverf)
	c.form.u32("dircount", a.Dircount)
	c.form.u32("maxcount", a.Maxcount)
	c.effects.lists(d)
	if r == nil || d == nil {
		return
	}
	d.post3(&r.Resok.DirAttributes)
	l := r.Resok.Reply.Entries
	for i := range l {
		e := &l[i]
		o := c.space.listed(d, e.Name, handle3(&e.NameHandle))
		if o != nil && e.NameAttributes.AttributesFollow {
			c.effects.inspects(o)
			o.post3(&e.NameAttributes)
		}
		if o != nil && e.NameHandle.HandleFollows && !dots(e.Name) {
			c.effects.bindEntry(0, o, e.Name)
		}
	}
	c.space.remember(d, c.op.ID, listerOf(c.v.Tx, 0), len(l), func(i int) uint64 { return l[i].Cookie }, r.Resok.Cookieverf)
}

func fsstat3(c *call3, a *nfs3.FSSTAT3args, _ *nfs3.FSSTAT3res) { c.fh("fsroot", a.Fsroot.Data) }

func fsinfo3(c *call3, a *nfs3.FSINFO3args, _ *nfs3.FSINFO3res) { c.fh("fsroot", a.Fsroot.Data) }

func pathconf3(c *call3, a *nfs3.PATHCONF3args, _ *nfs3.PATHCONF3res) { c.fh("object", a.Object.Data) }

func commit3(c *call3, a *nfs3.COMMIT3args, r *nfs3.COMMIT3res) {
	o := c.fh("file", a.File.Data)
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	c.op.Modifies = true // it is left out where nothing may be written
	c.effects.committing(o, a.Offset, a.Count)
	if r != nil && o != nil {
		o.pre3(&r.Resok.FileWcc.Before)
	}
}

// made3 is what the results of CREATE, MKDIR, SYMLINK and MKNOD have in common.
type made3 struct {
	fh    *nfs3.PostOpFh3
	attrs *nfs3.PostOpAttr
	dir   *nfs3.WccData
	size  uint64 // that a new file has
}

// old reports whether the attributes are not those of a new file: it has contents that nobody has written, or
// another name.
func (m *made3) old() bool {
	a := &m.attrs.Attributes
	return m.attrs.AttributesFollow && a.Type == nfs3.NF3REG && (a.Size != m.size || a.Nlink > 1)
}

// made is the outcome of CREATE, MKDIR, SYMLINK and MKNOD; m is nil if they failed.
// sure says that success implies that the name did not exist before.
func made(c *call3, d *obj, name []byte, typ string, sure bool, m *made3) *obj {
	s := c.space
	switch {
	case !c.replied:
		s.maybe(d, name, c.op.ID)
		return nil
	case c.refusedWith(uint32(nfs3.NFS3ERR_EXIST)):
		s.find(d, name, nil)
		return nil
	case m == nil:
		return nil
	}
	h := handle3(m.fh)
	existed := false
	if d = d.real(); d != nil && !sure {
		n := s.state(d, name)
		switch {
		case n.obj != nil:
			existed = true
		case n.touched || n.absent:
		case m.old():
			existed = true
		case m.dir.Before.AttributesFollow && m.dir.After.AttributesFollow:
			existed = m.dir.Before.Attributes.Mtime == m.dir.After.Attributes.Mtime
		}
	}
	var o *obj
	if existed {
		if o = s.find(d, name, h); o != nil {
			c.effects.alters(o)
		}
	} else {
		o = s.create(c.deps.Flight, c.server, d, name, h, typ)
	}
	if m.attrs.AttributesFollow && o.real() != nil {
		o.attrs3(&m.attrs.Attributes)
	}
	wcc3(d, m.dir)
	c.effects.bind(0, o)
	return o
}

// making3 adds the place where something is made or removed, and returns its
// directory.
func making3(c *call3, a *nfs3.Diropargs3) *obj {
	d := dirop(c, "dir", "name", a)
	c.about.at(a.Name)
	c.effects.changes(d, a.Name)
	return d
}

// dirop adds a diropargs3.
func dirop(c *call3, dir, n string, a *nfs3.Diropargs3) *obj {
	d := c.fh(dir, a.Dir.Data)
	c.form.name(n, a.Name, c.space.leads(d, a.Name))
	return d
}

// sattr3 adds attributes to be set on an object, nil for one that is new.
func sattr3(c *call3, n string, a *nfs3.Sattr3, o *obj) {
	c.form.raw(n, a)
	if a.Mode.SetIt {
		c.about.detail += " mode=0" + strconv.FormatUint(uint64(a.Mode.Mode), 8)
	}
	if o = o.real(); o != nil && (c.ok || !c.replied) {
		o.modeChanged = o.modeChanged || a.Mode.SetIt
		o.ownerChanged = o.ownerChanged || a.Uid.SetIt || a.Gid.SetIt
	}
	if a.Size.SetIt {
		c.effects.resized(o, a.Size.Size)
	}
}

func handle3(f *nfs3.PostOpFh3) []byte {
	if f.HandleFollows {
		return f.Handle.Data
	}
	return nil
}

// wcc3 learns from weak cache consistency data.
func wcc3(o *obj, w *nfs3.WccData) {
	if o = o.real(); o != nil {
		o.pre3(&w.Before)
		o.post3(&w.After)
	}
}
