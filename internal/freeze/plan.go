package freeze

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// Plan says what is saved. The same calls in the same order must make it where a file is written and where it is
// read. It is used once.
type Plan struct {
	fixed   []fixed
	left    map[reflect.Type]map[string]bool
	boxed   []reflect.Type // dynamic types of interfaces
	after   map[reflect.Type]func(unsafe.Pointer)
	version string

	nodes map[reflect.Type]*node
	list  []*node // by index
	errs  []error
}

// fixed is an object that is not made again.
type fixed struct {
	p unsafe.Pointer
	t reflect.Type
}

// NewPlan makes an empty Plan. version names the program: a file of another version is refused.
func NewPlan(version string) *Plan {
	return &Plan{
		left: make(map[reflect.Type]map[string]bool), after: make(map[reflect.Type]func(unsafe.Pointer)),
		nodes: make(map[reflect.Type]*node), version: version,
	}
}

// Part is something that adds itself to a Plan. It is called when a file is written and when one is read, and may
// drop what it need not keep.
type Part interface{ Freeze(p *Plan) }

// Fixed adds an object by its pointer. A type may be Fixed several times, an object once.
func (p *Plan) Fixed(pointer any) {
	v := reflect.ValueOf(pointer)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		p.fail("%T is no pointer to an object", pointer)
		return
	}
	p.fixed = append(p.fixed, fixed{v.UnsafePointer(), v.Type().Elem()})
	p.boxed = append(p.boxed, v.Type())
}

// Leave has the named fields of T neither saved nor restored: in a Fixed object they keep their value, elsewhere
// they are zero.
func Leave[T any](p *Plan, fields ...string) {
	t := reflect.TypeFor[T]()
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

// Boxed adds a type that interfaces may hold.
func Boxed[T any](p *Plan) { p.boxed = append(p.boxed, reflect.TypeFor[T]()) }

// After has f called for each object of type T that was restored, once all are whole. It must survive any
// values.
func After[T any](p *Plan, f func(*T)) {
	p.after[reflect.TypeFor[T]()] = func(x unsafe.Pointer) { f((*T)(x)) }
}

func (p *Plan) fail(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("freeze: "+format, args...))
}

// format is the version of the encoding.
const format = 1

// compile looks at all types.
func (p *Plan) compile() error {
	for _, x := range p.fixed {
		p.node(x.t, x.t.String())
	}
	seen := make(map[reflect.Type]bool)
	p.boxed = slices.DeleteFunc(p.boxed, func(t reflect.Type) bool {
		was := seen[t]
		seen[t] = true
		return was
	})
	for _, t := range p.boxed {
		p.node(t, t.String())
	}
	if len(p.errs) > 0 {
		return p.errs[0]
	}
	return nil
}

// fingerprint is the same for programs that understand each other's files.
func (p *Plan) fingerprint() (sum [sha256.Size]byte) {
	key := p.key()
	if known, ok := fingerprints.Load(key); ok {
		return known.([sha256.Size]byte)
	}
	defer func() { fingerprints.Store(key, sum) }()
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s %q\n", format, runtime.GOARCH, runtime.Version(), p.version)
	seen := make(map[reflect.Type]int)
	for _, x := range p.fixed {
		p.describe(h, x.t, seen)
		fmt.Fprintf(h, "fixed %d\n", seen[x.t])
	}
	for _, t := range p.boxed {
		p.describe(h, t, seen)
		fmt.Fprintf(h, "boxed %d\n", seen[t])
	}
	h.Sum(sum[:0])
	return sum
}

// fingerprints has the fingerprints of this process by key: types do not change, and programs have few
// plans.
var fingerprints sync.Map

// key tells plans of this process apart whose fingerprints may differ.
func (p *Plan) key() string {
	b := []byte(p.version)
	add := func(t reflect.Type) { b = binary.NativeEndian.AppendUint64(b, uint64(reflect.ValueOf(t).Pointer())) }
	for _, x := range p.fixed {
		add(x.t)
	}
	b = append(b, "boxed"...)
	for _, t := range p.boxed {
		add(t)
	}
	var left []string
	for t, names := range p.left {
		for name, is := range names {
			if is {
				left = append(left, fmt.Sprint(reflect.ValueOf(t).Pointer(), " ", name))
			}
		}
	}
	slices.Sort(left)
	for _, l := range left {
		b = append(append(b, ' '), l...)
	}
	return string(b)
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
