package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// space is the name space of the captured servers.
type space struct {
	b        *Builder
	objects  []*obj // in the order in which they became known
	byID     []*obj
	byHandle map[handleKey]*obj
	names    map[nameKey]*nameState
	deaf     bool          // the attributes of the results at hand are cut
	roots    map[int]*obj  // NFSv4, by server
	up       map[*obj]*obj // directories that bases are in, on the captured server
	cookies  int           // remembered of all directories
	owners   map[string]string
}

func (s *space) init(b *Builder) {
	*s = space{b: b, byHandle: map[handleKey]*obj{}, names: map[nameKey]*nameState{}, roots: map[int]*obj{}, up: map[*obj]*obj{}, owners: map[string]string{}}
}

// dots reports names that are not valid components: they lead to no object of their own, and must
// not make a path lead elsewhere.
func dots(name []byte) bool { return !ops.PlainName(name) }

// shows handles GETFH: the handle of the current object.
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

// find returns the object of a name that exists according to a reply, with this
// handle if it is not nil.
func (s *space) find(dir *obj, name, handle []byte) *obj {
	dir = dir.real()
	if dir == nil {
		return nil
	}
	if dots(name) {
		return s.of(dir.server, handle)
	}
	n, key := s.named(dir, name)
	o := n.obj.real()
	if len(handle) == 0 && o != nil {
		return o
	}
	if len(handle) > 0 {
		found, known := s.behind(n, handleKey{dir.server, string(handle)})
		if known || found == nil {
			return found
		}
		o = found
	} else {
		if s.full() {
			return nil
		}
		o = s.add(dir.server, plan.Before)
	}
	n.obj = o
	o.appears(n, key)
	return o
}

// behind returns the object of a handle that a name leads to. known is set if the name already
// led there.
func (s *space) behind(n *nameState, k handleKey) (o *obj, known bool) {
	o = n.obj.real()
	h := s.byHandle[k].real()
	switch {
	case h == nil && o != nil && o.handle == "":
		s.give(o, k)
		return o, true
	case h == nil:
		if s.full() {
			return nil, false
		}
		h = s.add(k.server, plan.Before)
		s.give(h, k)
		if o != nil {
			h.note(plan.NoteReplaced, "")
			n.touched = true
		}
	case h == o:
		return o, true
	case o != nil && o.handle == "":
		s.merge(o, h)
		return h, true
	}
	return h, false
}

// appears notes a new name of an object.
func (o *obj) appears(n *nameState, key nameKey) {
	o.now = key
	o.count++
	switch {
	case n.pending != 0 && o.origin == plan.Before && !o.named && o.id != 0:
		// Ops that neither wait for the CREATE nor could learn the handle from it have already
		// used the object: for them it must exist.
		o.note(plan.NotePending, "")
		o.first(key, plan.Inferred)
	case n.pending != 0 && o.origin == plan.Before && !o.named:
		// Its CREATE had no reply in the capture.
		o.origin, o.created.Op = plan.Created, n.pending
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
	case o.parent != key.dir || o.name != key.name:
		if o.typ == "dir" {
			o.note(plan.NoteMoved, "")
		} else if len(o.links) < 64 && !o.s.full() {
			o.own().links = append(o.links, key)
			o.s.b.room.take(len(key.name) + linkSize)
		}
	}
	o.removed = order.Flight{} // if it was, there was another name
}

// create makes a new object at a name.
func (s *space) create(by order.Flight, server int, dir *obj, name, handle []byte, typ string) *obj {
	if dir = dir.real(); dir == nil || dots(name) {
		// Its place is unknown; no file server would have created such a name.
		o := s.of(server, handle)
		if o != nil && o.created.Op == 0 && o.origin == plan.Before && o.id == 0 {
			o.origin, o.created, o.typ = plan.Created, by, typ
		}
		return o
	}
	if s.full() {
		return nil
	}
	n, key := s.named(dir, name)
	o := s.add(dir.server, plan.Created)
	o.created, o.typ = by, typ
	o.first(key, plan.Exact)
	o.now, o.count = key, 1
	o.sizeChanged, o.modeChanged, o.ownerChanged = true, true, true
	n.obj, n.touched = o, true
	if len(handle) > 0 {
		s.give(o, handleKey{dir.server, string(handle)})
	}
	return o
}

func (s *space) rename(by order.Flight, from *obj, old []byte, to *obj, name []byte) {
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
		s.unname(by, z)
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
	o.linksChanged = true
}

func (s *space) remove(by order.Flight, dir *obj, name []byte) {
	if dir = dir.real(); dir == nil || dots(name) {
		return
	}
	s.unname(by, s.state(dir, name))
}

// unname removes a name from its object.
func (s *space) unname(by order.Flight, n *nameState) {
	if o := n.obj.real(); o != nil {
		if o.count--; o.count <= 0 {
			o.removed = by
		}
		o.linksChanged = true
	}
	n.obj, n.touched = nil, true
}

// leads is the object that a name currently refers to, if its handle is known.
func (s *space) leads(d *obj, name []byte) int {
	if d = d.real(); d == nil {
		return 0
	}
	if n := s.names[nameKey{d, string(name)}]; n != nil && n.obj != nil {
		if o := n.obj.real(); o.handle != "" || o.id != 0 {
			return s.ref(o)
		}
	}
	return 0
}

// listed is an entry of a directory.
func (s *space) listed(d *obj, name, handle []byte) *obj {
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

// maybe notes that a call without a reply may have made a name.
func (s *space) maybe(dir *obj, name []byte, op int) {
	if dir = dir.real(); dir != nil && !dots(name) {
		if n := s.state(dir, name); n.obj == nil {
			n.pending = op
		}
	}
}

// missing notes that a name was not there.
func (s *space) missing(dir *obj, name []byte) {
	if dir = dir.real(); dir != nil && !dots(name) {
		s.state(dir, name).absent = true
	}
}

func (s *space) state(dir *obj, name []byte) *nameState {
	n, _ := s.named(dir, name)
	return n
}

// named is state that also returns the key under which the name is stored.
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

func (o *obj) first(k nameKey, class plan.Class) {
	o.parent, o.name, o.named, o.nameClass = k.dir, k.name, true, class
	if o == k.dir {
		o.parent, o.named, o.nameClass = nil, false, plan.Synthesised
	}
}

// merge turns an object that was known only by name into the object of a handle.
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

func (s *space) give(o *obj, k handleKey) {
	o.handle = k.handle
	s.byHandle[k] = o
	s.b.room.take(entrySize + len(k.handle))
}

func (s *space) add(server int, origin plan.ObjectOrigin) *obj {
	s.b.ids.used[server] = true
	o := &obj{s: s, server: server, origin: origin, nameClass: plan.Synthesised, details: &none}
	s.objects = append(s.objects, o)
	s.b.room.take(objectSize)
	return o
}

func (s *space) full() bool {
	if len(s.objects)+len(s.names) >= s.b.opt.Objects || s.b.room.full() {
		s.b.limit("more objects and names than are followed")
		return true
	}
	return false
}

// refIfHandle is ref for an object that has a handle.
func (s *space) refIfHandle(o *obj) int {
	if o = o.real(); o == nil || o.handle == "" {
		return 0
	}
	return s.ref(o)
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
