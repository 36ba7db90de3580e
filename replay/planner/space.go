package planner

import (
	"cmp"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// obj is an object as a Builder knows it.
type obj struct {
	s      *space
	id     int // in the plan; 0 until an op refers to it, or Finish
	server int
	handle string
	into   *obj // this one turned out to be another name of that one
	typ    string
	origin plan.ObjectOrigin
	isBase bool

	parent    *obj // first name
	name      string
	named     bool
	nameClass plan.Class
	now       nameKey // latest name
	count     int     // names known at present

	created   int // op
	createdAt int64
	removed   int // op that removed the last name
	removedAt int64

	fsid      [2]uint64
	fsidKnown bool
	mode      *uint32
	uid, gid  *uint32
	size      uint64
	sizeClass plan.Class
	// What the workload has changed already.
	sizeChanged, modeChanged, ownerChanged, aclChanged bool

	bound  bool // a reply has given its handle
	others bool // somebody who is not in the capture has changed it
	stale  bool // the server has refused its handle
	alive  bool // the server has accepted it

	attr history
	*details
}

// details are what most objects do not have: names in a directory that nobody
// looks at are many. They are read as they are, and changed through own.
type details struct {
	base         string    // export path, if isBase is set
	links        []nameKey // further names that were there before
	owner, group string
	target       string
	major, minor uint32
	acl          []byte // secattr of NFSACL, if it says more than the mode

	written, known spans
	content        []plan.Extent
	pieces         map[uint64]int // of content, by offset
	readEnd        uint64         // end of what was read before a change
	notes          []plan.Note

	commit  flight   // the latest COMMIT
	held    []*state // states of it, the latest
	cookies map[uint64]cookie

	bytes, dir, locks history
}

// none are the details of objects without any.
var none details

// own returns the details of an object, to be changed.
func (o *obj) own() *details {
	if o.details == &none {
		o.details = new(details)
		o.s.b.room.take(detailsSize)
	}
	return o.details
}

// nameKey is a name in a directory.
type nameKey struct {
	dir  *obj
	name string
}

// nameState is what is known of a name.
type nameState struct {
	key     nameKey
	obj     *obj
	touched bool // the workload has made, moved or removed it
	absent  bool // it was looked up and not there
	pending int  // op without a reply that may have made it
}

type handleKey struct {
	server int
	handle string
}

// space is the name space of the captured servers.
type space struct {
	b        *Builder
	objects  []*obj // in the order in which they became known
	byID     []*obj
	byHandle map[handleKey]*obj
	names    map[nameKey]*nameState
	deaf     bool         // the attributes of the results at hand are cut
	roots    map[int]*obj // NFSv4, by server
	cookies  int          // remembered of all directories
	owners   map[string]string
}

func (s *space) init(b *Builder) {
	*s = space{b: b, byHandle: map[handleKey]*obj{}, names: map[nameKey]*nameState{}, roots: map[int]*obj{}, owners: map[string]string{}}
}

func (s *space) full() bool {
	if len(s.objects)+len(s.names) >= s.b.opt.Objects || s.b.room.full() {
		s.b.limit("more objects and names than are followed")
		return true
	}
	return false
}

func (s *space) add(server int, origin plan.ObjectOrigin) *obj {
	o := &obj{s: s, server: server, origin: origin, nameClass: plan.Synthesised, details: &none}
	s.objects = append(s.objects, o)
	s.b.room.take(objectSize)
	return o
}

// real follows an object to what it turned out to be.
func (o *obj) real() *obj {
	for o != nil && o.into != nil {
		o = o.into
	}
	return o
}

// ref is the ID of an object that an op refers to.
func (s *space) ref(o *obj) int {
	if o = o.real(); o == nil {
		return 0
	}
	if o.id == 0 {
		s.byID = append(s.byID, o)
		o.id = len(s.byID)
	}
	return o.id
}

// refIfHandle is ref for an object that has a handle.
func (s *space) refIfHandle(o *obj) int {
	if o = o.real(); o == nil || o.handle == "" {
		return 0
	}
	return s.ref(o)
}

// of returns the object of a handle; one that is new was there before.
func (s *space) of(server int, handle []byte) *obj {
	if len(handle) == 0 {
		return nil
	}
	k := handleKey{server, string(handle)}
	if o := s.byHandle[k]; o != nil {
		return o.real()
	}
	if s.full() {
		return nil
	}
	o := s.add(server, plan.Before)
	s.give(o, k)
	return o
}

func (s *space) give(o *obj, k handleKey) {
	o.handle = k.handle
	s.byHandle[k] = o
	s.b.room.take(entrySize + len(k.handle))
}

// shows is GETFH: the handle of the current object.
func (s *space) shows(o *obj, server int, h []byte) *obj {
	o = o.real()
	k := handleKey{server, string(h)}
	known := s.byHandle[k].real()
	switch {
	case len(h) == 0:
		return o
	case o == nil:
		return s.of(server, h)
	case known == nil && o.handle == "":
		s.give(o, k)
		return o
	case known == nil:
		return s.of(server, h)
	case known != o && o.handle == "":
		if o.origin == plan.Above {
			known.origin, known.typ = plan.Above, "dir"
		}
		s.merge(o, known)
	}
	return known
}

// root is the root of an NFSv4 server.
func (s *space) root(server int) *obj {
	o := s.roots[server].real()
	if o == nil {
		o = s.add(server, plan.Above)
		o.typ, o.nameClass = "dir", plan.Exact
		s.roots[server] = o
	}
	return o
}

func (s *space) state(dir *obj, name []byte) *nameState {
	n, _ := s.named(dir, name)
	return n
}

// named is state, with the name as it is remembered.
func (s *space) named(dir *obj, name []byte) (*nameState, nameKey) {
	if n := s.names[nameKey{dir, string(name)}]; n != nil {
		return n, n.key
	}
	n := &nameState{key: nameKey{dir, string(name)}}
	if !s.full() {
		s.names[n.key] = n
		s.b.room.take(nameSize + len(name))
	}
	return n, n.key
}

// dots reports names that are no components: they lead to no object of their own,
// and must not make a path lead elsewhere.
func dots(name []byte) bool { return !ops.PlainName(name) }

// find returns what a name leads to: the reply said that there is something,
// with this handle if it is not nil.
func (s *space) find(dir *obj, name, handle []byte) *obj {
	dir = dir.real()
	if dir == nil || dots(name) {
		if dir == nil {
			return nil
		}
		return s.of(dir.server, handle)
	}
	n, key := s.named(dir, name)
	o := n.obj.real()
	if len(handle) > 0 {
		k := handleKey{dir.server, string(handle)}
		h := s.byHandle[k].real()
		switch {
		case h == nil && o != nil && o.handle == "":
			s.give(o, k)
			return o
		case h == nil:
			if s.full() {
				return nil
			}
			h = s.add(dir.server, plan.Before)
			s.give(h, k)
			if o != nil {
				h.note(plan.NoteReplaced, "")
				n.touched = true
			}
		case h == o:
			return o
		case o != nil && o.handle == "":
			s.merge(o, h)
			return h
		}
		o, n.obj = h, h
	} else if o == nil {
		if s.full() {
			return nil
		}
		o = s.add(dir.server, plan.Before)
		n.obj = o
	} else {
		return o
	}
	o.now = key
	o.count++
	switch {
	case n.pending != 0 && o.origin == plan.Before && !o.named:
		// The CREATE of it had no reply in the capture.
		o.origin, o.created = plan.Created, n.pending
		o.first(key, plan.Inferred)
	case n.touched || n.absent:
		o.note(plan.NoteAppeared, "")
		if o.origin == plan.Before && !o.named {
			o.first(key, plan.Inferred)
		}
	case o.origin == plan.Created:
		o.note(plan.NoteLinked, "")
	case !o.named:
		o.first(key, plan.Exact)
	case o.parent != dir || o.name != string(name):
		if o.typ == "dir" {
			o.note(plan.NoteMoved, "")
		} else if len(o.links) < 64 && !s.full() {
			o.own().links = append(o.links, key)
			s.b.room.take(len(key.name) + linkSize)
		}
	}
	if o.removed != 0 {
		o.removed, o.removedAt = 0, 0 // there was another name
	}
	return o
}

func (o *obj) first(k nameKey, class plan.Class) {
	o.parent, o.name, o.named, o.nameClass = k.dir, k.name, true, class
	if o == k.dir {
		o.parent, o.named, o.nameClass = nil, false, plan.Synthesised
	}
}

func (o *obj) note(k plan.NoteKind, name string) {
	n := plan.Note{Kind: k, Name: name}
	if len(o.notes) < 8 && !slices.Contains(o.notes, n) {
		o.own().notes = append(o.notes, n)
		o.s.b.room.take(linkSize)
	}
}

// merge makes what was known by name only the object of a handle.
func (s *space) merge(from, into *obj) {
	from.into = into
	if !into.named && from.named && into.origin == plan.Before {
		into.parent, into.name, into.named, into.nameClass = from.parent, from.name, true, from.nameClass
	}
	if into.now.dir == nil {
		into.now = from.now
	}
	into.count += from.count
	if into.typ == "" {
		into.typ = from.typ
	}
}

// missing notes that a name was not there.
func (s *space) missing(dir *obj, name []byte) {
	if dir = dir.real(); dir != nil && !dots(name) {
		s.state(dir, name).absent = true
	}
}

// create makes a new object at a name.
func (s *space) create(c *call, dir *obj, name, handle []byte, typ string) *obj {
	if dir = dir.real(); dir == nil || dots(name) {
		// Its place is not known; a server that made such a name cannot have
		// been one of files.
		o := s.of(c.server, handle)
		if o != nil && o.created == 0 && o.origin == plan.Before {
			o.origin, o.created, o.createdAt, o.typ = plan.Created, c.op.ID, c.end, typ
		}
		return o
	}
	if s.full() {
		return nil
	}
	n, key := s.named(dir, name)
	o := s.add(dir.server, plan.Created)
	o.created, o.createdAt, o.typ = c.op.ID, c.end, typ
	o.first(key, plan.Exact)
	o.now, o.count = key, 1
	o.sizeChanged, o.modeChanged, o.ownerChanged = true, true, true
	n.obj, n.touched = o, true
	if len(handle) > 0 {
		s.give(o, handleKey{dir.server, string(handle)})
	}
	return o
}

// unname takes a name away from what it leads to.
func (s *space) unname(c *call, n *nameState) {
	if o := n.obj.real(); o != nil {
		if o.count--; o.count <= 0 {
			o.removed, o.removedAt = c.op.ID, c.end
		}
	}
	n.obj, n.touched = nil, true
}

func (s *space) remove(c *call, dir *obj, name []byte) {
	if dir = dir.real(); dir == nil || dots(name) {
		return
	}
	s.unname(c, s.state(dir, name))
}

func (s *space) rename(c *call, from *obj, old []byte, to *obj, name []byte) {
	from, to = from.real(), to.real()
	if from == nil || to == nil || dots(old) || dots(name) {
		return
	}
	o := s.find(from, old, nil)
	a, z := s.state(from, old), s.state(to, name)
	if a == z || z.obj.real() == o && o != nil {
		return // two names of one file: nothing happens (RFC 8881, section 18.26)
	}
	if z.obj != nil {
		s.unname(c, z)
	}
	a.obj, a.touched = nil, true
	z.obj, z.touched = o, true
	if o != nil {
		o.now = z.key
	}
}

func (s *space) link(o, dir *obj, name []byte) {
	o, dir = o.real(), dir.real()
	if o == nil || dir == nil || dots(name) {
		return
	}
	n := s.state(dir, name)
	n.obj, n.touched = o, true
	o.count++
}

// path is the present path of an object, for readers.
func (s *space) path(o *obj) string {
	o = o.real()
	if o == nil {
		return ""
	}
	var way [maxPath]*obj
	n := 0
	for n < maxPath && o.now.dir != nil && !o.isBase {
		way[n] = o
		n++
		o = o.now.dir.real()
	}
	if n == 0 {
		if o.isBase || o.origin == plan.Above {
			return "/"
		}
		return "object " + itoa(s.ref(o))
	}
	var b []byte
	for n--; n >= 0 && len(b) <= maxWhat; n-- {
		if b != nil {
			b = append(b, '/')
		}
		b = append(b, way[n].now.name[:min(len(way[n].now.name), maxWhat)]...)
	}
	return string(b)
}

// maxPath is how many directories of a path are shown.
const maxPath = 64

var types3 = map[nfs3.Ftype3]string{
	nfs3.NF3REG: "file", nfs3.NF3DIR: "dir", nfs3.NF3LNK: "symlink", nfs3.NF3BLK: "block", nfs3.NF3CHR: "char",
	nfs3.NF3SOCK: "socket", nfs3.NF3FIFO: "fifo",
}

var types4 = map[nfs4.NfsFtype4]string{
	nfs4.NF4REG: "file", nfs4.NF4DIR: "dir", nfs4.NF4LNK: "symlink", nfs4.NF4BLK: "block", nfs4.NF4CHR: "char",
	nfs4.NF4SOCK: "socket", nfs4.NF4FIFO: "fifo",
}

func u32(v uint32) *uint32 { return &v }

// who is the name of an owner, of which many objects have the same.
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
}

func (o *obj) post3(a *nfs3.PostOpAttr) {
	if a.AttributesFollow {
		o.attrs3(&a.Attributes)
	}
}

// pre3 learns from what weak cache consistency data tell of the time before.
func (o *obj) pre3(a *nfs3.PreOpAttr) {
	if o = o.real(); o != nil && a.AttributesFollow && !o.s.deaf {
		o.sized(a.Attributes.Size)
	}
}

// sized learns the size as of the start.
func (o *obj) sized(n uint64) {
	if o.sizeChanged || o.sizeClass != "" {
		if !o.sizeChanged && o.sizeClass == plan.Exact && o.typ == "file" && n != o.size {
			o.foreign()
		}
		return
	}
	o.size, o.sizeClass = n, plan.Exact
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
		s.promote(o)
	}
	if a.Has(nfs4.FATTR4_MODE) && o.mode == nil && !o.modeChanged {
		o.mode = u32(a.Mode & 0o7777)
	}
	if !o.ownerChanged {
		if a.Has(nfs4.FATTR4_OWNER) && o.owner == "" {
			o.own().owner = s.who(a.Owner)
		}
		if a.Has(nfs4.FATTR4_OWNER_GROUP) && o.group == "" {
			o.own().group = s.who(a.OwnerGroup)
		}
	}
	if a.Has(nfs4.FATTR4_RAWDEV) && o.major == 0 && o.minor == 0 && a.Rawdev != (nfs4.Specdata4{}) {
		o.own().major, o.own().minor = a.Rawdev.Specdata1, a.Rawdev.Specdata2
	}
	if a.Has(nfs4.FATTR4_SIZE) {
		o.sized(a.Size)
	}
	if a.Has(nfs4.FATTR4_FILEHANDLE) && o.handle == "" && len(a.Filehandle) > 0 {
		if k := (handleKey{o.server, string(a.Filehandle)}); s.byHandle[k] == nil {
			s.give(o, k)
		}
	}
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

// finish decides what is to be prepared, and fills the table.
func (s *space) finish() {
	for _, o := range s.objects {
		if o.origin == plan.Before && o.stale && !o.alive && !o.named && !o.isBase {
			o.origin = plan.Stale
		}
	}
	s.bases()
	for _, o := range s.objects {
		if o.into == nil {
			s.ref(o)
		}
	}
}

// all visits the line of each object. The table is made as it is written: it would
// take as much memory as what is known of the objects.
func (s *space) all() iter.Seq[*plan.Object] {
	return func(yield func(*plan.Object) bool) {
		for i, o := range s.byID {
			x := s.object(o.real(), i+1)
			x.Path = strings.ToValidUTF8(o.real().pathFromBase(), "?")
			if !yield(&x) {
				return
			}
		}
	}
}

func (s *space) object(o *obj, id int) plan.Object {
	x := plan.Object{
		ID: id, Server: o.server, Type: o.typ, Origin: o.origin, Base: o.isBase, NameClass: o.nameClass,
		Handle: hex.EncodeToString([]byte(o.handle)), Notes: o.notes, CreatedBy: o.created,
	}
	if x.Type == "" {
		x.Type = o.guess()
	}
	x.Name, x.NameBytes = text(o.name)
	if o.parent != nil {
		x.Parent = s.ref(o.parent)
	}
	for _, l := range o.links {
		y := plan.Link{Parent: s.ref(l.dir)}
		y.Name, y.NameBytes = text(l.name)
		x.Links = append(x.Links, y)
	}
	if o.origin != plan.Before {
		return x
	}
	x.Mode, x.UID, x.GID, x.Owner, x.Group = o.mode, o.uid, o.gid, o.owner, o.group
	if o.target == "" && x.Type == "symlink" {
		x.Target = strings.Repeat("x", int(min(max(o.size, 1), 1024)))
		x.Notes = append(slices.Clone(x.Notes), plan.Note{Kind: plan.NoteNoTarget})
	} else {
		x.Target, x.TargetBytes = text(o.target)
	}
	x.ACL = o.acl
	switch x.Type {
	case "block", "char":
		x.Major, x.Minor = o.major, o.minor
	case "file":
		x.Size, x.SizeClass = o.size, o.sizeClass
		if x.SizeClass == "" {
			x.Size, x.SizeClass = o.readEnd, plan.Inferred
		}
		x.Content = o.within(x.Size)
	}
	return x
}

// guess is the type of what was never described.
func (o *obj) guess() string {
	switch {
	case o.target != "":
		return "symlink"
	case len(o.dir.list) > 0:
		return "dir"
	}
	return "file"
}

// text is a name in JSON: as bytes if it is not UTF-8.
func text(name string) (string, []byte) {
	if utf8.ValidString(name) {
		return name, nil
	}
	return "", []byte(name)
}

// bases finds the directories that stand for what was mounted, and gives names
// to what has none.
func (s *space) bases() {
	children := map[*obj]int{}
	for k := range s.names {
		children[k.dir.real()]++
	}
	all := make([][]*obj, len(s.b.t.Servers)+1)
	for _, o := range s.objects {
		if o.into == nil {
			all[o.server] = append(all[o.server], o)
		}
	}
	for server := range s.b.t.Servers {
		s.basesOf(server+1, all[server+1], children)
	}
	base := map[int]*obj{}
	for _, o := range s.objects {
		if o.isBase && base[o.server] == nil {
			base[o.server] = o
		}
	}
	n := 0
	for _, o := range s.objects {
		if d := o.parent.real(); o.origin == plan.Before && o.named && d != nil && d.origin == plan.Created {
			// Its directory is not there yet when it is prepared.
			o.named = false
			o.note(plan.NoteElsewhere, strings.ToValidUTF8(o.name, "?"))
		}
		if o.into != nil || o.isBase || o.named || o.origin == plan.Above || o.origin == plan.Stale {
			continue
		}
		n++
		o.name, o.named = "unnamed-"+itoa(n), true
		if base[o.server] == nil {
			base[o.server] = s.makeBase(o.server)
		}
		o.parent = base[o.server]
		if o.origin == plan.Created {
			o.note(plan.NoteNoDirectory, "")
		}
	}
	for _, o := range s.objects {
		if o.isBase {
			o.parent, o.name = nil, o.base
		}
		if o.parent != nil {
			o.parent = o.parent.real()
		}
	}
	s.several()
	for _, o := range s.objects {
		if s.outside(o) {
			o.origin = plan.Above
		}
	}
}

// outside reports whether something that was there before lies above the bases.
func (s *space) outside(o *obj) bool {
	if o.into != nil || o.origin != plan.Before {
		return false
	}
	for range 64 {
		if o = o.real(); o == nil || o.isBase {
			return false
		}
		if o.origin == plan.Above {
			return true
		}
		o = o.parent
	}
	return false
}

// promote makes a directory a base as soon as it is known to begin another
// file system than the root of the server.
func (s *space) promote(o *obj) {
	r := s.roots[o.server].real()
	d := o.parent.real()
	if r == nil || !r.fsidKnown || o == r || o.fsid == r.fsid || d == nil || !d.fsidKnown || d.fsid != r.fsid ||
		o.origin != plan.Before || o.typ != "dir" || r.isBase {
		return
	}
	o.isBase, o.nameClass = true, plan.Exact
}

// within is the known content up to the size, in order.
func (o *obj) within(size uint64) []plan.Extent {
	list := slices.Clone(o.content)
	slices.SortFunc(list, func(a, b plan.Extent) int { return cmp.Compare(a.Offset, b.Offset) })
	kept := list[:0]
	for _, e := range list {
		if e.Offset < size {
			e.Length = min(e.Length, size-e.Offset)
			kept = append(kept, e)
		}
	}
	return kept
}

func (s *space) makeBase(server int) *obj {
	o := s.add(server, plan.Before)
	o.typ, o.isBase = "dir", true
	o.note(plan.NoteMadeUp, "")
	return o
}

// several keeps the bases apart if there are more than one.
func (s *space) several() {
	var list []*obj
	for _, o := range s.objects {
		if o.isBase && o.into == nil {
			list = append(list, o)
		}
	}
	for i, o := range list {
		o.parent, o.name, o.named = nil, "", false
		if len(list) > 1 {
			o.name = "base-" + itoa(i+1)
		}
	}
}

// basesOf finds the bases of a server among its objects.
func (s *space) basesOf(server int, all []*obj, children map[*obj]int) {
	if r := s.roots[server].real(); r != nil {
		s.descend(r, all)
	}
	var best *obj
	for _, o := range all {
		if o.isBase {
			best = nil
			break
		}
		if o.named || o.origin != plan.Before || !(o.typ == "dir" || o.typ == "" && children[o] > 0) {
			continue
		}
		if best == nil || children[o] > children[best] {
			best = o
		}
	}
	if best != nil {
		// The capture began after the mount: the directory without a name
		// that most names are in.
		best.isBase, best.nameClass = true, plan.Inferred
	}
}

// descend goes from the root of a server to what was mounted: where another
// file system begins, or as long as a directory was only passed through.
func (s *space) descend(root *obj, all []*obj) {
	kids := map[*obj][]*obj{}
	for _, o := range all {
		if o.parent != nil {
			kids[o.parent.real()] = append(kids[o.parent.real()], o)
		}
	}
	found := false
	var down func(o *obj, depth int)
	down = func(o *obj, depth int) {
		for _, k := range kids[o] {
			switch {
			case k.typ != "dir" || k.origin == plan.Created || depth > 64:
			case k.isBase:
				found = true
				o.raise()
			case k.fsidKnown && root.fsidKnown && k.fsid != root.fsid:
				k.isBase, k.nameClass, found = true, plan.Exact, true
				o.raise()
			default:
				down(k, depth+1)
			}
		}
	}
	down(root, 0)
	if !found {
		root.isBase, root.origin = true, plan.Before
		if root.typ == "" {
			root.typ = "dir"
		}
	}
}

// raise marks a directory and those above it as none of ours.
func (o *obj) raise() {
	for range 64 {
		if o = o.real(); o == nil || o.origin == plan.Created {
			return
		}
		o.origin = plan.Above
		o = o.parent
	}
}

// pathFromBase is the first path of an object.
func (o *obj) pathFromBase() string {
	var way [maxPath]string
	n, size := 0, 0
	for ; n < maxPath && size <= maxPathBytes; n++ {
		if o.parent == nil {
			if o.isBase && o.name != "" {
				way[n] = o.name
				n++
				if n == 1 {
					way[0] += "/"
				}
			}
			break
		}
		way[n] = o.name[:min(len(o.name), maxPathBytes)]
		size += len(way[n])
		o = o.parent.real()
	}
	slices.Reverse(way[:n])
	return strings.Join(way[:n], "/")
}

// maxPathBytes is about how long a path may be; beyond, its end is kept.
const maxPathBytes = 4096
