package main

import (
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
)

func TestTimeOf(t *testing.T) {
	first := time.Date(2026, 11, 21, 23, 59, 50, 0, time.UTC)
	u := &ui{snap: &monitor.Snapshot{First: first.UnixNano(), Time: first.Add(20 * time.Second).UnixNano()}}
	for s, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "500ms": 500 * time.Millisecond, "+10": 30 * time.Second, "-5": 15 * time.Second, "-1m": -40 * time.Second,
		"23:59:55": 5 * time.Second, "23:59:55.25": 5250 * time.Millisecond, "00:00:05": 15 * time.Second,
	} {
		got, err := u.timeOf(s)
		if d := time.Duration(got - first.UnixNano()); err != nil || d != want {
			t.Errorf("%s: %v after the first, %v; want %v", s, d, err, want)
		}
	}
	for _, s := range []string{"x", "+", "-", "+x", "25:00:00", "::", "+-1"} {
		if _, err := u.timeOf(s); err == nil {
			t.Errorf("%q is taken for a time", s)
		}
	}
	u.snap = &monitor.Snapshot{}
	if _, err := u.timeOf("1"); err == nil {
		t.Error("there is a time before the first packet")
	}
}

func TestOf(t *testing.T) {
	x := &table{rows: make([]row, 25)}
	for _, c := range []struct {
		first, more uint64
		from, n     int
		want        string
	}{
		{0, 0, 0, 25, ""}, {0, 0, 0, 10, "10 of 25"}, {0, 0, 15, 10, "16-25 of 25"}, {0, 5, 0, 25, "25 of 30"}, {100, 200, 0, 10, "101-110 of 225"}, {0, 0, 0, 0, "0 of 25"},
	} {
		if x.first, x.more = c.first, c.more; x.of(c.from, c.n) != c.want {
			t.Errorf("%+v: %q", c, x.of(c.from, c.n))
		}
	}
}

// TestSearchAndJump types what is searched for, and times.
func TestSearchAndJump(t *testing.T) {
	s := newScript(t, "rocev2-nfs41-recall.pcap", monitor.Options{})
	s.run(200)
	x := newScreen(t, s, 80, 24)
	x.press("1", "f")
	x.press("n", "u", "l", "l", "enter")
	if id := x.table.rows[x.at[overview].cursor].id; !strings.Contains(id, "NULL") {
		t.Errorf("the cursor is on %q", id)
	}
	x.press("f", "x", "y", "z", "z", "y", "enter")
	if !strings.Contains(x.message, "no row") {
		t.Errorf("%q", x.message)
	}
	now := s.snap.Time
	x.press("{")
	if want := max(now-10e9, s.snap.First); s.jumped != want {
		t.Errorf("back to %d, want %d", s.jumped, want)
	}
	x.press("@", "+", "2", "enter")
	if s.jumped != now+2e9 {
		t.Errorf("to %d, want %d", s.jumped, now+2e9)
	}
	x.press("@", "x", "enter")
	if !x.typing || x.wrong == "" {
		t.Error("x is taken for a time")
	}
	x.press("esc", "2", "a")
	if s.page == nil || *s.page != 0 {
		t.Error("a does not list all")
	}
}
