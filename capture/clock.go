package capture

import (
	"math"
	"math/bits"
)

// clock converts the 64-bit timestamps of a pcapng interface to nanoseconds
// since 1970 (draft-ietf-opsawg-pcapng section 4.2, if_tsresol and
// if_tsoffset).
type clock struct {
	mul    uint64 // ticks of 1 ns or more: ns in a tick; else 0
	div    uint64 // decimal ticks shorter than 1 ns: ticks in a ns; else 0
	shift  uint8  // binary ticks: 2^shift in a second
	offset int64  // ns
}

const nsPerSecond = 1_000_000_000

// microseconds is the clock of an interface without if_tsresol.
var microseconds = clock{mul: 1000}

// setResolution sets the resolution from if_tsresol. It returns false and changes nothing if the value makes
// no sense: with such a tick no 64-bit number reaches one second.
func (c *clock) setResolution(v byte) bool {
	n := v & 0x7f
	if v&0x80 != 0 {
		if n > 63 {
			return false
		}
		c.mul, c.div, c.shift = 0, 0, n
		return true
	}
	if n > 19 {
		return false
	}
	c.mul, c.div, c.shift = 0, 0, 0
	if n <= 9 {
		c.mul = pow10(9 - n)
	} else {
		c.div = pow10(n - 9)
	}
	return true
}

func pow10(n uint8) uint64 {
	v := uint64(1)
	for range n {
		v *= 10
	}
	return v
}

// setOffset sets the offset from if_tsoffset, in seconds. It returns false and changes nothing if an int64 of
// nanoseconds cannot represent it.
func (c *clock) setOffset(seconds int64) bool {
	const most = math.MaxInt64 / nsPerSecond
	if seconds > most || seconds < -most {
		return false
	}
	c.offset = seconds * nsPerSecond
	return true
}

// time converts a timestamp. What does not fit is cut to the nearest int64,
// and reported by false.
func (c *clock) time(ticks uint64) (int64, bool) {
	var t uint64
	switch {
	case c.mul != 0:
		var hi uint64
		hi, t = bits.Mul64(ticks, c.mul)
		if hi != 0 {
			return math.MaxInt64, false
		}
	case c.div != 0:
		t = ticks / c.div
	default:
		hi, lo := bits.Mul64(ticks, nsPerSecond)
		if hi>>c.shift != 0 {
			return math.MaxInt64, false
		}
		t = hi<<(64-c.shift) | lo>>c.shift
	}
	if t > math.MaxInt64 {
		return math.MaxInt64, false
	}
	if c.offset == 0 {
		return int64(t), true
	}
	sum := int64(t) + c.offset
	if c.offset > 0 && sum < c.offset {
		return math.MaxInt64, false
	}
	return sum, true // t >= 0, so that a negative offset cannot overflow
}
