package fabric

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// dataInFull is WorkData, step by step.
func dataInFull(r *Recorder, k *conn, from rdma.Side, seq uint64, bytes uint32, again bool, ref rdma.Ref) {
	o := k.dirs[from].open.at(seq)
	switch {
	case o == nil:
	case again:
		o.Again++
		o.resent = ref.Time
	default:
		if o.Bytes > 0 && k.c.Fabric != rdma.IWARP {
			sender := from
			if o.Kind == rdma.WorkRead {
				sender = from.Other()
			}
			r.paced(&k.dirs[from], &k.marks[sender], o.Last, ref)
		}
		o.Packets++
		o.Bytes += uint64(bytes)
		o.Last = ref
	}
}

// twin tells two Recorders the same: one takes the short way where there is one, the other never.
type twin struct {
	r    [2]*Recorder
	c    [2]*rdma.Connection
	ref  rdma.Ref
	psn  [2]uint32 // of the next request of a side
	seq  [2]uint64 // the number of its next operation
	next func(n int) int
}

func (x *twin) saw(s rdma.Sighting) {
	s.Ref = x.ref
	a, b := s, s
	x.r[0].Saw(x.c[0], &a)
	x.r[1].saw(x.r[1].conn(x.c[1]), &b)
}

// step is a packet of a Write or of a Read, or something unusual.
func (x *twin) step() {
	x.ref.Number++
	if x.ref.Time += int64(x.next(1000)); x.next(100) == 0 {
		x.ref.Time -= 700
	}
	from := rdma.Side(x.next(2))
	if x.next(8) == 0 {
		x.start(from)
		return
	}
	seq := x.seq[from] - min(x.seq[from], 1+uint64(x.next(4)))
	again := x.next(20) == 0
	x.r[0].WorkData(x.c[0], from, seq, 1024, again, x.ref)
	dataInFull(x.r[1], x.r[1].conn(x.c[1]), from, seq, 1024, again, x.ref)
	s := rdma.Sighting{From: from, Class: rdma.ClassRequest, Novelty: rdma.NoveltyNew, PSN: x.psn[from], Count: uint32(x.next(2)), Bytes: 1024}
	switch x.next(12) {
	default: // a packet of a Write
		x.psn[from] = rdma.PSNAdd(x.psn[from], 1)
	case 6, 7, 8: // a Read Response
		s.Class, s.PSN, s.From = rdma.ClassReadResponse, rdma.PSNAdd(x.psn[from], 1<<24-1-uint32(x.next(8))), from.Other()
	case 9, 10:
		s.Class, s.PSN, s.From = rdma.ClassAck, rdma.PSNAdd(x.psn[from], 1<<24-1-uint32(x.next(3))), from.Other()
	case 11:
		x.unusual(&s)
	}
	x.saw(s)
}

func (x *twin) unusual(s *rdma.Sighting) {
	if s.PSN = rdma.PSNAdd(s.PSN, 1<<24-uint32(x.next(9))); x.next(2) == 0 {
		s.From, s.Class = s.From.Other(), rdma.ClassReadResponse
	}
	switch x.next(9) {
	case 0, 1:
		s.Gap = 1 + uint32(x.next(3))
	case 2, 3:
		s.Novelty = rdma.NoveltyLate
	case 4, 5:
		s.Novelty, s.Read = rdma.NoveltyAgain, x.next(2) == 0
	case 6:
		s.Class, s.Syndrome = rdma.ClassNAK, uint8(roce.NAKPSNSequence)
	case 7:
		s.Class = rdma.ClassCNP
	case 8:
		s.Restarted = x.next(8) == 0
	}
}

// start begins an operation.
func (x *twin) start(from rdma.Side) {
	w := rdma.Work{From: from, Seq: x.seq[from], Kind: [...]rdma.WorkKind{rdma.WorkWrite, rdma.WorkRead}[x.next(2)], PSN: x.psn[from], Length: 4096}
	x.seq[from]++
	for i, r := range x.r {
		r.WorkStarted(x.c[i], &w, x.ref)
		if x.next(1) == 0 && w.Seq >= 4 {
			r.WorkAcked(x.c[i], from, w.Seq-4, x.ref)
		}
	}
}

// TestUsual compares all that two Recorders know, after each packet.
func TestUsual(t *testing.T) {
	calm := 0
	for seed := range uint64(40) {
		x := twin{next: rand.New(rand.NewPCG(seed, 17)).IntN}
		for i := range x.r {
			x.r[i] = New(Options{Lean: true, Live: seed%5 == 4})
			x.c[i] = &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}
			x.psn[i] = uint32(1<<24 - 50*i)
		}
		for range 400 {
			x.step()
			if !reflect.DeepEqual(x.r[0], x.r[1]) {
				t.Fatalf("seed %d, packet %d:\n%+v\nin full\n%+v", seed, x.ref.Number, x.r[0].conn(x.c[0]), x.r[1].conn(x.c[1]))
			}
			if x.r[0].conn(x.c[0]).dirs[0].calm() {
				calm++
			}
		}
	}
	if calm < 1000 || calm > 40*400-1000 {
		t.Errorf("nothing was awaited after %d packets", calm)
	}
}

// TestWent: the usual time falls at once, to no less than 1/16 ns, and rises by a sixteenth of what is more, of at most four times itself.
func TestWent(t *testing.T) {
	var m congestion
	for i, c := range [...]struct{ gap, usual int64 }{{100, 1600}, {10, 160}, {20, 170}, {1000, 170 + 510/16}, {5, 80}, {0, 1}, {0, 1}, {10, 1}, {1, 1}} {
		if m.went(c.gap); m.usual != c.usual {
			t.Errorf("%d: after %d ns the usual time is %d, not %d", i, c.gap, m.usual, c.usual)
		}
	}
}
