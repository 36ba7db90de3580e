package fabric_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// TestResponseNotCaptured: the capture lacks the response to a Read, and its requester goes on.
func TestResponseNotCaptured(t *testing.T) {
	for name, tt := range map[string]struct {
		depth  uint16
		pause  float64 // µs until the last Read
		flight int     // of that
		status fabric.Status
	}{
		"soon":           {0, 1000, 2, fabric.Unanswered},
		"time has gone":  {0, 300e3, 1, fabric.Incomplete},
		"slots were two": {2, 1000, 2, fabric.Unanswered},
		"slots were one": {1, 1000, 1, fabric.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(fabric.Options{})
			for side := range s.c.Setup {
				if tt.depth != 0 {
					s.c.Setup[side] = rdma.Setup{Message: rdma.SetupREP, InitiatorDepth: tt.depth, ResponderDepth: tt.depth}
				}
			}
			s.at(0, 0, roce.RCReadRequest, 0, 0, reth(0, 3072))
			s.at(10, 1, roce.RCReadResponseFirst, 0, 1024)
			s.at(20, 0, roce.RCSendOnly, 3, 100)
			s.at(30, 1, roce.RCAcknowledge, 3, 0, ack) // PSN 1 and 2 must have come before
			last := s.at(30+tt.pause, 0, roce.RCReadRequest, 4, 0, reth(0, 100))
			s.at(40+tt.pause, 1, roce.RCReadResponseOnly, 4, 100)
			p := s.done()
			reads := map[bool]*fabric.Operation{}
			for i := range s.ops {
				if o := &s.ops[i]; o.Kind == rdma.WorkRead {
					reads[o.First.Number == last] = o
				}
			}
			if o := reads[true]; o == nil || o.InFlight != tt.flight || o.Status != fabric.Completed {
				t.Errorf("the last Read: %+v", o)
			}
			if o := reads[false]; o == nil || o.Status != tt.status || o.Bytes != 1024 {
				t.Errorf("the first Read: %+v", o)
			}
			want := uint64(0)
			if tt.status == fabric.Incomplete {
				want = 2
			}
			if got := p.Totals.NotCaptured; got != want {
				t.Errorf("%d packets not captured, want %d", got, want)
			}
		})
	}
}

// TestResponseLost: a response is lost, and asked for again, late. The Read has all that time.
func TestResponseLost(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCReadRequest, 0, 0, reth(0, 100))
	s.at(20, 0, roce.RCSendOnly, 1, 100)
	s.at(30, 1, roce.RCAcknowledge, 1, 0, ack)
	s.at(83e3, 0, roce.RCReadRequest, 0, 0, reth(0, 100))
	s.at(83e3+10, 1, roce.RCReadResponseOnly, 0, 100)
	s.at(400e3, 0, roce.RCSendOnly, 2, 100)
	s.at(400e3+10, 1, roce.RCAcknowledge, 2, 0, ack)
	s.done()
	for _, o := range s.ops {
		if d, ok := o.Latency(); o.Kind == rdma.WorkRead && (!ok || d.Microseconds() != 83010 || o.Again != 1) {
			t.Errorf("%+v", o)
		}
	}
	if s.only(t).Notice != fabric.ByRead && s.only(t).Notice != fabric.ByTimeout {
		t.Errorf("%+v", s.episodes)
	}
}

// TestAtomicNotAnswered: the acknowledgement of a later request does not stand for that of an atomic operation.
func TestAtomicNotAnswered(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCFetchAdd, 0, 0)
	s.at(10, 0, roce.RCSendOnly, 1, 100)
	s.at(20, 1, roce.RCAcknowledge, 1, 0, ack)
	s.at(300, 0, roce.RCFetchAdd, 0, 0)
	s.at(310, 1, roce.RCAtomicAcknowledge, 0, 0, ack)
	s.at(320, 0, roce.RCFetchAdd, 2, 0)
	s.at(330, 0, roce.RCSendOnly, 3, 100)
	s.at(340, 1, roce.RCAcknowledge, 3, 0, ack)
	s.done()
	var got []fabric.Operation
	for _, o := range s.ops {
		if o.Kind == rdma.WorkAtomic {
			got = append(got, o)
		}
	}
	if len(got) != 2 || got[0].Status != fabric.Completed || got[1].Status != fabric.Unanswered {
		t.Fatalf("%+v", got)
	}
	if d, _ := got[0].Latency(); d.Microseconds() != 310 || got[0].Again != 1 {
		t.Errorf("%v, %+v", d, got[0])
	}
}
