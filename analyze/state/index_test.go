package state

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestIndex: an Index of several files has the same units as a File of them, and writes the same.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	list := units(20)
	random := rand.New(rand.NewPCG(3, 4))
	var want File
	x := &Index{}
	for i := range 5 {
		var f File
		for range 8 {
			f.Add(list[random.IntN(len(list))])
		}
		want.Merge(&f)
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, f.Append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := x.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		var got File
		if err := x.Each(func(u *Unit) error { got.Add(u); return nil }); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Append(nil), want.Append(nil)) || x.Len() != len(want.Units()) {
			t.Fatal("the units differ")
		}
	}
	damaged := 0
	for _, u := range want.Units() {
		if u.Input().Damaged {
			damaged++
		}
	}
	if x.Damaged() != damaged {
		t.Errorf("%d damaged, want %d", x.Damaged(), damaged)
	}
	var b bytes.Buffer
	if err := x.Write(&b); err != nil || !bytes.Equal(b.Bytes(), want.Append(nil)) {
		t.Errorf("%v, or the files differ", err)
	}
	// Files that change between two passes.
	if err := os.WriteFile(filepath.Join(dir, "0"), want.Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := x.Each(func(*Unit) error { return nil }); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

// TestIndexHostile: an Index refuses what Decode refuses, and units that are too large.
func TestIndexHostile(t *testing.T) {
	var f File
	f.Add(units(3)...)
	b := f.Append(nil)
	name := filepath.Join(t.TempDir(), "x")
	try := func(b []byte, limit int64) error {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		x := &Index{UnitBytes: limit}
		err := x.Add(name)
		if err != nil && x.Len() != 0 {
			t.Errorf("%v, and %d units", err, x.Len())
		}
		return err
	}
	for i := range b {
		_, want := Decode(b[:i], 1<<20)
		if err := try(b[:i], 0); err == nil || errors.Is(err, ErrFormat) != errors.Is(want, ErrFormat) {
			t.Fatalf("cut to %d bytes: %v, want %v", i, err, want)
		}
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if err := try(bad, 0); err == nil {
			t.Fatalf("byte %d changed", i)
		}
	}
	if err := try(append(bytes.Clone(b), 0), 0); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if err := try(b, 5); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
	if err := (&Index{}).Add(name + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestChooser: it decides as Choose does, whether or not it needs its file.
func TestChooser(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	var views []View
	for i := range 600 {
		xids := []uint32{uint32(i % 7), uint32(i % 3), uint32(i)}
		s := connection(uint16(700+i%90), int64(random.IntN(1000)), 2000, xids...)
		views = append(views, View{Seen: s, Tap: strconv.Itoa(i / 90), Near: int64(random.IntN(5)), Timed: uint64(random.IntN(9))})
	}
	want := Choose(views)
	for _, limit := range []int{0, 1 << 14, 1} {
		order := random.Perm(len(views))
		c := &Chooser{limit: limit}
		var n Numbering
		for _, i := range order {
			n.Add(views[i].Seen.First, c.Len(), views[i].Seen, "")
			if err := c.Add(i/90, views[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Choose(); err != nil {
			t.Fatal(err)
		}
		n.Finish(c)
		got := make([]bool, len(views))
		var numbers []int
		for k, i := range order {
			got[i] = c.Counts(k)
			if x := n.Number(k); x != 0 {
				numbers = append(numbers, x)
			} else if got[i] {
				t.Error("a connection that counts has no number")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: the choice differs", limit)
		}
		slices.Sort(numbers)
		if len(numbers) == 0 || numbers[0] != 1 || numbers[len(numbers)-1] != len(numbers) {
			t.Error("numbers have gaps")
		}
	}
}

// TestSurvey: whatever comes first, the options that most units have count, and the others are left out.
func TestSurvey(t *testing.T) {
	kind := &Kind[uint8]{
		Name: "x", Version: 1, What: "an x", Code: func(o *uint8, c *Coder) { Number(c, o) },
		Differ: func(a, b *uint8) string { return strconv.Itoa(int(*a)) + " and " + strconv.Itoa(int(*b)) },
	}
	var all File
	for i := range uint8(9) {
		option := uint8(4)
		if i < 4 {
			option = i
		}
		all.Add(NewUnit(kind.Section(&option, func(c *Coder) { Number(c, &i) })))
	}
	all.Add(NewUnit())
	for range 20 {
		s := &Survey[uint8, int]{Kind: kind, New: func(*uint8) *int { return new(int) }}
		failed := 0
		for _, i := range rand.Perm(len(all.Units())) {
			var v uint8
			for range 2 {
				err := s.Add(all.Units()[i], func(c *Coder, _ *uint8) { Number(c, &v) }, func(n *int) { *n++ })
				if err != nil && !errors.Is(err, ErrNoState) {
					t.Fatal(err)
				} else if err != nil {
					failed++
				}
			}
		}
		left := s.Decide()
		if len(left) != 4 || s.Len() != 5 || *s.Kept() != 5 || *s.Options() != 4 || failed != 2 || !errors.Is(left[0].Err, ErrOptions) {
			t.Fatal(left, s.Len(), failed)
		}
		n := 0
		if err := s.Each(&all, func(*Unit, int) error { n++; return nil }); err != nil || n != 5 {
			t.Error(n, err)
		}
		if err := s.Each(Units(all.Units()[:3]), func(*Unit, int) error { return nil }); !errors.Is(err, ErrChanged) {
			t.Error(err)
		}
	}
}

// TestPart: what a fleet divides among several objects is not taken for all of it.
func TestPart(t *testing.T) {
	in := Input{Tap: "nfs-7", Captures: []Capture{{"cap-1", 7}}, Part: true}
	u := NewUnit(in.Section())
	if got := u.Input(); got.Tap != in.Tap || len(got.Captures) != 1 || !got.Part || got.Damaged {
		t.Errorf("%+v", got)
	}
	var f File
	f.Add(u)
	name := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(name, f.Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	x := &Index{}
	if err := x.Add(name); !errors.Is(err, ErrPart) || x.Len() != 0 {
		t.Errorf("%v, %d units", err, x.Len())
	}
}
