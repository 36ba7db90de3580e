package planner

import (
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

var types3 = map[nfs3.Ftype3]string{
	nfs3.NF3REG: "file", nfs3.NF3DIR: "dir", nfs3.NF3LNK: "symlink", nfs3.NF3BLK: "block", nfs3.NF3CHR: "char",
	nfs3.NF3SOCK: "socket", nfs3.NF3FIFO: "fifo",
}

var types4 = map[nfs4.NfsFtype4]string{
	nfs4.NF4REG: "file", nfs4.NF4DIR: "dir", nfs4.NF4LNK: "symlink", nfs4.NF4BLK: "block", nfs4.NF4CHR: "char",
	nfs4.NF4SOCK: "socket", nfs4.NF4FIFO: "fifo",
}

func (o *obj) post3(a *nfs3.PostOpAttr) {
	if a.AttributesFollow {
		o.attrs3(&a.Attributes)
	}
}

// attrs3 learns from attributes that a reply shows.
func (o *obj) attrs3(a *nfs3.Fattr3) {
	if o = o.real(); o == nil || o.s.deaf {
		return
	}
	if o.typ == "" {
		o.typ = types3[a.Type]
	}
	if !o.fsidKnown {
		o.fsid, o.fsidKnown = [2]uint64{a.Fsid}, true
		o.s.b.ids.numbered(o, fileID{o.fsid, a.Fileid})
	}
	if o.mode == nil && !o.modeChanged {
		o.mode = u32(a.Mode & 0o7777)
	}
	if o.uid == nil && !o.ownerChanged {
		o.uid, o.gid = u32(a.Uid), u32(a.Gid)
	}
	if o.major == 0 && o.minor == 0 && a.Rdev != (nfs3.Specdata3{}) {
		o.own().major, o.own().minor = a.Rdev.Specdata1, a.Rdev.Specdata2
	}
	o.sized(a.Size)
	o.linked(a.Nlink)
}

// linked learns how many names the object had at the start of the capture.
func (o *obj) linked(n uint32) {
	if o.nlink == 0 && !o.linksChanged {
		o.nlink = n
	}
}

// pre3 learns from the attributes before the operation (weak cache consistency data).
func (o *obj) pre3(a *nfs3.PreOpAttr) {
	if o = o.real(); o != nil && a.AttributesFollow && !o.s.deaf {
		o.sized(a.Attributes.Size)
	}
}

// attrs4 is attrs3 for NFSv4.
func (s *space) attrs4(o *obj, f *nfs4.Fattr4) {
	if o = o.real(); o == nil {
		return
	}
	a := &s.b.attrs
	if a.Decode(f) != nil {
		return
	}
	if a.Has(nfs4.FATTR4_TYPE) && o.typ == "" {
		o.typ = types4[a.Type]
	}
	if a.Has(nfs4.FATTR4_FSID) && !o.fsidKnown {
		o.fsid, o.fsidKnown = [2]uint64{a.Fsid.Major, a.Fsid.Minor}, true
		if a.Has(nfs4.FATTR4_FILEID) {
			s.b.ids.numbered(o, fileID{o.fsid, a.Fileid})
		}
		s.promote(o)
	}
	if a.Has(nfs4.FATTR4_MODE) && o.mode == nil && !o.modeChanged {
		o.mode = u32(a.Mode & 0o7777)
	}
	s.owner4(o, a)
	if a.Has(nfs4.FATTR4_RAWDEV) && o.major == 0 && o.minor == 0 && a.Rawdev != (nfs4.Specdata4{}) {
		o.own().major, o.own().minor = a.Rawdev.Specdata1, a.Rawdev.Specdata2
	}
	if a.Has(nfs4.FATTR4_SIZE) {
		o.sized(a.Size)
	}
	if a.Has(nfs4.FATTR4_NUMLINKS) {
		o.linked(a.Numlinks)
	}
	if a.Has(nfs4.FATTR4_FILEHANDLE) && o.handle == "" && len(a.Filehandle) > 0 {
		if k := (handleKey{o.server, string(a.Filehandle)}); s.byHandle[k] == nil {
			s.give(o, k)
		}
	}
}

// owner4 learns to whom an object belongs.
func (s *space) owner4(o *obj, a *nfs4.Attrs) {
	if o.ownerChanged {
		return
	}
	if a.Has(nfs4.FATTR4_OWNER) && o.owner == "" {
		o.own().owner = s.who(a.Owner)
	}
	if a.Has(nfs4.FATTR4_OWNER_GROUP) && o.group == "" {
		o.own().group = s.who(a.OwnerGroup)
	}
}

// who is the name of an owner; many objects share one.
func (s *space) who(name []byte) string {
	if w, ok := s.owners[string(name)]; ok {
		return w
	}
	if s.b.room.full() {
		return ""
	}
	w := strings.ToValidUTF8(string(name), "?")
	s.owners[string(name)] = w
	s.b.room.take(2*len(name) + entrySize)
	return w
}

// sized learns the size at the start of the capture.
func (o *obj) sized(n uint64) {
	o.latest = n
	if o.sizeChanged || o.sizeClass != "" {
		if !o.sizeChanged && o.sizeClass == plan.Exact && o.typ == "file" && n != o.size {
			o.foreign()
		}
		return
	}
	o.size, o.sizeClass = n, plan.Exact
}

func u32(v uint32) *uint32 { return &v }

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

// writes notes that the content of a range has changed since before the capture. When the memory
// for that is used up, the note covers everything behind the range.
func (o *obj) writes(from, to uint64) {
	d := o.own()
	if o.s.b.room.full() {
		to = order.Forever
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
