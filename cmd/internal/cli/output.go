package cli

import (
	"io"
	"path/filepath"

	"github.com/rpcrdma/toolkit/internal/outfile"
)

// Output is where a command writes a result that is whole or not there at all: a
// file, or standard output.
type Output struct {
	io.Writer
	file *outfile.File // nil for standard output
}

// Create begins an Output; "-" is stdout. It is refused if it is a file that the
// command reads.
func Create(files *outfile.Files, name string, stdout io.Writer) (*Output, error) {
	if name == "-" {
		if err := files.TakeStdout(stdout); err != nil {
			return nil, err
		}
		return &Output{Writer: stdout}, nil
	}
	f, err := files.Create(name)
	if err != nil {
		return nil, err
	}
	return &Output{f, f}, nil
}

// Stream begins an Output for a capture, which can be read while it is written.
func Stream(files *outfile.Files, name string, stdout io.Writer) (*Output, error) {
	if name == "-" {
		return Create(files, name, stdout)
	}
	f, err := files.Stream(name)
	if err != nil {
		return nil, err
	}
	return &Output{f, f}, nil
}

// Uncompressed refuses the name of a compressed file for a capture that is written as it is.
func Uncompressed(name string) error {
	if ext := filepath.Ext(name); ext == ".gz" || ext == ".zst" {
		return Usagef("-w %s: this capture is written uncompressed; leave %s away and compress the file, or write to - and into a compressor", name, ext)
	}
	return nil
}

// ToStdout reports whether an output is standard output, which text for people must stay out of then.
func ToStdout(name string) bool { return name == "-" || name != "" && outfile.IsStdout(name) }

// Commit gives the file its name.
func (o *Output) Commit() error {
	if o.file == nil {
		return nil
	}
	return o.file.Commit()
}

// Discard gives the file up, unless it was committed.
func (o *Output) Discard() {
	if o != nil && o.file != nil {
		o.file.Discard()
	}
}

// Hide makes a file that nobody but its owner may read.
func (o *Output) Hide() error {
	if o.file == nil {
		return nil
	}
	return o.file.Hide()
}

// Truncate cuts a capture after the last record that is whole, and does nothing to standard output.
func (o *Output) Truncate(n int64) error {
	if o.file == nil {
		return nil
	}
	return o.file.Truncate(n)
}

// WriteFile writes a file by a function, or to stdout.
func WriteFile(files *outfile.Files, name string, stdout io.Writer, write func(io.Writer) error) error {
	o, err := Create(files, name, stdout)
	if err != nil {
		return err
	}
	defer o.Discard()
	if err := write(o); err != nil {
		return err
	}
	return o.Commit()
}

// Witness remembers the first error of a writer, for text that is written line by line.
type Witness struct {
	W   io.Writer
	Err error
}

// Write implements io.Writer.
func (o *Witness) Write(b []byte) (int, error) {
	n, err := o.W.Write(b)
	if err != nil && o.Err == nil {
		o.Err = err
	}
	return n, err
}
