package wire

import (
	"bytes"
	"testing"
)

// Each number is read and written where it fits, and nowhere else.
func TestCut(t *testing.T) {
	full := []byte{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99}
	for _, c := range []struct {
		name string
		size int
		want uint64 // at offset 1
		get  func(b []byte) uint64
		put  func(b []byte, v uint64)
	}{
		{"8", 1, 0x22, func(b []byte) uint64 { return uint64(Get8(b, 1)) }, func(b []byte, v uint64) { Put8(b, 1, uint8(v)) }},
		{"16", 2, 0x2233, func(b []byte) uint64 { return uint64(Get16(b, 1)) }, func(b []byte, v uint64) { Put16(b, 1, uint16(v)) }},
		{"24", 3, 0x223344, func(b []byte) uint64 { return uint64(Get24(b, 1)) }, func(b []byte, v uint64) { Put24(b, 1, uint32(v)) }},
		{"32", 4, 0x22334455, func(b []byte) uint64 { return uint64(Get32(b, 1)) }, func(b []byte, v uint64) { Put32(b, 1, uint32(v)) }},
		{"64", 8, 0x2233445566778899, func(b []byte) uint64 { return Get64(b, 1) }, func(b []byte, v uint64) { Put64(b, 1, v) }},
	} {
		for n := range len(full) + 1 {
			fits := n >= 1+c.size
			want := uint64(0)
			if fits {
				want = c.want
			}
			if got := c.get(full[:n]); got != want {
				t.Errorf("%s of %d bytes: %#x, want %#x", c.name, n, got, want)
			}
			b := make([]byte, n, len(full))
			c.put(b, c.want)
			if got := c.get(b); got != want {
				t.Errorf("%s in %d bytes: %#x, want %#x", c.name, n, got, want)
			}
			if rest := b[n:cap(b)]; !bytes.Equal(rest, make([]byte, len(rest))) {
				t.Errorf("%s in %d bytes wrote beyond the end", c.name, n)
			}
		}
	}
	b := []byte{0xf0}
	if PutBits(b, 0, 0x3c, 0xff); b[0] != 0xfc {
		t.Errorf("%#x", b[0])
	}
	if PutBits(b, 0, 0x3c, 0); b[0] != 0xc0 {
		t.Errorf("%#x", b[0])
	}
	PutBits(b, 1, 0xff, 0xff) // beyond the end
}
