package roce

import (
	"hash/crc32"
	"sync"
)

// A CRC register is a polynomial over GF(2) modulo the CRC polynomial, with the coefficient of x^31 in its
// lowest bit. A zero byte multiplies it by x^8.

// mul is the product of two registers.
func mul(a, b uint32) (p uint32) {
	for range 32 {
		p ^= b & -(a >> 31)
		a <<= 1
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return p
}

// inverses are powers of x^-8, so that two multiplications undo any number of
// zero bytes up to 65535.
type inverses struct{ low, high [256]uint32 }

var inverse = sync.OnceValue(func() *inverses {
	t := new(inverses)
	one := uint32(1) << 31
	fill := func(t *[256]uint32, by uint32) {
		t[0] = one
		for i := 1; i < len(t); i++ {
			t[i] = mul(t[i-1], by)
		}
	}
	by := one
	for range 8 {
		if by&(1<<31) != 0 {
			by = (by^crc32.IEEE)<<1 | 1
		} else {
			by <<= 1
		}
	}
	fill(&t.low, by)
	fill(&t.high, mul(t.low[255], by))
	return t
})

// UnshiftCRC returns what a register of the Ethernet CRC was n zero bytes
// earlier, for n up to 65535. The difference between two CRCs of equal length is
// the register of the difference between the data: without the zeros that
// follow it, the differing bytes themselves stand in the register if they are
// at most four, the first in the lowest bits.
func UnshiftCRC(v uint32, n int) uint32 {
	t := inverse()
	v = mul(v, t.low[n&0xff])
	if n > 0xff {
		v = mul(v, t.high[n>>8&0xff])
	}
	return v
}
