package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/internal/digits"
)

// Duration is a number of nanoseconds with four digits and a unit: "531.1µs".
func Duration[N ~int64](ns N) string { return string(AppendDuration(nil, time.Duration(ns))) }

// AppendDuration appends Duration.
func AppendDuration(b []byte, d time.Duration) []byte {
	b, _ = DurationColumns(b, d)
	return b
}

// DurationColumns is AppendDuration, and says how many columns it takes.
func DurationColumns(b []byte, d time.Duration) ([]byte, int) {
	start := len(b)
	if d < 0 {
		b = append(b, '-')
		d = -max(d, -math.MaxInt64) // the smallest Duration cannot be negated
	}
	switch {
	case d < time.Microsecond:
		b = append(digits.Append(b, uint64(d)), "ns"...)
	case d < 999950*time.Nanosecond:
		b = append(fixed(b, int64(d), int64(time.Microsecond)), "µs"...)
		return b, len(b) - start - 1 // µ has two bytes
	case d < 999950*time.Microsecond:
		b = append(fixed(b, int64(d), int64(time.Millisecond)), "ms"...)
	default:
		b = append(fixed(b, int64(d), int64(time.Second)), 's')
	}
	return b, len(b) - start
}

// fixed appends n/unit, rounded to four significant digits.
func fixed(b []byte, n, unit int64) []byte {
	decimals, scale := 3, int64(1000)
	switch {
	case n >= unit*1000-unit/20:
		return strconv.AppendInt(b, n/unit+(n%unit+unit/2)/unit, 10)
	case n >= unit*100-unit/200:
		decimals, scale = 1, 10
	case n >= unit*10-unit/2000:
		decimals, scale = 2, 100
	}
	v := uint64(n*scale + unit/2) // four digits, times unit
	switch unit {
	case int64(time.Microsecond): // a division by a constant takes much less time
		v /= uint64(time.Microsecond)
	case int64(time.Millisecond):
		v /= uint64(time.Millisecond)
	default:
		v /= uint64(unit)
	}
	return digits.Point(b, uint32(v), decimals)
}

// DurationCell is Duration as a cell: "-" for zero.
func DurationCell(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return Duration(ns)
}

// Elapsed is a cell: Duration, but 1h02m rather than 3720s; "-" if it is negative.
func Elapsed(ns int64) string {
	if ns < 0 {
		return "-"
	}
	if d := time.Duration(ns); d >= 1000*time.Second {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return Duration(ns)
}

// Latency is a cell: Elapsed, "-" if nothing was measured.
func Latency(ns int64) string {
	if ns <= 0 {
		return "-"
	}
	return Elapsed(ns)
}

// DurationText is a duration in a sentence, with at most three figures: "1.5 ms".
func DurationText(ns int64) string {
	figures := func(n float64, unit string) string {
		if n < 9.95 {
			return fmt.Sprintf("%.1f %s", n, unit)
		}
		return fmt.Sprintf("%.0f %s", n, unit)
	}
	switch d := time.Duration(ns); {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", ns)
	case d < 999500*time.Nanosecond:
		return figures(float64(ns)/1e3, "µs")
	case d < 999500*time.Microsecond:
		return figures(float64(ns)/1e6, "ms")
	}
	return figures(float64(ns)/1e9, "s")
}

// Round is a duration of round numbers in one unit: "100 µs", "2 s".
func Round(d time.Duration) string {
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}, {time.Nanosecond, "ns"}} {
		if d >= u.d || u.d == 1 {
			return strconv.FormatFloat(float64(d)/float64(u.d), 'g', 6, 64) + " " + u.name
		}
	}
	return ""
}

// Edge is the edge of a band, a power of two of nanoseconds, with three digits: "4.1µs".
func Edge(ns int64) string {
	switch {
	case ns == 0:
		return "0"
	case ns < 1e6:
		return fmt.Sprintf("%.3gµs", float64(ns)/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3gms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3gs", float64(ns)/1e9)
}

// Short is a duration as Go writes it, rounded to about four digits: "1.235ms".
func Short(d time.Duration) string {
	switch a := d.Abs(); {
	case a >= 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case a >= time.Second:
		return d.Round(time.Millisecond).String()
	case a >= time.Millisecond:
		return d.Round(time.Microsecond).String()
	case a >= 10*time.Microsecond:
		return d.Round(100 * time.Nanosecond).String()
	}
	return d.String()
}

// Micros is a number of microseconds with one digit after the point, without the unit.
func Micros(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	d = (d + 50*time.Nanosecond) / (100 * time.Nanosecond)
	return sign + strconv.FormatInt(int64(d/10), 10) + "." + strconv.FormatInt(int64(d%10), 10)
}

// Seconds is a number of nanoseconds in seconds, to the microsecond: "1.000250 s".
func Seconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Sprintf("%s%d.%06d s", sign, ns/1e9, ns%1e9/1e3)
}

// Clock is the time of day of a number of nanoseconds since 1970, in UTC.
func Clock(ns int64) string { return time.Unix(0, ns).UTC().Format("15:04:05.000000") }
