package snapshot

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

// Errors of Load, which wraps them.
var (
	ErrNotAState = errors.New("this is not a saved state")
	ErrDamaged   = errors.New("the saved state is damaged or cut short")
	ErrKey       = errors.New("the saved state was made with another key, or changed by somebody without it")
	ErrNoKey     = errors.New("the saved state is not signed, and a key is required")
	ErrVersion   = errors.New("the saved state was made by another version of the program")
	ErrSettings  = errors.New("the saved state was made with other options")
	ErrLimit     = errors.New("the saved state holds more than the memory limit allows")
)

// header is what stands before the graph.
type header struct {
	flags       byte
	fingerprint [sha256.Size]byte
	settings    []Pair
	notes       []Pair
	body        []byte
}

// open checks the HMAC and takes the header off.
func open(file []byte, opt *Options) (h header, err error) {
	if len(file) < len(magic) || string(file[:len(magic)]) != magic {
		return h, ErrNotAState
	}
	if len(file) < len(magic)+2+sha256.Size+macSize {
		return h, ErrDamaged
	}
	if file[len(magic)] != format {
		return h, fmt.Errorf("%w (format %d, not %d)", ErrVersion, file[len(magic)], format)
	}
	key, flags := opt.mac()
	h.flags = file[len(magic)+1]
	if flags == keyedFlag && h.flags&keyedFlag == 0 {
		return h, ErrNoKey
	}
	all, sum := file[:len(file)-macSize], file[len(file)-macSize:]
	mac := hmac.New(sha256.New, key)
	mac.Write(all)
	if !hmac.Equal(mac.Sum(nil), sum) {
		if h.flags&keyedFlag != 0 {
			return h, ErrKey
		}
		return h, ErrDamaged
	}
	rest := all[len(magic)+2:]
	rest = rest[copy(h.fingerprint[:], rest):]
	ok := false
	if h.settings, rest, ok = takePairs(rest); !ok {
		return h, ErrDamaged
	}
	if h.notes, rest, ok = takePairs(rest); !ok {
		return h, ErrDamaged
	}
	h.body = rest
	return h, nil
}

func takePairs(b []byte) (list []Pair, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > maxPairs {
		return nil, b, false
	}
	b = b[k:]
	for range n {
		var two [2]string
		for i := range two {
			n, k := binary.Uvarint(b)
			if k <= 0 || n > maxText || n > uint64(len(b)-k) {
				return nil, b, false
			}
			two[i] = string(b[k : k+int(n)])
			b = b[k+int(n):]
		}
		list = append(list, Pair{two[0], two[1]})
	}
	return list, b, true
}

// Notes returns Options.Notes of a file after its HMAC was checked, whatever program has written it.
func Notes(file []byte, opt Options) ([]Pair, error) {
	h, err := open(file, &opt)
	return h.notes, err
}

// Load restores what a file holds. After an error, the Fixed objects are of no use any more.
func (p *Plan) Load(file []byte, opt Options) (notes []Pair, err error) {
	if err := p.compile(); err != nil {
		return nil, err
	}
	h, err := open(file, &opt)
	if err != nil {
		return nil, err
	}
	if err := compare(h.settings, opt.Settings); err != nil {
		return h.notes, err
	}
	if h.fingerprint != p.fingerprint {
		return h.notes, ErrVersion
	}
	if opt.Limit <= 0 {
		opt.Limit = DefaultLimit
	}
	z := decoders.Get().(*zstd.Decoder)
	if err := z.Reset(bytes.NewReader(h.body)); err != nil {
		return h.notes, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	err = p.restore(z, opt.Limit)
	_ = z.Reset(nil)
	decoders.Put(z)
	return h.notes, err
}

// decoders decompress graphs. One takes longer to make than a small graph takes to read.
var decoders = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}}

// restore reads the graph. It takes room bytes at most.
func (p *Plan) restore(r io.Reader, room int) error {
	l := &loader{plan: p, r: bufio.NewReaderSize(r, 64<<10), room: room, texts: []string{""}}
	l.graph()
	if l.err == nil {
		l.hooks()
	}
	return l.err
}

// compare says which settings differ.
func compare(were, are []Pair) error {
	var diff []string
	find := func(list []Pair, name string) (string, bool) {
		for _, x := range list {
			if x.Name == name {
				return x.Value, true
			}
		}
		return "", false
	}
	for _, x := range are {
		if v, ok := find(were, x.Name); !ok || v != x.Value {
			diff = append(diff, fmt.Sprintf("%s was %q and is %q", x.Name, v, x.Value))
		}
	}
	for _, x := range were {
		if _, ok := find(are, x.Name); !ok {
			diff = append(diff, fmt.Sprintf("%s was %q and is not known", x.Name, x.Value))
		}
	}
	if diff == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSettings, strings.Join(diff, ", "))
}

// loader reads the graph.
type loader struct {
	plan    *Plan
	r       *bufio.Reader
	room    int // bytes that may still be taken
	objects []object
	maps    []loadedMap
	texts   []string
	boxes   int // interfaces that the value at hand lies in
	err     error
}

type loadedMap struct {
	n     *node
	v     reflect.Value
	count int
}

func (l *loader) damaged(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
	}
}

// take takes memory off what may still be used.
func (l *loader) take(n uint64) bool {
	if l.err != nil {
		return false
	}
	if n > uint64(l.room) {
		l.err = ErrLimit
		return false
	}
	l.room -= int(n)
	return true
}

// overhead is what an object takes besides its bytes, about.
const overhead = 64

func (l *loader) graph() {
	for i, x := range l.plan.fixed {
		l.objects = append(l.objects, object{p: x.p, n: l.plan.nodes[x.t], count: 1, used: 1, fixed: i + 1})
	}
	for range l.number() {
		if !l.make() {
			return
		}
	}
	for range l.number() {
		if !l.makeMap() {
			return
		}
	}
	for i := range l.objects {
		o := &l.objects[i]
		if o.n.op == opPlain {
			l.raw(o.p, o.n.size*uintptr(o.written()))
			if o.n.mend != nil {
				for k := range o.written() {
					o.n.mend(unsafe.Add(o.p, uintptr(k)*o.n.size))
				}
			}
			continue
		}
		for k := 0; k < o.count && l.err == nil; k++ {
			l.value(unsafe.Add(o.p, uintptr(k)*o.n.size), o.n)
		}
	}
	for _, m := range l.maps {
		l.entries(&m)
	}
	if _, err := l.r.ReadByte(); l.err == nil && err != io.EOF {
		l.damaged("something follows its end")
	}
}

// make makes an object.
func (l *loader) make() bool {
	n := l.typeOf()
	if n == nil {
		return false
	}
	o := object{n: n, count: 1, used: 1}
	if count := l.number(); count > 0 {
		o.array = true
		if count--; count == 0 || n.size == 0 || count > uint64(l.room)/uint64(n.size) {
			if l.err == nil {
				l.err = ErrLimit
			}
			return false
		}
		o.count, o.used = int(count), int(count)
		if n.op == opPlain {
			used := l.number()
			if used > count {
				l.damaged("%d of %d elements", used, count)
				return false
			}
			o.used = int(used)
		}
	}
	if !l.take(uint64(o.size()) + overhead) {
		return false
	}
	if o.array {
		o.p = reflect.MakeSlice(reflect.SliceOf(n.t), o.count, o.count).UnsafePointer()
	} else {
		o.p = reflect.New(n.t).UnsafePointer()
	}
	l.objects = append(l.objects, o)
	return true
}

func (l *loader) makeMap() bool {
	n := l.typeOf()
	if n == nil {
		return false
	}
	if n.op != opMap {
		l.damaged("%v is not a map", n.t)
		return false
	}
	count := l.number()
	one := uint64(n.key.size + n.elem.size + overhead)
	if count > uint64(l.room)/one {
		if l.err == nil {
			l.err = ErrLimit
		}
		return false
	}
	if !l.take(count*one + overhead) {
		return false
	}
	l.maps = append(l.maps, loadedMap{n, reflect.MakeMapWithSize(n.t, int(count)), int(count)})
	return true
}

// entries reads what is in a map.
func (l *loader) entries(m *loadedMap) {
	key, value := reflect.New(m.n.key.t), reflect.New(m.n.elem.t)
	for i := 0; i < m.count && l.err == nil; i++ {
		key.Elem().SetZero()
		value.Elem().SetZero()
		l.value(key.UnsafePointer(), m.n.key)
		l.value(value.UnsafePointer(), m.n.elem)
		if l.err == nil {
			m.v.SetMapIndex(key.Elem(), value.Elem())
		}
	}
	if l.err == nil && m.v.Len() != m.count {
		l.damaged("a key is in a map twice")
	}
}

func (l *loader) typeOf() *node {
	i := l.number()
	if l.err == nil && i >= uint64(len(l.plan.list)) {
		l.damaged("type %d", i)
	}
	if l.err != nil {
		return nil
	}
	return l.plan.list[i]
}

func (l *loader) number() uint64 {
	if l.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(l.r)
	if err != nil {
		l.damaged("%w", err)
		return 0
	}
	return n
}

func (l *loader) raw(p unsafe.Pointer, n uintptr) {
	if l.err != nil || n == 0 {
		return
	}
	if _, err := io.ReadFull(l.r, unsafe.Slice((*byte)(p), n)); err != nil {
		l.damaged("%w", err)
	}
}

// value reads a value.
func (l *loader) value(p unsafe.Pointer, n *node) {
	switch n.op {
	case opPlain:
		l.raw(p, n.size)
		if n.mend != nil {
			n.mend(p)
		}
	case opStruct:
		for i := range n.parts {
			f := &n.parts[i]
			if f.n != nil {
				l.value(unsafe.Add(p, f.at), f.n)
				continue
			}
			l.raw(unsafe.Add(p, f.at), f.size)
			if f.mend != nil {
				f.mend(unsafe.Add(p, f.at))
			}
		}
	case opArray:
		for i := range n.count {
			l.value(unsafe.Add(p, uintptr(i)*n.elem.size), n.elem)
		}
	case opString:
		*(*string)(p) = l.text()
	case opPointer:
		q := unsafe.Pointer(nil)
		if i := l.number(); i > 0 {
			q = l.pointer(i-1, n.elem, 1)
		}
		*(*unsafe.Pointer)(p) = q
	case opSlice:
		l.slice((*slice)(p), n)
	case opMap:
		v := reflect.Zero(n.t)
		if i := l.number(); i > 0 && l.err == nil {
			if i > uint64(len(l.maps)) || l.maps[i-1].n != n {
				l.damaged("map %d is no %v", i, n.t)
				return
			}
			v = l.maps[i-1].v
		}
		reflect.NewAt(n.t, p).Elem().Set(v)
	case opBox:
		l.box(p, n)
	case opAddr:
		l.addr((*netip.Addr)(p))
	}
}

func (l *loader) slice(p *slice, n *node) {
	*p = slice{}
	i := l.number()
	switch {
	case i == 0 || l.err != nil:
		return
	case i == 1:
		p.data = reflect.MakeSlice(n.t, 0, 0).UnsafePointer()
		return
	}
	object := i - 2
	at := l.number()
	length, room := l.number(), l.number()
	if l.err != nil {
		return
	}
	if length > room || room == 0 || room > maxSlice {
		l.damaged("a slice of %d of %d elements", length, room)
		return
	}
	if q := l.place(object, at, n.elem, int(room)); q != nil {
		*p = slice{q, int(length), int(room)}
	}
}

const (
	maxSlice = 1<<31 - 1 // elements: more than there is room for, and an int everywhere
	maxBoxes = 64
)

func (l *loader) pointer(i uint64, n *node, count int) unsafe.Pointer {
	return l.place(i, l.number(), n, count)
}

// place returns the address in an object at which there are count values of a type.
func (l *loader) place(i, at uint64, n *node, count int) unsafe.Pointer {
	if l.err != nil {
		return nil
	}
	if i >= uint64(len(l.objects)) {
		l.damaged("object %d", i)
		return nil
	}
	o := &l.objects[i]
	if at >= uint64(o.size()) || !o.holds(uintptr(at), &object{n: n, count: count}) {
		l.damaged("no %d %v at %d of a %v", count, n.t, at, o.n.t)
		return nil
	}
	return unsafe.Add(o.p, at)
}

func (l *loader) box(p unsafe.Pointer, n *node) {
	v := reflect.NewAt(n.t, p).Elem()
	i := l.number()
	if l.err != nil {
		return
	}
	if i == 0 {
		v.SetZero()
		return
	}
	if i > uint64(len(l.plan.distinct)) || !l.plan.distinct[i-1].Implements(n.t) {
		l.damaged("type %d is no %v", i, n.t)
		return
	}
	t := l.plan.distinct[i-1]
	if l.boxes++; l.boxes > maxBoxes {
		l.damaged("interfaces within interfaces")
		return
	}
	defer func() { l.boxes-- }()
	if !l.take(uint64(t.Size())) {
		return
	}
	x := reflect.New(t)
	l.value(x.UnsafePointer(), l.plan.nodes[t])
	if l.err == nil {
		v.Set(x.Elem())
	}
}

func (l *loader) addr(p *netip.Addr) {
	var b [64]byte
	n := l.number()
	if n > uint64(len(b)) {
		l.damaged("an address of %d bytes", n)
		return
	}
	l.raw(unsafe.Pointer(&b), uintptr(n))
	var a netip.Addr
	if l.err == nil {
		if err := a.UnmarshalBinary(b[:n]); err != nil {
			l.damaged("%w", err)
		}
	}
	*p = a
}

// text reads a string.
func (l *loader) text() string {
	i := l.number()
	switch {
	case l.err != nil:
		return ""
	case i < uint64(len(l.texts)):
		return l.texts[i]
	case i > uint64(len(l.texts)):
		l.damaged("text %d", i)
		return ""
	}
	n := l.number()
	if !l.take(n + overhead/2) {
		return ""
	}
	b := make([]byte, n)
	l.raw(unsafe.Pointer(unsafe.SliceData(b)), uintptr(n))
	l.texts = append(l.texts, string(b))
	return l.texts[i]
}

// hooks calls the functions of After.
func (l *loader) hooks() {
	defer func() {
		if r := recover(); r != nil {
			l.damaged("%v", r)
		}
	}()
	for i := range l.objects {
		o := &l.objects[i]
		if f := l.plan.after[o.n.t]; f != nil {
			for k := range o.count {
				f(unsafe.Add(o.p, uintptr(k)*o.n.size))
			}
		}
	}
}
