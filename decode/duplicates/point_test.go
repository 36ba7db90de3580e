package duplicates

import (
	"math/rand/v2"
	"testing"
)

// TestPoint compares with a plain search of all that came before.
func TestPoint(t *testing.T) {
	type earlier struct {
		sum  uint64
		time int64
		left int
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		d := Delay{Times: 2 + rnd.IntN(mostTimes-1), Low: rnd.Int64N(50), High: 50 + rnd.Int64N(100)}
		p := newPoint(d)
		var list []earlier
		now := int64(0)
		for i := range 400 {
			now += rnd.Int64N(12)
			sum := rnd.Uint64N(40)
			want := false
			for k := range list {
				x := &list[k]
				if x.left > 0 && x.sum == sum && now-x.time >= d.Low && now-x.time <= d.High {
					x.left, want = x.left-1, true
					break
				}
			}
			if !want {
				list = append(list, earlier{sum, now, d.Times - 1})
			}
			if got := p.copied(sum, now); got != want {
				t.Fatalf("seed %d, packet %d: copied %t, want %t", seed, i, got, want)
			}
		}
	}
}

// TestPointIsBounded: neither many packets at once, nor equal ones, nor a clock that goes back make it grow or slow.
func TestPointIsBounded(t *testing.T) {
	for name, next := range map[string]func(i int) (uint64, int64){
		"all at once":         func(i int) (uint64, int64) { return uint64(i), 0 },
		"all equal":           func(int) (uint64, int64) { return 7, 0 },
		"the clock goes back": func(i int) (uint64, int64) { return uint64(i), -int64(i) * 1e9 },
	} {
		p := newPoint(Delay{Times: 2, Low: 1e6, High: 2e6})
		for i := range 3 * maxHeld {
			p.copied(next(i))
		}
		if len(p.ring) > maxHeld || len(p.at) > maxHeld || p.next-p.first > maxHeld {
			t.Errorf("%s: %d places, %d prints, %d packets", name, len(p.ring), len(p.at), p.next-p.first)
		}
	}
}

func TestPointAllocates(t *testing.T) {
	p := newPoint(Delay{Times: 2, Low: 900, High: 1100})
	now, i := int64(0), uint64(0)
	step := func() {
		now += 10
		i++
		p.copied(i, now)
		if i > 100 {
			p.copied(i-100, now)
		}
	}
	for range 10_000 {
		step()
	}
	if n := testing.AllocsPerRun(10_000, step); n > 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

func BenchmarkPoint(b *testing.B) {
	p := newPoint(Delay{Times: 2, Low: 900, High: 1100})
	for i := range b.N {
		p.copied(uint64(i), int64(i)*10)
	}
}
