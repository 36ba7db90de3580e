package snapshot

import (
	"net/netip"
	"reflect"
	"unsafe"
)

// op is how values of a type are written.
type op uint8

const (
	opPlain  op = iota + 1 // as they lie in memory
	opStruct               // field by field
	opArray
	opString
	opPointer
	opSlice
	opMap
	opBox // an interface
	opAddr
)

// node is what is known of a type.
type node struct {
	t     reflect.Type
	op    op
	index int
	size  uintptr
	elem  *node // of pointers, slices, arrays and maps
	key   *node
	count int // of an array
	parts []part
	// mend makes the bytes of a plain value a valid one; nil if they all are.
	mend func(unsafe.Pointer)
}

// part is a field, or several plain ones that follow each other.
type part struct {
	at   uintptr
	size uintptr // of plain fields; 0 if n is set
	n    *node
	mend func(unsafe.Pointer)
}

// slice and box are a slice and a string as they lie in memory.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

var addrType = reflect.TypeFor[netip.Addr]()

// node looks at a type. path says where it is used, for errors.
func (p *Plan) node(t reflect.Type, path string) *node {
	if n := p.nodes[t]; n != nil {
		return n
	}
	n := &node{t: t, size: t.Size(), index: len(p.list)}
	p.nodes[t] = n
	p.list = append(p.list, n)
	if p.plain(t) {
		n.op, n.mend = opPlain, mend(t)
		return n
	}
	if t == addrType {
		n.op = opAddr
		return n
	}
	switch t.Kind() {
	case reflect.Struct:
		n.op = opStruct
		p.fields(n, path)
	case reflect.Array:
		n.op, n.count = opArray, t.Len()
		n.elem = p.node(t.Elem(), path+"[]")
	case reflect.String:
		n.op = opString
	case reflect.Pointer:
		n.op = opPointer
		n.elem = p.node(t.Elem(), path)
		p.sized(t.Elem(), path)
	case reflect.Slice:
		n.op = opSlice
		n.elem = p.node(t.Elem(), path+"[]")
		p.sized(t.Elem(), path)
	case reflect.Map:
		n.op = opMap
		n.key, n.elem = p.node(t.Key(), path+"[key]"), p.node(t.Elem(), path+"[]")
		if !p.hashable(t.Key()) {
			p.fail("%s: keys with interfaces or floating-point numbers cannot be saved", path)
		}
	case reflect.Interface:
		n.op = opBox
	default:
		p.fail("%s: a %v cannot be saved: Leave the field, and set it afterwards", path, t)
	}
	return n
}

func (p *Plan) sized(t reflect.Type, path string) {
	if t.Size() == 0 {
		p.fail("%s: %v has no size and so no address of its own", path, t)
	}
}

func (p *Plan) hashable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	case reflect.Array:
		return p.hashable(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if t != addrType && !p.hashable(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

// fields divides a struct into parts.
func (p *Plan) fields(n *node, path string) {
	for i := range n.t.NumField() {
		f := n.t.Field(i)
		if p.left[n.t][f.Name] || f.Type.Size() == 0 {
			continue
		}
		if !p.plain(f.Type) {
			n.parts = append(n.parts, part{at: f.Offset, n: p.node(f.Type, path+"."+f.Name)})
			continue
		}
		n.parts = append(n.parts, part{at: f.Offset, size: f.Type.Size(), mend: mend(f.Type)})
	}
}

// plain reports whether values of a type are nothing but their bytes.
func (p *Plan) plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	case reflect.Array:
		return p.plain(t.Elem())
	case reflect.Struct:
		if len(p.left[t]) > 0 {
			return false
		}
		for i := range t.NumField() {
			if !p.plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// mend returns what makes the bools of a plain value 0 or 1.
func mend(t reflect.Type) func(unsafe.Pointer) {
	switch t.Kind() {
	case reflect.Bool:
		return func(p unsafe.Pointer) {
			if b := (*uint8)(p); *b > 1 {
				*b = 1
			}
		}
	case reflect.Array:
		f, size := mend(t.Elem()), t.Elem().Size()
		if f == nil {
			return nil
		}
		return func(p unsafe.Pointer) {
			for i := range t.Len() {
				f(unsafe.Add(p, uintptr(i)*size))
			}
		}
	case reflect.Struct:
		var all []func(unsafe.Pointer)
		for i := range t.NumField() {
			if f, at := mend(t.Field(i).Type), t.Field(i).Offset; f != nil {
				all = append(all, func(p unsafe.Pointer) { f(unsafe.Add(p, at)) })
			}
		}
		if all == nil {
			return nil
		}
		return func(p unsafe.Pointer) {
			for _, f := range all {
				f(p)
			}
		}
	}
	return nil
}

// lies reports whether values of type want lie at an offset of a value of type t, count of them one after
// another.
func lies(t reflect.Type, at uintptr, want reflect.Type, count int) bool {
	for {
		if at == 0 && count == 1 && t == want {
			return true
		}
		switch t.Kind() {
		case reflect.Array:
			e := t.Elem()
			if e == want && at%e.Size() == 0 {
				if i := at / e.Size(); i <= uintptr(t.Len()) && uintptr(count) <= uintptr(t.Len())-i {
					return true
				}
			}
			if e.Size() == 0 || at >= t.Size() {
				return false
			}
			t, at = e, at%e.Size()
		case reflect.Struct:
			next := -1
			for i := range t.NumField() {
				if f := t.Field(i); f.Offset <= at && at < f.Offset+f.Type.Size() {
					next = i
				}
			}
			if next < 0 || t == addrType {
				return false
			}
			f := t.Field(next)
			t, at = f.Type, at-f.Offset
		default:
			return false
		}
	}
}
