package state

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

func units(n int) []*Unit {
	var out []*Unit
	for i := range n {
		in := Input{Damaged: i%2 == 1}
		out = append(out, NewUnit(Section{"report", 3, fmt.Appendf(nil, "body %d", i)}, in.Section()))
	}
	return out
}

// TestMerge: the order in which units are merged makes no difference, nor do repetitions.
func TestMerge(t *testing.T) {
	list := units(20)
	var want File
	want.Add(list...)
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		files := make([]*File, 1+random.IntN(5))
		for i := range files {
			files[i] = &File{}
		}
		for _, i := range random.Perm(len(list)) {
			files[random.IntN(len(files))].Add(list[i])
			files[random.IntN(len(files))].Add(list[i])
		}
		files[0].Merge(files[1:]...)
		if !bytes.Equal(files[0].Append(nil), want.Append(nil)) {
			t.Fatal("the files differ")
		}
	}
}

func TestFile(t *testing.T) {
	var f File
	f.Add(units(3)...)
	b := f.Append(nil)
	whole := int64(0)
	for _, u := range f.Units() {
		whole += int64(u.Size())
	}
	got, err := Read(bytes.NewReader(b), whole)
	if err != nil || !bytes.Equal(got.Append(nil), b) || len(got.Units()) != 3 {
		t.Fatal(got, err)
	}
	damaged := 0
	for _, u := range got.Units() {
		if s := u.Section("report"); s == nil || s.Version != 3 || !strings.HasPrefix(string(s.Body), "body ") {
			t.Errorf("%+v", s)
		}
		if u.Section("check") != nil {
			t.Error("a section from nowhere")
		}
		if u.Input().Damaged {
			damaged++
		}
	}
	if damaged != 1 {
		t.Errorf("%d inputs are damaged", damaged)
	}
	if !NewUnit().Input().Damaged {
		t.Error("nothing is known of an input, and it is whole")
	}
	// Any damage is found, and any cut.
	for i := range b {
		if _, err := Decode(b[:i], 1<<20); err == nil {
			t.Fatalf("cut to %d bytes", i)
		}
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if _, err := Decode(bad, 1<<20); err == nil {
			t.Fatalf("byte %d changed", i)
		}
	}
	for _, x := range []struct {
		b    string
		want error
	}{
		{"", ErrDamaged},
		{"\xd4\xc3\xb2\xa1 is a pcap, of some length", ErrFormat},
		{string(b[:20]), ErrDamaged},
		{Magic + "\x01" + strings.Repeat("x", 100), ErrVersion},
	} {
		if _, err := Decode([]byte(x.b), 1<<20); !errors.Is(err, x.want) {
			t.Errorf("%q: %v", x.b[:min(len(x.b), 12)], err)
		}
	}
	if _, err := Read(bytes.NewReader(b), whole-1); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
}

// framed is a file of units as they are: of each its size, and its frame.
func framed(units ...[2]any) []byte {
	c := NewWriter(append([]byte(Magic), version))
	n := len(units)
	Number(c, &n)
	for _, u := range units {
		size, frame := u[0].(int), u[1].([]byte)
		Number(c, &size)
		c.Blob(&frame, len(frame))
	}
	sum := sha256.Sum256(c.b)
	return append(c.b, sum[:]...)
}

// TestCompressed: what repeats takes little space; equal contents have equal bytes, whatever was compressed before; and
// the name is of the contents.
func TestCompressed(t *testing.T) {
	body := bytes.Repeat([]byte("a finding like the one before it; "), 50_000)
	u := NewUnit(Section{"check", 1, body})
	var one, two File
	one.Add(u)
	two.Add(append(units(3), u)...)
	a := one.Append(nil)
	if len(a) > len(body)/100 {
		t.Errorf("%d bytes of %d", len(a), len(body))
	}
	if frame := a[len(Magic)+1+1 : len(a)-sha256.Size]; !bytes.Contains(two.Append(nil), frame) || !bytes.Equal(one.Append(nil), a) {
		t.Error("a unit has other bytes in another file")
	}
	got, err := Decode(a, int64(u.Size()))
	if err != nil || got.Units()[0].Name() != u.Name() || !bytes.Equal(got.Units()[0].Section("check").Body, body) {
		t.Error("it changes", err)
	}
	// What cannot be compressed is read, too.
	noise := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	u = NewUnit(Section{"check", 1, noise})
	one = File{}
	one.Add(u)
	if got, err := Decode(one.Append(nil), int64(u.Size())); err != nil || got.Units()[0].Name() != u.Name() {
		t.Error(err)
	}
}

// TestBomb: what decompresses to more than it promises, or than is allowed, takes no memory.
func TestBomb(t *testing.T) {
	p := newPacker()
	zeros := func(n int) []byte { return p.z.EncodeAll(make([]byte, n), nil) }
	large, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(32<<20))
	if err != nil {
		t.Fatal(err)
	}
	wide := large.EncodeAll(make([]byte, 40<<20), nil)
	good := zeros(1)
	for _, x := range []struct {
		name string
		b    []byte
		want error
	}{
		{"more than is allowed", framed([2]any{1 << 30, zeros(1 << 20)}), ErrSize},
		{"more than all that is allowed", framed([2]any{900 << 10, zeros(900 << 10)}, [2]any{200 << 10, zeros(200 << 10)}), ErrDamaged}, // zeros are no unit
		{"more than it promises", framed([2]any{1000, zeros(20 << 20)}), ErrDamaged},
		{"less than it promises", framed([2]any{1 << 20, good}), ErrDamaged},
		{"a wide window", framed([2]any{1 << 20, wide}), ErrDamaged},
		{"a long frame", framed([2]any{1, bytes.Repeat(good, 1000)}), ErrDamaged},
		{"several frames", framed([2]any{1, append(bytes.Clone(good), good...)}), ErrDamaged},
		{"no frame", framed([2]any{5, []byte("hello")}), ErrDamaged},
		{"nothing", framed([2]any{0, []byte{}}), ErrDamaged},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(x.b, 1<<20)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d bytes allocated", x.name, n)
		}
		if !errors.Is(err, x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	// The limit is of all units together.
	var f File
	var whole int64
	for i := range 3 {
		u := NewUnit(Section{"x", 1, bytes.Repeat([]byte{byte(i)}, 400<<10)})
		whole += int64(u.Size())
		f.Add(u)
	}
	for most, want := range map[int64]error{1 << 20: ErrSize, whole: nil} {
		if _, err := Decode(f.Append(nil), most); !errors.Is(err, want) {
			t.Errorf("%d: %v", most, err)
		}
	}
}

func TestCoder(t *testing.T) {
	c := NewWriter(nil)
	type all struct {
		a uint8
		b uint32
		c int64
		d float64
		e string
		f netip.Addr
		g []uint16
	}
	in := all{200, 1 << 31, -5, 1.5, "é", netip.MustParseAddr("fe80::1%eth0"), []uint16{1, 2, 65535}}
	code := func(c *Coder, x *all) {
		Number(c, &x.a)
		Number(c, &x.b)
		Signed(c, &x.c)
		c.Float(&x.d)
		c.Text(&x.e, 4)
		c.Address(&x.f)
		List(c, &x.g, 3, func(v *uint16) { Number(c, v) })
	}
	code(c, &in)
	r, out := NewReader(c.Bytes()), all{}
	code(r, &out)
	if err := r.End(); err != nil || fmt.Sprint(out) != fmt.Sprint(in) {
		t.Fatal(out, err)
	}
	for i := range c.Bytes() {
		r, out := NewReader(c.Bytes()[:i]), all{}
		if code(r, &out); r.End() == nil {
			t.Errorf("%d bytes are enough", i)
		}
	}
	for _, x := range []struct {
		name string
		b    string
		code func(*Coder)
	}{
		{"number too large", "\xff\x02", func(c *Coder) { var v uint8; Number(c, &v) }},
		{"negative int", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", func(c *Coder) { var v int; Number(c, &v) }},
		{"signed too large", "\xff\xff\xff\xff\x7f", func(c *Coder) { var v int32; Signed(c, &v) }},
		{"not the shortest", "\x81\x00", func(c *Coder) { var v uint64; Number(c, &v) }},
		{"of too many bits", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", func(c *Coder) { var v uint64; Number(c, &v) }},
		{"no flag", "\x02", func(c *Coder) { var v bool; c.Flag(&v) }},
		{"not a number", "\x00\x00\x00\x00\x00\x00\xf8\x7f", func(c *Coder) { var v float64; c.Float(&v) }},
		{"below zero", "\x00\x00\x00\x00\x00\x00\xf0\xbf", func(c *Coder) { var v float64; c.Float(&v) }},
		{"text too long", "\x05abcde", func(c *Coder) { var v string; c.Text(&v, 4) }},
		{"list too long", "\x05abcde", func(c *Coder) { var v []uint8; List(c, &v, 4, func(x *uint8) { Number(c, x) }) }},
		{"list of nothing", "\xff\xff\xff\x7f", func(c *Coder) { var v []uint8; List(c, &v, 1<<30, func(x *uint8) { Number(c, x) }) }},
		{"no address", "\x03abc", func(c *Coder) { var v netip.Addr; c.Address(&v) }},
		{"more", "\x00\x00", func(c *Coder) { var v uint8; Number(c, &v) }},
	} {
		c := NewReader([]byte(x.b))
		if x.code(c); c.End() == nil {
			t.Errorf("%s: no error", x.name)
		}
	}
}

func connection(port uint16, first, last int64, xids ...uint32) *Seen {
	c := rdma.Connection{
		Fabric: rdma.TCP, First: rdma.Ref{Time: first}, Last: rdma.Ref{Time: last},
		Ends: [2]rdma.End{{Addr: netip.MustParseAddr("192.0.2.2"), Port: port}, {Addr: netip.MustParseAddr("192.0.2.1"), Port: 2049}},
	}
	var calls Calls
	for _, x := range xids {
		calls.Add(false, x)
	}
	s := NewSeen(&c, calls)
	return &s
}

func TestGroups(t *testing.T) {
	const minute = int64(60e9)
	list := []*Seen{
		connection(700, 0, minute, 1, 2, 3),            // 0: seen by two
		connection(700, 5, minute+5, 2, 3, 4),          // 1
		connection(701, 0, minute, 1, 2, 3),            // 2: another port
		connection(700, 30*minute, 31*minute, 1, 2, 3), // 3: the same numbers, much later
		connection(700, minute, 2*minute, 50, 60),      // 4: the same port, soon after
		connection(702, 0, minute),                     // 5: no call, at the same time
		connection(702, 10, minute),                    // 6
		connection(702, 2*minute, 3*minute),            // 7: no call, later
		connection(703, 0, minute, 1),                  // 8: 9 has calls in common with both
		connection(703, 0, minute, 1, 2),               // 9
		connection(703, 0, minute, 2),                  // 10
	}
	normal := func(groups [][]int, names []int) string {
		for _, g := range groups {
			for i := range g {
				g[i] = names[g[i]]
			}
			slices.Sort(g)
		}
		slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
		return fmt.Sprint(groups)
	}
	const want = "[[0 1] [2] [3] [4] [5 6] [7] [8 9 10]]"
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		names := random.Perm(len(list))
		mixed := make([]*Seen, len(list))
		for i, n := range names {
			mixed[i] = list[n]
		}
		if got := normal(Groups(mixed), names); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// TestCalls: what is remembered of calls depends on neither their order nor how they were divided.
func TestCalls(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var all Calls
	for i := range 1000 {
		all.Add(i%7 == 0, uint32(i))
	}
	var parts [3]Calls
	for _, i := range random.Perm(1000) {
		parts[random.IntN(3)].Add(i%7 == 0, uint32(i))
		parts[random.IntN(3)].Add(i%7 == 0, uint32(i))
	}
	parts[1].Merge(&parts[2])
	parts[0].Merge(&parts[1])
	if !slices.Equal(parts[0].least, all.least) || len(all.least) != sketch {
		t.Error("the memories differ")
	}
	if !all.share(&parts[0]) || all.share(&Calls{}) || !all.Any() {
		t.Error("share")
	}
	i := uint32(0)
	if n := testing.AllocsPerRun(1000, func() { all.Add(false, i); i++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestGroupsCost: a list of connections that all have the same ends at the same time takes no quadratic time. It is
// bounded by comparisons, not by the clock.
func TestGroupsCost(t *testing.T) {
	var list []*Seen
	for i := range 20000 {
		list = append(list, connection(700, 0, 1, uint32(i)))
	}
	if n := len(Groups(list)); n != len(list) {
		t.Errorf("%d connections of %d", n, len(list))
	}
}

func TestSeen(t *testing.T) {
	a := rdma.End{Addr: netip.MustParseAddr("192.0.2.1"), Port: 20049, QPN: 17}
	b := rdma.End{Addr: netip.MustParseAddr("192.0.2.2"), QPN: 18}
	c := rdma.Connection{Fabric: rdma.RoCEv2, Ends: [2]rdma.End{a, b}, Setup: [2]rdma.Setup{{Message: rdma.SetupREQ, StartPSN: 5}, {Message: rdma.SetupREP, StartPSN: 6}}}
	d := rdma.Connection{Fabric: rdma.RoCEv2, Ends: [2]rdma.End{b, {Addr: a.Addr, QPN: 17}}, Setup: [2]rdma.Setup{{Message: rdma.SetupREQ, StartPSN: 6}, {Message: rdma.SetupREP, StartPSN: 5}}}
	x, y := NewSeen(&c, Calls{}), NewSeen(&d, Calls{})
	if x.Compare(&y) != 0 || x.Start == 0 {
		t.Errorf("%+v, %+v", x, y)
	}
	d.Setup[0].StartPSN = 7
	if y = NewSeen(&d, Calls{}); x.same(&y) {
		t.Error("different PSNs are the same connection")
	}
	for _, s := range []*Seen{&x, connection(1, -5, 7, 1, 2, 3)} {
		w := NewWriter(nil)
		s.Code(w)
		var got Seen
		r := NewReader(w.Bytes())
		if got.Code(r); r.End() != nil || got.Compare(s) != 0 {
			t.Errorf("%+v, %v, want %+v", got, r.Err(), s)
		}
	}
}

// FuzzDecode reads any bytes: as they are, with the frame that would make them a file, or as the contents of a unit.
// What can be read can be written, and has the same units.
func FuzzDecode(f *testing.F) {
	var file File
	file.Add(units(2)...)
	b := file.Append(nil)
	f.Add(b, uint8(0))
	f.Add(b[len(Magic)+1:len(b)-32], uint8(1))
	f.Add(file.Units()[0].raw, uint8(2))
	p := newPacker()
	f.Fuzz(func(t *testing.T, b []byte, frame uint8) {
		switch frame % 3 {
		case 1:
			b = append(append([]byte(Magic), version), b...)
			sum := sha256.Sum256(b)
			b = append(b, sum[:]...)
		case 2:
			b = framed([2]any{len(b), p.z.EncodeAll(b, nil)})
		}
		file, err := Decode(b, 1<<20)
		if err != nil {
			return
		}
		again, err := Decode(file.Append(nil), 1<<20)
		if err != nil || !slices.EqualFunc(again.Units(), file.Units(), func(a, b *Unit) bool { return a.Name() == b.Name() }) {
			t.Fatal("it changes when it is written", err)
		}
	})
}

// FuzzSeen reads any bytes as a connection.
func FuzzSeen(f *testing.F) {
	w := NewWriter(nil)
	connection(1, -5, 7, 1, 2, 3).Code(w)
	f.Add(w.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Seen
		c := NewReader(b)
		if s.Code(c); c.End() != nil {
			return
		}
		w := NewWriter(nil)
		if s.Code(w); !bytes.Equal(w.Bytes(), b) {
			t.Fatalf("%x, want %x", w.Bytes(), b)
		}
		if n := len(Groups([]*Seen{&s, &s})); n < 1 || n > 2 {
			t.Fatal(n)
		}
	})
}
