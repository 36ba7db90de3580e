package readback

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/replay/client"
)

// TestPutOff: a server that puts off all calls does not keep the run from its end.
func TestPutOff(t *testing.T) {
	status := func(code uint32) error { return &client.StatusError{Operation: "LOOKUP", Code: code} }
	putOff := func(code uint32) error { return fmt.Errorf("%w: %w", status(code), client.ErrPutOff) }
	delay, grace, access, jukebox := putOff(10008), putOff(10013), status(13), status(10008)
	for _, c := range []struct {
		name    string
		answers []error
		end     int // the answer that ends the reading; 0 is none
		why     error
	}{
		{"all put off", []error{delay, delay, delay, delay}, 3, delay},
		{"in a grace period", []error{grace, delay, grace}, 3, grace},
		{"some put off", []error{delay, delay, nil, delay, access, delay, delay, nil}, 0, nil},
		{"JUKEBOX, for which nobody waits", []error{jukebox, jukebox, jukebox, jukebox}, 0, nil},
		{"refused", []error{access, access, access, &client.DeniedError{Status: "AUTH_ERROR"}}, 0, nil},
		{"lost", []error{delay, io.ErrUnexpectedEOF}, 2, io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := new(reader)
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
