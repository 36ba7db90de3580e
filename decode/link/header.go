package link

// header decodes a header: data is what was captured of it and of what follows, n how many bytes that had on the wire as far as known,
// n >= len(data). It returns what follows, and the header that this begins with: nil if all is decoded, or cannot be.
type header func(data []byte, n int, f *Frame) (next header, rest []byte, left int)

// decode takes apart one header after the other.
func (f *Frame) decode(next header, data []byte, n int) {
	for next != nil {
		next, data, n = next(data, n, f)
	}
}

// stop ends the decoding because something is wrong.
func (f *Frame) stop(p Problem) (header, []byte, int) {
	f.Problem = p
	return nil, nil, 0
}
