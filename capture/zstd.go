package capture

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest zstd window accepted, if Options do not say. The zstd command also refuses more than
// 128 MiB unless it is told otherwise.
const maxWindow = 128 << 20

// openZstd puts a decompressor above s.r.
func (s *source) openZstd(window int) error {
	z, err := zstd.NewReader(s.r,
		zstd.WithDecoderConcurrency(zstdBlocks(s.waits)),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(window)))
	if err != nil {
		return err
	}
	s.r, s.kind, s.zstd = &frames{z, window}, "zstd", z
	return nil
}

// zstdBlocks is how many blocks of zstd are decompressed at a time. The stages of 4 blocks work side by side, which
// takes more time of all processors together than one after another: that is for machines with processors to spare.
// Where reading may wait there is one: the decoder could not be closed otherwise.
func zstdBlocks(waits bool) int {
	if waits || runtime.GOMAXPROCS(0) < 4 {
		return 1
	}
	return 4
}

// frames are the decompressed frames of zstd.
type frames struct {
	*zstd.Decoder
	window int
}

// Read implements io.Reader. It also returns what was decompressed before an error: the block of a frame whose
// checksum is wrong, which Decoder.Read has only after the error.
func (z *frames) Read(p []byte) (int, error) {
	n, err := z.Decoder.Read(p)
	if n == 0 && err != nil && err != io.EOF {
		n, err = z.Decoder.Read(p)
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = fmt.Errorf("%w: a frame needs more memory than the %d MiB that there are for it: decompress the file first, or allow more",
			zstd.ErrWindowSizeExceeded, z.window>>20)
	}
	return n, err
}

// isZstd recognises a zstd frame or a skippable frame before one (RFC 8878
// sections 3.1.1 and 3.1.2).
func isZstd(h []byte) bool {
	return h[0] == 0x28 && h[1] == 0xb5 && h[2] == 0x2f && h[3] == 0xfd ||
		h[0]&0xf0 == 0x50 && h[1] == 0x2a && h[2] == 0x4d && h[3] == 0x18
}
