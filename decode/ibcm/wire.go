package ibcm

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

// bits is a field of width bits in the byte at off; shift counts from its
// lowest bit.
type bits struct {
	off, shift, width uint8
}

func (f bits) get(b []byte) uint8 {
	return wire.Get8(b, int(f.off)) >> f.shift & (1<<f.width - 1)
}

func (f bits) put(b []byte, v uint8) {
	if int(f.off) < len(b) {
		mask := uint8(1<<f.width-1) << f.shift
		b[f.off] = b[f.off]&^mask | v<<f.shift&mask
	}
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
