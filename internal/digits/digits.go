// Package digits writes numbers and bytes in digits, for outputs that consist of them for the most part: several digits
// at a time, straight into the output.
package digits

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	tenTo8 = 100_000_000
	zeros  = 0x3030303030303030 // eight digits 0
)

// Append appends a number, like strconv.AppendUint in base 10.
func Append(b []byte, v uint64) []byte {
	if v < 10 {
		return append(b, '0'+byte(v))
	}
	if v >= tenTo8 {
		high := v / tenTo8
		low := uint32(v - tenTo8*high)
		if high < 10 { // most others
			return full(append(b, '0'+byte(high)), low)
		}
		if high < 100 { // those of 32 bits
			tens := byte(high * 103 >> 10)
			return full(append(b, '0'+tens, '0'+byte(high)-10*tens), low)
		}
		return full(Append(b, high), low)
	}
	x := eight(uint32(v))
	lead := bits.TrailingZeros64(x) &^ 7 // bits of leading zeros
	n := len(b) + 8 - lead/8
	return binary.LittleEndian.AppendUint64(b, (x+zeros)>>lead)[:n]
}

// EightWord is the eight digits of a number below 10^8, the first in the lowest byte.
func EightWord(v uint32) uint64 { return eight(v) + zeros }

// Micro appends a number below 10^6 as six digits.
func Micro(b []byte, v uint32) []byte {
	n := len(b) + 6
	return binary.LittleEndian.AppendUint64(b, (eight(v)+zeros)>>16)[:n]
}

// Nano appends a number below 10^9 as nine digits.
func Nano(b []byte, v uint32) []byte {
	high := v / tenTo8
	return full(append(b, '0'+byte(high)), v-tenTo8*high)
}

// Point appends a number below 10^4 as four digits, with a decimal point before the last ones, 1 to 3.
func Point(b []byte, v uint32, decimals int) []byte {
	n := len(b) + 5
	return binary.LittleEndian.AppendUint64(b, PointWord(v, decimals))[:n]
}

// PointWord is what Point appends: five bytes, the first the lowest. The others are 0.
func PointWord(v uint32, decimals int) uint64 {
	high := v / 100
	x := uint64(high | (v-100*high)<<16)
	q := x * 103 >> 10 & 0x000f_000f // by 10
	x = q | (x-10*q)<<8 | zeros>>32
	whole := 8 * (4 - uint(decimals)) // bits before the point
	return x&(1<<(whole&63)-1) | '.'<<(whole&63) | x>>(whole&63)<<((whole+8)&63)
}

// full appends eight digits.
func full(b []byte, v uint32) []byte {
	return binary.LittleEndian.AppendUint64(b, eight(v)+zeros)
}

// eight is the digits of a number below 10^8, the first in the lowest byte. The number is divided in halves: four digits
// in 32 bits each, two in 16, one in 8.
func eight(v uint32) uint64 {
	high := uint64(v / 10000)
	x := high | (uint64(v)-10000*high)<<32
	q := x * 10486 >> 20 & 0x0000007f_0000007f // by 100
	x = x<<16 - q*(100<<16-1)                  // q + (x-100*q)<<16
	q = x * 103 >> 10 & 0x000f_000f_000f_000f  // by 10
	return x<<8 - q*(10<<8-1)
}

// Hex32 appends eight hexadecimal digits.
func Hex32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint64(b, hex(v)) }

// Hex appends bytes as hexadecimal digits, like encoding/hex.
func Hex(b, v []byte) []byte {
	n := len(b)
	b = slices.Grow(b, 2*len(v))[:n+2*len(v)]
	PutHex(b[n:], v)
	return b
}

// PutHex writes what Hex appends where there is room for it, and returns how many digits there are.
func PutHex(d, v []byte) int {
	d = d[:2*len(v)]
	i := 0
	for ; i+8 <= len(v); i += 8 {
		s, o := (*[8]byte)(v[i:i+8:i+8]), (*[16]byte)(d[2*i:2*i+16:2*i+16])
		binary.LittleEndian.PutUint16(o[0:], pairs[s[0]])
		binary.LittleEndian.PutUint16(o[2:], pairs[s[1]])
		binary.LittleEndian.PutUint16(o[4:], pairs[s[2]])
		binary.LittleEndian.PutUint16(o[6:], pairs[s[3]])
		binary.LittleEndian.PutUint16(o[8:], pairs[s[4]])
		binary.LittleEndian.PutUint16(o[10:], pairs[s[5]])
		binary.LittleEndian.PutUint16(o[12:], pairs[s[6]])
		binary.LittleEndian.PutUint16(o[14:], pairs[s[7]])
	}
	if i+4 <= len(v) {
		s, o := (*[4]byte)(v[i:i+4:i+4]), (*[8]byte)(d[2*i:2*i+8:2*i+8])
		binary.LittleEndian.PutUint16(o[0:], pairs[s[0]])
		binary.LittleEndian.PutUint16(o[2:], pairs[s[1]])
		binary.LittleEndian.PutUint16(o[4:], pairs[s[2]])
		binary.LittleEndian.PutUint16(o[6:], pairs[s[3]])
		i += 4
	}
	for ; i < len(v); i++ {
		binary.LittleEndian.PutUint16(d[2*i:2*i+2:2*i+2], pairs[v[i]])
	}
	return len(d)
}

// pairs is the two digits of each byte, the first in the lower byte.
var pairs = func() (t [256]uint16) {
	for i := range t {
		t[i] = bits.ReverseBytes16(uint16(hex(uint32(i))))
	}
	return t
}()

// hex is the eight digits of a number: each half byte in a byte of its own, and for those above nine what lies between
// '9' and 'a'.
func hex(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f
	above := (x + 0x0606060606060606) >> 4 & 0x0101010101010101
	return x + 0x3030303030303030 + above*('a'-'0'-10)
}
