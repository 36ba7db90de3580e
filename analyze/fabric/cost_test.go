package fabric_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// nobody is a Watcher that does nothing.
type nobody struct{}

func (nobody) Saw(*rdma.Connection, *rdma.Sighting) {}

func (nobody) WorkStarted(*rdma.Connection, *rdma.Work, rdma.Ref) {}

func (nobody) WorkData(*rdma.Connection, rdma.Side, uint64, uint32, bool, rdma.Ref) {}

func (nobody) WorkDone(*rdma.Connection, rdma.Side, uint64, uint32, []byte, rdma.Ref) {}

func (nobody) WorkAcked(*rdma.Connection, rdma.Side, uint64, rdma.Ref) {}

func (nobody) Paused(*rdma.Pause, rdma.Ref) {}

func (nobody) Merged(*rdma.Connection, rdma.Side, *rdma.Connection, rdma.Side) {}

func (nobody) Closed(*rdma.Connection, rdma.Ref) {}

// rounds is endless traffic: a Send, a Write of three packets, a Read of three, with marks and a
// CNP, and an occasional loss.
type rounds struct {
	t       *roce.Tracker
	f       [2]link.Frame
	p       roce.Packet
	payload [1024]byte
	psn     [2]uint32
	n       uint64
	now     int64
}

func newRounds(w rdma.Watcher) *rounds {
	x := &rounds{t: roce.NewTracker(&handler{w}, rdma.Hooks{Watcher: w}, new(rdma.Numbers), roce.Limits{}), psn: [2]uint32{100, 200}}
	x.f[0] = link.Frame{Proto: link.UDP, Src: a, Dst: b, SrcPort: 0xc001, DstPort: 4791}
	x.f[1] = link.Frame{Proto: link.UDP, Src: b, Dst: a, SrcPort: 0xc001, DstPort: 4791}
	return x
}

func (x *rounds) packet(from int, op roce.Opcode, psn uint32, n int, length uint32, s roce.Syndrome) {
	x.n++
	x.now += 1000 + int64(x.n%7)*100
	x.p = roce.Packet{Opcode: op, DestQP: uint32(9 - 4*from), PSN: psn & 0xffffff, PayloadLen: n, Payload: x.payload[:n]}
	x.p.RETH = roce.RETHFields{VA: 0x1000, RKey: uint32(x.n), DMALen: length}
	x.p.AETH.Syndrome = s
	x.t.Packet(rdma.Ref{Time: x.now, Number: x.n}, 0, 0, rdma.RoCEv2, &x.f[from], &x.p, roce.Good)
}

func (x *rounds) round() {
	psn := x.psn[0]
	x.packet(0, roce.RCSendOnly, psn, 64, 0, 0)
	x.packet(0, roce.RCWriteFirst, psn+1, 1024, 2100, 0)
	x.f[0].ECN = 3
	x.packet(0, roce.RCWriteMiddle, psn+2, 1024, 0, 0)
	x.f[0].ECN = 0
	x.packet(0, roce.RCWriteLast, psn+3, 52, 0, 0)
	x.packet(1, roce.CNP, 0, 0, 0, 0)
	x.packet(0, roce.RCReadRequest, psn+4, 0, 2100, 0)
	x.packet(1, roce.RCAcknowledge, psn+3, 0, 0, roce.ACKUnlimited)
	x.packet(1, roce.RCReadResponseFirst, psn+4, 1024, 0, roce.ACKUnlimited)
	x.packet(1, roce.RCReadResponseMiddle, psn+5, 1024, 0, roce.ACKUnlimited)
	x.packet(1, roce.RCReadResponseLast, psn+6, 52, 0, roce.ACKUnlimited)
	x.psn[0] = psn + 7
	if x.psn[1]%3 == 0 {
		// One packet is lost, and sent again with all packets behind it.
		psn = x.psn[0]
		x.packet(0, roce.RCSendOnly, psn, 64, 0, 0)
		x.packet(0, roce.RCSendOnly, psn+1, 64, 0, 0)
		x.packet(1, roce.RCAcknowledge, psn, 0, 0, roce.NAKPSNSequence)
		x.packet(0, roce.RCSendOnly, psn, 64, 0, 0)
		x.packet(0, roce.RCSendOnly, psn+1, 64, 0, 0)
		x.packet(1, roce.RCAcknowledge, psn+1, 0, 0, roce.ACKUnlimited)
		x.psn[0] += 2
	}
	// The other side sends, too, so that the two directions prove to be a pair.
	x.packet(1, roce.RCSendOnly, x.psn[1], 64, 0, 0)
	x.packet(0, roce.RCAcknowledge, x.psn[1], 0, 0, roce.ACKUnlimited)
	x.psn[1]++
}

// TestNoAllocation: once histograms have their arrays, packets allocate nothing, losses included.
func TestNoAllocation(t *testing.T) {
	r := fabric.New(fabric.Options{})
	x := newRounds(r)
	for range 30000 {
		x.round()
	}
	if n := testing.AllocsPerRun(3000, x.round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if s := r.Totals(); s.Episodes < 1000 || s.CNPs < 30000 || s.Marked < 30000 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkTracker compares what a packet costs with nobody watching, with a Watcher
// that does nothing, and with a Recorder.
func BenchmarkTracker(b *testing.B) {
	for _, c := range []struct {
		name string
		w    rdma.Watcher
	}{{"unwatched", nil}, {"idle", nobody{}}, {"recorder", fabric.New(fabric.Options{})}} {
		b.Run(c.name, func(b *testing.B) {
			x := newRounds(c.w)
			if c.w == nil {
				x.t = roce.NewTracker(&quiet{}, rdma.Hooks{}, new(rdma.Numbers), roce.Limits{})
			}
			for range 2000 {
				x.round()
			}
			b.ReportAllocs()
			b.ResetTimer()
			from := x.n
			for range b.N {
				x.round()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(x.n-from), "ns/packet")
		})
	}
}

// quiet is a handler without a Watcher.
type quiet struct{ handler }

func (*quiet) Merged(*rdma.Connection, rdma.Side, *rdma.Connection, rdma.Side) {}

func (*quiet) Closed(*rdma.Connection, rdma.Ref) {}
