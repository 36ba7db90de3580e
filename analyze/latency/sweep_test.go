package latency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLevel compares a level with all calls looked at each time, while the clock goes back a little now and then.
func TestLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		var l level
		var open []int64 // ends of the calls in flight
		left, at, latest := maxEvents, int64(1000), int64(0)
		for i := range 2000 {
			if at += r.Int64N(100); r.IntN(64) == 0 {
				at -= r.Int64N(300)
			}
			end := at + r.Int64N(60)<<(3*r.IntN(3))
			open = slices.DeleteFunc(open, func(e int64) bool { return e <= at })
			open = append(open, end)
			if n := l.enter(at, end, 0, &left); n != len(open) {
				t.Fatalf("call %d: %d in flight, want %d", i, n, len(open))
			}
			if latest = max(latest, at); len(l.heap)+left != maxEvents || l.now != latest {
				t.Fatalf("call %d: %d ends are held, and there is room for %d; time %d, want %d", i, len(l.heap), left, l.now, latest)
			}
		}
	}
}

// TestLevelFull: ends beyond the limit are lost, and counted.
func TestLevelFull(t *testing.T) {
	var l level
	left := 10
	for i := range int64(15) {
		if n := l.enter(i, 1000-i, 0, &left); n != int(i)+1 {
			t.Fatalf("call %d: %d in flight", i, n)
		}
	}
	if l.finish(&left); l.lost != 5 || l.n != 5 || left != 10 {
		t.Errorf("%d ends lost, %d calls in flight, room for %d", l.lost, l.n, left)
	}
}

// TestSetBack: a call after the clock was set back is not in flight together with those before it, and time goes on. A call that was captured late is in flight.
func TestSetBack(t *testing.T) {
	for _, c := range []struct {
		back int64
		want int
		idle float64 // time without a call in flight
	}{{setBack + 2, 1, 90}, {3600e9, 1, 90}, {setBack, 2, 0}, {5, 2, 45}} {
		var l level
		left := maxEvents
		l.enter(1e13, 1e13+50, 0, &left)
		at := int64(1e13) - c.back
		if n := l.enter(at, at+10, 0, &left); n != c.want {
			t.Errorf("%d ns back: %d in flight", c.back, n)
		}
		l.room(0)
		before := l.time[0]
		l.advance(at+100, &left)
		l.step(event{at: at + 100, change: 1})
		if got := l.time[0] - before; got != c.idle {
			t.Errorf("%d ns back: %v ns without a call", c.back, got)
		}
	}
}

func TestPlateau(t *testing.T) {
	levels := func(times ...int64) (list []Level) {
		for n, t := range times {
			list = append(list, Level{n, t})
		}
		return list
	}
	for _, c := range []struct {
		what    string
		levels  []Level
		granted uint32
		n       int
	}{
		{"four calls nearly all the time", levels(1000, 10, 10, 10, 100), 32, 4},
		{"all credits in use", levels(0, 10, 10, 10, 100), 4, 0},
		{"bursts", levels(1000, 100, 50, 25, 10), 32, 0},
		{"one at a time", levels(1000, 100), 32, 0},
		{"fifteen or sixteen", levels(0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 20, 50), 64, 14},
	} {
		f := &Flow{Most: len(c.levels) - 1, Levels: c.levels, Granted: Credits{Max: c.granted}}
		if n, share := f.plateau(); n != c.n || (n > 0) != (share >= 0.4) {
			t.Errorf("%s: %d, %.2f", c.what, n, share)
		}
	}
	if n, _ := (*Flow)(nil).plateau(); n != 0 {
		t.Errorf("no calls: %d", n)
	}
}
