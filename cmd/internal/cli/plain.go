package cli

import (
	"errors"
	"io"
	"io/fs"

	"github.com/rpcrdma/toolkit/internal/printable"
)

// Plain returns a writer to a stream for text without colors, which escapes what
// is not to be shown as it is (package printable), JSON included.
func Plain(w io.Writer) io.Writer { return &plain{printable.TextWriter(w), w} }

type plain struct {
	io.Writer
	stream io.Writer
}

// Stat tells what the stream is, so that it can be compared with files.
func (p *plain) Stat() (fs.FileInfo, error) {
	if f, ok := p.stream.(interface{ Stat() (fs.FileInfo, error) }); ok {
		return f.Stat()
	}
	return nil, errors.ErrUnsupported
}
