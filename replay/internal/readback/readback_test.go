package readback

import (
	"errors"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/replay/client"
)

// version is a client of which only the version is asked for.
type version struct {
	client.FS
	name string
}

func (v version) Version() string { return v.name }

// TestPutOff: a server that puts off all calls does not keep the run from its end.
func TestPutOff(t *testing.T) {
	status := func(code uint32) error { return &client.StatusError{Operation: "LOOKUP", Code: code} }
	delay, grace, access := status(10008), status(10013), status(13)
	for _, c := range []struct {
		name, version string
		answers       []error
		end           int // the answer that ends the reading; 0 is none
		why           error
	}{
		{"all put off", "4.1", []error{delay, delay, delay, delay}, 3, delay},
		{"in a grace period", "4.0", []error{grace, delay, grace}, 3, grace},
		{"some put off", "4.2", []error{delay, delay, nil, delay, access, delay, delay, nil}, 0, nil},
		{"JUKEBOX, for which nobody waits", "3", []error{delay, delay, delay, delay}, 0, nil},
		{"refused", "4.1", []error{access, access, access, &client.DeniedError{Status: "AUTH_ERROR"}}, 0, nil},
		{"lost", "4.1", []error{delay, io.ErrUnexpectedEOF}, 2, io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &reader{fs: version{name: c.version}}
			for i, err := range c.answers {
				end := r.fatal(err)
				if (end != nil) != (i+1 == c.end) {
					t.Fatalf("answer %d, %v: %v", i+1, err, end)
				}
				if end == nil {
					continue
				}
				if !errors.Is(end, c.why) {
					t.Errorf("ended with %v", end)
				}
				return
			}
		})
	}
}
