package rocev2

import (
	"bytes"
	"testing"
)

// TestPlace compares with copy, for lengths around the pieces.
func TestPlace(t *testing.T) {
	src := make([]byte, 3*placed+7)
	for i := range src {
		src[i] = byte(i * 7)
	}
	lengths := []int{0, 1, placed - 1, placed, placed + 1, 2 * placed, 2*placed + 1, len(src)}
	for _, n := range lengths {
		for _, room := range lengths {
			got, want := make([]byte, room), make([]byte, room)
			if a, b := place(got, src[:n]), copy(want, src[:n]); a != b || !bytes.Equal(got, want) {
				t.Errorf("%d bytes into %d: %d placed, want %d", n, room, a, b)
			}
		}
	}
}

// BenchmarkPlace copies payloads of 4 KiB from where they lie in merged datagrams to memory that does not fit into the caches
// near a processor, in pieces and in one.
func BenchmarkPlace(b *testing.B) {
	const payload, stride = 4096, 12 + 4096 + 4
	for name, f := range map[string]func(dst, src []byte) int{"pieces": place, "one": func(dst, src []byte) int { return copy(dst, src) }} {
		b.Run(name, func(b *testing.B) {
			from, to := make([]byte, 124*stride), make([]byte, 8<<20)
			clear(to) // so that it is there
			b.SetBytes(payload)
			for i := 0; b.Loop(); i++ {
				f(to[i*payload%len(to):][:payload], from[i%124*stride+12:][:payload])
			}
		})
	}
}
