package fabric_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// bareScene is a scene without a setup of its connection.
func bareScene() *scene {
	s := &scene{found: &found{}}
	s.rec = fabric.New(fabric.Options{Operation: func(o *fabric.Operation) { s.ops = append(s.ops, *o) }})
	s.t = newTracker(s.rec)
	return s
}

// TestUnpaired: acknowledgements come before it is known what they belong to. No operation may take the time until that
// is known for its latency.
func TestUnpaired(t *testing.T) {
	s := bareScene()
	const n = 40
	for i := range uint32(n) {
		s.at(float64(1000*i), 0, roce.RCSendOnly, i, 100)
		s.at(float64(1000*i+5), 1, roce.RCAcknowledge, i, 0, ack)
	}
	s.done()
	timed := 0
	for i := range s.ops {
		o := &s.ops[i]
		if o.Status != fabric.Completed {
			t.Errorf("PSN %d: %v", o.PSN, o.Status)
		}
		if d, ok := o.Latency(); ok {
			if timed++; d != 5*us {
				t.Errorf("PSN %d: %v", o.PSN, d)
			}
		}
	}
	if len(s.ops) != n || timed < n/2 {
		t.Errorf("%d operations, %d with a latency", len(s.ops), timed)
	}
}

// TestUnpairedRefused: the last thing seen before it is known was a NAK, which acknowledges all before its PSN.
func TestUnpairedRefused(t *testing.T) {
	s := bareScene()
	const n = 14
	for i := range uint32(n) {
		s.at(float64(100*i), 0, roce.RCSendOnly, i, 100)
		s.at(float64(100*i+5), 1, roce.RCAcknowledge, i, 0, ack)
	}
	s.at(100*n, 0, roce.RCSendOnly, n, 100)
	s.at(100*n+5, 1, roce.RCAcknowledge, n, 0, syndrome(0x20|1)) // RNR
	s.at(100*n+20, 0, roce.RCSendOnly, n, 100)
	for i := range uint32(4) {
		s.at(float64(100*n+25+10*i), 1, roce.RCAcknowledge, n+i, 0, ack)
		s.at(float64(100*n+30+10*i), 0, roce.RCSendOnly, n+1+i, 100)
	}
	s.done()
	for i := range s.ops {
		o := &s.ops[i]
		if d, ok := o.Latency(); ok && o.PSN == (psnA+n)&0xffffff && d != 25*us {
			t.Errorf("%v", d)
		}
	}
}

// TestUnreliable: nobody acknowledges operations of unreliable connections (IBTA volume 1, section 9.8.2).
func TestUnreliable(t *testing.T) {
	s := bareScene()
	uc := roce.ServiceUC
	for i := range uint32(10) {
		s.at(float64(10*i), 0, uc.Opcode(roce.RCWriteFirst), 3*i, 1024, reth(0x1000, 2100))
		if i != 4 {
			s.at(float64(10*i+1), 0, uc.Opcode(roce.RCWriteMiddle), 3*i+1, 1024)
		}
		s.at(float64(10*i+2), 0, uc.Opcode(roce.RCWriteLast), 3*i+2, 52)
	}
	s.at(200, 0, uc.Opcode(roce.RCSendFirst), 30, 1024)
	s.at(201, 0, uc.Opcode(roce.RCSendLast), 31, 10)
	s.at(202, 0, uc.Opcode(roce.RCSendOnly), 32, 10)
	s.done()
	if len(s.ops) != 12 {
		t.Fatalf("%d operations", len(s.ops))
	}
	for i := range s.ops {
		o := &s.ops[i]
		if _, ok := o.Latency(); ok || o.Status != fabric.Completed || o.InFlight != 1 {
			t.Errorf("%v %v %d in flight, latency %v", o.Kind, o.Status, o.InFlight, ok)
		}
	}
}

// TestEmptyResponse: FLUSH and ATOMIC WRITE are acknowledged by an empty Read Response (IBTA annex A19).
func TestEmptyResponse(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCFlush, 0, 0, reth(0x1000, 64))
	s.at(10, 1, roce.RCReadResponseOnly, 0, 0, ack)
	s.at(100, 0, roce.RCAtomicWrite, 1, 8, reth(0x1000, 8))
	s.at(110, 1, roce.RCReadResponseOnly, 1, 0, ack)
	s.at(200, 0, roce.RCSendOnly, 2, 8)
	s.at(210, 1, roce.RCAcknowledge, 2, 0, ack)
	r := s.done()
	for i := range s.ops {
		if d, ok := s.ops[i].Latency(); !ok || d != 10*us {
			t.Errorf("%v: %v %v", s.ops[i].Kind, d, ok)
		}
	}
	if len(s.ops) != 3 || r.Totals.Episodes != 0 {
		t.Errorf("%d operations, %+v", len(s.ops), r.Totals)
	}
}

// TestReactionOfOthers: what a side sent that got no CNP, and the time of one that sent nothing, are not in the rates.
func TestReactionOfOthers(t *testing.T) {
	s := newScene(fabric.Options{})
	for i := range uint32(10) {
		s.at(float64(10*i), 0, roce.RCSendOnly, i, 1000)
		s.at(float64(10*i+1), 1, roce.RCSendOnly, i, 1000)
	}
	s.at(95, 1, roce.CNP, 0, 0)
	s.at(100, 0, roce.RCSendOnly, 10, 1000)
	lone := func(_ *link.Frame, p *roce.Packet) { p.DestQP = 0x999 }
	s.at(101, 1, roce.CNP, 0, 0, lone)
	s.at(9000, 1, roce.CNP, 0, 0, lone)
	r := s.done().Congestion
	var bytes uint64
	var time int64
	for _, x := range r.Reaction {
		bytes, time = bytes+x.Bytes, time+x.Time
	}
	if want := uint64(11 * (12 + 1000 + 4)); bytes != want || time != 100_000 || r.CNPs != 3 {
		t.Errorf("%d bytes, not %d, in %d ns: %+v", bytes, want, time, r)
	}
}

// TestUnpairedReads: Reads that were answered before it is known by whom have all their bytes, and no latency.
func TestUnpairedReads(t *testing.T) {
	s := bareScene()
	for i := range uint32(3) {
		s.at(float64(100*i), 0, roce.RCReadRequest, 500+2*i, 0, reth(0x1000, 2048))
		s.at(float64(100*i+5), 1, roce.RCReadResponseFirst, 500+2*i, 1024, ack)
		s.at(float64(100*i+6), 1, roce.RCReadResponseLast, 501+2*i, 1024, ack)
	}
	s.done()
	timed := 0
	for i := range s.ops {
		o := &s.ops[i]
		if o.Status != fabric.Completed || o.Bytes != 2048 {
			t.Errorf("PSN %d: %v, %d bytes", o.PSN, o.Status, o.Bytes)
		}
		if _, ok := o.Latency(); ok {
			timed++
		}
	}
	if len(s.ops) != 3 || timed != 1 {
		t.Errorf("%d operations, %d with a latency", len(s.ops), timed)
	}
}
