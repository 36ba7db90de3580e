package ledger

import (
	"math/rand/v2"
	"testing"
)

// TestFills checks the ranges against an array.
func TestFills(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const size = 64
	var f fills
	var model [size]fill
	for step := range 20000 {
		from := rng.Uint64N(size)
		to := from + rng.Uint64N(size-from+1)
		with := fill{kind: fillKind(rng.IntN(5))}
		if with.kind == written {
			with.object = rng.IntN(2)
		}
		f.set(from, to, with)
		for i := from; i < to; i++ {
			model[i] = with
		}
		at := uint64(0)
		f.each(0, size, func(x filled) {
			if x.from != at || x.to <= x.from {
				t.Fatalf("step %d: [%d, %d) at %d", step, x.from, x.to, at)
			}
			for ; at < x.to; at++ {
				if model[at] != x.fill {
					t.Fatalf("step %d: %d is %+v, want %+v", step, at, x.fill, model[at])
				}
			}
		})
		if at != size {
			t.Fatalf("step %d: ends at %d", step, at)
		}
		for i := range f {
			if f[i].kind == unknown || i > 0 && f[i].from < f[i-1].to {
				t.Fatalf("step %d: %+v", step, f)
			}
			if i > 0 && f[i].from == f[i-1].to && f[i].fill == f[i-1].fill {
				t.Fatalf("step %d: neighbours hold the same: %+v", step, f)
			}
		}
	}
}

// TestFillsEnd: there is an end of ranges, and what is not kept is unknown.
func TestFillsEnd(t *testing.T) {
	var f fills
	for i := range uint64(3 * maxFills) {
		f.set(4*i, 4*i+2, fill{kind: written})
	}
	if len(f) != maxFills {
		t.Errorf("%d ranges", len(f))
	}
	f.set(0, 2, fill{kind: empty})
	f.set(4*2*maxFills, forever, fill{kind: empty})
	f.each(0, 2, func(x filled) {
		if x.kind != empty && x.kind != unknown {
			t.Errorf("%+v", x)
		}
	})
	f.each(4*2*maxFills, 4*2*maxFills+8, func(x filled) {
		if x.kind != unknown {
			t.Errorf("%+v", x)
		}
	})
}
