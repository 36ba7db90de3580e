// Package wire reads and writes integers in the order of the network, in headers
// that the capture may have cut: what lies beyond the end reads as zero, and is
// not written.
package wire

import "encoding/binary"

// Get8 is the byte at an offset.
func Get8(b []byte, off int) uint8 {
	if off >= len(b) {
		return 0
	}
	return b[off]
}

// Get16 is the number in two bytes.
func Get16(b []byte, off int) uint16 {
	if off+2 > len(b) {
		return 0
	}
	return binary.BigEndian.Uint16(b[off:])
}

// Get24 is the number in three bytes.
func Get24(b []byte, off int) uint32 {
	if off+3 > len(b) {
		return 0
	}
	b = b[off : off+3]
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// Get32 is the number in four bytes.
func Get32(b []byte, off int) uint32 {
	if off+4 > len(b) {
		return 0
	}
	return binary.BigEndian.Uint32(b[off:])
}

// Get64 is the number in eight bytes.
func Get64(b []byte, off int) uint64 {
	if off+8 > len(b) {
		return 0
	}
	return binary.BigEndian.Uint64(b[off:])
}

// Put8 writes a byte.
func Put8(b []byte, off int, v uint8) {
	if off < len(b) {
		b[off] = v
	}
}

// PutBits replaces the bits of a byte that mask selects.
func PutBits(b []byte, off int, mask, v uint8) {
	if off < len(b) {
		b[off] = b[off]&^mask | v&mask
	}
}

// Put16 writes a number in two bytes.
func Put16(b []byte, off int, v uint16) {
	if off+2 <= len(b) {
		binary.BigEndian.PutUint16(b[off:], v)
	}
}

// Put24 writes the lower 24 bits of v in three bytes.
func Put24(b []byte, off int, v uint32) {
	if off+3 <= len(b) {
		b = b[off : off+3]
		b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
	}
}

// Put32 writes a number in four bytes.
func Put32(b []byte, off int, v uint32) {
	if off+4 <= len(b) {
		binary.BigEndian.PutUint32(b[off:], v)
	}
}

// Put64 writes a number in eight bytes.
func Put64(b []byte, off int, v uint64) {
	if off+8 <= len(b) {
		binary.BigEndian.PutUint64(b[off:], v)
	}
}
