package link

import "unsafe"

// datagramSize is the memory of an incomplete datagram without its bytes: with its ranges and its entry in
// the table.
const datagramSize = int(unsafe.Sizeof(datagram{})+unsafe.Sizeof(datagramKey{})) + maxRanges*int(unsafe.Sizeof(byteRange{})) + 8 + 24

// Memory is what the Reassembler holds, in bytes.
func (r *Reassembler) Memory() int {
	return r.bytes + len(r.open)*datagramSize + r.spareBytes
}

// Evict frees something: memory kept for later, or else the oldest datagram. It returns false if there is
// nothing to free.
func (r *Reassembler) Evict() bool {
	switch {
	case len(r.spare) > 0:
		clear(r.spare)
		r.spare, r.spareBytes = r.spare[:0], 0
	case r.oldest != nil:
		r.stats.EvictedFor++
		r.drop(r.oldest)
	default:
		return false
	}
	return true
}
