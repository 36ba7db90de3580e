package fabric_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// stalls returns the stalls of a scene's client, the earliest first, in microseconds since
// it began.
func (s *scene) stalls(side rdma.Side) (list []fabric.Stall) {
	s.rec.Stalls(s.c, side, 0, func(x *fabric.Stall) {
		y := *x
		for _, p := range []*int64{&y.From, &y.To, &y.From2, &y.To2} {
			*p = (*p - s.base) / 1000
		}
		y.Lost /= 1000
		list = append([]fabric.Stall{y}, list...)
	})
	return list
}

func (s *scene) stall(t *testing.T, cause rdma.Cause, from, to, from2, to2, lost int64) {
	t.Helper()
	list := s.stalls(0)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if x := list[0]; x.Cause != cause || x.From != from || x.To != to || x.From2 != from2 || x.To2 != to2 || x.Lost != lost {
		t.Errorf("%+v", x)
	}
}

func TestStallNAK(t *testing.T) {
	s := newScene(fabric.Options{})
	for i := range uint32(5) {
		s.at(float64(10*i), 0, roce.RCSendOnly, i, 100)
	}
	s.at(45, 1, roce.RCAcknowledge, 2, 0, syndrome(roce.NAKPSNSequence))
	s.at(60, 0, roce.RCSendOnly, 2, 100)
	s.at(63, 0, roce.RCSendOnly, 3, 100)
	s.at(66, 0, roce.RCSendOnly, 4, 100)
	s.at(69, 0, roce.RCSendOnly, 5, 100) // had not been sent before
	s.at(80, 1, roce.RCAcknowledge, 5, 0, ack)
	s.stall(t, rdma.CauseRecovery, 20, 60, 40, 66, 40)
}

func TestStallBefore(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(1, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(10, 0, roce.RCSendOnly, 3, 100) // 1 and 2 are lost
	s.at(14, 1, roce.RCAcknowledge, 1, 0, syndrome(roce.NAKPSNSequence))
	s.at(20, 0, roce.RCSendOnly, 1, 100)
	n := s.at(21, 0, roce.RCSendOnly, 2, 100)
	s.at(30, 1, roce.RCAcknowledge, 3, 0, ack)
	s.stall(t, rdma.CauseRecovery, 10, 20, 10, 21, 10)
	if x := s.stalls(0)[0]; x.Late != n-1 || x.LateTo != n || x.Until != s.base+30_000 {
		t.Errorf("%+v", x)
	}
}

func TestStallTimeout(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(1, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(10, 0, roce.RCSendOnly, 1, 100)
	s.at(2010, 0, roce.RCSendOnly, 1, 100)
	s.at(2015, 1, roce.RCAcknowledge, 1, 0, ack)
	s.stall(t, rdma.CauseRecovery, 10, 2010, 10, 2010, 2000)
}

// TestStallResponses: a response that was captured is lost behind the capture point. More follow
// than there is room for sightings at first, and one of them is lost again.
func TestStallResponses(t *testing.T) {
	s := newScene(fabric.Options{})
	const packets = 200
	read := func(us float64, first uint32) {
		s.at(us, 0, roce.RCReadRequest, first, 0, reth(uint64(0x1000+1024*first), 1024*(packets-first)))
	}
	responses := func(us float64, first, end uint32) {
		for i := first; i < end; i++ {
			op := roce.RCReadResponseMiddle
			switch i {
			case first:
				op = roce.RCReadResponseFirst
			case packets - 1:
				op = roce.RCReadResponseLast
			}
			s.at(us+float64(i-first), 1, op, i, 1024, ack)
		}
	}
	read(0, 0)
	responses(10, 0, packets)
	read(500, 5)
	responses(510, 5, packets)
	read(1000, 50)
	responses(1010, 50, packets)
	list := s.stalls(0)
	if len(list) != 2 || list[0].From != 15 || list[0].To != 510 || list[1].From != 555 || list[1].To != 1010 {
		t.Errorf("%+v", list)
	}
}

// The acknowledgement of the retransmitted packets was lost: the sender was silent since its last
// packet.
func TestStallLostAck(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(5, 0, roce.RCSendOnly, 1, 100)
	s.at(9, 1, roce.RCAcknowledge, 1, 0, ack)
	s.at(3000, 0, roce.RCSendOnly, 0, 100)
	s.at(3005, 1, roce.RCAcknowledge, 1, 0, ack)
	s.stall(t, rdma.CauseRecovery, 5, 3000, 5, 3000, 2995)
}

func TestStallNotReady(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(5, 1, roce.RCAcknowledge, 0, 0, syndrome(roce.Syndrome(0x20|14))) // RNR, 1.28 ms
	s.at(1300, 0, roce.RCSendOnly, 0, 100)
	s.at(1305, 1, roce.RCAcknowledge, 0, 0, ack)
	s.stall(t, rdma.CauseNotReady, 0, 1300, 0, 1300, 1300)
}

// A CNP halves the rate: the excess over the usual time between two packets is lost.
func TestStallCongestion(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCWriteFirst, 0, 1024, reth(0x1000, 1024*40))
	now := 0.0
	for i := range uint32(19) {
		now += 2
		s.at(now, 0, roce.RCWriteMiddle, 1+i, 1024)
	}
	s.at(now+1, 1, roce.CNP, 0, 0)
	for i := range uint32(10) {
		now += 10
		s.at(now, 0, roce.RCWriteMiddle, 20+i, 1024)
	}
	s.stall(t, rdma.CauseCongestion, 38, 138, 38, 138, 80)
	for i := range uint32(9) { // the usual pace again: no more time is lost
		now += 2
		s.at(now, 0, roce.RCWriteMiddle, 30+i, 1024)
	}
	s.stall(t, rdma.CauseCongestion, 38, 138, 38, 138, 80)
}

// Without a pace before the CNP nothing can be said.
func TestStallUnknownPace(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 1, roce.CNP, 0, 0)
	s.at(1, 0, roce.RCWriteFirst, 0, 1024, reth(0x1000, 2048))
	s.at(21, 0, roce.RCWriteLast, 1, 1024)
	s.stall(t, rdma.CauseUnknown, 1, 21, 1, 21, 20)
}

func TestStallDepth(t *testing.T) {
	s := newScene(fabric.Options{})
	s.c.Setup[0].Message, s.c.Setup[1].Message = rdma.SetupREQ, rdma.SetupREP
	s.c.Setup[0].InitiatorDepth, s.c.Setup[1].ResponderDepth = 4, 2
	s.at(0, 0, roce.RCReadRequest, 0, 0, reth(0x1000, 100))
	s.at(10, 0, roce.RCReadRequest, 1, 0, reth(0x2000, 100))
	s.at(50, 1, roce.RCReadResponseOnly, 0, 100, ack)
	s.at(60, 1, roce.RCReadResponseOnly, 1, 100, ack)
	s.stall(t, rdma.CauseReadSlot, 10, 50, 10, 50, 40)
}

// TestDivide: the parts sum to the whole, whatever overlaps what.
func TestDivide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var scratch []int64
	for range 20000 {
		var list []fabric.Stall
		for range rng.IntN(6) {
			from := rng.Int64N(1000) - 100
			x := fabric.Stall{From: from, To: from + 1 + rng.Int64N(300), Cause: rdma.Cause(1 + rng.IntN(rdma.NumCauses-1))}
			x.Lost = rng.Int64N(x.To - x.From + 1)
			list = append(list, x)
		}
		a := rng.Int64N(500)
		b := a + rng.Int64N(500)
		var s fabric.Share
		s, scratch = fabric.Divide(a, b, list, rng.Int64N(600), scratch)
		sum := int64(0)
		for _, n := range s {
			if n < 0 {
				t.Fatal(s)
			}
			sum += n
		}
		if sum != b-a {
			t.Fatalf("%d to %d: %v", a, b, s)
		}
	}
	// A receiver that is not ready takes precedence over a recovery, and that over everything
	// else.
	s, _ := fabric.Divide(0, 100, []fabric.Stall{
		{From: 0, To: 60, Lost: 60, Cause: rdma.CauseRecovery}, {From: 50, To: 70, Lost: 20, Cause: rdma.CauseNotReady},
		{From: 0, To: 90, Lost: 45, Cause: rdma.CauseCongestion},
	}, 0, nil)
	if s != (fabric.Share{rdma.CauseRest: 20, rdma.CauseNotReady: 20, rdma.CauseRecovery: 50, rdma.CauseCongestion: 10}) {
		t.Error(s)
	}
}

// TestStallsBounded: forgotten stalls are reported.
func TestStallsBounded(t *testing.T) {
	s := newScene(fabric.Options{})
	for i := range uint32(200) {
		us := float64(10000 * int(i))
		s.at(us, 0, roce.RCSendOnly, i, 100)
		s.at(us+3000, 0, roce.RCSendOnly, i, 100)
		s.at(us+3010, 1, roce.RCAcknowledge, i, 0, ack)
	}
	n := 0
	before, ok := s.rec.Stalls(s.c, 0, 0, func(*fabric.Stall) { n++ })
	if !ok || n != 64 || before != s.base+int64(135*10000+3000)*1000 {
		t.Errorf("%d stalls, %d forgotten", n, (before-s.base)/1000)
	}
	s.done()
	if _, ok := s.rec.Stalls(s.c, 0, 0, func(*fabric.Stall) {}); ok {
		t.Error("something is known of a connection that is closed")
	}
	if n := s.rec.Stalled(); n != 0 {
		t.Errorf("room for %d stalls is held for nothing", n)
	}
}

// TestLostAgain: what was sent again is lost, too. All waiting is recovery, whoever asked for the first repetition.
func TestLostAgain(t *testing.T) {
	for name, x := range map[string]struct {
		play     func(s *scene)
		timeouts uint32
		least    float64 // share of recovery
	}{
		"three timeouts": {func(s *scene) {
			for _, us := range []float64{0, 1100, 3300, 7700} {
				s.at(us, 0, roce.RCSendOnly, 0, 100)
			}
			s.at(7710, 1, roce.RCAcknowledge, 0, 0, ack)
		}, 3, 0.99},
		"NAK, then a timeout": {func(s *scene) {
			for i := range uint32(5) {
				s.at(float64(10*i), 0, roce.RCSendOnly, i, 100)
			}
			s.at(45, 1, roce.RCAcknowledge, 1, 0, syndrome(roce.NAKPSNSequence))
			for _, us := range []float64{60, 1300} {
				for i := uint32(1); i < 5; i++ {
					s.at(us+float64(i), 0, roce.RCSendOnly, i, 100)
				}
			}
			s.at(1310, 1, roce.RCAcknowledge, 4, 0, ack)
		}, 1, 0.95},
		"repetition lost before the capture point": {func(s *scene) {
			for i := range uint32(5) {
				s.at(float64(10*i), 0, roce.RCSendOnly, i, 100)
			}
			s.at(45, 1, roce.RCAcknowledge, 1, 0, syndrome(roce.NAKPSNSequence))
			for i := uint32(2); i < 5; i++ {
				s.at(60+float64(i), 0, roce.RCSendOnly, i, 100)
			}
			for i := uint32(1); i < 5; i++ {
				s.at(1300+float64(i), 0, roce.RCSendOnly, i, 100)
			}
			s.at(1310, 1, roce.RCAcknowledge, 4, 0, ack)
		}, 1, 0.95},
		"NAK for every packet": {func(s *scene) {
			const n = 10
			for i := range uint32(n) {
				s.at(float64(i), 0, roce.RCSendOnly, i, 100)
			}
			for i := range uint32(n) {
				s.at(float64(20+20*i), 1, roce.RCAcknowledge, i, 0, syndrome(roce.NAKPSNSequence))
				for j := i; j < n; j++ {
					s.at(float64(25+20*i)+float64(j)/10, 0, roce.RCSendOnly, j, 100)
				}
			}
			s.at(230, 1, roce.RCAcknowledge, n-1, 0, ack)
		}, 0, 0.8},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(fabric.Options{})
			x.play(s)
			s.done()
			if len(s.episodes) != 1 || s.episodes[0].Timeouts != x.timeouts {
				t.Errorf("%+v", s.episodes)
			}
			var whole, recovery int64
			for i := range s.ops {
				d, _ := s.ops[i].Latency()
				whole += int64(d)
				recovery += s.ops[i].Lost[rdma.CauseRecovery]
			}
			if whole == 0 || float64(recovery) < x.least*float64(whole) {
				t.Errorf("%d of %d ns are recovery", recovery, whole)
			}
		})
	}
}

// TestLostLastResponse: the last response to a Read was captured and then lost: the episode begins with it.
func TestLostLastResponse(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCReadRequest, 0, 0, reth(0x1000, 2048))
	s.at(10, 1, roce.RCReadResponseFirst, 0, 1024, ack)
	n := s.at(11, 1, roce.RCReadResponseLast, 1, 1024, ack)
	s.at(1200, 0, roce.RCReadRequest, 1, 0, reth(0x1400, 1024))
	s.at(1210, 1, roce.RCReadResponseOnly, 1, 1024, ack)
	s.done()
	if len(s.episodes) != 1 {
		t.Fatalf("%+v", s.episodes)
	}
	e := &s.episodes[0]
	if d, ok := e.Duration(); !ok || d != 1199*us || !e.Responses || e.LostAt.Number != n {
		t.Errorf("%v %+v", d, e)
	}
}
