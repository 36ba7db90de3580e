package text

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	const at = 1795239135899671007 // 2026-11-21 05:32:15.899671007 UTC
	old := time.Local
	time.Local = time.FixedZone("", 3600)
	defer func() { time.Local = old }()
	for _, c := range []struct {
		name   string
		format TimeFormat
		want   [2]string
	}{
		{"default", TimeFormat{}, [2]string{"05:32:15.899671", "05:32:17.399671"}},
		{"none", TimeFormat{Style: TimeNone}, [2]string{"", ""}},
		{"epoch", TimeFormat{Style: TimeEpoch}, [2]string{"1795239135.899671", "1795239137.399671"}},
		{"delta", TimeFormat{Style: TimeDelta}, [2]string{"   0.000000", "   1.500000"}},
		{"date", TimeFormat{Style: TimeDate}, [2]string{"2026-11-21 05:32:15.899671", "2026-11-21 05:32:17.399671"}},
		{"first", TimeFormat{Style: TimeSinceFirst}, [2]string{"   0.000000", "   1.500000"}},
		{"nano", TimeFormat{Nano: true}, [2]string{"05:32:15.899671007", "05:32:17.399671007"}},
		{"local", TimeFormat{Style: TimeDate, Local: true}, [2]string{"2026-11-21 06:32:15.899671", "2026-11-21 06:32:17.399671"}},
	} {
		clock := Clock{Format: c.format}
		for i, ns := range []int64{at, at + 15e8} {
			if got := string(clock.Append(nil, ns)); got != c.want[i] {
				t.Errorf("%s: %q, want %q", c.name, got, c.want[i])
			}
		}
	}
}

func TestClockBackwards(t *testing.T) {
	c := Clock{Format: TimeFormat{Style: TimeDelta}}
	c.Append(nil, 5e9)
	if got := string(c.Append(nil, 35e8)); got != "  -1.500000" {
		t.Errorf("%q", got)
	}
}

// The clock agrees with package time, before 1970 as well.
func FuzzClock(f *testing.F) {
	f.Add(int64(1795239135899671007))
	f.Add(int64(-1))
	f.Add(int64(-1 << 63))
	f.Fuzz(func(t *testing.T, ns int64) {
		c := Clock{Format: TimeFormat{Style: TimeDate, Nano: true}}
		want := time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000000000")
		for range 2 { // the second time from what is remembered
			if got := string(c.Append(nil, ns)); got != want {
				t.Fatalf("%d: %s, want %s", ns, got, want)
			}
		}
		c = Clock{}
		for range 2 {
			if got := string(c.Append(nil, ns)); got != want[len("2006-01-02 "):len(want)-3] {
				t.Fatalf("%d: %q, want %s", ns, got, want)
			}
		}
		c = Clock{Format: TimeFormat{Style: TimeEpoch}}
		c.Append(nil, ns)
	})
}

// TestTimeOfDay writes times one after the other.
func TestTimeOfDay(t *testing.T) {
	old := time.Local
	time.Local = time.FixedZone("", -(3*3600 + 1800))
	defer func() { time.Local = old }()
	random := rand.New(rand.NewPCG(3, 4))
	for _, local := range []bool{false, true} {
		c := Clock{Format: TimeFormat{Local: local}}
		ns := int64(-5e9)
		for range 100_000 {
			ns += random.Int64N(1 << random.IntN(45))
			at := time.Unix(0, ns).UTC()
			if local {
				at = at.Local()
			}
			want := at.Format("15:04:05.000000")
			if got := string(c.Append(nil, ns)); got != want {
				t.Fatalf("%d: %q, want %q", ns, got, want)
			}
		}
	}
	var c Clock
	ns, b := int64(0), make([]byte, 0, 32)
	if a := testing.AllocsPerRun(100, func() { ns += 1e9; b = c.Append(b[:0], ns) }); a != 0 {
		t.Errorf("%v allocations for a new second", a)
	}
}

func TestTimeWords(t *testing.T) {
	for _, w := range []string{"a", "ad", "u", "ud", "e", "r", "d", "dd"} {
		if _, err := ParseTime(w); err != nil || !TimeWord(w) {
			t.Errorf("%s: %v", w, err)
		}
	}
	if _, err := ParseTime("x"); err == nil || TimeWord("x") {
		t.Error("x accepted")
	}
	for n := range 6 {
		if _, err := TimeCount(n); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	if _, err := TimeCount(6); err == nil {
		t.Error("6 accepted")
	}
}
