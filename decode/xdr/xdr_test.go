package xdr

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func reader(b []byte, full int) *Reader {
	var r Reader
	r.Reset(b, full)
	return &r
}

func TestScalars(t *testing.T) {
	b := []byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	r := reader(b, 0)
	if v := r.Uint32(); v != 1 {
		t.Errorf("Uint32 %d", v)
	}
	if v := r.Int32(); v != -2 {
		t.Errorf("Int32 %d", v)
	}
	if !r.Bool() {
		t.Error("Bool of 2 is false")
	}
	if v := r.Uint64(); v != 0x0102030405060708 {
		t.Errorf("Uint64 %x", v)
	}
	if v := r.Int64(); v != -1 {
		t.Errorf("Int64 %d", v)
	}
	if r.Err() != nil || r.Remaining() != 0 || r.Offset() != len(b) || r.Position() != uint32(len(b)) {
		t.Errorf("at the end: %v, %d left, offset %d, position %d", r.Err(), r.Remaining(), r.Offset(), r.Position())
	}
	var again []byte
	again = AppendUint32(again, 1)
	again = AppendUint32(again, 0xfffffffe)
	again = AppendBool(again, true)
	again = AppendUint64(again, 0x0102030405060708)
	again = AppendUint64(again, 1<<64-1)
	b[11] = 1 // a boolean is written as 1
	if !bytes.Equal(again, b) {
		t.Errorf("appended % x", again)
	}
	if b := AppendBool(nil, false); !bytes.Equal(b, []byte{0, 0, 0, 0}) {
		t.Errorf("false is % x", b)
	}
}

func TestErrors(t *testing.T) {
	long := AppendUint32(nil, 100)
	for _, c := range []struct {
		name string
		b    []byte
		full int
		read func(r *Reader)
		kind Kind
		at   int
		cut  bool
	}{
		{"uint32", []byte{0, 0, 0}, 0, func(r *Reader) { r.Uint32() }, Short, 0, false},
		{"uint32, cut", []byte{0, 0, 0}, 4, func(r *Reader) { r.Uint32() }, Short, 0, true},
		{"uint64", []byte{0, 0, 0, 0, 0, 0, 0}, 0, func(r *Reader) { r.Uint64() }, Short, 0, false},
		{"fixed", []byte{1, 2}, 0, func(r *Reader) { r.Fixed(3) }, Range, 0, false},
		{"fixed, cut", []byte{1, 2}, 3, func(r *Reader) { r.Fixed(3) }, Short, 0, true},
		{"fixed, negative", []byte{1, 2}, 3, func(r *Reader) { r.Fixed(-1) }, Range, 0, false},
		{"opaque without length", []byte{1, 2}, 0, func(r *Reader) { r.Opaque(0) }, Short, 0, false},
		{"opaque beyond the message", long, 0, func(r *Reader) { r.Opaque(0) }, Range, 0, false},
		{"opaque beyond its limit", long, 1000, func(r *Reader) { r.Opaque(99) }, Range, 0, false},
		{"opaque, cut", long, 104, func(r *Reader) { r.Opaque(100) }, Short, 4, true},
		{"data beyond the message", long, 0, func(r *Reader) { r.Data(0) }, Range, 0, false},
		{"data beyond its limit", long, 1000, func(r *Reader) { r.Data(99) }, Range, 0, false},
		{"data, cut", long, 104, func(r *Reader) { r.Data(0) }, Short, 4, true},
		{"count beyond the message", long, 0, func(r *Reader) { r.Count(0, 4) }, Range, 0, false},
		{"count beyond its limit", long, 1000, func(r *Reader) { r.Count(99, 1) }, Range, 0, false},
		{"count of nothing", AppendUint32(nil, 1<<31), 0, func(r *Reader) { r.Count(0, 0) }, Range, 0, false},
		{"skip", []byte{1}, 0, func(r *Reader) { r.Skip(2) }, Short, 0, false},
		{"skip back", []byte{1}, 0, func(r *Reader) { r.Skip(-1) }, Short, 0, false},
		{"more", nil, 4, func(r *Reader) { r.More() }, Short, 0, true},
		{"fail", nil, 0, func(r *Reader) { r.Fail(Value, "") }, Value, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reader(c.b, c.full)
			c.read(r)
			r.Field("inner")
			r.Field("outer")
			r.Fail(Value, "later")
			var e *Error
			if !errors.As(r.Err(), &e) {
				t.Fatalf("error %v", r.Err())
			}
			if *e != (Error{c.kind, c.at, "inner"}) {
				t.Errorf("error %+v", *e)
			}
			if r.Cut() != c.cut {
				t.Errorf("cut %t", r.Cut())
			}
			if !strings.Contains(e.Error(), "inner") || !strings.Contains(e.Error(), c.kind.String()) {
				t.Errorf("text %q", e.Error())
			}
			// Everything else returns zero and leaves the error alone.
			if r.Uint32() != 0 || r.Uint64() != 0 || r.Bool() || r.Fixed(0) != nil || r.Opaque(0) != nil ||
				r.Count(0, 1) != 0 || r.Remaining() != 0 || r.Rest() != nil || r.More() || r.Take(0) != nil {
				t.Error("a read after an error returned something")
			}
			if d := r.Data(0); d.Length != 0 || d.Inline != nil || d.Chunk != 0 {
				t.Errorf("data after an error: %+v", d)
			}
			dst := []byte{1, 2}
			r.Copy(dst)
			if !bytes.Equal(dst, []byte{0, 0}) {
				t.Errorf("copied % x after an error", dst)
			}
			r.Skip(0)
			if *e != (Error{c.kind, c.at, "inner"}) || !r.Failed() {
				t.Errorf("error has become %+v", *e)
			}
		})
	}
	if Kind(200).String() == "" {
		t.Error("no text for an unknown kind")
	}
}

func TestOpaque(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		left           int
	}{
		{"empty", "\x00\x00\x00\x00", "", 0},
		{"padded", "\x00\x00\x00\x01a\x00\x00\x00rest", "a", 4},
		{"whole", "\x00\x00\x00\x04abcdrest", "abcd", 4},
		{"last without padding", "\x00\x00\x00\x02ab", "ab", 0},
		{"last with some padding", "\x00\x00\x00\x01a\x00", "a", 0},
	} {
		r := reader([]byte(c.in), 0)
		v := r.Opaque(4)
		if string(v) != c.want || r.Err() != nil || r.Remaining() != c.left {
			t.Errorf("%s: %q, %v, %d left", c.name, v, r.Err(), r.Remaining())
		}
		if cap(v) != len(v) {
			t.Errorf("%s: capacity %d", c.name, cap(v))
		}
		if b := AppendOpaque(nil, v); len(b) != SizeOpaque(len(v)) || len(b)%4 != 0 {
			t.Errorf("%s: appended %d bytes, size %d", c.name, len(b), SizeOpaque(len(v)))
		}
	}
	var a [3]byte
	r := reader([]byte("abc\x00x"), 0)
	if r.Copy(a[:]); string(a[:]) != "abc" || r.Remaining() != 1 {
		t.Errorf("copied %q, %d left", a, r.Remaining())
	}
	r = reader([]byte("abcdefgh"), 0)
	if b := r.Take(12); b != nil || r.Err() != nil {
		t.Errorf("took %q, %v", b, r.Err())
	}
	if b := r.Take(8); string(b) != "abcdefgh" || r.Remaining() != 0 {
		t.Errorf("took %q, %d left", b, r.Remaining())
	}
}

// A capture that cut an array still yields the elements that it has.
func TestCountCut(t *testing.T) {
	b := AppendUint32(nil, 10)
	for i := range uint32(3) {
		b = AppendUint32(b, i)
	}
	r := reader(b, 44)
	n := 0
	for i := r.Count(0, 4); i > 0 && r.More(); i-- {
		r.Uint32()
		n++
	}
	if n != 3 || !r.Cut() {
		t.Errorf("%d elements, %v", n, r.Err())
	}
}

func TestDataCut(t *testing.T) {
	r := reader(append(AppendUint32(nil, 100), "some"...), 104)
	d := r.Data(0)
	if d.Length != 100 || string(d.Inline) != "some" || !r.Cut() || r.Remaining() != 0 {
		t.Errorf("%+v, %v", d, r.Err())
	}
}

// The bytes after the RPC header alone, of a call whose positions count it.
func TestStartAt(t *testing.T) {
	r := reader(AppendUint32(AppendUint32(nil, 7), 5), 0)
	r.StartAt(68)
	r.ReduceCall([]Reduced{{Position: 76, Length: 5}})
	if r.Uint32(); r.Position() != 72 || r.Offset() != 4 {
		t.Errorf("position %d, offset %d", r.Position(), r.Offset())
	}
	if d := r.Data(0); d.Chunk != 1 || r.Err() != nil {
		t.Errorf("%+v, %v", d, r.Err())
	}
}

// Positions count the bytes that are elsewhere (RFC 8166, section 3.4.4).
func TestReduceCall(t *testing.T) {
	b := AppendUint32(nil, 7)
	b = AppendUint32(b, 5) // at 8, reduced: 5 bytes and 3 of padding
	b = AppendUint32(b, 8)
	b = AppendUint32(b, 2) // at 24, reduced
	b = AppendOpaque(b, []byte("xyz"))
	r := reader(b, 0)
	r.ReduceCall([]Reduced{{Position: 8, Length: 5}, {Position: 24, Length: 4}})
	r.Uint32()
	if d := r.Data(0); d.Length != 5 || d.Chunk != 1 || d.Inline != nil {
		t.Errorf("first: %+v", d)
	}
	if p := r.Position(); p != 16 {
		t.Errorf("position %d after the first", p)
	}
	r.Uint32()
	if d := r.Data(0); d.Length != 2 || d.Chunk != 2 {
		t.Errorf("second: %+v", d)
	}
	if d := r.Data(0); string(d.Inline) != "xyz" || d.Chunk != 0 || r.Err() != nil {
		t.Errorf("third: %+v, %v", d, r.Err())
	}
}

func TestReduceReply(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunks []uint32
		in     []byte
		want   []Data
		kind   Kind
	}{
		{"one", []uint32{5}, AppendUint32(nil, 5), []Data{{Length: 5, Chunk: 1}}, None},
		{"empty item, empty chunk", []uint32{0}, AppendUint32(nil, 0), []Data{{Chunk: 1}}, None},
		{"read less than offered", []uint32{5}, AppendUint32(nil, 3), []Data{{Length: 3, Chunk: 1}}, None},
		{"more than the chunk holds", []uint32{5}, AppendUint32(nil, 6), []Data{{}}, Range},
		{"unused chunk, then a used one", []uint32{0, 9}, AppendUint32(AppendOpaque(nil, []byte("in")), 9),
			[]Data{{Length: 2, Inline: []byte("in")}, {Length: 9, Chunk: 2}}, None},
		{"more items than chunks", []uint32{1}, AppendOpaque(AppendUint32(nil, 1), []byte("in")),
			[]Data{{Length: 1, Chunk: 1}, {Length: 2, Inline: []byte("in")}}, None},
		{"item beyond its limit", []uint32{2000}, AppendUint32(nil, 2000), []Data{{}}, Range},
	} {
		t.Run(c.name, func(t *testing.T) {
			var chunks []Reduced
			for _, n := range c.chunks {
				chunks = append(chunks, Reduced{Length: n})
			}
			r := reader(c.in, 0)
			r.ReduceReply(chunks)
			for i, want := range c.want {
				d := r.Data(1000)
				if d.Length != want.Length || d.Chunk != want.Chunk || !bytes.Equal(d.Inline, want.Inline) {
					t.Errorf("item %d: %+v, want %+v", i, d, want)
				}
			}
			kind := None
			if e, ok := r.Err().(*Error); ok {
				kind = e.Kind
			}
			if kind != c.kind {
				t.Errorf("error %v", r.Err())
			}
			if c.kind == None {
				var again []byte
				for _, d := range c.want {
					n := len(again)
					again = AppendData(again, d)
					if len(again)-n != SizeData(d) {
						t.Errorf("size %d, appended %d", SizeData(d), len(again)-n)
					}
				}
				if !bytes.Equal(again, c.in) {
					t.Errorf("appended % x", again)
				}
			}
		})
	}
}

func TestReuse(t *testing.T) {
	type item struct{ inner []int }
	s := Extend[item](nil)
	s[0].inner = []int{1, 2, 3}
	s = Extend(Reuse(s))
	if len(s) != 1 || len(s[0].inner) != 3 {
		t.Errorf("memory was not reused: %+v", s)
	}
	big := make([]uint64, 0, keepBytes/8)
	if cap(Reuse(big)) == 0 {
		t.Error("a slice at the limit was dropped")
	}
	big = make([]uint64, 0, keepBytes/8+1)
	if Reuse(big) != nil {
		t.Error("a slice above the limit was kept")
	}
}

func TestFlagNames(t *testing.T) {
	flags := []Flag{{0, "NONE"}, {1, "A"}, {2, "B"}, {6, "BC"}, {1 << 40, "D"}}
	for v, want := range map[uint64]string{0: "", 8: "", 1: "A", 3: "A|B", 4: "", 6: "B|BC", 1<<40 | 1: "A|D"} {
		if got := FlagNames(v, flags); got != want {
			t.Errorf("%#x: %q, want %q", v, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { FlagNames(1, flags) }); n != 0 {
		t.Errorf("%v allocations for one name", n)
	}
	if n := testing.AllocsPerRun(100, func() { FlagNames(3, flags) }); n != 0 {
		t.Errorf("%v allocations for names that were joined before", n)
	}
	if got := FlagNames(3, flags[2:]); got != "B" {
		t.Errorf("other flags: %q", got)
	}
}

func TestHelpers(t *testing.T) {
	if EnumString(3, "") != "3" || EnumString(3, "THREE") != "THREE" {
		t.Error("EnumString")
	}
	if Micros(1500) != 1500000 || Micros(1<<32-1) != 4294967000 {
		t.Error("Micros")
	}
	p := Program{Procedures: []Procedure{{Name: "NULL"}, {}, {Name: "TWO", Number: 2}}}
	if p.Procedure(0).Name != "NULL" || p.Procedure(1) != nil || p.Procedure(2).Name != "TWO" || p.Procedure(3) != nil || p.Procedure(1<<31) != nil {
		t.Error("Program.Procedure")
	}
	if (*Program)(nil).Procedure(0) != nil {
		t.Error("procedure of no program")
	}
	v := NewVoid()
	v.Decode(nil)
	v.Walk(nil)
	if v.EncodedSize() != 0 || len(v.Append(nil)) != 0 {
		t.Error("Void is not empty")
	}
	if x := 3; *Or(&x) != 3 || *Or[int](nil) != 0 {
		t.Error("Or")
	}
}

// drive reads a message as a script says, and returns how much was given out.
func drive(r *Reader, script []byte) int {
	total := 0
	var fixed [8]byte
	for _, op := range script {
		switch n := int(op >> 4); op & 15 {
		case 0:
			r.Uint32()
		case 1:
			r.Uint64()
		case 2:
			total += len(r.Opaque(0))
		case 3:
			total += len(r.Opaque(uint32(n)))
		case 4:
			total += len(r.Fixed(n))
		case 5:
			total += len(r.Data(0).Inline)
		case 6:
			n = max(n, 1) // there are no elements without a byte
			for i := r.Count(0, n); i > 0 && r.More(); i-- {
				r.Skip(n)
				total++
			}
		case 7:
			r.Copy(fixed[:n&7])
		case 8:
			total += len(r.Take(n * 4))
		case 9:
			r.Skip(n - 1)
		}
	}
	return total
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x05hello\x00\x00\x00\x00\x00\x00\x02"), []byte{2, 0}, uint16(0), uint32(0), uint32(0))
	f.Add([]byte("\x00\x00\x00\x05\x00\x00\x00\x07"), []byte{5, 0}, uint16(4), uint32(4), uint32(5))
	f.Add([]byte("\x00\x00\x00\x64\x00\x00\x00\x07"), []byte{0x46, 0}, uint16(400), uint32(1), uint32(1))
	f.Fuzz(func(t *testing.T, b, script []byte, missing uint16, position, length uint32) {
		chunks := []Reduced{{position, length}, {position + 8, length}}
		for _, reduce := range []func(*Reader){
			func(*Reader) {},
			func(r *Reader) { r.ReduceCall(chunks) },
			func(r *Reader) { r.ReduceReply(chunks) },
		} {
			var r Reader
			r.Reset(b, len(b)+int(missing))
			reduce(&r)
			if n := drive(&r, script); n > len(b) {
				t.Fatalf("%d bytes and elements out of %d bytes", n, len(b))
			}
			if r.Offset() < 0 || r.Offset() > len(b) || r.Remaining() > len(b) {
				t.Fatalf("offset %d of %d", r.Offset(), len(b))
			}
			if r.Cut() && missing == 0 {
				t.Fatal("cut, but nothing is missing")
			}
		}
	})
}

func TestReaderAllocs(t *testing.T) {
	b := AppendOpaque(AppendUint64(AppendUint32(nil, 1), 2), []byte("abc"))
	chunks := []Reduced{{Position: 4, Length: 1}}
	var r Reader
	if n := testing.AllocsPerRun(100, func() {
		r.Reset(b, 0)
		r.ReduceCall(chunks)
		r.Uint32()
		r.Uint64()
		r.Opaque(0)
		r.Data(0) // an error
		r.Field("x")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		AppendData(AppendOpaque(AppendUint32(buf, 1), b), Data{Length: 3, Inline: b[:3]})
	}); n != 0 {
		t.Errorf("%v allocations appending", n)
	}
}

func BenchmarkReader(b *testing.B) {
	m := AppendOpaque(AppendUint64(AppendUint32(nil, 1), 2), []byte("abc"))
	var r Reader
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(m, 0)
		r.Uint32()
		r.Uint64()
		r.Opaque(255)
	}
}

// TestResetForgetsErrors: what was wrong with one message is not said of the next.
func TestResetForgetsErrors(t *testing.T) {
	var r Reader
	r.Reset([]byte{0, 0, 0, 1}, 4)
	r.Fail(Value, "discriminant")
	if r.Bool() || r.Offset() != 0 || r.Remaining() != 0 {
		t.Fatal("a read after an error")
	}
	r.Reset([]byte{0, 0, 0, 1, 0, 0}, 8)
	if r.Uint32() != 1 || r.Failed() || r.Err() != nil {
		t.Fatal(r.Err())
	}
	r.Uint32()
	r.Field("count")
	if err := r.Err().(*Error); *err != (Error{Kind: Short, Offset: 4, Field: "count"}) || !r.Cut() {
		t.Fatal(err)
	}
}
