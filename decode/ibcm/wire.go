package ibcm

import (
	"encoding/binary"
	"net/netip"
)

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
	return uint32(b[off])<<16 | uint32(b[off+1])<<8 | uint32(b[off+2])
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

func put8(b []byte, off int, v uint8) {
	if off < len(b) {
		b[off] = v
	}
}

func put16(b []byte, off int, v uint16) {
	if off+2 <= len(b) {
		binary.BigEndian.PutUint16(b[off:], v)
	}
}

func put24(b []byte, off int, v uint32) {
	if off+3 <= len(b) {
		b[off], b[off+1], b[off+2] = byte(v>>16), byte(v>>8), byte(v)
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

// bits is a field of width bits in the byte at off; shift counts from its
// lowest bit.
type bits struct {
	off, shift, width uint8
}

func (f bits) get(b []byte) uint8 {
	return get8(b, int(f.off)) >> f.shift & (1<<f.width - 1)
}

func (f bits) is(b []byte) bool { return f.get(b) != 0 }

func (f bits) put(b []byte, v uint8) {
	if int(f.off) < len(b) {
		mask := uint8(1<<f.width-1) << f.shift
		b[f.off] = b[f.off]&^mask | v<<f.shift&mask
	}
}

func (f bits) set(b []byte, on bool) {
	v := uint8(0)
	if on {
		v = 1
	}
	f.put(b, v)
}

// get20 and put20 are for flow labels: the upper 20 of 32 bits.
func get20(b []byte, off int) uint32 { return get32(b, off) >> 12 }

func put20(b []byte, off int, v uint32) {
	put32(b, off, get32(b, off)&0xfff|v<<12)
}

func getGID(b []byte, off int) netip.Addr {
	if off+16 > len(b) {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(b[off:]))
}

// putGID writes an address; IPv4 as ::ffff:a.b.c.d, as RoCE GIDs have it.
func putGID(b []byte, off int, a netip.Addr) {
	if off+16 > len(b) || !a.IsValid() {
		return
	}
	g := a.As16()
	copy(b[off:], g[:])
}

// area is a part of a message, as far as it was captured.
func area(b []byte, from, to int) []byte {
	to = min(to, len(b))
	if from >= to {
		return nil
	}
	return b[from:to:to]
}

// putArea copies v into a part of a message and zeros the rest of the part.
func putArea(b []byte, from, to int, v []byte) {
	a := area(b, from, to)
	clear(a[copy(a, v):])
}
