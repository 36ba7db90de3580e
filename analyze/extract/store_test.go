package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// model is a file in memory, byte by byte.
type model struct {
	b    []byte
	seen []bool
}

func (m *model) grow(n int) {
	for len(m.b) < n {
		m.b, m.seen = append(m.b, 0), append(m.seen, false)
	}
}

func (m *model) write(at int, b []byte) {
	m.grow(at + len(b))
	copy(m.b[at:], b)
	for i := range b {
		m.seen[at+i] = true
	}
}

func (m *model) resize(n int) {
	m.grow(n)
	m.b, m.seen = m.b[:n], m.seen[:n]
}

// TestStore writes and cuts files at random, near and far, and compares them
// with a model: with their holes, and packed.
func TestStore(t *testing.T) {
	for seed := range uint64(sampled.Rounds(60)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		x, err := New(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := &file{}
		f.store.path = "f"
		m := &model{}
		reach := []int{3 * regionSize, 12 * regionSize, 1000}[seed%3]
		for range rnd.IntN(60) {
			switch k := rnd.IntN(10); {
			case k < 6:
				b := make([]byte, 1+rnd.IntN(2*regionSize))
				if k < 3 {
					b = b[:1+len(b)%50*min(1, len(b)/50)]
				}
				for i := range b {
					b[i] = byte(1 + rnd.IntN(255))
				}
				at := rnd.IntN(reach)
				if k == 5 {
					at = len(m.b)
				}
				if ok, err := x.write(&f.store, uint64(at), b); !ok || err != nil {
					t.Fatal(ok, err)
				}
				f.known.add(uint64(at), uint64(at+len(b)))
				m.write(at, b)
			case k < 8:
				n := rnd.IntN(len(m.b) + 10)
				if err := x.resize(&f.store, uint64(n)); err != nil {
					t.Fatal(err)
				}
				f.known.cut(uint64(n))
				m.resize(n)
			default:
				n := len(m.b) + rnd.IntN(3*regionSize)
				if err := x.resize(&f.store, uint64(n)); err != nil {
					t.Fatal(err)
				}
				m.resize(n)
			}
		}
		if !f.store.exists {
			continue
		}
		var want []byte
		for i, ok := range m.seen {
			if ok {
				want = append(want, m.b[i])
			}
		}
		if n := f.known.bytes(forever); n != uint64(len(want)) {
			t.Fatalf("seed %d: %d bytes known, want %d", seed, n, len(want))
		}
		at := uint64(0)
		f.known.holes(uint64(len(m.b)), func(h span) bool {
			for ; at < h.to; at++ {
				if m.seen[at] != (at < h.from) {
					t.Fatalf("seed %d: byte %d: hole %v", seed, at, h)
				}
			}
			return true
		})
		if err := x.closeStores(); err != nil {
			t.Fatal(err)
		}
		packed := seed%2 == 1
		if !packed {
			want = m.b
		}
		parts := f.known.within(f.store.written())
		if err := x.settleStore(&f.store, &parts, packed); err != nil {
			t.Fatal(err)
		}
		got, err := x.root.ReadFile(f.store.path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d (packed %v): %d bytes, want %d; they differ from %d on", seed, packed, len(got), len(want), differ(got, want))
		}
	}
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestTemporary compares the temporary file of one that claims to be long with
// what was written.
func TestTemporary(t *testing.T) {
	x, err := New(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{path: "f"}
	for i := range uint64(20) {
		if _, err := x.write(s, i*7e9, []byte("data")); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.closeStores(); err != nil {
		t.Fatal(err)
	}
	st, err := x.root.Stat(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() > 20*regionSize {
		t.Errorf("%d bytes for 80", st.Size())
	}
}

// TestSpans compares spans with a table of bytes.
func TestSpans(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var s spans
		var m [400]bool
		count := 0
		for range rnd.IntN(2000) {
			from := rnd.IntN(len(m))
			switch to := min(from+rnd.IntN(9), len(m)); {
			case rnd.IntN(40) == 0:
				count -= s.cut(uint64(from))
				clear(m[from:])
			default:
				count += s.add(uint64(from), uint64(to))
				for i := from; i < to; i++ {
					m[i] = true
				}
			}
		}
		if n := len(s.list) + len(s.recent); n != count {
			t.Fatalf("seed %d: %d ranges, counted %d", seed, n, count)
		}
		got, want := "", ""
		for _, r := range s.merge() {
			got += fmt.Sprint(r)
		}
		for i := 0; i < len(m); i++ {
			if !m[i] {
				continue
			}
			j := i
			for j < len(m) && m[j] {
				j++
			}
			want += fmt.Sprint(span{uint64(i), uint64(j)})
			i = j
		}
		if got != want {
			t.Fatalf("seed %d:\n%s\n%s", seed, got, want)
		}
	}
}
