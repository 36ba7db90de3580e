package rpcrdma

import "unsafe"

// Memory is what the lists of h take, in bytes.
func (h *Header) Memory() int {
	n := (cap(h.Call)+cap(h.Reads)+cap(h.sorted))*int(unsafe.Sizeof(ReadSegment{})) +
		cap(h.Writes)*int(unsafe.Sizeof(WriteChunk{})) +
		cap(h.segments)*int(unsafe.Sizeof(Segment{})) +
		cap(h.chunks)*int(unsafe.Sizeof(ReadChunk{})) +
		cap(h.Properties)*int(unsafe.Sizeof(Property{}))
	if len(h.Writes) > 1 && cap(h.segments) > 4 {
		// The first chunks may lie in the smaller arrays that the list has
		// grown out of.
		n += cap(h.segments) * int(unsafe.Sizeof(Segment{}))
	}
	return n
}
