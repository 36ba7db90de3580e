package units

import (
	"fmt"

	"github.com/rpcrdma/toolkit/internal/digits"
)

// Size is a number of bytes, short but exact: multiples of 1024, 1024² and 1024³ as 4K, 1M and 2G, everything else in
// digits.
func Size[N Integer](n N) string { return string(AppendSize(nil, uint64(n))) }

// AppendSize appends Size.
func AppendSize(b []byte, n uint64) []byte {
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

// SizeCell is Size as a cell: "-" for zero.
func SizeCell(n uint64) string {
	if n == 0 {
		return "-"
	}
	return Size(n)
}

// Rounded is a number with three digits and a unit letter: unit is 1000 or 1024, and K, M, G … stand for its
// powers. Unlike Size, it is not exact.
func Rounded(f, unit float64) string {
	const letters = "KMGTPE"
	i := -1
	for f >= unit && i < len(letters)-1 {
		f /= unit
		i++
	}
	var s string
	switch {
	case i < 0 && f == float64(int64(f)):
		return fmt.Sprintf("%.0f", f)
	case f >= 100:
		s = fmt.Sprintf("%.0f", f)
	case f >= 10:
		s = fmt.Sprintf("%.1f", f)
	default:
		s = fmt.Sprintf("%.2f", f)
	}
	if i >= 0 {
		s += letters[i : i+1]
	}
	return s
}

// Rate is a cell: a number a second, rounded; "-" if there was none.
func Rate(f float64) string {
	if f <= 0 {
		return "-"
	}
	return Rounded(f, 1000)
}

// Bytes is a cell: a number of bytes, or of bytes a second, rounded by 1024; "-" if there was none.
func Bytes[N Integer | ~float64](n N) string {
	if n <= 0 {
		return "-"
	}
	return Rounded(float64(n), 1024)
}

// BytesUnit is a rounded number of bytes with its unit: "1.38MiB".
func BytesUnit[N Integer | ~float64](n N) string {
	s := Rounded(float64(n), 1024)
	if last := s[len(s)-1]; last > '9' {
		s += "i"
	}
	return s + "B"
}

// BytesText is a number of bytes in a sentence: "123 bytes", "64.0 KiB".
func BytesText(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
