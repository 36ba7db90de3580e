package xdr

import (
	"encoding/binary"
	"math"
)

// Skipper is a message that can be passed over without keeping any of it. What the generator writes is one.
type Skipper interface {
	// Skip returns the offset behind the message that begins at off in the bytes of r. Decode accepts the
	// message, and ends there, if that offset is not beyond the bytes. If it is, Skip says nothing: the message
	// is malformed, cut, lacks padding, or is merely unusual, and Decode finds out which.
	//
	// Skip does not look at the receiver, which may be nil. What it adds is checked late: a read that follows,
	// or the caller at the end, finds that an item of fixed size is beyond the bytes.
	Skip(r *Reader, off uint) uint
}

// Beyond is an offset beyond all bytes: that of what could not be passed over. Adding the sizes of some items of
// fixed size to it does not overflow.
const Beyond uint = math.MaxInt/2 + 1

// Skips reports whether m passes over the message at off in the Reader's bytes, and where it ends. The Reader must be Reset afterwards.
func (r *Reader) Skips(m Skipper, off int) (end int, ok bool) {
	next := m.Skip(r, uint(off))
	return int(next), next <= uint(len(r.b))
}

// SkipWord returns the number at off, and the offset behind it. A number that is not there is 0.
func (r *Reader) SkipWord(off uint) (uint32, uint) {
	b, end := r.b, off+4
	if end > uint(len(b)) || off > end {
		return 0, Beyond
	}
	return binary.BigEndian.Uint32(b[off:end]), end
}

// SkipOpaque passes over what Opaque reads.
func (r *Reader) SkipOpaque(off uint, limit uint32) uint {
	b, end := r.b, off+4
	if end > uint(len(b)) || off > end {
		return Beyond
	}
	n := binary.BigEndian.Uint32(b[off:end])
	if uint(n) > uint(len(b))-end || n > limit && limit != 0 {
		return Beyond
	}
	return end + (uint(n)+3)&^3
}

// SkipCount returns what Count reads, and the offset behind it.
func (r *Reader) SkipCount(off uint, limit uint32, size uint) (uint32, uint) {
	n, off := r.SkipWord(off)
	if n > limit && limit != 0 || off > uint(len(r.b)) || uint64(n)*uint64(size) > uint64(uint(len(r.b))-off) {
		return 0, Beyond
	}
	return n, off
}

// SkipArray passes over an array of items of this size.
func (r *Reader) SkipArray(off uint, limit uint32, size uint) uint {
	n, off := r.SkipCount(off, limit, size)
	return off + uint(n)*size
}

// SkipData passes over what Data reads.
func (r *Reader) SkipData(off uint, limit uint32) uint {
	if off > uint(len(r.b)) {
		return Beyond
	}
	r.off = int(off)
	r.Data(limit)
	if r.Failed() {
		return Beyond
	}
	return uint(r.off)
}

// Place is where an item stands in a message that Skips passes over, and what of its chunks belongs to items before it.
type Place struct {
	offset  uint32
	removed uint32
	next    int32
}

// SkipPlace is the place of the item at off, while Skips is under way.
func (r *Reader) SkipPlace(off uint) Place {
	return Place{offset: uint32(off), removed: r.removed, next: int32(r.next)}
}

// Offset is where the item begins in the bytes given to Reset.
func (p Place) Offset() int { return int(p.offset) }

// GoTo moves the cursor to an item of a message that Skips has accepted. The Reader has to be Reset to the same message, with the same
// chunks.
func (r *Reader) GoTo(p Place) { r.off, r.removed, r.next = int(p.offset), p.removed, int(p.next) }
