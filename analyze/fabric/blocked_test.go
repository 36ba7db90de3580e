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

// TestBlockedResponses asks for a Read again and again. The capture has all responses, or none of the large ones. Before it, a
// smaller Read was answered, and behind it either nothing is asked for, or something new: then the responses have come.
func TestBlockedResponses(t *testing.T) {
	for _, tt := range []struct{ captured, goesOn bool }{{true, false}, {false, false}, {true, true}} {
		s := newScene(fabric.Options{})
		s.at(0, 0, roce.RCReadRequest, 0, 0, reth(0, 100))
		s.at(5, 1, roce.RCReadResponseOnly, 0, 100)
		for i := range 4 {
			at := float64(10 + 2000*i)
			s.at(at, 0, roce.RCReadRequest, 1, 0, reth(4096, 2048+50))
			s.at(at+1, 0, roce.RCReadRequest, 4, 0, reth(9000, 60))
			if tt.captured {
				s.at(at+2, 1, roce.RCReadResponseFirst, 1, 1024)
				s.at(at+3, 1, roce.RCReadResponseMiddle, 2, 1024)
			}
			s.at(at+4, 1, roce.RCReadResponseLast, 3, 50)
			s.at(at+5, 1, roce.RCReadResponseOnly, 4, 60)
		}
		if tt.goesOn {
			s.at(9000, 0, roce.RCSendOnly, 5, 300)
			s.at(9005, 1, roce.RCAcknowledge, 5, 0, ack)
		}
		r := s.done()
		if tt.goesOn {
			if len(r.Blocked) != 0 {
				t.Errorf("%+v: %+v", tt, r.Blocked)
			}
			continue
		}
		if len(r.Blocked) != 1 {
			t.Fatalf("%+v: %+v", tt, r.Blocked)
		}
		if x := r.Blocked[0]; x.By != fabric.BlockedBySize || !x.Asked || x.Attempts != 4 || x.Least != 1024 || x.Most != 1024 || x.Passed != 100 || x.From != b.String() {
			t.Errorf("%+v: %+v", tt, x)
		}
	}
}
