package wire

import (
	"encoding/binary"
	"math/bits"
)

// Sum64 adds bytes to a checksum, which begins with 0. Unlike those of hash/maphash it is the same in each process,
// since it may be part of a saved state. It resists accidents, not people: where it is used, somebody who can make
// two inputs with one sum gains no more than by sending the same input twice.
func Sum64(sum uint64, b []byte) uint64 {
	const m1, m2, m3 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xa0761d6478bd642f
	// Neither is 0: then a word of zeros would hide the one beside it.
	h, g := mix(sum^m1, uint64(len(b))^m2), sum^m3
	for len(b) >= 64 { // as the next loop, twice: to cut the slice costs as much as a step
		w := (*[64]byte)(b)
		h = mix(binary.LittleEndian.Uint64(w[:])^m1, binary.LittleEndian.Uint64(w[8:])^h)
		g = mix(binary.LittleEndian.Uint64(w[16:])^m2, binary.LittleEndian.Uint64(w[24:])^g)
		h = mix(binary.LittleEndian.Uint64(w[32:])^m1, binary.LittleEndian.Uint64(w[40:])^h)
		g = mix(binary.LittleEndian.Uint64(w[48:])^m2, binary.LittleEndian.Uint64(w[56:])^g)
		b = b[64:]
	}
	if len(b) >= 32 {
		h = mix(binary.LittleEndian.Uint64(b)^m1, binary.LittleEndian.Uint64(b[8:])^h)
		g = mix(binary.LittleEndian.Uint64(b[16:])^m2, binary.LittleEndian.Uint64(b[24:])^g)
		b = b[32:]
	}
	if len(b) >= 16 {
		h = mix(binary.LittleEndian.Uint64(b)^m1, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	if len(b) >= 8 {
		h = mix(binary.LittleEndian.Uint64(b)^m2, h^m3)
		b = b[8:]
	}
	if len(b) >= 4 {
		h = mix(uint64(binary.LittleEndian.Uint32(b))<<32|uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))^m3, h^m1)
	} else if len(b) > 0 {
		h = mix(uint64(b[0])<<16|uint64(b[len(b)/2])<<8|uint64(b[len(b)-1])^m1, h^m2)
	}
	return mix(h^m3, g^m1)
}

// mix multiplies two numbers, and folds the product.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
