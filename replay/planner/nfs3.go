package planner

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// nfs3 fills the op with a call of NFSv3 or NFSACL: its arguments as symbols, its dependencies,
// and what its reply says about the name space.
func (c *call) nfs3() {
	c.form.reset()
	c.acts(ops.Procedure(c.v.Tx.Program, c.v.Tx.Version, c.v.Tx.Procedure), c.v.Args())
	if !c.args3() {
		c.form.raw("arguments", c.v.Args())
	}
	if !c.form.matches(c.v.Args(), c.scratch) {
		c.form.reset()
		c.form.raw("arguments", c.v.Args())
		c.worse(plan.Inferred, "arguments kept as they are: handles in them mean nothing to another server")
	}
	c.op.Args = c.form.fields
}

// args3 takes arguments and results; false if it does not know the procedure.
func (c *call) args3() bool {
	list := procedures3[:]
	if c.v.Tx.Program == nfsacl.NFS_ACL_PROGRAM {
		list = proceduresACL[:]
	}
	if n := c.v.Tx.Procedure; int(n) < len(list) && list[n] != nil {
		return list[n](c)
	}
	return false
}

// procedures3 has the planner's method for each procedure of NFSv3.
var procedures3 = [...]func(c *call) bool{
	nfs3.NFSPROC3_GETATTR:     proc((*call).getattr3),
	nfs3.NFSPROC3_SETATTR:     proc((*call).setattr3),
	nfs3.NFSPROC3_LOOKUP:      proc((*call).lookup3),
	nfs3.NFSPROC3_ACCESS:      proc((*call).access3),
	nfs3.NFSPROC3_READLINK:    proc((*call).readlink3),
	nfs3.NFSPROC3_READ:        proc((*call).read3),
	nfs3.NFSPROC3_WRITE:       proc((*call).write3),
	nfs3.NFSPROC3_CREATE:      proc((*call).create3),
	nfs3.NFSPROC3_MKDIR:       proc((*call).mkdir3),
	nfs3.NFSPROC3_SYMLINK:     proc((*call).symlink3),
	nfs3.NFSPROC3_MKNOD:       proc((*call).mknod3),
	nfs3.NFSPROC3_REMOVE:      proc((*call).remove3),
	nfs3.NFSPROC3_RMDIR:       proc((*call).rmdir3),
	nfs3.NFSPROC3_RENAME:      proc((*call).rename3),
	nfs3.NFSPROC3_LINK:        proc((*call).link3),
	nfs3.NFSPROC3_READDIR:     proc((*call).readdir3),
	nfs3.NFSPROC3_READDIRPLUS: proc((*call).readdirplus3),
	nfs3.NFSPROC3_FSSTAT:      proc((*call).fsstat3),
	nfs3.NFSPROC3_FSINFO:      proc((*call).fsinfo3),
	nfs3.NFSPROC3_PATHCONF:    proc((*call).pathconf3),
	nfs3.NFSPROC3_COMMIT:      proc((*call).commit3),
}

// proc makes a table entry from a method. Its results are nil if the call failed or has no
// readable reply.
func proc[A, R any](f func(c *call, a *A, r *R)) func(*call) bool {
	return func(c *call) bool {
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

func (c *call) getattr3(a *nfs3.GETATTR3args, r *nfs3.GETATTR3res) {
	o := c.fh("object", a.Object.Data)
	c.inspects(o)
	if r != nil && o != nil {
		o.attrs3(&r.Resok.ObjAttributes)
	}
}

func (c *call) setattr3(a *nfs3.SETATTR3args, r *nfs3.SETATTR3res) {
	o := c.fh("object", a.Object.Data)
	c.alters(o)
	if r != nil && o != nil {
		o.pre3(&r.Resok.ObjWcc.Before)
	}
	c.sattr3("new_attributes", &a.NewAttributes, o)
	c.form.bool("check", a.Guard.Check)
	switch {
	case a.Guard.Check && o == nil:
		c.form.raw("obj_ctime", &a.Guard.ObjCtime)
	case a.Guard.Check:
		c.form.symbol(plan.Field{N: "obj_ctime", Kind: plan.FieldCtime, Ref: c.b.space.ref(o)}, a.Guard.ObjCtime.Append(nil))
	}
	if r != nil && o != nil {
		o.post3(&r.Resok.ObjWcc.After)
	}
}

func (c *call) lookup3(a *nfs3.LOOKUP3args, r *nfs3.LOOKUP3res) {
	s, name := &c.b.space, a.What.Name
	d := c.fh("dir", a.What.Dir.Data)
	c.at(name)
	c.looks(d, name)
	var o *obj
	switch {
	case r != nil:
		if o = s.find(d, name, r.Resok.Object.Data); o != nil {
			o.post3(&r.Resok.ObjAttributes)
		}
		if d != nil {
			d.post3(&r.Resok.DirAttributes)
		}
		c.bind(0, o)
	case c.refusedWith3(nfs3.NFS3ERR_NOENT):
		s.missing(d, name)
	}
	c.form.name("name", name, s.refIfHandle(o))
	if o != nil && o.created.Op != 0 {
		c.deps.After(o.created, plan.DepCreate)
	}
}

func (c *call) access3(a *nfs3.ACCESS3args, r *nfs3.ACCESS3res) {
	o := c.fh("object", a.Object.Data)
	c.form.u32("access", a.Access)
	c.inspects(o)
	if r != nil && o != nil {
		o.post3(&r.Resok.ObjAttributes)
	}
}

func (c *call) readlink3(a *nfs3.READLINK3args, r *nfs3.READLINK3res) {
	o := c.fh("symlink", a.Symlink.Data)
	c.inspects(o)
	if r != nil && o != nil {
		o.typ = "symlink"
		o.post3(&r.Resok.SymlinkAttributes)
		o.leadsTo(c.item(r.Resok.Data, true))
	}
}

func (c *call) read3(a *nfs3.READ3args, r *nfs3.READ3res) {
	o := c.fh("file", a.File.Data)
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	c.reading(o, a.Offset, a.Count, r != nil && r.Resok.Eof)
	if r != nil && o != nil {
		o.post3(&r.Resok.FileAttributes)
		c.read(o, a.Offset, r.Resok.Data, r.Resok.Eof)
	}
}

func (c *call) write3(a *nfs3.WRITE3args, r *nfs3.WRITE3res) {
	o := c.fh("file", a.File.Data)
	if r != nil && o != nil {
		o.pre3(&r.Resok.FileWcc.Before)
	}
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	c.form.u32("stable", uint32(a.Stable))
	c.writing(o, a.Offset, uint64(a.Count))
	c.form.data("data", c.payload(o, a.Offset, a.Data), a.Data)
	if r != nil && o != nil {
		o.post3(&r.Resok.FileWcc.After)
	}
}

func (c *call) create3(a *nfs3.CREATE3args, r *nfs3.CREATE3res) {
	d := c.making3(&a.Where)
	c.form.u32("mode", uint32(a.How.Mode))
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
		if size := &a.How.ObjAttributes.Size; size.SetIt {
			m.size = size.Size
		}
	}
	o := c.made(d, a.Where.Name, "file", a.How.Mode != nfs3.UNCHECKED, m)
	if a.How.Mode == nfs3.EXCLUSIVE {
		c.form.rawBytes("verf", a.How.Verf[:])
		return
	}
	if o != nil && o.created.Op == c.op.ID {
		o = nil // no existing object is changed
	}
	c.sattr3("obj_attributes", &a.How.ObjAttributes, o)
}

func (c *call) mkdir3(a *nfs3.MKDIR3args, r *nfs3.MKDIR3res) {
	d := c.making3(&a.Where)
	c.sattr3("attributes", &a.Attributes, nil)
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
	}
	c.made(d, a.Where.Name, "dir", true, m)
}

func (c *call) symlink3(a *nfs3.SYMLINK3args, r *nfs3.SYMLINK3res) {
	d := c.making3(&a.Where)
	c.sattr3("symlink_attributes", &a.Symlink.SymlinkAttributes, nil)
	c.linkText("symlink_data", a.Symlink.SymlinkData)
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
	}
	c.made(d, a.Where.Name, "symlink", true, m)
}

func (c *call) mknod3(a *nfs3.MKNOD3args, r *nfs3.MKNOD3res) {
	d := c.making3(&a.Where)
	c.form.raw("what", &a.What)
	var m *made3
	if r != nil {
		m = &made3{&r.Resok.Obj, &r.Resok.ObjAttributes, &r.Resok.DirWcc, 0}
	}
	c.made(d, a.Where.Name, types3[a.What.Type], true, m)
}

func (c *call) remove3(a *nfs3.REMOVE3args, _ *nfs3.REMOVE3res) {
	c.unmade(c.making3(&a.Object), a.Object.Name, "file")
}

func (c *call) rmdir3(a *nfs3.RMDIR3args, _ *nfs3.RMDIR3res) {
	c.unmade(c.making3(&a.Object), a.Object.Name, "dir")
}

func (c *call) rename3(a *nfs3.RENAME3args, _ *nfs3.RENAME3res) {
	from := c.dirop("from.dir", "from.name", &a.From)
	c.at(a.From.Name)
	to := c.dirop("to.dir", "to.name", &a.To)
	c.detail = "-> " + string(a.To.Name)
	c.renames(from, a.From.Name, to, a.To.Name)
}

func (c *call) link3(a *nfs3.LINK3args, _ *nfs3.LINK3res) {
	o := c.fh("file", a.File.Data)
	d := c.dirop("link.dir", "link.name", &a.Link)
	c.detail = "-> " + string(a.Link.Name)
	c.changes(d, a.Link.Name)
	c.alters(o)
	if c.ok {
		c.b.space.link(o, d, a.Link.Name)
	}
}

func (c *call) readdir3(a *nfs3.READDIR3args, r *nfs3.READDIR3res) {
	d := c.fh("dir", a.Dir.Data)
	c.cookies(d, a.Cookie, a.Cookieverf)
	c.form.u32("count", a.Count)
	c.lists(d)
	if r == nil || d == nil {
		return
	}
	d.post3(&r.Resok.DirAttributes)
	l := r.Resok.Reply.Entries
	for i := range l {
		c.listed(d, l[i].Name, nil)
	}
	c.remember(d, len(l), func(i int) uint64 { return l[i].Cookie }, r.Resok.Cookieverf)
}

func (c *call) readdirplus3(a *nfs3.READDIRPLUS3args, r *nfs3.READDIRPLUS3res) {
	d := c.fh("dir", a.Dir.Data)
	c.cookies(d, a.Cookie, a.Cookieverf)
	c.form.u32("dircount", a.Dircount)
	c.form.u32("maxcount", a.Maxcount)
	c.lists(d)
	if r == nil || d == nil {
		return
	}
	d.post3(&r.Resok.DirAttributes)
	l := r.Resok.Reply.Entries
	for i := range l {
		e := &l[i]
		o := c.listed(d, e.Name, handle3(&e.NameHandle))
		if o != nil && e.NameAttributes.AttributesFollow {
			c.inspects(o)
			o.post3(&e.NameAttributes)
		}
		if o != nil && e.NameHandle.HandleFollows && !dots(e.Name) {
			c.bindEntry(0, o, e.Name)
		}
	}
	c.remember(d, len(l), func(i int) uint64 { return l[i].Cookie }, r.Resok.Cookieverf)
}

func (c *call) fsstat3(a *nfs3.FSSTAT3args, _ *nfs3.FSSTAT3res) { c.fh("fsroot", a.Fsroot.Data) }

func (c *call) fsinfo3(a *nfs3.FSINFO3args, _ *nfs3.FSINFO3res) { c.fh("fsroot", a.Fsroot.Data) }

func (c *call) pathconf3(a *nfs3.PATHCONF3args, _ *nfs3.PATHCONF3res) { c.fh("object", a.Object.Data) }

func (c *call) commit3(a *nfs3.COMMIT3args, r *nfs3.COMMIT3res) {
	o := c.fh("file", a.File.Data)
	c.form.u64("offset", a.Offset)
	c.form.u32("count", a.Count)
	c.committing(o, a.Offset, a.Count)
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
func (c *call) made(d *obj, name []byte, typ string, sure bool, m *made3) *obj {
	s := &c.b.space
	switch {
	case !c.replied:
		if d != nil {
			if n := s.state(d.real(), name); n.obj == nil {
				n.pending = c.op.ID
			}
		}
		return nil
	case c.refusedWith3(nfs3.NFS3ERR_EXIST):
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
			c.alters(o)
		}
	} else {
		o = s.create(c, d, name, h, typ)
	}
	if m.attrs.AttributesFollow && o.real() != nil {
		o.attrs3(&m.attrs.Attributes)
	}
	wcc3(d, m.dir)
	c.bind(0, o)
	return o
}

// making3 adds the place where something is made or removed, and returns its
// directory.
func (c *call) making3(a *nfs3.Diropargs3) *obj {
	d := c.dirop("dir", "name", a)
	c.at(a.Name)
	c.changes(d, a.Name)
	return d
}

// dirop adds a diropargs3.
func (c *call) dirop(dir, n string, a *nfs3.Diropargs3) *obj {
	d := c.fh(dir, a.Dir.Data)
	c.form.name(n, a.Name, c.leads(d, a.Name))
	return d
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

// sattr3 adds attributes to be set on an object, nil for one that is new.
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

// refusedWith3 reports whether the call failed with the given status.
func (c *call) refusedWith3(status nfs3.Nfsstat3) bool {
	return c.replied && c.status3() == uint32(status)
}

// status3 is the status of the results; NFSv4 has one for each operation.
func (c *call) status3() uint32 {
	if c.v.Tx.Version == 4 {
		if x := c.compound.ops[c.compound.at]; x.Result != nil {
			return x.Code
		}
		return uint32(nfs3.NFS3ERR_JUKEBOX)
	}
	s, ok := c.v.Result().(xdr.Status)
	if !ok {
		return 0
	}
	code, _ := s.StatusCode()
	return code
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
