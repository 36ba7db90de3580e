package rocev2

// placed is how many bytes are copied at once. Payloads lie at odd places in their datagrams, and an Intel processor then takes longer
// for 2 KiB or more in one piece.
const placed = 1 << 10

// place copies a payload to where it belongs, and returns how many bytes it has copied.
func place(dst, src []byte) int {
	n := 0
	for len(src) > placed && len(dst) > placed {
		copy(dst[:placed], src[:placed])
		dst, src = dst[placed:], src[placed:]
		n += placed
	}
	return n + copy(dst, src)
}
