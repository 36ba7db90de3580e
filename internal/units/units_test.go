package units

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		want string
	}{
		{0, "0"}, {1, "1"}, {1023, "1023"}, {1024, "1K"}, {1025, "1025"}, {4097, "4097"}, {65536, "64K"},
		{1 << 20, "1M"}, {3 << 19, "1536K"}, {1 << 30, "1G"}, {5 << 30, "5G"}, {1<<64 - 1, "18446744073709551615"},
	} {
		if got := Size(c.n); got != c.want {
			t.Errorf("%d: %s, want %s", c.n, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0ns"}, {1, "1ns"}, {999, "999ns"}, {1000, "1.000µs"}, {9999, "9.999µs"}, {10004, "10.00µs"}, {10006, "10.01µs"},
		{531100, "531.1µs"}, {999499, "999.5µs"}, {999949, "999.9µs"}, {999950, "1.000ms"}, {999999, "1.000ms"}, {24985527, "24.99ms"},
		{99999999, "100.0ms"}, {999999999, "1.000s"}, {time.Second, "1.000s"}, {time.Minute, "60.00s"},
		{time.Hour, "3600s"}, {-1500, "-1.500µs"}, {1<<63 - 1, "9223372037s"}, {-1 << 63, "-9223372037s"},
	} {
		if got := Duration(c.d); got != c.want {
			t.Errorf("%d: %s, want %s", c.d, got, c.want)
		}
	}
}

// TestFixed compares the short division with one that cannot overflow.
func TestFixed(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	for range 200_000 {
		n := random.Int64N(999_950_000_000) >> random.IntN(30) // below where Duration says seconds without digits
		unit := time.Second
		switch {
		case n < int64(time.Microsecond):
			continue
		case n < 999950:
			unit = time.Microsecond
		case n < 999950000:
			unit = time.Millisecond
		}
		u := int64(unit)
		digits := 3
		for limit := 10 * u; digits > 0 && n >= limit-limit/20000; limit *= 10 {
			digits--
		}
		scale := int64(math.Pow10(digits))
		v := n/u*scale + (n%u*scale+u/2)/u
		want := fmt.Sprintf("%d.%0*d", v/scale, digits, v%scale)
		if digits == 0 {
			want = strconv.FormatInt(v, 10)
		}
		if got := string(fixed(nil, n, u)); got != want {
			t.Fatalf("%d of %v: %s, want %s", n, unit, got, want)
		}
	}
}

// A duration never says less or more than four digits tell.
func FuzzDuration(f *testing.F) {
	f.Add(int64(999500))
	f.Add(int64(1<<63 - 1))
	f.Fuzz(func(t *testing.T, n int64) {
		s := Duration(n)
		d, err := time.ParseDuration(s)
		if err != nil {
			if n > 9e18 || n < -9e18 {
				return // rounded beyond what a Duration holds
			}
			t.Fatalf("%d: %s: %v", n, s, err)
		}
		diff, size := float64(d)-float64(n), float64(n)
		if diff < 0 {
			diff = -diff
		}
		if size < 0 {
			size = -size
		}
		if diff > size/1000+0.5 {
			t.Fatalf("%d: %s", n, s)
		}
	})
}

func TestPlural(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 packets", 1: "1 packet", 2: "2 packets"} {
		if got := Plural(n, "packet"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for what, want := range map[string]string{"summary": "2 summaries", "key": "2 keys"} {
		if got := Plural(2, what); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBytesUnit: units with B alone are powers of 1000 in this project (docs/filter.md), and these are not.
func TestBytesUnit(t *testing.T) {
	for n, want := range map[float64]string{0: "0B", 670: "670B", 1023: "1023B", 1024: "1.00KiB", 100848: "98.5KiB", 1445888: "1.38MiB", 1 << 33: "8.00GiB"} {
		if got := BytesUnit(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
