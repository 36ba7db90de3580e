package snapshot

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

// magic begins each file.
const magic = "RPCRDMA state\n\x00\x1a"

// Options of Save and Load. The zero value is ready for use.
type Options struct {
	// Key authenticates the file. Without it, everybody can make one that is accepted.
	Key []byte
	// Limit is how many bytes Load may take for what it restores (DefaultLimit).
	Limit int
	// Settings are what a file depends on besides the layout of types, as pairs of a name and a value: Load
	// refuses a file with others.
	Settings []Pair
	// Notes are kept in the file for whoever reads it.
	Notes []Pair
}

// Pair is a text with a name.
type Pair struct{ Name, Value string }

// DefaultLimit is Options.Limit if that is 0.
const DefaultLimit = 1 << 30

const (
	keyedFlag = 1
	macSize   = sha256.Size
	maxPairs  = 1024
	maxText   = 64 << 10
)

// noKey makes a checksum of the HMAC.
var noKey = []byte("this is a checksum, not a signature")

func (o *Options) mac() (key []byte, flags byte) {
	if len(o.Key) > 0 {
		return o.Key, keyedFlag
	}
	return noKey, 0
}

// Save writes what the Plan says. Nothing of it may change meanwhile.
func (p *Plan) Save(w io.Writer, opt Options) error {
	if err := p.compile(); err != nil {
		return err
	}
	s, err := p.scan()
	if err != nil {
		return err
	}
	if len(opt.Settings) > maxPairs || len(opt.Notes) > maxPairs {
		return errors.New("snapshot: too many settings or notes")
	}
	key, flags := opt.mac()
	mac := hmac.New(sha256.New, key)
	out := io.MultiWriter(w, mac)
	head := append([]byte(magic), format, flags)
	head = append(head, p.fingerprint[:]...)
	head = appendPairs(head, opt.Settings)
	head = appendPairs(head, opt.Notes)
	if _, err := out.Write(head); err != nil {
		return err
	}
	z := encoders.Get().(*encoder)
	z.Reset(out)
	z.buf.Reset(z.Encoder)
	defer z.release()
	b := &saver{scanner: s, w: z.buf, texts: make(map[string]uint64)}
	b.graph()
	if b.err != nil {
		return errors.Join(b.err, z.Close())
	}
	if err := errors.Join(b.w.Flush(), z.Close()); err != nil {
		return err
	}
	_, err = w.Write(mac.Sum(nil))
	return err
}

// encoder compresses a graph. Its tables take longer to make than a small graph takes to write.
type encoder struct {
	*zstd.Encoder
	buf *bufio.Writer
}

var encoders = sync.Pool{New: func() any {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return &encoder{z, bufio.NewWriterSize(z, 64<<10)}
}}

// release keeps an encoder for another file, and nothing of this one.
func (z *encoder) release() {
	z.Reset(nil)
	z.buf.Reset(nil)
	encoders.Put(z)
}

func appendPairs(b []byte, list []Pair) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		for _, s := range [...]string{x.Name, x.Value} {
			s = s[:min(len(s), maxText)]
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	return b
}

// saver writes the graph.
type saver struct {
	*scanner
	w     *bufio.Writer
	texts map[string]uint64
	refs  []int // of objects by their index in found
	buf   [binary.MaxVarintLen64]byte
}

// graph is
//
//	objects: count, then of each its type, its elements + 1 (0: one value), those of them that are written
//	maps: count, then of each its type and its entries
//	the values of Fixed objects, of objects, and the entries of maps
func (b *saver) graph() {
	b.refs = make([]int, len(b.found))
	n := len(b.plan.fixed)
	for i := range b.found {
		if o := &b.found[i]; o.fixed != 0 {
			b.refs[i] = o.fixed - 1
		} else {
			b.refs[i] = n
			n++
		}
	}
	b.number(uint64(n - len(b.plan.fixed)))
	for i := range b.found {
		o := &b.found[i]
		if o.fixed != 0 {
			continue
		}
		b.number(uint64(o.n.index))
		if !o.array {
			b.number(0)
			continue
		}
		b.number(uint64(o.count) + 1)
		if o.n.op == opPlain {
			b.number(uint64(o.used))
		}
	}
	b.number(uint64(len(b.list)))
	for _, m := range b.list {
		b.number(uint64(m.n.index))
		b.number(uint64(reflect.NewAt(m.n.t, m.p).Elem().Len()))
	}
	for _, x := range b.plan.fixed {
		b.value(x.p, b.plan.nodes[x.t])
	}
	for i := range b.found {
		o := &b.found[i]
		switch {
		case o.fixed != 0:
		case o.n.op == opPlain:
			b.raw(o.p, o.n.size*uintptr(o.written()))
		default:
			for k := range o.count {
				b.value(unsafe.Add(o.p, uintptr(k)*o.n.size), o.n)
			}
		}
	}
	for _, m := range b.list {
		each(m.p, m.n, func(key, value unsafe.Pointer) {
			b.value(key, m.n.key)
			b.value(value, m.n.elem)
		})
	}
}

// written is how many elements are written.
func (o *object) written() int {
	if o.array && o.n.op == opPlain {
		return o.used
	}
	return o.count
}

func (b *saver) number(n uint64) { _, _ = b.w.Write(binary.AppendUvarint(b.buf[:0], n)) }

func (b *saver) raw(p unsafe.Pointer, n uintptr) {
	if n > 0 {
		_, _ = b.w.Write(unsafe.Slice((*byte)(p), n))
	}
}

// value writes a value.
func (b *saver) value(p unsafe.Pointer, n *node) {
	switch n.op {
	case opPlain:
		b.raw(p, n.size)
	case opStruct:
		for i := range n.parts {
			f := &n.parts[i]
			if f.n != nil {
				b.value(unsafe.Add(p, f.at), f.n)
			} else {
				b.raw(unsafe.Add(p, f.at), f.size)
			}
		}
	case opArray:
		for i := range n.count {
			b.value(unsafe.Add(p, uintptr(i)*n.elem.size), n.elem)
		}
	case opString:
		b.text(*(*string)(p))
	case opPointer:
		b.pointer(*(*unsafe.Pointer)(p), 1)
	case opSlice:
		x := (*slice)(p)
		switch {
		case x.data == nil:
			b.number(0)
			return
		case x.cap == 0:
			b.number(1) // empty, but not nil
			return
		}
		b.pointer(x.data, 2)
		b.number(uint64(x.len))
		b.number(uint64(x.cap))
	case opMap:
		if id := *(*unsafe.Pointer)(p); id == nil {
			b.number(0)
		} else {
			b.number(uint64(b.maps[id]) + 1)
		}
	case opBox:
		v := reflect.NewAt(n.t, p).Elem()
		if v.IsNil() {
			b.number(0)
			return
		}
		b.number(uint64(b.plan.boxes[v.Elem().Type()]))
		if q, of := b.unbox(v); of != nil {
			b.value(q, of)
		}
	case opAddr:
		x, _ := (*netip.Addr)(p).MarshalBinary() // cannot fail
		b.number(uint64(len(x)))
		_, _ = b.w.Write(x)
	}
}

// pointer writes where a pointer leads: the object, counted from first on, and the offset in it.
func (b *saver) pointer(p unsafe.Pointer, first uint64) {
	if p == nil {
		b.number(0)
		return
	}
	i, at := b.find(p)
	b.number(uint64(b.refs[i]) + first)
	b.number(uint64(at))
}

// text writes a string, or the number that it got when it was written first.
func (b *saver) text(s string) {
	if s == "" {
		b.number(0)
		return
	}
	if n, ok := b.texts[s]; ok {
		b.number(n)
		return
	}
	b.texts[s] = uint64(len(b.texts)) + 1
	b.number(b.texts[s])
	b.number(uint64(len(s)))
	_, _ = b.w.WriteString(s)
}
