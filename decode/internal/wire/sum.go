package wire

import (
	"encoding/binary"
	"math/bits"
)

// Sum64 adds bytes to a checksum, which begins with 0. Unlike those of hash/maphash it is the same in each process,
// since it may be part of a saved state. It resists accidents, not people: where it is used, somebody who can make
// two inputs with one sum gains no more than by sending the same input twice.
func Sum64(sum uint64, b []byte) uint64 {
	const m1, m2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h, g := sum^uint64(len(b))*m2, sum+m1
	for ; len(b) >= 16; b = b[16:] {
		h = bits.RotateLeft64(h^binary.LittleEndian.Uint64(b)*m1, 31) * m2
		g = bits.RotateLeft64(g^binary.LittleEndian.Uint64(b[8:])*m2, 29) * m1
	}
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^binary.LittleEndian.Uint64(b)*m1, 31) * m2
	}
	for _, c := range b {
		g = (g ^ uint64(c)) * m1
	}
	h ^= bits.RotateLeft64(g, 32) * m2
	h = (h ^ h>>32) * m1
	return h ^ h>>29
}
