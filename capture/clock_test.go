package capture

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestClockResolution(t *testing.T) {
	for v := range 256 {
		var c clock
		n := v & 0x7f
		want := n <= 19
		if v&0x80 != 0 {
			want = n <= 63
		}
		if got := c.setResolution(byte(v)); got != want {
			t.Errorf("%#x: accepted %v", v, got)
		}
	}
}

// The clock agrees with arithmetic without limits.
func TestClockExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	limit := big.NewInt(math.MaxInt64)
	for range 200000 {
		var c clock
		v := byte(rnd.IntN(256))
		if !c.setResolution(v) {
			continue
		}
		offset := rnd.Int64() >> rnd.IntN(64)
		if rnd.IntN(2) == 0 {
			offset = -offset
		}
		if !c.setOffset(offset) {
			offset = 0
		}
		ticks := rnd.Uint64() >> rnd.IntN(64)
		want := new(big.Int).Mul(new(big.Int).SetUint64(ticks), big.NewInt(1e9))
		if v&0x80 != 0 {
			want.Rsh(want, uint(v&0x7f))
		} else {
			want.Quo(want, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v)), nil))
		}
		ok := want.Cmp(limit) <= 0
		if ok {
			want.Add(want, new(big.Int).Mul(big.NewInt(offset), big.NewInt(1e9)))
			ok = want.Cmp(limit) <= 0
		}
		got, gotOK := c.time(ticks)
		if gotOK != ok || ok && got != want.Int64() || !ok && got != math.MaxInt64 {
			t.Fatalf("resolution %#x, offset %d, ticks %d: %d %v, want %v %v", v, offset, ticks, got, gotOK, want, ok)
		}
	}
}

func TestClockOffsetLimit(t *testing.T) {
	c := microseconds
	for _, s := range []int64{math.MaxInt64, math.MinInt64, 9223372037, -9223372037} {
		if c.setOffset(s) || c.offset != 0 {
			t.Errorf("offset %d accepted", s)
		}
	}
	for _, s := range []int64{9223372036, -9223372036, 0, -1} {
		if !c.setOffset(s) || c.offset != s*1e9 {
			t.Errorf("offset %d not accepted", s)
		}
	}
}
