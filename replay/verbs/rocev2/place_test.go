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
