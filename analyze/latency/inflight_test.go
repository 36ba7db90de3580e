package latency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// enterApart is enter as it is without a sole level.
func enterApart(l, all *level, start, end int64, granted uint32, budget *int) int {
	l.advance(start, budget)
	l.step(event{at: start, change: 1})
	l.push(event{at: end, change: -1, granted: granted}, budget)
	all.advance(start, budget)
	all.step(event{at: start, change: 1})
	all.push(event{at: end, change: -1}, budget)
	return all.n
}

// crowds compares a crowd with levels that are all followed, for calls on some connections.
func crowds(t *testing.T, next func(n int) int, calls, budget int) {
	a := crowd{apart: next(8) == 0}
	var own, want [4]level
	var all level
	left, full := budget, budget
	at, on, busy, most, grain := int64(0), 0, 0, 0, int64(1)
	for i := range calls {
		switch next(8) {
		case 0:
			on = next(len(own))
		case 1:
			busy = next(4)
		case 2:
			grain = 1 + 29*int64(next(2)) // with 30, many times are equal
		}
		if at += int64(next(100)); next(64) == 0 {
			at -= int64(next(300)) // the clock goes back
			if next(8) == 0 {
				at -= setBack + 300 // it is set
			}
		}
		at -= at % grain
		end := at + int64(next(60))<<(3*busy)/grain*grain
		granted := uint32(next(3))
		n := enterApart(&want[on], &all, at, end, granted, &full)
		got := a.enter(&own[on], at, end, granted, most, &left)
		if got != n && (got < n || got > most) {
			t.Fatalf("call %d: %d in flight, %d are right; there were %d before", i, got, n, most)
		}
		if most = max(most, got); next(50) == 0 {
			most = 0 // of another interval
		}
		if a.apart && a.sole != nil {
			t.Fatal("a sole level, apart")
		}
		if i%16 == 0 {
			inBudget(t, &a, own[:], left, budget)
		}
		l, w := &own[on], &want[on]
		if l.n != w.n || l.most != w.most || l.lost != w.lost || l.limited != w.limited || l.known != w.known ||
			l.now != w.now || l.granted != w.granted || !slices.Equal(l.time, w.time) || !slices.Equal(l.heap, w.heap) || a.own.level.lost != all.lost {
			t.Fatalf("call %d: %+v, %+v is right", i, l, w)
		}
	}
}

// inBudget checks that what is left of the budget and what took from it are the whole.
func inBudget(t *testing.T, a *crowd, own []level, left, budget int) {
	t.Helper()
	held := 0
	for i := range own {
		held += len(own[i].heap)
	}
	if a.sole == nil {
		held += len(a.own.level.heap)
	}
	if held+left != budget {
		t.Fatalf("%d of %d ends are held, and there is room for %d", held, budget, left)
	}
}

func TestCrowd(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		crowds(t, r.IntN, 5000, maxEvents)
		crowds(t, r.IntN, 1000, 2*soleRoom+r.IntN(40)) // it hardly suffices
		crowds(t, r.IntN, 1000, r.IntN(40))
	}
	// Many at once exhaust the budget while one level is the sole one.
	var a crowd
	var own, want, all level
	left, full := maxEvents, maxEvents
	for i := range int64(2 * maxEvents) {
		got, n := a.enter(&own, i, 1e9-i, 0, 0, &left), enterApart(&want, &all, i, 1e9-i, 0, &full)
		if got != n || own.lost != want.lost || a.own.level.lost != all.lost {
			t.Fatalf("call %d: %d, want %d", i, got, n)
		}
	}
	if own.lost == 0 || a.sole != nil {
		t.Error("no end was lost")
	}
}

// TestSetBack: a call after the clock was set back is not in flight together with those before it, and time goes on. A call that was captured late is.
func TestSetBack(t *testing.T) {
	for _, c := range []struct {
		back int64
		want int
		idle float64 // time without a call in flight
	}{{setBack + 2, 1, 90}, {3600e9, 1, 90}, {setBack, 2, 0}, {5, 2, 45}} {
		var a crowd
		var l, other level
		left := maxEvents
		for _, of := range []*level{&l, &other} { // one of them is not the sole one
			a.enter(of, 1e13, 1e13+50, 0, 9, &left)
		}
		at := int64(1e13) - c.back
		n := a.enter(&l, at, at+10, 0, 9, &left)
		if l.n != c.want || n != c.want+(c.want-1) {
			t.Errorf("%d ns back: %d in flight on the connection, %d in all", c.back, l.n, n)
		}
		var sole crowd // until then
		var first, second level
		sole.enter(&first, 1e13, 1e13+50, 0, 9, &left)
		if n := sole.enter(&second, at, at+10, 0, 9, &left); n != c.want {
			t.Errorf("%d ns back: %d in flight on two connections", c.back, n)
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

func FuzzCrowd(f *testing.F) {
	f.Add([]byte("some connections and some times"), uint32(maxEvents))
	f.Add([]byte{1, 2, 3, 0, 0, 1, 9, 70, 8, 0, 3}, uint32(2*soleRoom+1))
	f.Fuzz(func(t *testing.T, data []byte, budget uint32) {
		crowds(t, func(n int) int {
			if len(data) == 0 {
				return 0
			}
			x := int(data[0])
			data = data[1:]
			return x % n
		}, len(data)/4, int(budget%(4*maxEvents)))
	})
}
