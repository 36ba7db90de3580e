package fabric_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// handler is the minimal handler that a tracker needs for a Recorder.
type handler struct{ rec rdma.Watcher }

// newTracker makes a tracker that tells a Recorder.
func newTracker(r *fabric.Recorder) *roce.Tracker {
	o := r.Observer()
	return roce.NewTracker(&handler{r}, rdma.Hooks{Watcher: o.Watcher, Runs: o.Runs}, new(rdma.Numbers), roce.Limits{})
}

func (h *handler) Send(*rdma.Connection, *rdma.Send) rdma.Tag { return rdma.Tag{} }

func (h *handler) SendAgain(*rdma.Connection, rdma.Side, rdma.Tag, rdma.Ref, bool) {}

func (h *handler) SendAcked(*rdma.Connection, rdma.Side, rdma.Tag, rdma.Ref) {}

func (h *handler) OpStart(*rdma.Connection, *rdma.Op, rdma.Ref) {}

func (h *handler) OpData(*rdma.Connection, *rdma.Op, *rdma.Fragment) {}

func (h *handler) OpAgain(*rdma.Connection, *rdma.Op, rdma.Ref) {}

func (h *handler) Event(*rdma.Connection, rdma.Side, rdma.Event, uint32, rdma.Ref) {}

func (h *handler) FindCall(*rdma.Connection, uint32) (rdma.Side, bool) { return 0, false }

func (h *handler) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	h.rec.Merged(into, side, from, was)
}

func (h *handler) Closed(c *rdma.Connection, ref rdma.Ref) { h.rec.Closed(c, ref) }

var a, b = netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")

// scene is one connection, packet by packet, at times chosen by the test: microseconds since its
// first packet.
type scene struct {
	*found
	rec  *fabric.Recorder
	t    *roce.Tracker
	n    uint64
	base int64
	last rdma.Ref
	c    *rdma.Connection
}

// The first PSNs of the two sides: those of side 0 wrap soon.
const psnA, psnB = 0xfffffe, 500

func newScene(opt fabric.Options) *scene {
	s := &scene{found: &found{}}
	opt.Top = 20
	opt.Operation = func(o *fabric.Operation) { s.ops = append(s.ops, *o) }
	opt.Episode = func(e *fabric.Episode) {
		kept := *e
		kept.Lost = append([]fabric.Range{}, e.Lost...)
		s.episodes = append(s.episodes, kept)
	}
	s.rec = fabric.New(opt)
	s.t = newTracker(s.rec)
	f := rocetest.Feeder{Tracker: s.t}
	for _, r := range rocetest.Make(rocetest.Config{
		CM: true, Calls: 1, Kinds: []rocetest.Kind{rocetest.Small}, StayOpen: true, QPN: [2]uint32{5, 9}, PSN: [2]uint32{psnA, psnB}, Addr: [2]netip.Addr{a, b},
	}).Taps[0] {
		if r.Role == rocetest.Management {
			if c := f.Feed(&r); c != nil {
				s.c = c
			}
		}
	}
	s.n, s.base = f.Number, f.Last.Time+1000
	s.c.Setup[0].AckTimeout, s.c.Setup[0].PathMTU = 8, 1024 // 1.048576 ms
	return s
}

// at puts a packet on the wire. psn counts from the first of the requester's side.
func (s *scene) at(us float64, from rdma.Side, op roce.Opcode, psn uint32, n int, set ...func(*link.Frame, *roce.Packet)) uint64 {
	s.n++
	f := &link.Frame{Proto: link.UDP, Src: a, Dst: b, SrcPort: 0xc001, DstPort: 4791}
	requester := from
	if op.IsResponse() {
		requester = from.Other()
	}
	first := uint32(psnA)
	if requester == 1 {
		first = psnB
	}
	p := &roce.Packet{Opcode: op, DestQP: 9, PSN: (first + psn) & 0xffffff, PayloadLen: n, Payload: make([]byte, n)}
	if from == 1 {
		f.Src, f.Dst, p.DestQP = b, a, 5
	}
	for _, x := range set {
		x(f, p)
	}
	s.last = rdma.Ref{Time: s.base + int64(us*1000), Number: s.n}
	s.t.Packet(s.last, 0, 0, rdma.RoCEv2, f, p, roce.Good)
	return s.n
}

func (s *scene) done() *fabric.Report {
	s.t.Flush(s.last)
	return s.rec.Report(nil)
}

func marked(f *link.Frame, _ *roce.Packet) { f.ECN = 3 }

func syndrome(x roce.Syndrome) func(*link.Frame, *roce.Packet) {
	return func(_ *link.Frame, p *roce.Packet) { p.AETH.Syndrome = x }
}

func reth(va uint64, n uint32) func(*link.Frame, *roce.Packet) {
	return func(_ *link.Frame, p *roce.Packet) { p.RETH = roce.RETHFields{VA: va, RKey: 7, DMALen: n} }
}

var ack = syndrome(roce.ACKUnlimited)

const us = time.Microsecond

// TestGoBackN loses a packet behind the capture: all times come from the packets.
func TestGoBackN(t *testing.T) {
	s := newScene(fabric.Options{})
	for i := range uint32(5) {
		s.at(float64(10*i), 0, roce.RCSendOnly, i, 100)
	}
	s.at(41, 1, roce.RCAcknowledge, 1, 0, ack)
	s.at(45, 1, roce.RCAcknowledge, 2, 0, syndrome(roce.NAKPSNSequence))
	s.at(60, 0, roce.RCSendOnly, 2, 100)
	s.at(61, 0, roce.RCSendOnly, 3, 100)
	s.at(62, 0, roce.RCSendOnly, 4, 100)
	s.at(63, 0, roce.RCSendOnly, 5, 100)
	s.at(80, 1, roce.RCAcknowledge, 4, 0, ack)
	s.at(90, 1, roce.RCAcknowledge, 5, 0, ack)
	r := s.done()
	e := s.only(t)
	if e.Notice != fabric.ByNAK || e.Repeat != fabric.GoBackN || e.Exact || e.Resent != 3 || e.Needless != 0 || e.Behind != 2 || e.BehindResent != 2 || e.NAKs != 1 || e.From != 0 {
		t.Errorf("%+v", e)
	}
	if p := e.Phases(); p != (fabric.Phases{Detection: 10 * us, NAK: 15 * us, Reaction: 15 * us, CatchUp: 20 * us}) {
		t.Errorf("%+v", p)
	}
	if d, ok := e.Duration(); !ok || d != 60*us { // 20 to 80
		t.Error(d, ok)
	}
	if e.Lost[0] != (fabric.Range{Start: 0, Count: 1}) { // psnA + 2 wraps to 0
		t.Error(e.Lost)
	}
	if len(s.ops) != 6 || s.ops[2].Again != 1 || s.ops[5].Again != 0 || s.ops[4].InFlight != 5 {
		t.Errorf("%+v", s.ops)
	}
	if d, ok := s.ops[2].Latency(); !ok || d != 60*us {
		t.Error(d, ok)
	}
	if r.Totals.Episodes != 1 || r.Totals.Resent != 3 || r.Totals.NotRecovered != 0 {
		t.Errorf("%+v", r.Totals)
	}
}

// TestSelective loses two packets before the capture; only these are sent again.
func TestSelective(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(1, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(10, 0, roce.RCSendOnly, 3, 100) // 1 and 2 are lost
	s.at(11, 0, roce.RCSendOnly, 4, 100)
	s.at(14, 1, roce.RCAcknowledge, 1, 0, syndrome(roce.NAKPSNSequence))
	s.at(20, 0, roce.RCSendOnly, 1, 100)
	s.at(21, 0, roce.RCSendOnly, 2, 100)
	s.at(30, 1, roce.RCAcknowledge, 4, 0, ack)
	s.done()
	e := s.only(t)
	if e.Notice != fabric.ByNAK || e.Repeat != fabric.Selective || !e.Exact || len(e.Lost) != 1 || e.Lost[0] != (fabric.Range{Start: 0xffffff, Count: 2}) || e.Resent != 2 || e.Behind != 2 {
		t.Errorf("%+v", e)
	}
	if p := e.Phases(); p != (fabric.Phases{Detection: -1, NAK: 4 * us, Reaction: 6 * us, CatchUp: 10 * us}) {
		t.Errorf("%+v", p)
	}
}

// TestTimeout: the last packet is lost, and comes again after the announced time.
func TestTimeout(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(1, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(10, 0, roce.RCSendOnly, 1, 100)
	s.at(2010, 0, roce.RCSendOnly, 1, 100)
	s.at(5010, 0, roce.RCSendOnly, 1, 100)
	s.at(5015, 1, roce.RCAcknowledge, 1, 0, ack)
	r := s.done()
	e := s.only(t)
	if e.Notice != fabric.ByTimeout || e.Timeouts != 2 || e.Resent != 2 || e.Waited != 2000*us || e.Announced != 1048576 || e.LostAt.Number == 0 {
		t.Errorf("%+v", e)
	}
	if d, _ := e.Duration(); d != 5005*us {
		t.Error(d)
	}
	if x := r.Connections[0]; x.Terms.AckTimeout != 1048576 || x.Recovery[0].Time != 5005000 {
		t.Errorf("%+v", x)
	}
}

// TestTimeoutUnseen: the lost packet was never seen, and is the first one retransmitted.
func TestTimeoutUnseen(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(1, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(12, 0, roce.RCSendOnly, 2, 100)
	s.at(3000, 0, roce.RCSendOnly, 1, 100)
	s.at(3001, 0, roce.RCSendOnly, 2, 100)
	s.at(3010, 1, roce.RCAcknowledge, 2, 0, ack)
	s.done()
	e := s.only(t)
	if e.Notice != fabric.ByTimeout || !e.Exact || e.Lost[0] != (fabric.Range{Start: 0xffffff, Count: 1}) || e.Resent != 2 || e.Repeat != fabric.GoBackN {
		t.Errorf("%+v", e)
	}
	if d, _ := e.Duration(); d != 2998*us || e.Start().Number != e.Detected.Number {
		t.Error(d)
	}
}

// TestRNR: the receiver is not ready twice, with timer code 14: 1.28 ms.
func TestRNR(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(5, 1, roce.RCAcknowledge, 0, 0, syndrome(roce.RNR(14)))
	s.at(1305, 0, roce.RCSendOnly, 0, 100)
	s.at(1310, 1, roce.RCAcknowledge, 0, 0, syndrome(roce.RNR(14)))
	s.at(2610, 0, roce.RCSendOnly, 0, 100)
	s.at(2620, 1, roce.RCAcknowledge, 0, 0, ack)
	s.done()
	e := s.only(t)
	if e.Notice != fabric.ByRNR || e.RNRs != 2 || e.Waited != 1300*us || e.Announced != roce.RNR(14).RNRTimer() || e.Timeouts != 0 || e.Resent != 2 || len(e.Lost) != 0 {
		t.Errorf("%+v", e)
	}
	if d, _ := e.Duration(); d != 2620*us {
		t.Error(d)
	}
}

// TestReadAgain loses the second response to a Read behind the capture, and before it.
func TestReadAgain(t *testing.T) {
	for _, seen := range []bool{true, false} {
		s := newScene(fabric.Options{})
		s.at(0, 0, roce.RCReadRequest, 0, 0, reth(0x1000, 4096))
		s.at(10, 1, roce.RCReadResponseFirst, 0, 1024, ack)
		if seen {
			s.at(11, 1, roce.RCReadResponseMiddle, 1, 1024, ack)
		}
		s.at(12, 1, roce.RCReadResponseMiddle, 2, 1024, ack)
		s.at(13, 1, roce.RCReadResponseLast, 3, 1024, ack)
		s.at(20, 0, roce.RCReadRequest, 1, 0, reth(0x1400, 3072))
		s.at(30, 1, roce.RCReadResponseFirst, 1, 1024, ack)
		s.at(31, 1, roce.RCReadResponseMiddle, 2, 1024, ack)
		s.at(32, 1, roce.RCReadResponseLast, 3, 1024, ack)
		s.done()
		e := s.only(t)
		resent := uint32(4) // the request, and three responses
		if e.Notice != fabric.ByRead || !e.Responses || e.Exact == seen || e.Lost[0] != (fabric.Range{Start: 0xffffff, Count: 1}) || e.Resent != resent {
			t.Errorf("seen %v: %+v", seen, e)
		}
		p := e.Phases()
		want := fabric.Phases{Detection: 1 * us, NAK: -1, Reaction: 8 * us, CatchUp: 12 * us}
		if !seen {
			want.Detection = -1
		}
		if p != want {
			t.Errorf("seen %v: %+v", seen, p)
		}
		if len(s.ops) != 1 || s.ops[0].Kind != rdma.WorkRead || s.ops[0].Bytes != 4096 || s.ops[0].Status != fabric.Completed {
			t.Errorf("%+v", s.ops)
		}
		end := 13 * us
		if !seen {
			end = 30 * us // the lost response came last
		}
		if d, ok := s.ops[0].Latency(); !ok || d != end {
			t.Error(seen, d)
		}
	}
}

// TestCongestion compares marks, CNPs and their times with the scene.
func TestCongestion(t *testing.T) {
	s := newScene(fabric.Options{Interval: 100 * us})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(10, 0, roce.RCSendOnly, 1, 100, marked)
	s.at(20, 0, roce.RCSendOnly, 2, 100, marked)
	s.at(35, 1, roce.CNP, 0, 0) // 25 after the first mark
	s.at(50, 0, roce.RCSendOnly, 3, 100, marked)
	s.at(85, 1, roce.CNP, 0, 0)  // 35 after its mark, 50 after the CNP before
	s.at(135, 1, roce.CNP, 0, 0) // 50 after the CNP before; without a mark
	s.at(140, 1, roce.RCAcknowledge, 3, 0, ack)
	r := s.done()
	c := r.Congestion
	if c.Marked != 3 || c.CNPs != 3 || c.WithoutMark != 1 || c.Share != 3.0/8 {
		t.Errorf("%+v", c)
	}
	if d := c.MarkToCNP; d.Count != 2 || d.Min != 25000 || d.Max != 35000 {
		t.Errorf("%+v", d)
	}
	if d := c.PerConnection; d.Count != 2 || d.Min != 50000 || d.Max != 50000 || c.PerAddresses.Count != 2 || c.PerSender.Min != 50000 {
		t.Errorf("%+v", d)
	}
	if x := r.Connections[0]; x.Ends[0].Marked != 3 || x.Ends[1].CNPs != 3 {
		t.Errorf("%+v", x)
	}
	if v := r.Series.Intervals; len(v) != 2 || v[0].Packets != 6 || v[0].Marked != 3 || v[0].CNPs != 2 || v[1].CNPs != 1 || v[1].Start != 100000 {
		t.Errorf("%+v", r.Series)
	}
	if len(s.episodes) != 0 {
		t.Errorf("%+v", s.episodes)
	}
}

// TestNoLoss: packets missing from the capture, overtaken packets and copies are not losses.
func TestNoLoss(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(10, 0, roce.RCSendOnly, 2, 100) // 1 is not in the capture
	s.at(20, 1, roce.RCAcknowledge, 2, 0, ack)
	s.at(30, 0, roce.RCSendOnly, 4, 100) // overtakes 3
	s.at(31, 0, roce.RCSendOnly, 3, 100)
	s.at(40, 1, roce.RCAcknowledge, 4, 0, ack)
	s.at(50, 0, roce.RCSendOnly, 5, 100)
	s.at(55, 0, roce.RCSendOnly, 5, 100) // a copy
	s.at(60, 1, roce.RCAcknowledge, 5, 0, ack)
	r := s.done()
	if len(s.episodes) != 0 || r.Totals.NotCaptured != 1 || r.Totals.Reordered != 1 || r.Totals.Copies != 1 || r.Totals.Resent != 0 {
		t.Errorf("%+v, %+v", s.episodes, r.Totals)
	}
}

// TestNeedless: the acknowledgement was lost behind the capture.
func TestNeedless(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(5, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(2000, 0, roce.RCSendOnly, 0, 100)
	s.at(2005, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(3000, 0, roce.RCSendOnly, 1, 100)
	s.at(3600, 0, roce.RCSendOnly, 1, 100) // too early for a timeout
	s.at(3605, 1, roce.RCAcknowledge, 1, 0, ack)
	s.done()
	if len(s.episodes) != 2 {
		t.Fatalf("%+v", s.episodes)
	}
	if e := &s.episodes[0]; e.Notice != fabric.ByTimeout || e.Needless != 1 || e.Waited != 1995*us {
		t.Errorf("%+v", e)
	}
	if e := &s.episodes[1]; e.Notice != fabric.Unasked || e.Timeouts != 0 {
		t.Errorf("%+v", e)
	}
}

// TestFatal: a NAK ends the connection, and operations in flight are unanswered.
func TestFatal(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCWriteOnly, 0, 100, reth(0x1000, 100))
	s.at(5, 1, roce.RCAcknowledge, 0, 0, syndrome(roce.NAKRemoteAccess))
	r := s.done()
	if len(r.Fatal) != 1 || r.Fatal[0].Code != "NAK remote access error" || r.Fatal[0].From != "192.0.2.1" || r.Connections[0].Fatal != 1 || len(s.episodes) != 0 {
		t.Errorf("%+v", r)
	}
	if len(s.ops) != 1 || s.ops[0].Status != fabric.Unanswered {
		t.Errorf("%+v", s.ops)
	}
}

// TestOvertaken: a NAK for a packet that came late tells of no loss, whatever is sent again for it.
func TestOvertaken(t *testing.T) {
	s := newScene(fabric.Options{})
	for i, psn := range []uint32{0, 2, 3, 1} {
		s.at(float64(i), 0, roce.RCSendOnly, psn, 100)
	}
	s.at(9, 1, roce.RCAcknowledge, 1, 0, syndrome(roce.NAKPSNSequence))
	for i := range uint32(3) {
		s.at(float64(20+i), 0, roce.RCSendOnly, 1+i, 100)
	}
	s.at(30, 1, roce.RCAcknowledge, 3, 0)
	r := s.done()
	if e := s.only(t); !e.Overtaken || len(e.Lost) != 0 || r.Totals.Overtaken != 1 || r.Totals.Reordered != 1 {
		t.Errorf("%+v, %+v", e, r.Totals)
	}
}

// TestNotEnded: a loss that the sender never recovered from.
func TestNotEnded(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(5, 0, roce.RCSendOnly, 1, 100)
	s.at(9, 1, roce.RCAcknowledge, 0, 0, syndrome(roce.NAKPSNSequence))
	r := s.done()
	e := s.only(t)
	if _, ok := e.Duration(); ok || r.Totals.NotRecovered != 1 || r.Episodes[0].Duration != nil {
		t.Errorf("%+v", e)
	}
}

// only is the single expected episode.
func (s *scene) only(t *testing.T) *fabric.Episode {
	t.Helper()
	if len(s.episodes) != 1 {
		t.Fatalf("%d episodes: %+v", len(s.episodes), s.episodes)
	}
	return &s.episodes[0]
}

// TestAtomic sends a Compare Swap twice.
func TestAtomic(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCCompareSwap, 0, 0)
	s.at(2000, 0, roce.RCCompareSwap, 0, 0)
	s.at(2010, 1, roce.RCAtomicAcknowledge, 0, 0, ack)
	s.done()
	if len(s.ops) != 1 {
		t.Fatalf("%+v", s.ops)
	}
	if o := &s.ops[0]; o.Kind != rdma.WorkAtomic || o.Bytes != 8 || o.Packets != 1 || o.Again != 1 || o.Status != fabric.Completed {
		t.Errorf("%+v", *o)
	}
	s.only(t)
}

// TestEarly: a Write's first packet is overtaken by the second and the third. They belong to the
// Write, and nothing is lost.
func TestEarly(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	s.at(5, 1, roce.RCAcknowledge, 0, 0, ack)
	s.at(10, 0, roce.RCWriteMiddle, 2, 1024)
	s.at(11, 0, roce.RCWriteLast, 3, 52)
	s.at(12, 0, roce.RCWriteFirst, 1, 1024, reth(0x1000, 2100))
	s.at(20, 0, roce.RCSendOnly, 4, 100)
	s.at(25, 1, roce.RCAcknowledge, 4, 0, ack)
	r := s.done()
	if len(s.episodes) != 0 || r.Totals.Reordered != 1 || r.Totals.NotCaptured != 0 {
		t.Errorf("%+v, %+v", s.episodes, r.Totals)
	}
	if len(s.ops) != 3 || s.ops[1].Kind != rdma.WorkWrite || s.ops[1].Bytes != 2100 || s.ops[1].Packets != 3 || s.ops[1].Status != fabric.Completed {
		t.Errorf("%+v", s.ops)
	}
	if v := r.Series.Intervals[0]; v.Again != 0 {
		t.Errorf("%+v", v)
	}
}

// TestPartly: of three packets behind the lost one, one is sent again, and so is the
// one before it, needlessly.
func TestPartly(t *testing.T) {
	s := newScene(fabric.Options{})
	s.at(0, 0, roce.RCSendOnly, 0, 100)
	for i := uint32(1); i <= 4; i++ {
		s.at(float64(10*i), 0, roce.RCSendOnly, i, 100)
	}
	s.at(45, 1, roce.RCAcknowledge, 1, 0, syndrome(roce.NAKPSNSequence))
	s.at(50, 0, roce.RCSendOnly, 0, 100) // acknowledged by the NAK
	s.at(51, 0, roce.RCSendOnly, 1, 100)
	s.at(52, 0, roce.RCSendOnly, 3, 100)
	s.at(60, 1, roce.RCAcknowledge, 4, 0, ack)
	s.done()
	e := s.only(t)
	if e.Repeat != fabric.Partly || e.Resent != 3 || e.Needless != 1 || e.Behind != 3 || e.BehindResent != 1 {
		t.Errorf("%+v", e)
	}
}
