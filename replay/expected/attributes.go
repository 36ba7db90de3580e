package expected

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// attributes has what is known of an object's attributes.
type attributes struct {
	size   uint64
	sized  bool
	mode   *uint32 // 0o777
	uid    *uint32
	gid    *uint32
	mtime  *time.Time // that a client has set
	atime  *time.Time
	target []byte // of a symbolic link
	device *Device
	acl    []byte            // that SETACL has set, encoded
	xattrs map[string]string // plan.HashData of the value by name; "": there is none
	made   bool              // by this run, so all its names are known
	hazy   bool              // a name may or may not lead to it
	gone   bool              // it has no name any more
}

// Attributes are what is known of an object. Nil is unknown.
type Attributes struct {
	Size         *uint64
	Mode         *uint32 // 0o777
	UID, GID     *uint32
	Links        *uint32    // names, except of directories
	Mtime, Atime *time.Time // that a client has set, and nothing has changed since
	Target       []byte
	Device       *Device
	ACL          []byte            // that SETACL has set: a secattr of NFSACL
	Xattrs       map[string]string // plan.HashData of the values of extended attributes by name; "": there is none of that name
}

// Device is the number of a device.
type Device struct{ Major, Minor uint32 }

// Any reports whether anything is known.
func (a *Attributes) Any() bool {
	return a.Size != nil || a.Mode != nil || a.UID != nil || a.GID != nil || a.Mtime != nil || a.Atime != nil || a.Target != nil || a.Device != nil || a.ACL != nil || len(a.Xattrs) > 0
}

// Object returns what is known of an object's attributes, and whether it has lost its last name.
func (l *State) Object(id int) (a Attributes, gone bool) {
	f := l.files[id]
	if f == nil {
		return a, false
	}
	k := &f.checked
	a = Attributes{Mode: k.mode, UID: k.uid, GID: k.gid, Mtime: k.mtime, Atime: k.atime, Target: k.target, Device: k.device, ACL: k.acl, Xattrs: k.xattrs}
	if k.sized {
		a.Size = &k.size
	}
	if n := uint32(l.links[id]); k.made && !k.hazy && n > 0 {
		a.Links = &n
	}
	return a, k.gone
}

// Asked tells which attributes calls of this run were to set. They may have failed.
type Asked struct {
	Mode  bool `json:"mode,omitempty"`  // or access control lists
	Owner bool `json:"owner,omitempty"` // or the group
	Size  bool `json:"size,omitempty"`
}

// Asked tells which attributes of an object calls of this run were to set.
func (l *State) Asked(id int) Asked {
	if f := l.files[id]; f != nil {
		return f.asked
	}
	return Asked{}
}

// wanted are attributes that a step sets.
type wanted struct {
	mode, uid, gid *uint32
	size           *uint64
	mtime, atime   *time.Time
	mtimeNow       bool // or it is the server's
	owner          bool // uid or gid, also if they are names
}

func sattr(a *nfs3.Sattr3) (w wanted) {
	moment := func(t nfs3.Nfstime3) *time.Time {
		u := time.Unix(int64(t.Seconds), int64(t.Nseconds))
		return &u
	}
	if a.Mode.SetIt {
		w.mode = &a.Mode.Mode
	}
	if a.Uid.SetIt {
		w.uid = &a.Uid.Uid
	}
	if a.Gid.SetIt {
		w.gid = &a.Gid.Gid
	}
	if a.Size.SetIt {
		w.size = &a.Size.Size
	}
	if a.Mtime.SetIt == nfs3.SET_TO_CLIENT_TIME {
		w.mtime = moment(a.Mtime.Mtime)
	}
	if a.Atime.SetIt == nfs3.SET_TO_CLIENT_TIME {
		w.atime = moment(a.Atime.Atime)
	}
	w.mtimeNow = a.Mtime.SetIt == nfs3.SET_TO_SERVER_TIME
	w.owner = a.Uid.SetIt || a.Gid.SetIt
	return w
}

func fattr(f *nfs4.Fattr4) (w wanted) {
	a, err := f.Attrs()
	if err != nil {
		return w
	}
	number := func(b []byte) *uint32 {
		n, err := strconv.ParseUint(string(b), 10, 32)
		if err != nil {
			return nil // a name: which user that is on the server is unknown
		}
		v := uint32(n)
		return &v
	}
	moment := func(t *nfs4.Settime4) *time.Time {
		if t.SetIt != nfs4.SET_TO_CLIENT_TIME4 {
			return nil
		}
		u := time.Unix(t.Time.Seconds, int64(t.Time.Nseconds))
		return &u
	}
	if a.Has(nfs4.FATTR4_MODE) {
		w.mode = &a.Mode
	}
	w.owner = a.Has(nfs4.FATTR4_OWNER) || a.Has(nfs4.FATTR4_OWNER_GROUP)
	if a.Has(nfs4.FATTR4_OWNER) {
		w.uid = number(a.Owner)
	}
	if a.Has(nfs4.FATTR4_OWNER_GROUP) {
		w.gid = number(a.OwnerGroup)
	}
	if a.Has(nfs4.FATTR4_SIZE) {
		w.size = &a.Size
	}
	if a.Has(nfs4.FATTR4_TIME_MODIFY_SET) {
		w.mtime = moment(&a.TimeModifySet)
		w.mtimeNow = w.mtime == nil
	}
	if a.Has(nfs4.FATTR4_TIME_ACCESS_SET) {
		w.atime = moment(&a.TimeAccessSet)
	}
	return w
}

// Sets returns the times that an op sets on an object, by operation; nil if it sets none.
func (l *State) Sets(o *plan.Op, f func(at, object int, mtime, atime *time.Time)) {
	if !o.Modifies {
		return
	}
	if args := l.args.Of(o); args != nil {
		eachStep(o, args, func(s *step) {
			switch a := s.args.(type) {
			case *nfs3.SETATTR3args:
				w := sattr(&a.NewAttributes)
				f(s.at, s.before, w.mtime, w.atime)
			case *nfs4.SETATTR4args:
				w := fattr(&a.ObjAttributes)
				f(s.at, s.object, w.mtime, w.atime)
			}
		})
	}
}

// attributes applies the effect of a step on attributes.
func (l *State) attributes(c *Call, s *step) {
	ok := s.done == succeeded
	switch a := s.args.(type) {
	case *nfs3.SETATTR3args:
		w := sattr(&a.NewAttributes)
		l.apply(c, s.before, &w, ok)
	case *nfs4.SETATTR4args:
		w := fattr(&a.ObjAttributes)
		l.apply(c, s.object, &w, ok)
		if x, err := a.ObjAttributes.Attrs(); err != nil || x.Has(nfs4.FATTR4_ACL) || x.Has(nfs4.FATTR4_DACL) || x.Has(nfs4.FATTR4_MODE_SET_MASKED) {
			l.acls = true
			f := l.file(s.object)
			f.checked.mode, f.checked.acl, f.asked.Mode = nil, nil, true
		}
	case *nfsacl.SETACL3args:
		l.acls = true
		f := l.file(s.before)
		f.checked.mode, f.checked.acl, f.asked.Mode = nil, nil, true
		if together := f.together(c); ok && !together {
			f.checked.acl = a.Acl.Append(nil)
		}
	case *nfs4.SETXATTR4args:
		l.xattr(c, s, a.SxaKey, plan.HashData(a.SxaValue))
	case *nfs4.REMOVEXATTR4args:
		l.xattr(c, s, a.RxaName, "")
	case *nfs3.CREATE3args, *nfs3.MKDIR3args, *nfs3.MKNOD3args, *nfs3.SYMLINK3args:
		l.created3(c, s, ok)
	case *nfs4.CREATE4args, *nfs4.OPEN4args:
		l.created4(c, s, ok)
	case *nfs3.WRITE3args:
		l.grown(c, s.before, a.Offset, s.count, ok)
	case *nfs4.WRITE4args:
		l.grown(c, s.object, a.Offset, s.count, ok)
	case *nfs4.ALLOCATE4args:
		l.grown(c, s.object, a.AaOffset, int64(min(a.AaLength, 1<<62)), ok)
	case *nfs4.DEALLOCATE4args:
		l.touched(c, s.object)
	case *nfs4.COPY4args:
		l.grown(c, s.object, a.CaDstOffset, s.count, ok && a.CaSynchronous)
	case *nfs4.CLONE4args:
		n := int64(-1) // up to the end of the source
		if a.ClCount > 0 {
			n = int64(min(a.ClCount, 1<<62))
		}
		l.grown(c, s.object, a.ClDstOffset, n, ok)
	case *nfs4.WRITE_SAME4args:
		l.file(s.object).forget()
	default:
		l.others(c, s)
	}
}

// created3 applies NFSv3 procedures that create objects.
func (l *State) created3(c *Call, s *step, ok bool) {
	switch a := s.args.(type) {
	case *nfs3.CREATE3args:
		w := sattr(&a.How.ObjAttributes)
		switch a.How.Mode {
		case nfs3.EXCLUSIVE:
			l.made(c, s, &wanted{}, ok)
		case nfs3.GUARDED:
			l.made(c, s, &w, ok)
		default:
			l.opened(c, s, &w, ok)
		}
	case *nfs3.MKDIR3args:
		w := sattr(&a.Attributes)
		l.made(c, s, &w, ok)
	case *nfs3.MKNOD3args:
		l.made(c, s, &wanted{}, ok)
		if t := a.What.Type; ok && (t == nfs3.NF3BLK || t == nfs3.NF3CHR) {
			l.numbered(s, Device{a.What.Device.Spec.Specdata1, a.What.Device.Spec.Specdata2})
		}
	case *nfs3.SYMLINK3args:
		l.linked(s, ok)
	}
}

// created4 applies NFSv4 operations that create objects.
func (l *State) created4(c *Call, s *step, ok bool) {
	switch a := s.args.(type) {
	case *nfs4.CREATE4args:
		if a.Objtype.Type == nfs4.NF4LNK {
			l.linked(s, ok)
			return
		}
		w := fattr(&a.Createattrs)
		l.made(c, s, &w, ok)
		if t := a.Objtype.Type; ok && (t == nfs4.NF4BLK || t == nfs4.NF4CHR) {
			l.numbered(s, Device{a.Objtype.Devdata.Specdata1, a.Objtype.Devdata.Specdata2})
		}
	case *nfs4.OPEN4args:
		if a.Openhow.Opentype != nfs4.OPEN4_CREATE {
			return
		}
		h := &a.Openhow.How
		w := fattr(&h.Createattrs)
		switch h.Mode {
		case nfs4.UNCHECKED4:
			l.opened(c, s, &w, ok)
		case nfs4.GUARDED4:
			l.made(c, s, &w, ok)
		case nfs4.EXCLUSIVE4_1:
			w = fattr(&h.ChCreateboth.CvaAttrs)
			l.made(c, s, &w, ok)
		default:
			l.made(c, s, &wanted{}, ok)
		}
	}
}

// others applies steps that change the times of directories, or attributes that are not followed.
func (l *State) others(c *Call, s *step) {
	switch s.args.(type) {
	case *nfs3.REMOVE3args, *nfs3.RMDIR3args, *nfs4.REMOVE4args:
		l.touched(c, s.before)
	case *nfs3.RENAME3args, *nfs3.LINK3args, *nfs4.RENAME4args, *nfs4.LINK4args:
		l.touched(c, s.before)
		l.touched(c, s.saved)
	}
}

// apply applies SETATTR.
func (l *State) apply(c *Call, object int, w *wanted, ok bool) {
	if object == 0 {
		return
	}
	f := l.file(object)
	together := f.together(c)
	f.asked.Mode = f.asked.Mode || w.mode != nil
	f.asked.Owner = f.asked.Owner || w.owner
	f.asked.Size = f.asked.Size || w.size != nil
	k := &f.checked
	put := func(to **uint32, v *uint32, mask uint32) {
		switch {
		case v == nil:
		case !ok || together:
			*to = nil
		default:
			n := *v & mask
			*to = &n
		}
	}
	put(&k.mode, w.mode, 0o777)
	put(&k.uid, w.uid, ^uint32(0))
	put(&k.gid, w.gid, ^uint32(0))
	if w.mode != nil {
		k.acl = nil // it changes entries of the list
	}
	if w.size != nil {
		k.size, k.sized = *w.size, ok && !together
		k.mtime = nil
	}
	if w.mtime != nil || w.mtimeNow {
		if k.mtime = nil; ok && !together {
			k.mtime = w.mtime
		}
	}
	if w.atime != nil {
		if k.atime = nil; ok && !together {
			k.atime = w.atime
		}
	}
}

// maxXattrs bounds the extended attributes that are followed.
const maxXattrs = 1 << 14

// xattr notes the value that a step has given to an extended attribute: its hash, or "" if the step has removed it.
func (l *State) xattr(c *Call, s *step, name []byte, value string) {
	if s.object == 0 {
		return
	}
	f := l.file(s.object)
	k := &f.checked
	if together := f.together(c); s.done != succeeded || together {
		delete(k.xattrs, string(name))
		return
	}
	if _, known := k.xattrs[string(name)]; !known {
		if l.xattrs >= maxXattrs {
			return
		}
		l.xattrs++
	}
	if k.xattrs == nil {
		k.xattrs = map[string]string{}
	}
	k.xattrs[string(name)] = value
}

// made adds a new object.
func (l *State) made(c *Call, s *step, w *wanted, ok bool) {
	l.touched(c, s.before)
	object := s.object
	if s.at < 0 && object == s.before {
		object = s.target()
	}
	if object == 0 || object == s.before {
		return
	}
	f := l.file(object)
	f.forget()
	if !ok {
		return
	}
	if l.acls {
		w.mode = nil
	}
	f.checked.sized, f.checked.made = true, true
	switch a := s.args.(type) {
	case *nfs3.MKDIR3args:
		l.whole[object] = true
	case *nfs4.CREATE4args:
		if a.Objtype.Type == nfs4.NF4DIR {
			l.whole[object] = true
		}
	}
	l.apply(c, object, w, ok)
}

// numbered notes the number of a new device.
func (l *State) numbered(s *step, d Device) {
	if object := s.object; object != 0 && object != s.before {
		l.file(object).checked.device = &d
	}
}

// opened applies an OPEN of a file that may have existed before.
func (l *State) opened(c *Call, s *step, w *wanted, ok bool) {
	if s.fresh {
		l.made(c, s, w, ok)
		return
	}
	l.touched(c, s.before)
	object := s.object
	if object == 0 || object == s.before {
		return
	}
	// Of an existing file only the size is set (RFC 1813, section 3.3.8).
	if w.size != nil {
		l.apply(c, object, &wanted{size: w.size}, ok)
	} else if !ok {
		l.file(object).forget()
	}
}

// linked adds a new symbolic link.
func (l *State) linked(s *step, ok bool) {
	object := s.object
	if s.at < 0 && object == s.before {
		object = s.target()
	}
	if object == 0 || object == s.before {
		return
	}
	f := l.file(object)
	if f.forget(); !ok {
		return
	}
	for i := range s.fields {
		if p := s.fields[i].Data; s.fields[i].Kind == plan.FieldData && p != nil {
			f.checked.target = p.Text
			return
		}
	}
	var d xdr.Data
	switch a := s.args.(type) {
	case *nfs3.SYMLINK3args:
		d = a.Symlink.SymlinkData
	case *nfs4.CREATE4args:
		d = a.Objtype.Linkdata
	}
	if d.Length > 0 && uint32(len(d.Inline)) == d.Length {
		f.checked.target = bytes.Clone(d.Inline)
	}
}

// grown notes that n bytes exist at an offset; n is -1 if their number is unknown.
func (l *State) grown(c *Call, object int, offset uint64, n int64, ok bool) {
	if object == 0 {
		return
	}
	f := l.file(object)
	k := &f.checked
	k.mtime = nil
	switch {
	case f.together(c) && l.sizeSet(f, c):
		k.sized = false
	case !ok || n < 0:
		k.sized = false
	case n > 0:
		k.size = max(k.size, rangeEnd(offset, uint64(n)))
	}
}

// sizeSet reports whether a concurrent call may have truncated the file.
func (l *State) sizeSet(f *file, c *Call) bool {
	for i := range f.recent.list {
		if o := &f.recent.list[i]; o.replied.After(c.Sent) && o.to == forever {
			return true
		}
	}
	return f.recent.old.After(c.Sent)
}

// touched notes that the times of an object may have changed.
func (l *State) touched(c *Call, object int) {
	if object > 0 {
		f := l.file(object)
		f.together(c)
		f.checked.mtime = nil
	}
}

// readTimes notes that the object that a call has read may have a new access time.
func (l *State) readTimes(c *Call) {
	if !reads(c.Op) {
		return
	}
	for _, id := range l.load.Objects(c.Op) {
		if f := l.files[id]; f != nil {
			f.checked.atime = nil
		}
	}
}

// reads reports whether an op reads data, a directory or a link.
func reads(o *plan.Op) bool {
	if o.Compound == nil {
		switch o.Procedure {
		case nfs3.NFSPROC3_READ, nfs3.NFSPROC3_READLINK, nfs3.NFSPROC3_READDIR, nfs3.NFSPROC3_READDIRPLUS:
			return true
		}
		return false
	}
	return slices.ContainsFunc(o.Compound.Ops, func(c plan.CompoundOp) bool {
		switch nfs4.NfsOpnum4(c.Op) {
		case nfs4.OP_READ, nfs4.OP_READ_PLUS, nfs4.OP_READDIR, nfs4.OP_READLINK:
			return true
		}
		return false
	})
}
