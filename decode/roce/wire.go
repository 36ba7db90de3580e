package roce

import "encoding/binary"

// The header types are byte slices. Their getters return zero and their
// setters do nothing where the slice is too short, so that a header which the
// capture cut is safe to look at; IsValid tells the difference.

func get8(b []byte, off int) uint8 {
	if off >= len(b) {
		return 0
	}
	return b[off]
}

func get16(b []byte, off int) uint16 {
	if off+2 > len(b) {
		return 0
	}
	return binary.BigEndian.Uint16(b[off:])
}

func get24(b []byte, off int) uint32 {
	if off+3 > len(b) {
		return 0
	}
	b = b[off : off+3]
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

func get32(b []byte, off int) uint32 {
	if off+4 > len(b) {
		return 0
	}
	return binary.BigEndian.Uint32(b[off:])
}

func get64(b []byte, off int) uint64 {
	if off+8 > len(b) {
		return 0
	}
	return binary.BigEndian.Uint64(b[off:])
}

// putBits8 replaces the bits of b[off] that mask selects.
func putBits8(b []byte, off int, mask, v uint8) {
	if off < len(b) {
		b[off] = b[off]&^mask | v&mask
	}
}

func put16(b []byte, off int, v uint16) {
	if off+2 <= len(b) {
		binary.BigEndian.PutUint16(b[off:], v)
	}
}

func put24(b []byte, off int, v uint32) {
	if off+3 <= len(b) {
		b = b[off : off+3]
		b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
	}
}

func put32(b []byte, off int, v uint32) {
	if off+4 <= len(b) {
		binary.BigEndian.PutUint32(b[off:], v)
	}
}

func put64(b []byte, off int, v uint64) {
	if off+8 <= len(b) {
		binary.BigEndian.PutUint64(b[off:], v)
	}
}

// flag is mask if on, else 0.
func flag(on bool, mask uint8) uint8 {
	if on {
		return mask
	}
	return 0
}
