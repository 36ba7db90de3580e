package roce

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPSNDiff(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want int32
	}{
		{0, 0, 0}, {1, 0, 1}, {0, 1, -1},
		{0, psnMask, 1}, {psnMask, 0, -1},
		{5, psnMask - 4, 10}, {psnMask - 4, 5, -10},
		{psnHalf, 0, -psnHalf}, {psnHalf - 1, 0, psnHalf - 1}, {0, psnHalf, -psnHalf},
	} {
		if got := psnDiff(c.a, c.b); got != c.want {
			t.Errorf("%#x - %#x = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := psnAdd(c.b, uint32(c.want)); got != c.a {
			t.Errorf("%#x + %d = %#x, want %#x", c.b, c.want, got, c.a)
		}
	}
}

// model is a psnSet that is slow and obvious. It counts PSNs from a base that
// does not wrap.
type model map[uint32]bool

func (m model) ranges(base uint32) []psnRange {
	var all []uint32
	for p := range m {
		all = append(all, p)
	}
	slices.Sort(all)
	var r []psnRange
	for i, p := range all {
		if i > 0 && all[i-1]+1 == p {
			r[len(r)-1].count++
			continue
		}
		r = append(r, psnRange{psnAdd(base, p), 1})
	}
	return r
}

// TestPSNSet compares the set with the model over random operations, at the
// wrap and elsewhere.
func TestPSNSet(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		base := rng.Uint32() & psnMask
		if seed%2 == 0 {
			base = psnMask - 100
		}
		var s psnSet
		m := model{}
		for step := range 300 {
			p, n := rng.Uint32N(120), 1+rng.Uint32N(9)
			switch op := rng.Uint32N(10); {
			case op < 4:
				if forgotten := s.add(psnAdd(base, p), n); forgotten != 0 {
					t.Fatalf("seed %d: %d forgotten", seed, forgotten)
				}
				for i := range n {
					m[p+i] = true
				}
			case op < 6:
				if got := s.take(psnAdd(base, p)); got != m[p] {
					t.Fatalf("seed %d step %d: take is %v", seed, step, got)
				}
				delete(m, p)
			case op < 8:
				s.remove(psnAdd(base, p), n)
				for i := range n {
					delete(m, p+i)
				}
			case op < 9:
				want := false
				for i := range n {
					want = want || m[p+i]
				}
				if got := s.has(psnAdd(base, p), n); got != want {
					t.Fatalf("seed %d step %d: has is %v", seed, step, got)
				}
			default:
				p = rng.Uint32N(20)
				want := uint32(0)
				for i := range p + 1 {
					if m[i] {
						want++
						delete(m, i)
					}
				}
				if got := s.before(psnAdd(base, p)); got != want {
					t.Fatalf("seed %d step %d: before is %d, want %d", seed, step, got, want)
				}
			}
			if want := m.ranges(base); !slices.Equal(s.r, want) && len(s.r)+len(want) > 0 {
				t.Fatalf("seed %d step %d: set is %v, want %v", seed, step, s.r, want)
			}
			if s.size() != uint64(len(m)) {
				t.Fatalf("seed %d step %d: size %d, want %d", seed, step, s.size(), len(m))
			}
		}
	}
}

// TestPSNSetBounds shows that a set cannot grow without end and forgets the
// oldest first.
func TestPSNSetBounds(t *testing.T) {
	var s psnSet
	forgotten := uint32(0)
	for i := range uint32(1000) {
		forgotten += s.add(psnAdd(psnMask-500, 2*i), 1)
		if len(s.r) > maxMissing {
			t.Fatalf("%d ranges", len(s.r))
		}
	}
	if forgotten != 1000-maxMissing {
		t.Errorf("%d forgotten", forgotten)
	}
	if !s.has(psnAdd(psnMask-500, 1998), 1) || s.has(psnAdd(psnMask-500, 0), 1) {
		t.Error("not the oldest was forgotten")
	}
	// A range older than all of a full set is not worth a place.
	if n := s.add(psnAdd(psnMask-500, 10), 1); n != 2 && n != 1 || len(s.r) > maxMissing {
		t.Errorf("%d forgotten for an old one", n)
	}
	// Far away, nothing of the old order means anything.
	s.add(psnAdd(psnMask-500, psnHalf), 3)
	if len(s.r) != 1 || s.size() != 3 {
		t.Errorf("set is %v after a jump", s.r)
	}
	// The sender of a hostile capture may leave a hole of any size.
	s.reset()
	s.add(0, psnHalf)
	if s.size() > maxSpread {
		t.Errorf("%d missing", s.size())
	}
	for i := range uint32(100) {
		s.remove(1000+2*i, 1) // each splits a range
		if len(s.r) > maxMissing {
			t.Fatalf("%d ranges", len(s.r))
		}
	}
}

func FuzzPSNSet(f *testing.F) {
	f.Add([]byte{0, 5, 3, 1, 6, 0, 2, 4, 9})
	f.Add([]byte{0, 250, 7, 0, 1, 2, 3, 0, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s psnSet
		for ; len(b) >= 3; b = b[3:] {
			p, n := psnAdd(psnMask-127, uint32(b[1])*uint32(b[0]>>2|1)), uint32(b[2])
			switch b[0] & 3 {
			case 0:
				s.add(p, n)
			case 1:
				s.remove(p, n)
				if n > 0 && s.has(p, n) {
					t.Fatalf("%d from %#x still in %v", n, p, s.r)
				}
			case 2:
				s.before(p)
			default:
				if had := s.has(p, 1); s.take(p) != had || s.has(p, 1) {
					t.Fatalf("take of %#x from %v", p, s.r)
				}
			}
			for i := range s.r {
				if s.r[i].count == 0 || i > 0 && psnDiff(s.r[i].start, s.r[i-1].end()) <= 0 {
					t.Fatalf("not in order: %v", s.r)
				}
			}
			if len(s.r) > maxMissing {
				t.Fatalf("%d ranges", len(s.r))
			}
		}
	})
}
