package xdr

import "unsafe"

// keepBytes is the largest slice that a message keeps for the next one. A single huge message must not hold
// memory forever. A READDIRPLUS reply of 1 MiB, the largest that Linux asks for, stays below it.
const keepBytes = 2 << 20

// Reuse empties a slice of the previous message so that its elements can be
// used again by Extend. A very large one is dropped instead.
func Reuse[T any](s []T) []T {
	var t T
	if uintptr(cap(s))*unsafe.Sizeof(t) > keepBytes {
		return nil
	}
	return s[:0]
}

// Extend makes a slice longer by one element. The element has its contents from the last use of the memory,
// so that its own slices can be reused.
func Extend[T any](s []T) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var t T
	return append(s, t)
}

// Copy fills dst with the next len(dst) bytes and passes over their padding.
// After an error dst is zero.
func (r *Reader) Copy(dst []byte) {
	if copy(dst, r.Fixed(len(dst))) < len(dst) {
		clear(dst)
	}
}

// More reports whether an array that has not ended may continue: there was no error and there are bytes left.
// Otherwise it fails as a read would.
func (r *Reader) More() bool {
	if r.off == len(r.b) {
		r.Fail(Short, "")
	}
	return !r.Failed()
}

// Take returns the next n bytes and passes over them, or returns nil, without
// an error, if there are fewer. n is a multiple of four. It lets a structure
// of fixed size be read with one check.
func (r *Reader) Take(n int) []byte {
	b, off := r.b, uint(r.off)
	end := off + uint(n)
	if end > uint(len(b)) || off > end {
		return nil
	}
	r.off = int(end)
	return b[off:end:end]
}

// SizeData is the number of bytes that AppendData appends.
func SizeData(d Data) int {
	if d.Chunk != 0 {
		return 4
	}
	return SizeOpaque(len(d.Inline))
}
