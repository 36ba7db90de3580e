// Package xdrtest checks generated codecs: what is encoded decodes to the same,
// memory of earlier messages does not show through, and no input does harm.
package xdrtest

import (
	"bytes"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Recorder is a Visitor that writes what it is told as text, one item a line.
type Recorder struct {
	strings.Builder
	depth int
}

func (r *Recorder) line(format string, args ...any) {
	fmt.Fprintf(r, "%*s"+format+"\n", append([]any{2 * r.depth, ""}, args...)...)
}

// Begin implements xdr.Visitor.
func (r *Recorder) Begin(name, typ string, index int) {
	if index >= 0 {
		name = fmt.Sprintf("%s[%d]", name, index)
	}
	r.line("%s %s", name, typ)
	r.depth++
}

// End implements xdr.Visitor.
func (r *Recorder) End() { r.depth-- }

// Uint implements xdr.Visitor.
func (r *Recorder) Uint(name string, v uint64) { r.line("%s=%d", name, v) }

// Int implements xdr.Visitor.
func (r *Recorder) Int(name string, v int64) { r.line("%s=%d", name, v) }

// Bool implements xdr.Visitor.
func (r *Recorder) Bool(name string, v bool) { r.line("%s=%t", name, v) }

// Enum implements xdr.Visitor.
func (r *Recorder) Enum(name string, v uint32, symbol string) { r.line("%s=%s(%d)", name, symbol, v) }

// Flags implements xdr.Visitor.
func (r *Recorder) Flags(name string, v uint64, symbols string) {
	r.line("%s=%#x(%s)", name, v, symbols)
}

// Bytes implements xdr.Visitor.
func (r *Recorder) Bytes(name string, v []byte) { r.line("%s=%x", name, v) }

// String implements xdr.Visitor. (It hides the method of the Builder; use Text.)
func (r *Recorder) String(name string, v []byte) { r.line("%s=%q", name, v) }

// Data implements xdr.Visitor.
func (r *Recorder) Data(name string, d xdr.Data) {
	r.line("%s=%d bytes, chunk %d, %q", name, d.Length, d.Chunk, d.Inline)
}

// Time implements xdr.Visitor.
func (r *Recorder) Time(name string, sec int64, nsec uint32) { r.line("%s=%d.%09d", name, sec, nsec) }

// Text is what has been recorded.
func (r *Recorder) Text() string { return r.Builder.String() }

// Walk returns what a message shows to a Visitor.
func Walk(m xdr.Message) string {
	var r Recorder
	m.Walk(&r)
	if r.depth != 0 {
		return fmt.Sprintf("Begin and End do not match: %d", r.depth)
	}
	return r.Text()
}

// symbols finds values that an enumeration defines.
var symbolCache = map[reflect.Type][]uint32{}

func symbols(t reflect.Type) []uint32 {
	known, ok := symbolCache[t]
	if ok {
		return known
	}
	for _, span := range [][2]uint32{{0, 1100}, {10000, 10200}, {390000, 390010}} {
		for n := span[0]; n < span[1]; n++ {
			v := reflect.New(t).Elem()
			v.SetUint(uint64(n))
			if v.Interface().(symboler).Symbol() != "" {
				known = append(known, n)
			}
		}
	}
	symbolCache[t] = known
	return known
}

type symboler interface{ Symbol() string }

var (
	symbolType = reflect.TypeFor[symboler]()
	dataType   = reflect.TypeFor[xdr.Data]()
)

// Fill sets everything in a message, which is given by a pointer, to random
// values: arms of unions too that are not active.
func Fill(rnd *rand.Rand, m any) { fill(rnd, reflect.ValueOf(m).Elem()) }

func randomBytes(rnd *rand.Rand) []byte {
	b := make([]byte, rnd.Intn(14))
	rnd.Read(b)
	return b
}

func fill(rnd *rand.Rand, v reflect.Value) {
	t := v.Type()
	if t == dataType {
		b := randomBytes(rnd)
		v.Set(reflect.ValueOf(xdr.Data{Length: uint32(len(b)), Inline: b}))
		return
	}
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		n := rnd.Uint64() >> rnd.Intn(64)
		if t.Implements(symbolType) && rnd.Intn(16) != 0 {
			if s := symbols(t); len(s) > 0 {
				n = uint64(s[rnd.Intn(len(s))])
			}
		}
		v.SetUint(n & (1<<t.Bits() - 1))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(rnd.Uint64()) >> (64 - t.Bits()))
	case reflect.Bool:
		v.SetBool(rnd.Intn(2) == 1)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			v.SetBytes(randomBytes(rnd))
			return
		}
		n := rnd.Intn(4)
		v.Set(reflect.MakeSlice(t, n, n))
		for i := range n {
			fill(rnd, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(rnd, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rnd, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		fill(rnd, v.Elem())
	default:
		panic("xdrtest: cannot fill " + t.String())
	}
}

// Constructor makes an empty message; Name is for reports.
type Constructor struct {
	Name string
	New  func() xdr.Message
	// Fix, if set, makes a message valid that has random content.
	Fix func(rnd *rand.Rand, m xdr.Message)
}

// Messages lists the arguments and results of all procedures, except empty ones.
func Messages(programs []xdr.Program) []Constructor {
	var all []Constructor
	for _, p := range programs {
		for _, proc := range p.Procedures {
			if proc.Name == "" {
				continue
			}
			for i, n := range []func() xdr.Message{proc.NewArgs, proc.NewResult} {
				if n() == (xdr.Void{}) {
					continue
				}
				name := fmt.Sprintf("%s/%d/%s/%s", p.Name, p.Version, proc.Name, [...]string{"args", "result"}[i])
				all = append(all, Constructor{Name: name, New: n})
			}
		}
	}
	return all
}

func decode(m xdr.Message, b []byte, full int) *xdr.Reader {
	var r xdr.Reader
	r.Reset(b, full)
	m.Decode(&r)
	return &r
}

// Identity encodes and decodes random messages of every kind.
func Identity(t *testing.T, all []Constructor) {
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			rnd := rand.New(rand.NewSource(1))
			reused := c.New()
			decoded := 0
			for range 200 {
				m := c.New()
				Fill(rnd, m)
				if c.Fix != nil {
					c.Fix(rnd, m)
				}
				if check(t, rnd, c, m, reused) {
					decoded++
				}
				if t.Failed() {
					return
				}
			}
			if decoded < 20 {
				t.Errorf("only %d of 200 random messages could be decoded", decoded)
			}
		})
	}
}

// check does all checks with one message. reused is one that has held others.
func check(t *testing.T, rnd *rand.Rand, c Constructor, m, reused xdr.Message) bool {
	want := m.Append(nil)
	if n := m.EncodedSize(); n != len(want) {
		t.Errorf("EncodedSize %d, encoded %d bytes", n, len(want))
	}
	if got := m.Append([]byte("x")); got[0] != 'x' || !bytes.Equal(got[1:], want) {
		t.Error("Append does not append")
	}
	fresh := c.New()
	r := decode(fresh, want, 0)
	if e, ok := r.Err().(*xdr.Error); ok {
		if e.Kind == xdr.Value {
			return false // a random discriminant without a case
		}
		t.Fatalf("decode of what was encoded: %v\n% x", e, want)
	}
	if n := r.Remaining(); n != 0 {
		t.Errorf("%d bytes left over", n)
	}
	if got := fresh.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("encoded again:\n% x\nwant\n% x", got, want)
	}
	if got, want := Walk(fresh), Walk(m); got != want {
		t.Errorf("decoded message shows\n%swant\n%s", got, want)
	}
	SkipsAsDecoded(t, c.New, want, nil)
	SkipsAsDecoded(t, c.New, want[:rnd.Intn(len(want)+1)], nil)
	Redacts(t, c.New, want, 0)
	Redacts(t, c.New, want[:rnd.Intn(len(want)+1)], len(want))
	decode(reused, want, 0)
	if got, want := Walk(reused), Walk(fresh); got != want {
		t.Errorf("reused message shows\n%swant\n%s", got, want)
	}
	if len(want) == 0 {
		return true
	}
	// A capture that holds less than was sent, and a message that was sent short.
	for _, full := range []int{len(want), 0} {
		short := want[:rnd.Intn(len(want))]
		cut := c.New()
		r := decode(cut, short, full)
		if r.Err() == nil && len(want)-len(short) > 3 {
			t.Errorf("no error in %d bytes of %d", len(short), len(want))
		}
		if r.Err() != nil && full != 0 && !r.Cut() {
			t.Errorf("%d bytes of %d: %v, want it to count as cut", len(short), len(want), r.Err())
		}
		if e, ok := r.Err().(*xdr.Error); ok && e.Field == "" {
			t.Errorf("error without a field: %v", e)
		}
		decode(reused, short, full)
		if got, want := Walk(reused), Walk(cut); got != want {
			t.Errorf("reused message, cut, shows\n%swant\n%s", got, want)
		}
	}
	return true
}

// Fuzz decodes arbitrary bytes as any of the messages. The seeds are real
// messages, by name; each kind gets a random one besides.
func Fuzz(f *testing.F, all []Constructor, seeds map[string][]byte) {
	rnd := rand.New(rand.NewSource(1))
	for i, c := range all {
		m := c.New()
		Fill(rnd, m)
		if c.Fix != nil {
			c.Fix(rnd, m)
		}
		f.Add(uint16(i), uint16(0), m.Append(nil))
		if b, ok := seeds[c.Name]; ok {
			f.Add(uint16(i), uint16(0), b)
		}
	}
	f.Fuzz(func(t *testing.T, which, missing uint16, b []byte) {
		c := all[int(which)%len(all)]
		SkipsAsDecoded(t, c.New, b, nil)
		SkipsAsDecoded(t, c.New, b, []xdr.Reduced{{Position: uint32(missing), Length: uint32(missing)}})
		RedactsAsDecoded(t, c.New, b, len(b)+int(missing))
		m := c.New()
		r := decode(m, b, len(b)+int(missing))
		Walk(m)
		if r.Err() != nil {
			return
		}
		if s, ok := m.(xdr.Status); ok {
			s.StatusCode()
		}
		once := m.Append(nil)
		if n := m.EncodedSize(); n != len(once) {
			t.Fatalf("EncodedSize %d, encoded %d bytes", n, len(once))
		}
		again := c.New()
		if err := decode(again, once, 0).Err(); err != nil {
			t.Fatalf("decode of what was encoded: %v", err)
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Fatalf("encoding is not stable:\n% x\n% x", once, twice)
		}
	})
}

// NoAllocs fails if decoding b into a message that has held it before
// allocates memory.
func NoAllocs(t *testing.T, m xdr.Message, b []byte) {
	t.Helper()
	var r xdr.Reader
	run := func() {
		r.Reset(b, 0)
		m.Decode(&r)
	}
	run()
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	// The least of some runs: the runtime may allocate on its own account.
	least := testing.AllocsPerRun(100, run)
	for i := 0; least > 0 && i < 3; i++ {
		least = min(least, testing.AllocsPerRun(100, run))
	}
	if least > 0 {
		t.Errorf("%T: %v allocations", m, least)
	}
}

// Find returns the constructor of that name.
func Find(t testing.TB, all []Constructor, name string) Constructor {
	t.Helper()
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no message %s", name)
	return Constructor{}
}
