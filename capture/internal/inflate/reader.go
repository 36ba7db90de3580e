package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Errors of damaged files.
var (
	// ErrHeader is returned for what is not the header of a member.
	ErrHeader = errors.New("gzip: invalid header")
	// ErrChecksum is returned if the CRC or the length of a member is wrong.
	ErrChecksum = errors.New("gzip: invalid checksum")
)

// CorruptError is returned for compressed data that is malformed.
type CorruptError struct {
	Offset int64 // bytes of the input before what was found
}

func (e CorruptError) Error() string {
	return fmt.Sprintf("flate: corrupt input before offset %d", e.Offset)
}

const (
	window = 32 << 10 // RFC 1951 section 2: how far back a match may refer
	inSize = 64 << 10
	// outSize is how much is decompressed before it is handed out: what is in the second cache still.
	outSize = 128 << 10
	// maxName bounds the name and the comment of a member, with the zero behind them, as compress/gzip does.
	maxName = 512
)

// Reader decompresses the members of a gzip file (RFC 1952), one after the other. It takes 320 KiB.
//
// A read of what it decompresses waits for more input only if there is nothing to return yet.
type Reader struct {
	s     stream
	src   io.Reader
	start int    // of what has not been handed out, in s.out
	crc   uint32 // of the member
	size  uint32 // of the member
	err   error
}

// NewReader reads the header of the first member.
func NewReader(src io.Reader) (*Reader, error) {
	r := &Reader{src: src}
	r.s.in = make([]byte, 0, inSize)
	r.s.out = make([]byte, window+outSize+slack)
	if err := r.header(); err != nil {
		return nil, err
	}
	return r, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for r.start == r.s.at && r.err == nil {
		r.fill()
	}
	if r.start == r.s.at {
		return 0, r.err
	}
	n := copy(p, r.s.out[r.start:r.s.at])
	r.start += n
	return n, nil
}

// fill decompresses some more. What was before is handed out.
func (r *Reader) fill() {
	s := &r.s
	if s.at+slack > len(s.out) {
		keep := min(s.at, window)
		copy(s.out, s.out[s.at-keep:s.at])
		s.first = max(s.first-(s.at-keep), 0)
		s.at, r.start = keep, keep
	}
	from := s.at
	v := isFull
	for {
		if v = r.step(); v == wantsInput {
			if s.at > from {
				break
			}
			if err := r.more(); err != nil {
				r.err = err
				break
			}
		} else if v != hasEnded {
			break
		} else if s.step == stepEnd {
			break
		}
	}
	made := s.out[from:s.at]
	r.crc = crc32.Update(r.crc, crc32.IEEETable, made)
	r.size += uint32(len(made))
	switch {
	case v == isCorrupt:
		r.err = CorruptError{s.offset()}
	case v == hasEnded:
		r.member()
	}
}

// step goes on where the stream is.
func (r *Reader) step() (v verdict) {
	s := &r.s
	switch s.step {
	case stepBlock:
		return s.header()
	case stepStored:
		v = s.stored()
	case stepCodes:
		v = s.codes()
	default:
		return hasEnded
	}
	if v == hasEnded {
		s.step = stepBlock
		if s.last {
			s.step = stepEnd
		}
	}
	return v
}

// more reads more input, behind what is left.
func (r *Reader) more() error {
	s := &r.s
	rest := copy(s.in[:cap(s.in)], s.in[s.pos:])
	s.consumed += int64(s.pos)
	s.pos = 0
	s.in = s.in[:rest]
	for range 100 {
		n, err := r.src.Read(s.in[rest:cap(s.in)])
		s.in = s.in[:rest+n]
		switch {
		case n > 0:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

// bytes are the next n bytes of the input, behind the bits of a byte that has begun.
func (r *Reader) bytes(n int) ([]byte, error) {
	s := &r.s
	s.unread()
	for len(s.in)-s.pos < n {
		if err := r.more(); err != nil {
			return nil, err
		}
	}
	s.pos += n
	return s.in[s.pos-n : s.pos], nil
}

// member checks the end of a member (RFC 1952 section 2.3.1), and begins the next.
func (r *Reader) member() {
	b, err := r.bytes(8)
	switch {
	case err != nil:
		r.err = err
	case binary.LittleEndian.Uint32(b) != r.crc || binary.LittleEndian.Uint32(b[4:]) != r.size:
		r.err = ErrChecksum
	default:
		r.err = r.header()
	}
}

// The flags of a header.
const (
	hasCRC     = 1 << 1
	hasExtra   = 1 << 2
	hasName    = 1 << 3
	hasComment = 1 << 4
)

// header reads the header of a member. It returns io.EOF if there is none.
func (r *Reader) header() error {
	s := &r.s
	if len(s.in) == s.pos {
		switch err := r.more(); err {
		case nil:
		case io.ErrUnexpectedEOF:
			return io.EOF
		default:
			return err
		}
	}
	sum := uint32(0)
	next := func(n int) ([]byte, error) {
		b, err := r.bytes(n)
		sum = crc32.Update(sum, crc32.IEEETable, b)
		return b, err
	}
	b, err := next(10)
	if err != nil {
		return err
	}
	if b[0] != 0x1f || b[1] != 0x8b || b[2] != 8 {
		return ErrHeader
	}
	flags := b[3]
	if flags&hasExtra != 0 {
		if b, err = next(2); err != nil {
			return err
		}
		for left := int(binary.LittleEndian.Uint16(b)); left > 0; {
			n := min(left, inSize/2)
			if _, err = next(n); err != nil {
				return err
			}
			left -= n
		}
	}
	for _, f := range [...]byte{hasName, hasComment} {
		for n := 0; flags&f != 0; n++ {
			if b, err = next(1); err != nil {
				return err
			}
			if b[0] == 0 {
				break
			}
			if n == maxName-1 {
				return ErrHeader
			}
		}
	}
	if flags&hasCRC != 0 {
		want := uint16(sum)
		if b, err = r.bytes(2); err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(b) != want {
			return ErrHeader
		}
	}
	s.first, s.step, s.last = s.at, stepBlock, false
	r.crc, r.size = 0, 0
	return nil
}
