package fabric

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestTicks sends segments at known times, and holds some of them up: what late says may differ by a tick.
func TestTicks(t *testing.T) {
	for _, unit := range tickUnits {
		rng := rand.New(rand.NewPCG(1, uint64(unit)))
		c, learned := ticks{}, int64(0)
		origin := uint32(math.MaxUint32 - 100) // it wraps
		for at := int64(0); at < 5_000_000_000; at += 200_000 + rng.Int64N(400_000) {
			held := int64(0)
			if rng.IntN(50) == 0 {
				held = rng.Int64N(30_000_000)
			}
			drift := at / 20_000 // 50 ppm
			sent := at
			at += held
			got := c.late(1_000_000_000+at+drift, origin+uint32(sent/unit))
			if c.unit == 0 {
				continue
			}
			if learned++; learned < 50 { // nothing to compare with
				continue
			}
			if got > held+unit/2+400_000 || got < held-unit-400_000 {
				t.Fatalf("tick of %d ns: %d ns late, was held up %d ns", unit, got, held)
			}
		}
		if c.unit != unit || learned < 5000 {
			t.Errorf("tick of %d ns, not %d; %d segments", c.unit, unit, learned)
		}
	}
}

// TestTicksForged: stamps of any value, and clocks that go backwards, are no evidence; times stay within what passed.
func TestTicksForged(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		c, at, first := ticks{}, rng.Int64N(1<<62), int64(-1)
		for range 200 {
			if first < 0 {
				first = at
			}
			if n := c.late(at, rng.Uint32()); n < 0 || n > 1<<62 {
				t.Fatal(n)
			}
			at += rng.Int64N(1<<uint(rng.IntN(40)+1)) - 1000
			at = max(at, 0)
		}
	}
	// Stamps of all values in turn, as fast as none does.
	c := ticks{}
	for i := range int64(100) {
		if n := c.late(i*1_000_000_000, uint32(i)<<30); n != 0 {
			t.Fatal(n)
		}
	}
}

func TestTick(t *testing.T) {
	for _, x := range []struct{ took, count, want int64 }{
		{1_000_000_000, 1000, 1_000_000},
		{1_000_000_000, 1030, 1_000_000},
		{1_000_000_000, 1100, 0},
		{1_000_000_000, 250, 4_000_000},
		{240_000_000, 24, 0}, // too few
		{500_000_000, 500_000, 1000},
		{1_000_000_000, 0, 0},
		{1_000_000_000, -5, 0},
	} {
		if got := tick(x.took, x.count); got != x.want {
			t.Errorf("%d ticks in %d ns: %d, want %d", x.count, x.took, got, x.want)
		}
	}
}

// TestMiddle: the estimate follows the median, whatever the outliers.
func TestMiddle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var m middle
	for i := range 4 {
		if m.median() != 0 {
			t.Errorf("%d after %d times", m.median(), i)
		}
		m.add(31_000_000)
	}
	for range 500 {
		n := 6_000_000 + rng.Int64N(2_000_000)
		if rng.IntN(5) == 0 {
			n = 100_000_000 + rng.Int64N(1_000_000_000)
		}
		m.add(n)
	}
	if n := m.median(); n < 5_500_000 || n > 9_000_000 {
		t.Errorf("%d", n)
	}
	m = middle{}
	for range 100 {
		m.add(math.MaxInt64 / 4)
		m.add(0)
		m.add(-1)
	}
	if n := m.median(); n != math.MaxInt64/4 {
		t.Errorf("%d", n)
	}
}

func TestBehind(t *testing.T) {
	r := New(Options{})
	d := &direction{}
	l := &d.stream.sent
	if n, ok := l.behind(0); n != 0 || !ok {
		t.Error(n, ok)
	}
	for i := range uint64(10) {
		l.put(r, 100*i, rdma.Ref{Time: int64(i) + 1, Number: i + 1}, d)
	}
	for at, want := range map[uint64]int{0: 10, 1: 9, 100: 9, 450: 5, 900: 1, 901: 0} {
		if n, ok := l.behind(at); n != want || !ok {
			t.Errorf("behind %d: %d, %v, want %d", at, n, ok, want)
		}
	}
	for i := uint64(10); i < 300; i++ {
		l.put(r, 100*i, rdma.Ref{Time: int64(i) + 1, Number: i + 1}, d)
	}
	if n, ok := l.behind(0); ok || n != maxSegments {
		t.Error(n, ok)
	}
	if n, ok := l.behind(100 * 290); !ok || n != 10 {
		t.Error(n, ok)
	}
}

// TestIdle: a sender that was silent while the other side recovered, or sent slowly, was not idle.
func TestIdle(t *testing.T) {
	const ms = 1_000_000
	for _, x := range []struct {
		name string
		list []Stall
		want bool
	}{
		{"nothing lost", nil, true},
		{"recovery", []Stall{{From: 100 * ms, To: 300 * ms, Lost: 200 * ms}}, false},
		{"a smaller window", []Stall{{From: 100 * ms, To: 300 * ms, Lost: 150 * ms}}, false},
		{"little of it", []Stall{{From: 100 * ms, To: 300 * ms, Lost: 20 * ms}}, true},
		{"before", []Stall{{From: -500 * ms, To: 10 * ms, Lost: 510 * ms}}, true},
	} {
		k := &conn{}
		for _, s := range x.list {
			s.Cause = rdma.CauseCongestion
			k.dirs[1].stalls.list = append(k.dirs[1].stalls.list, s)
		}
		if got := idle(k, 0, 0, 300*ms); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
