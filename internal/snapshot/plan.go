package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"sync"
	"unsafe"
)

// Plan says what is saved. The same calls in the same order must make it where a file is written and where it is
// read. It is used once.
type Plan struct {
	fixed   []fixed
	leave   []leave
	boxed   []reflect.Type // dynamic types of interfaces
	after   map[reflect.Type]func(unsafe.Pointer)
	version string
	errs    []error
	*layout // once it is known
}

// layout is what a Plan's types come to. It is the same for Plans that were made by the same calls, and does not
// change.
type layout struct {
	left        map[reflect.Type]map[string]bool
	nodes       map[reflect.Type]*node
	list        []*node              // by index
	boxes       map[reflect.Type]int // 1 + index in distinct
	distinct    []reflect.Type       // of boxed
	fingerprint [sha256.Size]byte
}

// leave is a call of Leave.
type leave struct {
	t      reflect.Type
	fields []string
}

// fixed is an object that is not made again.
type fixed struct {
	p unsafe.Pointer
	t reflect.Type
}

// NewPlan makes an empty Plan. version names the program: a file of another version is refused.
func NewPlan(version string) *Plan {
	return &Plan{after: make(map[reflect.Type]func(unsafe.Pointer)), version: version}
}

// Part is something that adds itself to a Plan. It is called when a file is written and when one is read, and may
// drop what it need not keep.
type Part interface{ Snapshot(p *Plan) }

// Fixed adds an object by its pointer. A type may be Fixed several times, an object once.
func (p *Plan) Fixed(pointer any) {
	v := reflect.ValueOf(pointer)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		p.fail("%T is not a pointer to an object", pointer)
		return
	}
	p.fixed = append(p.fixed, fixed{v.UnsafePointer(), v.Type().Elem()})
	p.boxed = append(p.boxed, v.Type())
}

// Leave has the named fields of T neither saved nor restored: in a Fixed object they keep their value, elsewhere
// they are zero.
func Leave[T any](p *Plan, fields ...string) {
	p.leave = append(p.leave, leave{reflect.TypeFor[T](), fields})
}

// Boxed adds a type that interfaces may hold.
func Boxed[T any](p *Plan) { p.boxed = append(p.boxed, reflect.TypeFor[T]()) }

// After has f called for each object of type T that was restored, once all are whole. It must survive any
// values.
func After[T any](p *Plan, f func(*T)) {
	p.after[reflect.TypeFor[T]()] = func(x unsafe.Pointer) { f((*T)(x)) }
}

func (p *Plan) fail(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("snapshot: "+format, args...))
}

// format is the version of the encoding.
const format = 1

// layouts has the layouts of this process by key: types do not change, and programs have few Plans.
var layouts sync.Map

// compile looks at all types, unless a Plan like this one has done so.
func (p *Plan) compile() error {
	if p.layout != nil || len(p.errs) > 0 {
		return errors.Join(p.errs...)
	}
	key := p.key()
	if known, ok := layouts.Load(key); ok {
		p.layout = known.(*layout)
		return nil
	}
	p.layout = &layout{
		left: make(map[reflect.Type]map[string]bool), nodes: make(map[reflect.Type]*node), boxes: make(map[reflect.Type]int),
	}
	for _, l := range p.leave {
		p.leaves(l.t, l.fields)
	}
	for _, x := range p.fixed {
		p.node(x.t, x.t.String())
	}
	for _, t := range p.boxed {
		if p.boxes[t] == 0 {
			p.distinct = append(p.distinct, t)
			p.boxes[t] = len(p.distinct)
		}
	}
	for _, t := range p.distinct {
		p.node(t, t.String())
	}
	if len(p.errs) > 0 {
		return p.errs[0]
	}
	p.fingerprint = p.sum()
	layouts.Store(key, p.layout)
	return nil
}

// leaves notes what is not saved of a type.
func (p *Plan) leaves(t reflect.Type, fields []string) {
	if t.Kind() != reflect.Struct {
		p.fail("%v has no fields", t)
		return
	}
	if p.left[t] == nil {
		p.left[t] = make(map[string]bool)
	}
	for _, name := range fields {
		if f, ok := t.FieldByName(name); !ok || len(f.Index) != 1 {
			p.fail("%v has no field %s", t, name)
		}
		p.left[t][name] = true
	}
}

// key tells the calls that have made a Plan from others. Types are distinguished by their addresses.
func (p *Plan) key() string {
	b := append(make([]byte, 0, 4096), p.version...)
	add := func(t reflect.Type) { b = binary.NativeEndian.AppendUint64(b, uint64(reflect.ValueOf(t).Pointer())) }
	b = binary.AppendUvarint(append(b, 0), uint64(len(p.fixed)))
	for _, x := range p.fixed {
		add(x.t)
	}
	b = binary.AppendUvarint(b, uint64(len(p.boxed)))
	for _, t := range p.boxed {
		add(t)
	}
	for _, l := range p.leave {
		add(l.t)
		b = binary.AppendUvarint(b, uint64(len(l.fields)))
		for _, name := range l.fields {
			b = append(append(b, name...), 0)
		}
	}
	return string(b)
}

// sum is the same for programs that understand each other's files.
func (p *Plan) sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s %q\n", format, runtime.GOARCH, runtime.Version(), p.version)
	seen := make(map[reflect.Type]int)
	for _, x := range p.fixed {
		p.describe(h, x.t, seen)
		fmt.Fprintf(h, "fixed %d\n", seen[x.t])
	}
	for _, t := range p.distinct {
		p.describe(h, t, seen)
		fmt.Fprintf(h, "boxed %d\n", seen[t])
	}
	h.Sum(sum[:0])
	return sum
}

// describe writes the layout of a type and of those that it consists of.
func (p *Plan) describe(w io.Writer, t reflect.Type, seen map[reflect.Type]int) {
	if seen[t] != 0 {
		return
	}
	seen[t] = len(seen) + 1
	fmt.Fprintf(w, "%d %s %s %v %d\n", seen[t], t.PkgPath(), t, t.Kind(), t.Size())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if p.left[t][f.Name] {
				fmt.Fprintf(w, "- %s\n", f.Name)
				continue
			}
			p.describe(w, f.Type, seen)
			fmt.Fprintf(w, "- %s %d %d\n", f.Name, seen[f.Type], f.Offset)
		}
	case reflect.Map:
		p.describe(w, t.Key(), seen)
		fmt.Fprintf(w, "key %d\n", seen[t.Key()])
		fallthrough
	case reflect.Pointer, reflect.Slice, reflect.Array:
		p.describe(w, t.Elem(), seen)
		fmt.Fprintf(w, "of %d\n", seen[t.Elem()])
	}
}
