package link

// header decodes one header. data is the captured rest of the frame from this header on, and n its length in bytes on the wire, as far as
// known; n >= len(data). It returns the decoder of the next header and what that has to decode, or nil at the end of the headers, and where
// decoding stops.
type header func(data []byte, n int, f *Frame) (next header, rest []byte, left int)

// decode decodes one header after the other.
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
