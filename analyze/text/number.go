package text

import (
	"math"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/internal/digits"
)

// Size appends a number of bytes, short but exact: multiples of 1024, 1024² and 1024³ as 4K, 1M and 2G,
// everything else in digits.
func Size(b []byte, n uint64) []byte {
	switch {
	case n == 0 || n&0x3ff != 0:
		return digits.Append(b, n)
	case n&0xfffff != 0:
		return append(digits.Append(b, n>>10), 'K')
	case n&0x3fffffff != 0:
		return append(digits.Append(b, n>>20), 'M')
	}
	return append(digits.Append(b, n>>30), 'G')
}

// Duration appends a duration with four digits and a unit: "531.1µs".
func Duration(b []byte, d time.Duration) []byte {
	b, _ = duration(b, d)
	return b
}

// duration is Duration, and says how many columns it takes.
func duration(b []byte, d time.Duration) ([]byte, int) {
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

const hexDigits = "0123456789abcdef"

// hexNumber appends 0x and at least digits hexadecimal digits.
func hexNumber(b []byte, v uint64, digits int) []byte {
	b = append(b, '0', 'x')
	for s := 60; s >= 0; s -= 4 {
		if v>>s == 0 && s/4 >= digits {
			continue
		}
		b = append(b, hexDigits[v>>s&15])
	}
	return b
}
