package text

import (
	"math"
	"strconv"
	"time"
)

// Size appends a number of bytes, short but exact: multiples of 1024, 1024² and 1024³ as 4K, 1M and 2G,
// everything else in digits.
func Size(b []byte, n uint64) []byte {
	switch {
	case n == 0 || n&0x3ff != 0:
		return strconv.AppendUint(b, n, 10)
	case n&0xfffff != 0:
		return append(strconv.AppendUint(b, n>>10, 10), 'K')
	case n&0x3fffffff != 0:
		return append(strconv.AppendUint(b, n>>20, 10), 'M')
	}
	return append(strconv.AppendUint(b, n>>30, 10), 'G')
}

// Duration appends a duration with four digits and a unit: "531.1µs".
func Duration(b []byte, d time.Duration) []byte {
	if d < 0 {
		b = append(b, '-')
		d = -max(d, -math.MaxInt64) // the smallest Duration cannot be negated
	}
	switch {
	case d < time.Microsecond:
		return append(strconv.AppendInt(b, int64(d), 10), "ns"...)
	case d < 999950*time.Nanosecond:
		return append(fixed(b, int64(d), int64(time.Microsecond)), "µs"...)
	case d < 999950*time.Microsecond:
		return append(fixed(b, int64(d), int64(time.Millisecond)), "ms"...)
	}
	return append(fixed(b, int64(d), int64(time.Second)), 's')
}

// fixed appends n/unit, rounded to four significant digits.
func fixed(b []byte, n, unit int64) []byte {
	digits := 3
	switch {
	case n >= unit*1000-unit/20:
		digits = 0
	case n >= unit*100-unit/200:
		digits = 1
	case n >= unit*10-unit/2000:
		digits = 2
	}
	scale := int64(1)
	for range digits {
		scale *= 10
	}
	if digits == 0 {
		return strconv.AppendInt(b, n/unit+(n%unit+unit/2)/unit, 10)
	}
	v := n/unit*scale + (n%unit*scale+unit/2)/unit
	b = strconv.AppendInt(b, v/scale, 10)
	b = append(b, '.')
	return zeros(b, v%scale, digits)
}

const hexDigits = "0123456789abcdef"

// hex32 appends eight hexadecimal digits.
func hex32(b []byte, v uint32) []byte {
	var d [8]byte
	for i := range d {
		d[i] = hexDigits[v>>(28-4*i)&15]
	}
	return append(b, d[:]...)
}

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

// hexBytes appends bytes as hexadecimal digits.
func hexBytes(b, v []byte) []byte {
	for _, c := range v {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}
