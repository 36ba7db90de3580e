package cli

import (
	"io"
	"os"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Columns  int // width of a line of text on Out; 0: unlimited
}

// Standard are the streams of the process.
func Standard() *Streams { return &Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }
