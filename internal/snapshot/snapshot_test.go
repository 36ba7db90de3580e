package snapshot

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// leaf, tree and root use whatever a Plan can save.
type leaf struct {
	n    int
	on   bool
	next *leaf
	up   *tree
}

type shape interface{ area() int }

type square struct{ side int }

func (s square) area() int { return s.side * s.side }

type disc struct{ r *int }

func (d *disc) area() int { return 3 * *d.r * *d.r }

type kept struct {
	f    func() int
	size int
}

type tree struct {
	leaves [3]leaf
	middle *leaf // into leaves
	addr   netip.Addr
	port   netip.AddrPort
	names  map[string]*leaf
	by     map[*leaf][]byte
	keys   map[netip.Addr]uint16
	nested map[int]map[int]string
	shared map[int]int
	same   map[int]int // shared
	shapes []shape
	any    any
	text   string
	data   []byte
	part   []byte // of data
	head   []byte // of data, and longer
	rows   [][]int32
	row    *int32 // into rows
	array  [4]int16
	slice  []int16 // of array
	room   []leaf
	none   []int
	empty  []int
	float  float64
	kept   *kept
	fn     func()
	self   *tree
}

func (t *tree) plan(version string) *Plan {
	p := NewPlan(version)
	p.Fixed(t)
	p.Fixed(t.kept)
	Leave[tree](p, "fn", "kept")
	Leave[kept](p, "f")
	Boxed[square](p)
	Boxed[*disc](p)
	Boxed[string](p)
	return p
}

func newTree() *tree { return &tree{kept: &kept{f: func() int { return 7 }}, fn: func() {}} }

func sample() *tree {
	t := newTree()
	for i := range t.leaves {
		t.leaves[i] = leaf{n: 10 + i, on: i == 1, up: t}
	}
	outside := &leaf{n: 99}
	outside.next = &t.leaves[2]
	t.leaves[0].next = outside
	t.middle = &t.leaves[1]
	t.addr = netip.MustParseAddr("2001:db8::1%eth0")
	t.port = netip.MustParseAddrPort("192.0.2.1:2049")
	t.names = map[string]*leaf{"a": &t.leaves[0], "b": outside, "": nil}
	t.by = map[*leaf][]byte{outside: []byte("out"), &t.leaves[1]: nil}
	t.keys = map[netip.Addr]uint16{netip.MustParseAddr("192.0.2.1"): 1, {}: 2}
	t.nested = map[int]map[int]string{1: {1: "x"}, 2: {}, 3: nil, 4: {4: "y", 5: "x"}}
	t.shared = map[int]int{1: 2, 3: 4}
	t.same = t.shared
	r := 5
	d := &disc{&r}
	t.shapes = make([]shape, 3, 8)
	t.shapes[0], t.shapes[1] = square{3}, d
	t.any = "text"
	t.text = strings.Repeat("long", 100)
	t.data = append(make([]byte, 0, 64), "0123456789abcdef"...)
	t.part = t.data[4:8:12]
	t.head = t.data[:20]
	t.rows = [][]int32{{1, 2, 3}, {4}, nil}
	t.row = &t.rows[0][2]
	t.array = [4]int16{1, 2, 3, 4}
	t.slice = t.array[1:3:4]
	t.room = append(make([]leaf, 0, 4), leaf{n: 1}, leaf{n: 2})[:1] // the second is behind the end
	t.empty = []int{}
	t.float = 1.5
	t.kept.size = 12
	t.self = t
	return t
}

func save(t testing.TB, x *tree, opt Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := x.plan("1").Save(&b, opt); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	old := sample()
	file := save(t, old, Options{Notes: []Pair{{"a", "b"}}})
	x := newTree()
	notes, err := x.plan("1").Load(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(notes, []Pair{{"a", "b"}}) {
		t.Errorf("notes %v", notes)
	}
	x.check(t)
	// What was restored can be saved and restored once more.
	y := newTree()
	if _, err := y.plan("1").Load(save(t, x, Options{}), Options{}); err != nil {
		t.Fatal(err)
	}
	y.check(t)
	old.leaves[0].n = 0
	y.check(t) // nothing is shared with the first
}

func (x *tree) check(t *testing.T) {
	t.Helper()
	for i, ok := range []bool{
		x.self == x, x.fn != nil, x.kept.f() == 7, x.kept.size == 12,
		x.middle == &x.leaves[1], x.leaves[0].n == 10 && x.leaves[1].on && !x.leaves[0].on, x.leaves[2].up == x,
		x.leaves[0].next.n == 99 && x.leaves[0].next.next == &x.leaves[2],
		x.addr == netip.MustParseAddr("2001:db8::1%eth0"), x.port == netip.MustParseAddrPort("192.0.2.1:2049"),
		len(x.names) == 3 && x.names["a"] == &x.leaves[0] && x.names["b"] == x.leaves[0].next,
		len(x.by) == 2 && string(x.by[x.names["b"]]) == "out",
		len(x.keys) == 2 && x.keys[netip.MustParseAddr("192.0.2.1")] == 1 && x.keys[netip.Addr{}] == 2,
		len(x.nested) == 4 && x.nested[1][1] == "x" && x.nested[2] != nil && x.nested[3] == nil && x.nested[4][4] == "y",
		len(x.shared) == 2 && x.shared[3] == 4 && reflect.ValueOf(x.shared).Pointer() == reflect.ValueOf(x.same).Pointer(),
		len(x.shapes) == 3 && cap(x.shapes) == 8 && x.shapes[0].area() == 9 && x.shapes[1].area() == 75 && x.shapes[2] == nil,
		x.any == "text", x.text == strings.Repeat("long", 100),
		string(x.data) == "0123456789abcdef" && cap(x.data) == 64,
		&x.part[0] == &x.data[4] && len(x.part) == 4 && cap(x.part) == 8,
		&x.head[0] == &x.data[0] && len(x.head) == 20 && cap(x.head) == 64,
		len(x.rows) == 3 && x.rows[1][0] == 4 && x.rows[2] == nil && x.row == &x.rows[0][2] && *x.row == 3,
		&x.slice[0] == &x.array[1] && len(x.slice) == 2 && cap(x.slice) == 3 && x.array[3] == 4,
		len(x.room) == 1 && cap(x.room) == 4 && x.room[:2][1].n == 2,
		x.none == nil, x.empty != nil && len(x.empty) == 0, x.float == 1.5,
	} {
		if !ok {
			t.Errorf("check %d fails", i)
		}
	}
}

func TestRefused(t *testing.T) {
	type withFunc struct{ F func() }
	type withChan struct{ C chan int }
	type withEmpty struct{ P *struct{} }
	type withFloat struct{ M map[float64]int }
	type withAny struct{ M map[any]int }
	type inside struct{ P *leaf }
	type boxes struct{ x any }
	for name, c := range map[string]struct {
		plan func(p *Plan)
		want string
	}{
		"function":     {func(p *Plan) { p.Fixed(&withFunc{}) }, "withFunc.F: a func() cannot be saved"},
		"channel":      {func(p *Plan) { p.Fixed(&withChan{}) }, "withChan.C"},
		"no size":      {func(p *Plan) { p.Fixed(&withEmpty{}) }, "no size"},
		"float keys":   {func(p *Plan) { p.Fixed(&withFloat{}) }, "keys"},
		"any keys":     {func(p *Plan) { p.Fixed(&withAny{}) }, "keys"},
		"no such":      {func(p *Plan) { p.Fixed(&inside{}); Leave[leaf](p, "nothing") }, "no field nothing"},
		"no pointer":   {func(p *Plan) { p.Fixed(7) }, "is not a pointer"},
		"unknown type": {func(p *Plan) { p.Fixed(&boxes{x: 7}) }, "holds a int"},
		"part of another": {func(p *Plan) {
			x := sample()
			p.Fixed(x)
			p.Fixed(&x.leaves[1])
			Leave[tree](p, "fn", "kept", "shapes", "any")
		},
			"part of another"},
	} {
		p := NewPlan("1")
		c.plan(p)
		if err := p.Save(&bytes.Buffer{}, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
}

func TestOtherPrograms(t *testing.T) {
	settings := []Pair{{"depth", "5"}, {"names", "on"}}
	file := save(t, sample(), Options{Settings: settings})
	signed := save(t, sample(), Options{Settings: settings, Key: []byte("secret")})
	other := func(p *Plan) *Plan { Leave[leaf](p, "on"); return p }
	for name, c := range map[string]struct {
		plan *Plan
		file []byte
		opt  Options
		want error
	}{
		"the same":         {newTree().plan("1"), file, Options{Settings: settings}, nil},
		"another version":  {newTree().plan("2"), file, Options{Settings: settings}, ErrVersion},
		"another layout":   {other(newTree().plan("1")), file, Options{Settings: settings}, ErrVersion},
		"other settings":   {newTree().plan("1"), file, Options{Settings: []Pair{{"depth", "6"}, {"names", "on"}}}, ErrSettings},
		"more settings":    {newTree().plan("1"), file, Options{Settings: append(slices.Clone(settings), Pair{"x", "y"})}, ErrSettings},
		"fewer settings":   {newTree().plan("1"), file, Options{Settings: settings[:1]}, ErrSettings},
		"signed":           {newTree().plan("1"), signed, Options{Settings: settings, Key: []byte("secret")}, nil},
		"signed by others": {newTree().plan("1"), signed, Options{Settings: settings, Key: []byte("guess")}, ErrKey},
		"not signed":       {newTree().plan("1"), file, Options{Settings: settings, Key: []byte("secret")}, ErrNoKey},
		"key not given":    {newTree().plan("1"), signed, Options{Settings: settings}, ErrKey},
		"too large":        {newTree().plan("1"), file, Options{Settings: settings, Limit: 1000}, ErrLimit},
		"nothing":          {newTree().plan("1"), nil, Options{}, ErrNotAState},
		"something else":   {newTree().plan("1"), []byte("\xd4\xc3\xb2\xa1 a capture, for example, of some packets"), Options{}, ErrNotAState},
	} {
		if _, err := c.plan.Load(c.file, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
	_, err := newTree().plan("1").Load(file, Options{Settings: []Pair{{"depth", "6"}, {"names", "on"}}})
	if want := `made with other options: depth was "5" and is "6"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// TestDamaged flips each byte and cuts at each place.
func TestDamaged(t *testing.T) {
	file := save(t, sample(), Options{Notes: []Pair{{"a", "b"}}})
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 0x41
		if _, err := newTree().plan("1").Load(bad, Options{}); err == nil {
			t.Fatalf("byte %d of %d changed: no error", i, len(file))
		}
		if _, err := newTree().plan("1").Load(file[:i], Options{}); err == nil {
			t.Fatalf("cut after %d of %d bytes: no error", i, len(file))
		}
	}
}

// forge restores a graph that somebody has made. It may be refused, or give a tree that can be saved; it must
// not take more memory than the limit allows.
func forge(t *testing.T, graph []byte) error {
	t.Helper()
	const limit = 1 << 20
	x := newTree()
	p := x.plan("1")
	if err := p.compile(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := p.restore(bytes.NewReader(graph), limit)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2*limit {
		t.Fatalf("%d bytes allocated", n)
	}
	if err == nil {
		if _, err := x.plan("1").scanned(); err != nil && !strings.Contains(err.Error(), "overlaps") {
			t.Fatalf("what was restored cannot be saved: %v", err)
		}
	}
	return err
}

func (p *Plan) scanned() (*scanner, error) {
	if err := p.compile(); err != nil {
		return nil, err
	}
	return p.scan()
}

// graphOf is what is in a file.
func graphOf(t testing.TB, file []byte) (graph []byte) {
	t.Helper()
	again, err := Rewrite(file, Options{}, func(b []byte) []byte { graph = bytes.Clone(b); return b })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newTree().plan("1").Load(again, Options{}); err != nil {
		t.Fatal(err)
	}
	return graph
}

func TestForged(t *testing.T) {
	graph := graphOf(t, save(t, sample(), Options{}))
	step := 1
	if testing.Short() {
		step = 7
	}
	accepted := 0
	for i := 0; i < len(graph); i += step {
		for _, v := range []byte{0, 1, 0x7f, 0xff, graph[i] + 1, graph[i] ^ 0x80} {
			bad := bytes.Clone(graph)
			bad[i] = v
			if err := forge(t, bad); err == nil {
				accepted++
			}
		}
	}
	if accepted == 0 {
		t.Error("no change was accepted: the checks are not reached")
	}
	// Counts beyond all limits.
	for n := range 4 {
		huge := append(bytes.Repeat([]byte{0xff}, 8), 0x7f)
		if err := forge(t, slices.Concat(graph[:n], huge, graph[n+1:])); err == nil {
			t.Errorf("a huge number at %d is accepted", n)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(graphOf(f, save(f, sample(), Options{})))
	f.Fuzz(func(t *testing.T, graph []byte) { _ = forge(t, graph) })
}
