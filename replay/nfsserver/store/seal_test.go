package store

import (
	"math/rand/v2"
	"testing"
)

// Of a handle that was given out, none of the handles that differ in one bit is
// valid, nor one of another key, nor one of another length.
func TestSeal(t *testing.T) {
	s, other := NewSeal(Key{1}), NewSeal(Key{2})
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 100 {
		h := Handle{ID: uint64(round), Generation: uint32(round)}
		if round > 10 {
			h = Handle{ID: r.Uint64(), Generation: r.Uint32()}
		}
		b := s.Append([]byte("before"), h)[6:]
		if len(b) != HandleSize {
			t.Fatalf("%d bytes", len(b))
		}
		if got, err := s.Open(b); err != nil || got != h {
			t.Fatalf("%v, %v", got, err)
		}
		if got, err := other.Open(b); err != ErrStale {
			t.Errorf("another key: %v, %v", got, err)
		}
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			if got, err := s.Open(b); err != ErrStale {
				t.Errorf("%v with bit %d flipped is %v, %v", h, bit, got, err)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		for n := range len(b) {
			if _, err := s.Open(b[:n]); err != ErrBadHandle {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
		if _, err := s.Open(append(b, 0)); err != ErrBadHandle {
			t.Errorf("too long: %v", err)
		}
	}
	if a, b := NewKey(), NewKey(); a == b {
		t.Error("keys are alike")
	}
	var none *Seal
	if _, err := none.Open(none.Append(nil, Handle{ID: 1})); err != ErrStale {
		t.Errorf("no seal: %v", err)
	}
}

func TestSealAllocs(t *testing.T) {
	s := NewSeal(NewKey())
	b := make([]byte, 0, 64)
	h := Handle{ID: 7, Generation: 9}
	if n := testing.AllocsPerRun(100, func() {
		b = s.Append(b[:0], h)
		if _, err := s.Open(b); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzSeal(f *testing.F) {
	s := NewSeal(Key{1})
	f.Add(s.Append(nil, Handle{ID: 2, Generation: 1}))
	f.Add([]byte("123456789012345678901234"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := s.Open(b)
		if (err == nil) != (string(s.Append(nil, h)) == string(b)) {
			t.Fatalf("%x: %v, %v", b, h, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s := NewSeal(NewKey())
	buf := make([]byte, 0, 64)
	for b.Loop() {
		buf = s.Append(buf[:0], Handle{ID: 7, Generation: 9})
		if _, err := s.Open(buf); err != nil {
			b.Fatal(err)
		}
	}
}
