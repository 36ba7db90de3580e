package snapshot

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// object is a piece of memory that something points to: one value, or the array behind slices.
type object struct {
	p     unsafe.Pointer
	n     *node // of the value, or of the elements
	array bool
	count int // of elements
	// used is how many elements some slice shows: beyond that, bytes mean nothing.
	used  int
	fixed int // 1 + index in Plan.fixed; 0 if it is made again
}

func (o *object) size() uintptr  { return o.n.size * uintptr(o.count) }
func (o *object) start() uintptr { return uintptr(o.p) }
func (o *object) end() uintptr   { return o.start() + o.size() }

// scanner finds all that is to be saved.
type scanner struct {
	plan  *Plan
	found []object
	seen  map[place]int // elements looked at
	todo  []task
	maps  map[unsafe.Pointer]int // by their order
	list  []frozenMap
	err   error
}

// place is where a value of a type begins.
type place struct {
	p unsafe.Pointer
	n *node
}

// task is a row of values to be looked at.
type task struct {
	place
	count int
}

type frozenMap struct {
	n *node
	p unsafe.Pointer // to a variable that holds the map
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("snapshot: "+format, args...)
	}
}

// scan finds everything from the Fixed objects on, and makes objects of it.
func (p *Plan) scan() (*scanner, error) {
	s := &scanner{plan: p, seen: make(map[place]int), maps: make(map[unsafe.Pointer]int)}
	for i, x := range p.fixed {
		n := p.nodes[x.t]
		s.found = append(s.found, object{p: x.p, n: n, count: 1, used: 1, fixed: i + 1})
		s.seen[place{x.p, n}] = 1
		s.todo = append(s.todo, task{place{x.p, n}, 1})
	}
	for len(s.todo) > 0 && s.err == nil {
		t := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		for i := range t.count {
			s.look(unsafe.Add(t.p, uintptr(i)*t.n.size), t.n)
		}
	}
	s.seen = nil
	if s.err == nil {
		s.merge()
	}
	return s, s.err
}

// look finds what a value refers to.
func (s *scanner) look(p unsafe.Pointer, n *node) {
	switch n.op {
	case opStruct:
		for i := range n.parts {
			if f := &n.parts[i]; f.n != nil {
				s.look(unsafe.Add(p, f.at), f.n)
			}
		}
	case opArray:
		for i := range n.count {
			s.look(unsafe.Add(p, uintptr(i)*n.elem.size), n.elem)
		}
	case opPointer:
		if q := *(*unsafe.Pointer)(p); q != nil {
			s.add(q, n.elem, false, 1, 1)
		}
	case opSlice:
		if x := (*slice)(p); x.data != nil && x.cap > 0 {
			s.add(x.data, n.elem, true, x.cap, x.len)
		}
	case opMap:
		s.lookMap(p, n)
	case opBox:
		if v := reflect.NewAt(n.t, p).Elem(); !v.IsNil() {
			q, of := s.unbox(v)
			if of != nil {
				s.look(q, of)
			}
		}
	}
}

// unbox returns the address of a copy of what an interface holds.
func (s *scanner) unbox(v reflect.Value) (unsafe.Pointer, *node) {
	e := v.Elem()
	if s.plan.boxes[e.Type()] == 0 {
		s.fail("an interface %v holds a %v, which the Plan does not know: name it by Boxed", v.Type(), e.Type())
		return nil, nil
	}
	x := reflect.New(e.Type())
	x.Elem().Set(e)
	return x.UnsafePointer(), s.plan.nodes[e.Type()]
}

func (s *scanner) lookMap(p unsafe.Pointer, n *node) {
	id := *(*unsafe.Pointer)(p)
	if id == nil {
		return
	}
	if _, ok := s.maps[id]; ok {
		return
	}
	s.maps[id] = len(s.list)
	own := new(unsafe.Pointer) // p may be a copy that does not last
	*own = id
	s.list = append(s.list, frozenMap{n, unsafe.Pointer(own)})
	// Entries cannot be pointed to: only what they refer to is of interest.
	if n.key.op == opPlain && n.elem.op == opPlain {
		return
	}
	each(p, n, func(key, value unsafe.Pointer) {
		s.look(key, n.key)
		s.look(value, n.elem)
	})
}

// each calls f with copies of the entries of a map.
func each(p unsafe.Pointer, n *node, f func(key, value unsafe.Pointer)) {
	key, value := reflect.New(n.key.t), reflect.New(n.elem.t)
	for it := reflect.NewAt(n.t, p).Elem().MapRange(); it.Next(); {
		key.Elem().SetIterKey(it)
		value.Elem().SetIterValue(it)
		f(key.UnsafePointer(), value.UnsafePointer())
	}
}

// add notes memory that something points to, and has it looked at.
func (s *scanner) add(p unsafe.Pointer, n *node, array bool, count, used int) {
	at := place{p, n}
	was := s.seen[at]
	if count <= was {
		if array && n.op == opPlain && used > 0 {
			s.found = append(s.found, object{p: p, n: n, array: true, count: used, used: used})
		}
		return
	}
	s.seen[at] = count
	s.found = append(s.found, object{p: p, n: n, array: array, count: count, used: used})
	if n.op != opPlain {
		s.todo = append(s.todo, task{place{unsafe.Add(p, uintptr(was)*n.size), n}, count - was})
	}
}

// merge makes one object of pieces of memory that overlap.
func (s *scanner) merge() {
	slices.SortFunc(s.found, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.start(), b.start()), cmp.Compare(b.size(), a.size()), cmp.Compare(b.fixed, a.fixed))
	})
	out := s.found[:0]
	for i := range s.found {
		o := s.found[i]
		if len(out) == 0 || o.start() >= out[len(out)-1].end() {
			out = append(out, o)
			continue
		}
		last := &out[len(out)-1]
		at := o.start() - last.start()
		switch {
		case o.fixed != 0:
			s.fail("%v is part of another object", o.n.t)
			return
		case o.end() <= last.end() && last.holds(at, &o):
			last.shows(at, &o)
		case last.fixed == 0 && o.end() == last.end() && at == 0 && o.holds(0, last):
			o.shows(0, last)
			*last = o
		case last.fixed == 0 && o.n == last.n && at%o.n.size == 0:
			last.array = true
			last.count = max(last.count, int(at/o.n.size)+o.count)
			last.shows(at, &o)
		default:
			s.fail("a %v overlaps a %v", o.n.t, last.n.t)
			return
		}
	}
	s.found = out
}

// holds reports whether x lies within o at an offset.
func (o *object) holds(at uintptr, x *object) bool {
	if o.n == x.n && at%o.n.size == 0 {
		return int(at/o.n.size)+x.count <= o.count
	}
	// An array type of which the elements are x, or a struct in one element.
	if i := at / o.n.size; i < uintptr(o.count) {
		return lies(o.n.t, at%o.n.size, x.n.t, x.count)
	}
	return false
}

// shows notes what a part of o is used for.
func (o *object) shows(at uintptr, x *object) {
	o.used = max(o.used, int((at+x.n.size*uintptr(x.used)+o.n.size-1)/o.n.size))
}

// find returns the object that a pointer leads into, and where.
func (s *scanner) find(p unsafe.Pointer) (i int, at uintptr) {
	i, ok := slices.BinarySearchFunc(s.found, uintptr(p), func(o object, p uintptr) int { return cmp.Compare(o.start(), p) })
	if !ok {
		i--
	}
	return i, uintptr(p) - s.found[i].start()
}
