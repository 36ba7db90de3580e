package report

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	var s seconds
	for _, c := range []struct {
		at    time.Duration
		wrong bool
	}{{0, false}, {999 * time.Millisecond, true}, {3500 * time.Millisecond, false}, {3400 * time.Millisecond, false}, {2 * time.Second, false}} {
		s.add(c.at, c.at/10, c.wrong, 100)
	}
	list := s.close()
	if len(list) != 2 || list[0].Calls != 2 || list[0].Wrong != 1 || list[0].Latency.Max != 99900*time.Microsecond ||
		list[1].From != 3*time.Second || list[1].Calls != 3 || list[1].Bytes != 300 || list[1].Latency.Min != 200*time.Millisecond {
		t.Errorf("%+v", list)
	}
	if h := list[1].Histogram; len(h) != 3 || h[0].Count+h[1].Count+h[2].Count != 3 || h[0].To < int64(200*time.Millisecond) || h[0].To > int64(207*time.Millisecond) {
		t.Errorf("%+v", h)
	}
	var long seconds
	for i := range 3 * maxSeconds {
		long.add(time.Duration(i)*3*time.Second, time.Second, false, 0)
	}
	for i := range long.list[1:] {
		if a, b := &long.list[i], &long.list[i+1]; b.From < a.From+a.Took {
			t.Fatalf("%v begins before the end of %v", b.From, a.From)
		}
	}
	if n := len(long.list); n >= 3*maxSeconds || long.width != 4*time.Second {
		t.Errorf("%d intervals, the last of %v", n, long.width)
	}
}
