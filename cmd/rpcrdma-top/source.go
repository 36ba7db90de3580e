package main

import (
	"io"

	"github.com/rpcrdma/toolkit/capture"
)

// source is where packets come from.
type source struct {
	capture.Reader
	name string
	live bool // packets come as they are captured
	// drops tells how many packets the system could not deliver, and whether
	// that is known.
	drops func() (uint64, bool)
}

// openSource opens what the flags name. This is the place where a reader of
// live interfaces goes: all else needs only a capture.Reader.
func openSource(o *options, stdin io.Reader) (*source, error) {
	if len(o.interfaces) > 0 {
		return nil, usagef("-i: capturing from interfaces is not part of this build; use tcpdump -w - | rpcrdma-top -r -")
	}
	r, err := capture.Open(o.read, capture.Options{Stdin: stdin})
	if err != nil {
		return nil, err
	}
	name := o.read[0]
	if name == "-" {
		name = "standard input"
	}
	if n := len(o.read); n > 1 {
		name += " and " + plural(uint64(n-1), "more file")
	}
	return &source{Reader: r, name: name}, nil
}
