package main

import (
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// claim registers the captures and plans that a command reads, with the data files of plans, so that none of
// them is overwritten.
func claim(s *cli.Streams, names ...string) (*outfile.Files, error) {
	files := &outfile.Files{}
	for _, n := range names {
		if n == "-" {
			files.ReadsStream("standard input", s.In)
			continue
		}
		files.Reads(n)
		if isPlan(n) {
			files.Reads(n + ".data")
			if h, err := plan.ReadHeader(n); err == nil {
				files.Reads(plan.DataName(n, h))
			}
		}
	}
	files.Prints(s.Out)
	return files, files.CheckStream("standard output", s.Out)
}

// ownCapture is a capture file of the program's own packets. It can be read while it grows.
type ownCapture struct {
	packets *tap.Writer
	file    *outfile.File
}

func newOwnCapture(files *outfile.Files, name string) (*ownCapture, error) {
	f, err := files.Stream(name)
	if err != nil {
		return nil, err
	}
	w := capture.NewWriter(f, capture.WriterOptions{Format: capture.Pcapng, Link: capture.LinkRaw, Application: "rpcrdma-replay"})
	return &ownCapture{tap.NewWriter(w), f}, nil
}

// end writes the rest. After an error the file ends with its last whole packet.
func (c *ownCapture) end() error {
	err := c.packets.Flush()
	if err == nil {
		return c.file.Commit()
	}
	defer c.file.Discard() // a stream stays
	n, whole := c.packets.Stored()
	return errors.Join(fmt.Errorf("%s holds the first %d packets only: %w", c.file.Name(), n, err), c.file.Truncate(whole))
}

// outputs are the results that a command writes at its end: completely, or not at all. They are created
// before the work starts, so that a mistake shows at once.
type outputs struct {
	files *outfile.Files
	list  []*cli.Output
}

// create begins one; nil if no name was given.
func (o *outputs) create(s *cli.Streams, name string) (*cli.Output, error) {
	if name == "" {
		return nil, nil
	}
	f, err := cli.Create(o.files, name, s.Out)
	if err != nil {
		return nil, err
	}
	o.list = append(o.list, f)
	return f, nil
}

// discard gives up those that were not committed.
func (o *outputs) discard() {
	for _, f := range o.list {
		f.Discard()
	}
}
