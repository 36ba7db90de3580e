package index

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/decode"
)

const (
	magic       = "RPCRDMA index\n\x00\x1a"
	version     = 2
	trailerSize = 8 + sha256.Size

	// maxDirectory bounds the directory: that of maxSegments takes some 3 MiB.
	maxDirectory = 64 << 20
	// maxPart bounds a state, and a list of XIDs. A state is at most a few times the memory of the decoder.
	maxPart = 512 << 20
	// maxSegments bounds the segments of a capture: those of a huge one are longer.
	maxSegments = 4096
)

// Errors of Open, which wraps them.
var (
	ErrNotAnIndex = errors.New("not an index")
	ErrVersion    = errors.New("made by another version of the program")
	ErrForeign    = errors.New("damaged, or not made with your key")
)

// directory is the last part of the file.
type directory struct {
	Capture  Identity
	Segments []segment
	// Flushed are the transactions that were emitted at the end of the capture.
	Flushed part
	// Total is how many transactions there are.
	Total uint64
	// Outcome is what the caller wants to know of the whole capture.
	Outcome json.RawMessage
}

// segment is a part of the capture.
type segment struct {
	Offset  int64        // of its first byte
	Packets uint64       // before it
	Emitted uint64       // transactions before it
	Stats   decode.Stats // before it
	Sum     uint32       // CRC-32C of its bytes
	Place   part         // JSON of the capture.Place; empty at the beginning
	State   part
	XIDs    part
}

// part is a part of the index.
type part struct {
	At, Length int64
	Sum        string // SHA-256
}

// writer writes an index.
type writer struct {
	w   io.Writer
	key []byte
	at  int64
	z   *zstd.Encoder
	buf []byte
}

func newWriter(w io.Writer, key []byte) (*writer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	x := &writer{w: w, key: key, z: z}
	_, err = x.Write(append([]byte(magic), version))
	return x, err
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.at += int64(n)
	return n, err
}

// part writes what f writes.
func (w *writer) part(f func(io.Writer) error) (part, error) {
	sum := sha256.New()
	p := part{At: w.at}
	err := f(io.MultiWriter(w, sum))
	p.Length, p.Sum = w.at-p.At, hex.EncodeToString(sum.Sum(nil))
	return p, err
}

// packed writes bytes in compressed form.
func (w *writer) packed(b []byte) (part, error) {
	return w.part(func(out io.Writer) error {
		w.buf = w.z.EncodeAll(b, w.buf[:0])
		_, err := out.Write(w.buf)
		return err
	})
}

func (w *writer) finish(d *directory) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if len(b) > maxDirectory {
		return errors.New("the capture has too many interfaces to be indexed")
	}
	trailer := binary.BigEndian.AppendUint64(nil, uint64(len(b)))
	trailer = append(trailer, sign(w.key, b)...)
	if _, err := w.Write(b); err != nil {
		return err
	}
	_, err = w.Write(trailer)
	return err
}

func sign(key, directory []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(magic))
	h.Write([]byte{version})
	h.Write(directory)
	return h.Sum(nil)
}

// Index is an index that was verified. It reads its parts when they are needed.
type Index struct {
	r    io.ReaderAt
	size int64
	z    *zstd.Decoder
	directory
}

// Open reads the directory of an index of size bytes.
func Open(r io.ReaderAt, size int64, key []byte) (*Index, error) {
	head := make([]byte, len(magic)+1)
	if size < int64(len(head)+trailerSize) {
		return nil, ErrNotAnIndex
	}
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, ErrNotAnIndex
	}
	if head[len(magic)] != version {
		return nil, ErrVersion
	}
	trailer := make([]byte, trailerSize)
	if _, err := r.ReadAt(trailer, size-trailerSize); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(trailer)
	if n > maxDirectory || int64(n) > size-trailerSize-int64(len(head)) {
		return nil, ErrForeign
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, size-trailerSize-int64(n)); err != nil {
		return nil, err
	}
	if !hmac.Equal(sign(key, b), trailer[8:]) {
		return nil, ErrForeign
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPart))
	if err != nil {
		return nil, err
	}
	x := &Index{r: r, size: size, z: z}
	if err := json.Unmarshal(b, &x.directory); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return x, nil
}

// check makes sure that the segments follow each other, and that the parts are in the file.
func (x *Index) check() error {
	if len(x.Segments) == 0 || len(x.Segments) > maxSegments+1 {
		return errors.New("number of segments")
	}
	list := []part{x.Flushed}
	for i := range x.Segments {
		s := &x.Segments[i]
		list = append(list, s.Place, s.State, s.XIDs)
		if i == 0 {
			if s.Offset != 0 || s.Packets != 0 || s.Emitted != 0 || s.Place.Length != 0 {
				return errors.New("first segment")
			}
			continue
		}
		if o := &x.Segments[i-1]; s.Offset <= o.Offset || s.Packets <= o.Packets || s.Emitted < o.Emitted || s.Offset > x.Capture.Size || s.Place.Length == 0 {
			return errors.New("order of segments")
		}
	}
	for _, p := range list {
		if p.At < 0 || p.Length < 0 || p.Length > maxPart || p.At > x.size || p.Length > x.size-p.At {
			return errors.New("place of a part")
		}
	}
	return nil
}

// read reads a part.
func (x *Index) read(p part) ([]byte, error) {
	b := make([]byte, p.Length)
	if _, err := x.r.ReadAt(b, p.At); err != nil {
		return nil, err
	}
	if sum(b) != p.Sum {
		return nil, ErrForeign
	}
	return b, nil
}

// sum is the checksum of a part.
func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// unpack reads a part that is compressed.
func (x *Index) unpack(p part) ([]byte, error) {
	b, err := x.read(p)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	return x.z.DecodeAll(b, nil)
}

// Check compares the capture with the one that the index was made of.
func (x *Index) Check(now Identity) error {
	switch was := x.Capture; {
	case now == was:
		return nil
	case now.Size != was.Size:
		return fmt.Errorf("the capture has %d bytes, and had %d", now.Size, was.Size)
	case now.Modified != was.Modified:
		return errors.New("the capture was written since")
	}
	return errors.New("the capture has other contents")
}
