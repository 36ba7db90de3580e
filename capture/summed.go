package capture

import (
	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// summed are frames of zstd whose checksums the decompressor leaves to others. A goroutine that reads ahead passes on where frames
// end, and whoever takes its blocks computes the checksums: on another processor, which has time for it.
type summed struct {
	frames *frames
	watch  *frameWatch   // of the goroutine that decompresses
	digest xxhash.Digest // of what has come out of the frame; of the goroutine that takes
}

func newSummed(f *frames, w *frameWatch) *summed {
	z := &summed{frames: f, watch: w}
	z.digest.Reset()
	return z
}

// Read implements io.Reader, for a caller that does not read ahead.
func (z *summed) Read(p []byte) (int, error) {
	n, err := z.frames.Read(p)
	var one [1]frameEnd
	for _, e := range z.watch.take(one[:0], 0) {
		if !z.ends(e) {
			return 0, zstd.ErrCRCMismatch
		}
	}
	_, _ = z.digest.Write(p[:n])
	return n, err
}

// check computes the checksums of the frames in a block, and ends it where one is wrong.
func (z *summed) check(k *block) {
	if k.bare { // the end of the last frame without a checksum is in a block that is not, and begins another digest
		return
	}
	data := k.data()
	at := 0
	for _, e := range k.ends {
		_, _ = z.digest.Write(data[at:e.at])
		at = e.at
		if !z.ends(e) {
			k.buf, k.err = k.buf[:k.start+at], zstd.ErrCRCMismatch
			return
		}
	}
	_, _ = z.digest.Write(data[at:])
}

// ends begins another frame, and reports whether the checksum of the one before is right.
func (z *summed) ends(e frameEnd) bool {
	sum := uint32(z.digest.Sum64())
	z.digest.Reset()
	return !e.summed || sum == e.sum
}
