package sample

import (
	"math/rand"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/xdrtest"
)

func messages() []xdrtest.Constructor {
	all := append(xdrtest.Messages(Programs),
		xdrtest.Constructor{Name: "big", New: xdr.New[Big]},
		xdrtest.Constructor{Name: "pair", New: xdr.New[Pair]},
		xdrtest.Constructor{Name: "by_number", New: xdr.New[ByNumber]})
	for i := range all {
		all[i].Fix = fix
	}
	return all
}

// fix gives a union over a number one that has a case.
func fix(rnd *rand.Rand, m xdr.Message) {
	cases := [...]int32{-1, OCTAL, 16}
	switch m := m.(type) {
	case *Everything:
		m.Y.N = cases[rnd.Intn(3)]
	case *ByNumber:
		m.N = cases[rnd.Intn(3)]
	}
}

func TestIdentity(t *testing.T) { xdrtest.Identity(t, messages()) }

func FuzzDecode(f *testing.F) { xdrtest.Fuzz(f, messages(), nil) }

// example has every kind of member that a decoder keeps memory for.
func example() *Everything {
	pair := Pair{A: -1, B: 2, C: [3]byte{1, 2, 3}, D: RED, E: true, F: Instant{Sec: -5, Nsec: 6}}
	return &Everything{
		HasMaybe: true, Maybe: pair,
		HasNumbers: true, Numbers: []uint32{1, 2},
		Table:   [][]uint32{{1}, {2, 3}},
		Path:    [][]byte{[]byte("a"), []byte("bc")},
		Digests: [][3]byte{{1}, {2}},
		List:    []Node{{Name: []byte("n1")}, {Name: []byte("n2")}},
		Ops: []Big{
			{Op: 2, Two: &ByColour{C: GREEN, List: []Chain{{Value: 7, W: []uint32{8}}}}},
			{Op: 1, One: &pair},
			{Op: 9},
		},
		Y: ByNumber{N: -1, Few: []uint32{4}},
		Z: ByColour{C: RED, P: pair},
		M: 3, Masks: []uint32{1, 2, 4}, Paint: [2]int32{1, 5},
		Text: []byte("text"), Raw: []byte("raw"), Body: xdr.Data{Length: 1, Inline: []byte("b")},
		When: Instant{Sec: 1, Nsec: 2}, Tags: []Tag{3},
	}
}

func TestAllocs(t *testing.T) {
	xdrtest.NoAllocs(t, new(Everything), example().Append(nil))
	m := example()
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = m.Append(buf[:0]) }); n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
}

const shown = `maybe pair
  a=-1
  b=2
  c=010203
  d=RED(4294967295)
  e=true
  f=-5.000000006
numbers=1
numbers=2
table=1
table=2
table=3
path="a"
path="bc"
digests=010000
digests=020000
`

const shownEnd = `m=0x3(BIT_A|BIT_B)
masks=0x1(GREEN)
masks=0x2(BIT_B)
masks=0x4()
paint=GREEN(1)
paint=(5)
text="text"
raw=726177
body=1 bytes, chunk 0, "b"
walk=0
append=0
b other
  content=
when=1.000000002
tags=TAG(3)
`

func TestWalk(t *testing.T) {
	got := xdrtest.Walk(example())
	if len(got) < len(shown)+len(shownEnd) || got[:len(shown)] != shown || got[len(got)-len(shownEnd):] != shownEnd {
		t.Errorf("message shows\n%s", got)
	}
}

func decode(m xdr.Message, b []byte) *xdr.Error {
	var r xdr.Reader
	r.Reset(b, 0)
	m.Decode(&r)
	if r.Err() == nil {
		return nil
	}
	return r.Err().(*xdr.Error)
}

func TestErrors(t *testing.T) {
	change := func(f func(m *Everything)) xdr.Message {
		m := example()
		f(m)
		return m
	}
	for _, c := range []struct {
		name  string
		m     xdr.Message
		kind  xdr.Kind
		field string
	}{
		{"list beyond its limit", change(func(m *Everything) { m.List = make([]Node, 4) }), xdr.Range, "list"},
		{"array beyond its limit", change(func(m *Everything) { m.Ops = make([]Big, 4) }), xdr.Range, "ops"},
		{"string beyond its limit", change(func(m *Everything) { m.X.B = make([]byte, 21) }), xdr.Range, "b"},
		{"data beyond its limit", change(func(m *Everything) { m.Body.Length, m.Body.Inline = 101, make([]byte, 101) }), xdr.Range, "body"},
		{"discriminant without a case", change(func(m *Everything) { m.Y.N = 5 }), xdr.Value, "n"},
		{"enum without a case", change(func(m *Everything) { m.Z.C = 17 }), xdr.Value, "c"},
	} {
		err := decode(new(Everything), c.m.Append(nil))
		if err == nil || err.Kind != c.kind || err.Field != c.field {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// An arm that was never allocated is the zero value of its type.
func TestNilArm(t *testing.T) {
	m := &Big{Op: 1}
	b := m.Append(nil)
	if len(b) != m.EncodedSize() {
		t.Errorf("%d bytes, size %d", len(b), m.EncodedSize())
	}
	if got := xdrtest.Walk(m); got != "op=1\n" {
		t.Errorf("shows %q", got)
	}
	if err := decode(new(Big), b); err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	for e, want := range map[interface{ String() string }]string{
		RED: "RED", VERDE: "GREEN", Colour(77): "77", BAD: "BAD",
	} {
		if e.String() != want {
			t.Errorf("%#v is %s", e, e)
		}
	}
	var m xdr.Message = &Answer{First: 3, How: BAD}
	if code, symbol := m.(xdr.Status).StatusCode(); code != 1 || symbol != "BAD" {
		t.Errorf("status %d %s", code, symbol)
	}
	if _, ok := xdr.Message(new(Everything)).(xdr.Status); ok {
		t.Error("a message without a status has one")
	}
	p := &Programs[0]
	for n, want := range map[uint32]string{0: "NULL", 1: "", 2: "EVERY", 3: "WORDS", 4: "", 7: ""} {
		got := ""
		if proc := p.Procedure(n); proc != nil {
			got = proc.Name
		}
		if got != want {
			t.Errorf("procedure %d is %q", n, got)
		}
	}
}
