//go:build !linux

package live

import "github.com/rpcrdma/toolkit/capture"

// Reader is a live capture.
type Reader struct{}

// Open returns ErrUnsupported.
func Open(Options) (*Reader, error) { return nil, ErrUnsupported }

// Read implements capture.Reader.
func (*Reader) Read(*capture.Batch) error { return ErrUnsupported }

// Problems implements capture.Reader.
func (*Reader) Problems() ([]*capture.Problem, int) { return nil, 0 }

// Close implements capture.Reader.
func (*Reader) Close() error { return nil }

// Taps implements capture.Tapper.
func (*Reader) Taps() []capture.Tap { return nil }

// Stop ends the capture.
func (*Reader) Stop() {}

// Stats returns the counters of each interface.
func (*Reader) Stats() []Stats { return nil }

// Notes are remarks on what was not possible, or cannot be seen.
func (*Reader) Notes() []string { return nil }
