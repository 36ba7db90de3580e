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

// Room is how many bytes Put may write: more than a number has digits.
const Room = 24

// Put writes a number where there is room, and returns how many digits it has. Behind them it may write anything.
func Put(d *[Room]byte, v uint64) int {
	if v >= tenTo8 {
		return putLong(d, v)
	}
	x := eight(uint32(v))
	lead := bits.TrailingZeros64(x|1<<63) &^ 7 // bits of leading zeros; the last digit stays
	binary.LittleEndian.PutUint64(d[:], (x+zeros)>>(lead&63))
	return 8 - lead/8
}

func putLong(d *[Room]byte, v uint64) (n int) {
	high := v / tenTo8
	if high < 100 { // all of 32 bits
		tens := high * 103 >> 10
		pair := '0' + tens | ('0'+high-10*tens)<<8
		n = 1 + int((9-high)>>63)
		binary.LittleEndian.PutUint16(d[:], uint16(pair>>(8*(2-n)&8)))
	} else {
		n = Put(d, high)
	}
	binary.LittleEndian.PutUint64(d[n&15:], eight(uint32(v-tenTo8*high))+zeros)
	return n + 8
}

// Word is the digits of a number below 10^8, the first in the lowest byte, and how many there are. Bytes behind them are 0.
func Word(v uint32) (text uint64, n int) {
	x := eight(v)
	lead := bits.TrailingZeros64(x|1<<63) &^ 7 // bits of leading zeros; the last digit stays
	return (x + zeros) >> (lead & 63), 8 - lead/8
}

// EightWord is the eight digits of a number below 10^8, the first in the lowest byte.
func EightWord(v uint32) uint64 { return eight(v) + zeros }

// Fixed appends a number with so many digits, the last ones if it has more.
func Fixed(b []byte, v uint64, digits int) []byte {
	if digits > 8 {
		b = Fixed(b, v/tenTo8, digits-8)
		return full(b, uint32(v%tenTo8))
	}
	n := len(b) + digits
	return binary.LittleEndian.AppendUint64(b, (eight(uint32(v%tenTo8))+zeros)>>(64-8*digits))[:n]
}

// Micro appends a number below 10^6 as six digits.
func Micro(b []byte, v uint32) []byte {
	n := len(b) + 6
	return binary.LittleEndian.AppendUint64(b, (eight(v)+zeros)>>16)[:n]
}

// MicroWord is what Micro appends: six bytes, the first the lowest. The others are 0.
func MicroWord(v uint32) uint64 { return (eight(v) + zeros) >> 16 }

// Nano appends a number below 10^9 as nine digits.
func Nano(b []byte, v uint32) []byte {
	high := v / tenTo8
	return full(append(b, '0'+byte(high)), v-tenTo8*high)
}

// PutNano writes what Nano appends.
func PutNano(d *[9]byte, v uint32) {
	high := v / tenTo8
	d[0] = '0' + byte(high)
	binary.LittleEndian.PutUint64(d[1:], eight(v-tenTo8*high)+zeros)
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
	x = q | (x-100*q)<<16
	q = x * 103 >> 10 & 0x000f_000f_000f_000f // by 10
	return q | (x-10*q)<<8
}

// Hex32 appends eight hexadecimal digits.
func Hex32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint64(b, hex(v)) }

// HexWord is what Hex32 appends, the first digit in the highest byte.
func HexWord(v uint32) uint64 { return hex(v) }

// Hex appends bytes as hexadecimal digits, like encoding/hex.
func Hex(b, v []byte) []byte {
	n := len(b)
	b = slices.Grow(b, 2*len(v))[:n+2*len(v)]
	d := b[n:]
	for ; len(v) >= 4; v, d = v[4:], d[8:] {
		binary.BigEndian.PutUint64(d, hex(binary.BigEndian.Uint32(v)))
	}
	for ; len(v) >= 1; v, d = v[1:], d[2:] {
		binary.BigEndian.PutUint16(d, uint16(hex(uint32(v[0]))))
	}
	return b
}

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
