package fabric

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// both are a Recorder that takes Runs, and one that is told of each packet.
type both struct {
	t           *testing.T
	short, full *Recorder
	c           [2]*rdma.Connection
	list        []rdma.Work // under way, from side 0
	seq         uint64
	psn         uint32
	ref         rdma.Ref
	run         *rdma.Run // of short
	noted       int       // Sends in there
}

var message = make([]byte, 60)

// send sends a message, or writes to memory.
func (b *both) send(kind rdma.WorkKind) {
	w := rdma.Work{Seq: b.seq, Kind: kind, PSN: b.psn}
	told := []*Recorder{b.full}
	if kind == rdma.WorkSend {
		if b.run.Room(b.psn) {
			b.run.Send(b.psn, b.ref)
			b.noted++
		} else {
			b.run = b.short.NextSend(b.c[0], &rdma.Send{Data: message, Length: len(message), First: b.ref, Last: b.ref}, b.seq, b.psn)
		}
	} else {
		b.run = nil
		told = append(told, b.short)
	}
	for _, r := range told {
		c := b.of(r)
		r.WorkStarted(c, &w, b.ref)
		r.WorkData(c, 0, b.seq, uint32(len(message)), false, b.ref)
		r.WorkDone(c, 0, b.seq, uint32(len(message)), message, b.ref)
		r.Saw(c, &rdma.Sighting{Ref: b.ref, Class: rdma.ClassRequest, Novelty: rdma.NoveltyNew, PSN: b.psn, Count: 1})
	}
	b.list = append(b.list, w)
	b.seq++
	b.psn = rdma.PSNAdd(b.psn, 1)
}

// ack acknowledges the first n of those under way.
func (b *both) ack(n int) {
	psn := b.list[n-1].PSN
	sole := len(b.list) == 1 && b.list[0].Kind == rdma.WorkSend
	for _, w := range b.list[:n] {
		if !sole {
			b.short.WorkAcked(b.c[0], 0, w.Seq, b.ref)
		}
		b.full.WorkAcked(b.c[1], 0, w.Seq, b.ref)
	}
	if b.run != nil {
		b.run.Ack(psn, b.ref)
	} else if sole {
		b.short.NextSendAcked(b.c[0], 1, b.list[0].Seq, psn, b.ref)
	} else {
		b.short.NextAck(b.c[0], 1, psn, b.ref)
	}
	b.full.Saw(b.c[1], &rdma.Sighting{Ref: b.ref, From: 1, Class: rdma.ClassAck, Novelty: rdma.NoveltyNew, PSN: psn})
	b.list = b.list[n:]
}

func (b *both) of(r *Recorder) *rdma.Connection {
	if r == b.short {
		return b.c[0]
	}
	return b.c[1]
}

func (b *both) compare() {
	b.t.Helper()
	k, l := b.short.conn(b.c[0]), b.full.conn(b.c[1])
	x, y := &k.dirs[0], &l.dirs[0]
	started := k.started
	started[0][rdma.WorkSend] += x.Sends
	if x.Begun != y.Begun || x.High != y.High || x.LastSent != y.LastSent || x.HasAcked != y.HasAcked || x.Acked != y.Acked ||
		x.Progress != y.Progress || x.Window != y.Window || !slices.Equal(x.Steps, y.Steps) || started != l.started || k.guessed != l.guessed || k.hint != l.hint ||
		x.wait != y.wait || x.late != y.late || x.active != y.active || !slices.Equal(x.gaps.list, y.gaps.list) ||
		!slices.Equal(x.stalls.list, y.stalls.list) || b.short.totals != b.full.totals {
		b.t.Fatalf("packet %d:\n%+v\nin full\n%+v", b.ref.Number, x, y)
	}
	if len(b.list) == 0 && (x.open.live != 0 || x.open.first != x.open.next) {
		b.t.Fatalf("packet %d: %d are in flight, from %d to %d", b.ref.Number, x.open.live, x.open.first, x.open.next)
	}
}

// other tells both of a packet that no Run stands for.
func (b *both) other(next func(n int) int) {
	b.run = nil
	s := rdma.Sighting{Ref: b.ref, Class: rdma.ClassRequest, Novelty: rdma.NoveltyNew, PSN: b.psn, Count: 1}
	switch next(6) {
	case 0: // packets are missing before it
		n := 1 + uint32(next(2))
		b.psn = rdma.PSNAdd(b.psn, n+1)
		s.PSN, s.Gap = rdma.PSNAdd(b.psn, 1<<24-1), n
	case 1: // one of them comes late, perhaps
		s.PSN, s.Novelty = rdma.PSNAdd(b.psn, 1<<24-2-uint32(next(3))), rdma.NoveltyLate
	case 2: // again
		s.PSN, s.Novelty = rdma.PSNAdd(b.psn, 1<<24-1-uint32(next(20))), rdma.NoveltyAgain
	case 3: // more is acknowledged than was seen
		s.From, s.Class, s.PSN = 1, rdma.ClassAck, rdma.PSNAdd(b.psn, uint32(next(3)))
	case 4:
		s.Restarted, b.list = true, nil
	default:
		s.From, s.Class, s.PSN, s.Syndrome = 1, rdma.ClassNAK, rdma.PSNAdd(b.psn, 1<<24-1-uint32(next(3))), uint8(roce.NAKPSNSequence)
	}
	for _, r := range []*Recorder{b.short, b.full} {
		x := s
		r.Saw(b.of(r), &x)
	}
}

// followRuns runs what next chooses. It returns how many Sends the Recorder was not told of, since they were noted in a Run.
func followRuns(t *testing.T, next func(n int) int, packets int) (noted int) {
	b := both{t: t, short: New(Options{Lean: true}), full: New(Options{Lean: true}), psn: 3 + (1<<24-100)*uint32(next(2))}
	for i := range b.c {
		b.c[i] = &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}
	}
	busy := 0
	for i := range packets {
		b.ref = rdma.Ref{Number: uint64(i + 1), Time: b.ref.Time + int64(next(1000))}
		if next(50) == 0 {
			busy = next(250) * next(2)
		}
		switch n := len(b.list); {
		case next(12) == 0:
			b.other(next)
		case n > busy:
			b.ack(1 + next(n))
		case next(20) == 0:
			b.send(rdma.WorkWrite)
		default:
			b.send(rdma.WorkSend)
		}
		b.compare()
	}
	return b.noted
}

// TestRuns compares what is known of a direction after each packet.
func TestRuns(t *testing.T) {
	for seed := range uint64(20) {
		if n := followRuns(t, rand.New(rand.NewPCG(seed, 99)).IntN, 5000); n < 100 {
			t.Errorf("only %d Sends were noted in a Run", n)
		}
	}
}

func FuzzRuns(f *testing.F) {
	f.Add([]byte("one after the other"))
	f.Add([]byte{9, 0, 200, 1, 7, 0, 0, 3, 3, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		i := 0
		followRuns(t, func(n int) int {
			if len(data) == 0 {
				return 1 % n
			}
			i++
			return (int(data[i%len(data)]) + i/len(data)) % n
		}, min(8*len(data), 4000))
	})
}
