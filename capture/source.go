package capture

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// errEmpty says that an input has no bytes at all.
var errEmpty = errors.New("empty file")

// source is the byte stream of one input, decompressed.
type source struct {
	r      io.Reader // decompressed bytes
	raw    *counter
	closer io.Closer // nil if the source does not own what it reads
	zstd   *zstd.Decoder
	ahead  *ahead // reads r; nil: whoever takes the bytes
	spare  []byte // memory that is not used any more, for a block of ahead
	// waits is true if a read may wait for a writer: a pipe, a terminal, a
	// socket. Such a source is read once for each batch rather than until
	// the batch is full.
	waits bool
	kind  string // "gzip", "zstd" or ""
}

// counter counts what is read from the input itself, and remembers the error
// that the input (rather than a decompressor above it) ended with.
type counter struct {
	r   io.Reader
	n   *atomic.Int64
	err atomic.Pointer[error]
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	if err != nil && err != io.EOF {
		e := err // so that err itself stays off the heap
		c.err.Store(&e)
	}
	return n, err
}

// failure returns the error of the input itself, or nil.
func (c *counter) failure() error {
	if e := c.err.Load(); e != nil {
		return *e
	}
	return nil
}

// openSource opens a file by name. Size is -1 if unknown.
func openSource(name string, stdin io.Reader, window int, consumed *atomic.Int64) (s *source, size int64, err error) {
	if name == "-" {
		s, err = newSource(stdin, waits(stdin), window, consumed)
		return s, sizeOf(stdin), err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, -1, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, -1, errors.New("is a directory: name the files in it")
	}
	s, err = newSource(f, waits(f), window, consumed)
	if err != nil {
		f.Close()
		return nil, -1, err
	}
	s.closer = f
	return s, sizeOf(f), nil
}

// waits reports whether reading r may wait for a writer.
func waits(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return true
	}
	st, err := f.Stat()
	return err != nil || !st.Mode().IsRegular()
}

// sizeOf returns the size of a regular file, else -1.
func sizeOf(r io.Reader) int64 {
	if f, ok := r.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return st.Size()
		}
	}
	return -1
}

// newSource looks at the first four bytes of r and puts a decompressor above
// it if they ask for one.
func newSource(r io.Reader, waits bool, window int, consumed *atomic.Int64) (*source, error) {
	c := &counter{r: r, n: consumed}
	var head [4]byte
	n, err := io.ReadFull(c, head[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	s := &source{raw: c, waits: waits}
	s.r = io.MultiReader(bytes.NewReader(head[:n]), c)
	switch h := head[:n]; {
	case n == 0:
		return nil, errEmpty
	case n >= 2 && h[0] == 0x1f && h[1] == 0x8b: // RFC 1952 section 2.3.1
		z, err := gzip.NewReader(bufio.NewReaderSize(s.r, 64<<10))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		s.r, s.kind = z, "gzip"
	case n == 4 && isZstd(h):
		if err := s.openZstd(window); err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
	}
	return s, nil
}

func (s *source) Close() error {
	if s.ahead != nil {
		s.ahead.close()
		s.ahead = nil
	}
	var err error
	if s.closer != nil {
		err = s.closer.Close()
	}
	if s.zstd != nil {
		s.zstd.Close()
	}
	return err
}
