package text

import "testing"

func TestHexNumber(t *testing.T) {
	for _, c := range []struct {
		v      uint64
		digits int
		want   string
	}{{0, 1, "0x0"}, {0, 8, "0x00000000"}, {0x11, 2, "0x11"}, {0x123, 2, "0x123"}, {1<<64 - 1, 8, "0xffffffffffffffff"}} {
		if got := string(hexNumber(nil, c.v, c.digits)); got != c.want {
			t.Errorf("%x: %s, want %s", c.v, got, c.want)
		}
	}
}
