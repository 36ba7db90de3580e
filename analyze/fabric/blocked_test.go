package fabric_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// TestBlocked sends a packet four times that is never acknowledged. Nothing else is known of the direction, or a smaller one got
// through, or a larger one did.
func TestBlocked(t *testing.T) {
	for _, tt := range []struct {
		passed int // payload of the packet before, 0 for none
		by     fabric.BlockedBy
	}{{0, fabric.BlockedByDirection}, {200, fabric.BlockedBySize}, {1000, fabric.BlockedByDirection}} {
		s := newScene(fabric.Options{})
		psn := uint32(0)
		if tt.passed > 0 {
			s.at(0, 0, roce.RCSendOnly, psn, tt.passed)
			s.at(5, 1, roce.RCAcknowledge, psn, 0)
			psn++
		}
		for i := range 4 {
			s.at(float64(10+2000*i), 0, roce.RCSendOnly, psn, 900)
		}
		r := s.done()
		if len(r.Blocked) != 1 {
			t.Fatalf("passed %d: %+v", tt.passed, r.Blocked)
		}
		if b := r.Blocked[0]; b.By != tt.by || b.Attempts != 4 || b.Least != 900 || b.Most != 900 || b.Passed != uint32(tt.passed) ||
			b.From != a.String() || b.Connections != 1 || len(b.Ports) != 1 || b.Ports[0] != 0xc001 {
			t.Errorf("passed %d: %+v", tt.passed, b)
		}
	}
}

// TestBlockedNot: what is acknowledged in the end is not blocked.
func TestBlockedNot(t *testing.T) {
	s := newScene(fabric.Options{})
	for i := range 4 {
		s.at(float64(2000*i), 0, roce.RCSendOnly, 0, 900)
	}
	s.at(9000, 1, roce.RCAcknowledge, 0, 0)
	if r := s.done(); len(r.Blocked) != 0 {
		t.Errorf("%+v", r.Blocked)
	}
}
