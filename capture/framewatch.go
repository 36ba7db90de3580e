package capture

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"
)

// frameEnd is the end of a zstd frame.
type frameEnd struct {
	at     int    // in the data of a block
	summed bool   // the frame has a checksum:
	sum    uint32 // the lower half of XXH64 (RFC 8878 section 3.1.1)
}

// mostEnds is how many frames may end in a block: a file of tiny frames must not need more memory for them than for its data.
const mostEnds = 64

// emptySum is the checksum of a frame without content.
const emptySum = 0x51d8e999

// frameWatch is what a decompressor reads zstd frames from. It finds their ends (RFC 8878 section 3.1). What is not valid is for the
// decompressor to report, which then reads no more.
//
// The decompressor must not ask for more input as long as it has output. Then a frame that was read to its end has come out
// completely once there is another call of Read.
type frameWatch struct {
	r    io.Reader
	skip int64     // bytes that come before the next part
	part framePart // what comes next
	have int       // bytes of it
	buf  [4]byte

	summed bool     // the frame has a checksum
	over   bool     // the last block of the frame has begun, and its checksum was read
	last   frameEnd // of that frame
	found  bool     // an end was found, and not taken yet:
	end    frameEnd
}

// framePart is a part of a frame that has to be looked at.
type framePart uint8

const (
	partMagic framePart = iota
	partSkippable
	partDescriptor
	partBlock
	partSum
)

// partSizes are the lengths in bytes.
var partSizes = [...]int{partMagic: 4, partSkippable: 4, partDescriptor: 1, partBlock: 3, partSum: 4}

// Read implements io.Reader. It returns zstd.ErrCRCMismatch if an empty frame has the wrong checksum.
func (w *frameWatch) Read(p []byte) (int, error) {
	if w.over && w.skip == 0 {
		w.over = false
		switch {
		case !w.found:
			w.found, w.end = true, w.last
		case w.last.summed && w.last.sum != emptySum: // nothing came out between two ends
			return 0, zstd.ErrCRCMismatch
		}
	}
	n, err := w.r.Read(p)
	w.watch(p[:n])
	return n, err
}

// take appends the end that was found since the last call, with its place.
func (w *frameWatch) take(list []frameEnd, at int) []frameEnd {
	if w.found {
		w.found, w.end.at = false, at
		list = append(list, w.end)
	}
	return list
}

// bare reports whether neither the frames that have these ends have checksums, nor the one that is being read.
func (w *frameWatch) bare(ends []frameEnd) bool {
	for i := range ends {
		if ends[i].summed {
			return false
		}
	}
	return !w.summed
}

// watch looks at what was read.
func (w *frameWatch) watch(p []byte) {
	for len(p) > 0 {
		if w.skip > 0 {
			n := min(w.skip, int64(len(p)))
			w.skip -= n
			p = p[n:]
			continue
		}
		n := copy(w.buf[w.have:partSizes[w.part]], p)
		w.have += n
		p = p[n:]
		if w.have == partSizes[w.part] {
			w.have = 0
			w.next()
		}
	}
}

// next looks at a part that is complete.
func (w *frameWatch) next() {
	x := binary.LittleEndian.Uint32(w.buf[:])
	switch w.part {
	case partMagic:
		switch {
		case x == 0xfd2fb528:
			w.part = partDescriptor
		case x&^0xf == 0x184d2a50:
			w.part = partSkippable
		}
	case partSkippable:
		w.skip, w.part = int64(x), partMagic
	case partDescriptor:
		d := w.buf[0]
		w.summed = d&4 != 0
		w.skip, w.part = headerSize(d), partBlock
	case partBlock:
		w.block(x & 0xffffff)
	case partSum:
		w.part, w.over, w.last = partMagic, true, frameEnd{summed: true, sum: x}
	}
}

// headerSize is how long a frame header is behind its descriptor (section 3.1.1.1).
func headerSize(descriptor byte) int64 {
	size := [4]int64{0, 1, 2, 4}[descriptor&3] + [4]int64{0, 2, 4, 8}[descriptor>>6]
	switch {
	case descriptor&0x20 == 0: // not a single segment: it has a window
		size++
	case descriptor>>6 == 0:
		size++ // the content's size
	}
	return size
}

// block looks at the header of a block (section 3.1.1.2).
func (w *frameWatch) block(h uint32) {
	w.skip = int64(h >> 3)
	if h>>1&3 == 1 { // RLE: one byte, repeated
		w.skip = 1
	}
	switch {
	case h&1 == 0:
	case w.summed:
		w.part = partSum
	default:
		w.part, w.over, w.last = partMagic, true, frameEnd{}
	}
}
