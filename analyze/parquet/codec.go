package parquet

import (
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
)

// zstdWindow is how far, in bytes, compression looks back: a page and most
// dictionaries fit. The library's codec has a window of megabytes, for which each of its encoders
// keeps twice as much memory, and makes encoders anew that the garbage collector has taken.
const zstdWindow = 256 << 10

// zstdCodec compresses pages with one encoder, for all writers together.
type zstdCodec struct {
	level zstd.EncoderLevel
	once  sync.Once
	enc   *zstd.Encoder
}

var _ compress.Codec = (*zstdCodec)(nil)

func (c *zstdCodec) String() string { return "ZSTD" }

func (c *zstdCodec) CompressionCodec() format.CompressionCodec { return format.Zstd }

func (c *zstdCodec) Encode(dst, src []byte) ([]byte, error) {
	c.once.Do(func() {
		var err error
		c.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(c.level), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow),
			zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
	})
	return c.enc.EncodeAll(src, dst[:0]), nil
}

// Decode fails: this codec only writes.
func (c *zstdCodec) Decode([]byte, []byte) ([]byte, error) {
	return nil, errors.New("a codec that only writes")
}
