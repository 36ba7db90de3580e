package state

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// window is how far, in bytes, compression looks back. It bounds what a reader keeps besides what it has read.
const window = 1 << 20

// packer compresses the contents of units. Equal contents give equal bytes: the encoder is one goroutine, and begins
// anew with each unit.
type packer struct{ z *zstd.Encoder }

func newPacker() packer {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return packer{z}
}

// unit appends a unit to a file.
func (p packer) unit(c *Coder, u *Unit) {
	size := u.Size()
	Number(c, &size)
	frame := p.z.EncodeAll(u.raw, nil)
	c.Blob(&frame, len(frame))
}

// mostFrame is how many bytes a frame of the given number of bytes has at most: compression never makes much more of them.
func mostFrame(size int64) int64 { return size + size>>7 + 1024 }

// unpacker decompresses the contents of units.
type unpacker struct{ z *zstd.Decoder }

// unit returns the contents of a frame that promises size bytes. Memory grows with what is really there.
func (p *unpacker) unit(frame []byte, size int64) ([]byte, error) {
	if p.z == nil {
		var err error
		p.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return nil, err
		}
	}
	if err := p.z.Reset(bytes.NewReader(frame)); err != nil {
		return nil, err
	}
	const usual = 32 // bytes for one of a frame; what has more is copied as it grows
	var b bytes.Buffer
	b.Grow(int(min(size, usual*int64(len(frame)))) + bytes.MinRead)
	n, err := io.Copy(&b, io.LimitReader(p.z, size+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompression: %w", err)
	case n != size:
		return nil, fmt.Errorf("it promises %d bytes and has others", size)
	}
	return b.Bytes(), nil
}

func (p *unpacker) close() {
	if p.z != nil {
		p.z.Close()
	}
}
