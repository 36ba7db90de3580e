package roce_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// routes are how the packets of client and server come.
var routes = [2]*roce.Route{roce.NewRoute(a, b), roce.NewRoute(b, a)}

// twice feeds two trackers with the same packets: one by Lean, which goes the short way for most of them, the other by Packet.
type twice struct {
	lean, full *wire
	next       [2]uint32 // PSNs of the directions
}

func (w *twice) packet(from rdma.Side, tap uint16, gap int64, l *roce.Lean) {
	payload := make([]byte, l.PayloadLen)
	for i := range payload {
		payload[i] = byte(l.PSN) + byte(i)
	}
	l.Route, l.SrcPort = routes[from], 0xc001+uint16(from)
	l.DestQP = 9
	if from == 1 {
		l.DestQP = 5
	}
	p := roce.Packet{
		Opcode: l.Opcode, Pad: l.Pad, SE: l.SE, DestQP: l.DestQP, PSN: l.PSN, IETH: l.RKey,
		RETH: roce.RETHFields{VA: l.VA, RKey: l.RKey, DMALen: l.DMALen}, Payload: payload, PayloadLen: len(payload),
	}
	p.AETH.Syndrome = l.Syndrome
	f := link.Frame{Proto: link.UDP, Src: l.Route.Src, Dst: l.Route.Dst, SrcPort: l.SrcPort, DstPort: roce.Port, ECN: l.Traffic & 3}
	for _, x := range []*wire{w.lean, w.full} {
		x.n++
		x.now += gap
		ref := rdma.Ref{Time: x.now, Number: x.n}
		var c *rdma.Connection
		if x == w.lean {
			c = x.t.Lean(&capture.Packet{Time: ref.Time, Number: ref.Number, Data: payload}, tap, 0, l)
		} else {
			c = x.t.Packet(ref, tap, 0, rdma.RoCEv2, &f, &p, roce.Good)
		}
		if c != nil {
			x.rec.add("packet %d of connection %d, used %d", x.n, c.ID, x.t.Used())
		}
	}
}

// ops are what a step may be: mostly what the short way is for.
var ops = [16]roce.Opcode{
	roce.RCSendOnly, roce.RCAcknowledge, roce.RCSendOnly, roce.RCAcknowledge, roce.RCSendOnly, roce.RCAcknowledge,
	roce.RCSendOnlyInvalidate, roce.RCAcknowledge, roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCWriteOnly,
	roce.RCReadRequest, roce.RCReadResponseOnly, roce.RCSendOnlyImmediate, roce.CNP,
}

// step makes a packet of three bytes: which, its place in the sequence, and what is unusual about it.
func (w *twice) step(which, place, odd byte) {
	from := rdma.Side(which & 1)
	l := roce.Lean{Opcode: ops[which>>1&15], SE: odd&1 != 0, RKey: uint32(place), VA: 1 << 20, DMALen: 64}
	if odd&4 != 0 {
		l.DMALen = 64 << 10 // more than a packet: how many answer it depends on the path MTU
	}
	base := &w.next[from]
	if l.Opcode.IsResponse() {
		l.PSN = w.next[from.Other()] - 1
		if l.Opcode != roce.RCReadResponseOnly {
			l.PSN -= uint32(which >> 6) // it may acknowledge less than all
		}
	} else {
		l.PSN = *base
	}
	switch {
	case place >= 250: // older than all that is remembered; it changes nothing
		l.PSN -= 2000
	case place >= 224:
		l.PSN += uint32(int32(place) - 236)
	}
	l.PSN &= 1<<24 - 1
	if !l.Opcode.IsResponse() && !l.Opcode.IsCNP() && place < 250 {
		*base = (l.PSN + 1) & (1<<24 - 1)
	}
	switch {
	case l.Opcode == roce.RCSendFirst || l.Opcode == roce.RCSendMiddle:
		l.PayloadLen = 1024
	case l.Opcode == roce.RCAcknowledge:
		l.Syndrome = roce.ACKUnlimited
		switch odd >> 4 {
		case 14:
			l.Syndrome = roce.NAKPSNSequence
		case 15:
			l.Syndrome = roce.RNR(3)
		}
	case l.Opcode != roce.RCReadRequest && !l.Opcode.IsCNP():
		l.PayloadLen = uint16(odd & 0x3c)
	}
	tap, gap := uint16(0), int64(200_000)
	switch odd {
	case 0xa5:
		l.Traffic = 3
	case 0xa6, 0xa7:
		tap = 1
	case 0xa8:
		gap = -1_000_000
	case 0xa9:
		gap = 60e9
	case 0xaa:
		w.next[from] += 1 << 20 // another connection
	case 0xab, 0xac:
		for _, x := range []*wire{w.lean, w.full} {
			x.t.Evict(rdma.Ref{Time: x.now, Number: x.n})
		}
	}
	w.packet(from, tap, gap, &l)
}

// compare closes both connections, and compares all that was reported, what the trackers know, and what the connections are in the end.
func (w *twice) compare(t *testing.T) {
	t.Helper()
	for _, x := range []*wire{w.lean, w.full} {
		x.rec.lines = append(x.rec.lines, x.t.State()...)
		x.t.Flush(rdma.Ref{Time: x.now, Number: x.n})
		for _, c := range x.rec.closed {
			x.rec.add("%+v", *c)
		}
		x.rec.add("used %d", x.t.Used())
	}
	if !maps.Equal(w.lean.acks.by, w.full.acks.by) {
		t.Fatalf("acknowledged in the short way\n%v\nin the full way\n%v", w.lean.acks.by, w.full.acks.by)
	}
	if !slices.Equal(w.lean.rec.lines, w.full.rec.lines) {
		for i, line := range w.full.rec.lines {
			short := "nothing"
			if i < len(w.lean.rec.lines) {
				short = w.lean.rec.lines[i]
			}
			if short != line {
				t.Fatalf("line %d: short way\n%s\nfull way\n%s", i, short, line)
			}
		}
		t.Fatal("the short way reports more")
	}
}

// acks is a PlainWatcher that notes what is acknowledged, and by which packet; the operations of a connection have different
// numbers.
type acks struct{ by map[string]uint64 }

var _ rdma.PlainWatcher = acks{}

func (acks) WorkStarted(*rdma.Connection, *rdma.Work, rdma.Ref)                     {}
func (acks) WorkData(*rdma.Connection, rdma.Side, uint64, uint32, bool, rdma.Ref)   {}
func (acks) WorkDone(*rdma.Connection, rdma.Side, uint64, uint32, []byte, rdma.Ref) {}
func (acks) Saw(*rdma.Connection, *rdma.Sighting)                                   {}
func (acks) Merged(*rdma.Connection, rdma.Side, *rdma.Connection, rdma.Side)        {}
func (acks) Closed(*rdma.Connection, rdma.Ref)                                      {}
func (acks) Plain() bool                                                            { return true }
func (acks) PlainSend(*rdma.Connection, *rdma.Send, uint64, uint32) *rdma.Run       { return nil }
func (acks) PlainAck(*rdma.Connection, rdma.Side, uint32, rdma.Ref)                 {}
func (a acks) PlainAcked(c *rdma.Connection, from rdma.Side, seq uint64, _ uint32, ref rdma.Ref) {
	a.WorkAcked(c, from.Other(), seq, ref)
}
func (a acks) WorkAcked(c *rdma.Connection, from rdma.Side, seq uint64, ref rdma.Ref) {
	a.by[fmt.Sprintf("operation %d of side %d of connection %d", seq, from, c.First.Number)] = ref.Number
}

// watched is a recorder with a Watcher.
type watched struct {
	*recorder
	acks acks
}

func (w watched) Watcher() rdma.Watcher { return w.acks }

// watch gives both trackers, which have seen nothing yet, a Watcher.
func (w *twice) watch() {
	for _, x := range []*wire{w.lean, w.full} {
		x.acks = acks{make(map[string]uint64)}
		x.t = roce.NewTracker(watched{x.rec, x.acks}, new(rdma.Numbers), roce.Limits{})
	}
}

func newTwice(setup, watch bool) *twice {
	w := &twice{newWire(), newWire(), [2]uint32{1000, 1<<24 - 3}}
	if watch {
		w.watch()
	}
	if setup {
		w.lean.setup(w.next[0], w.next[1])
		w.full.setup(w.next[0], w.next[1])
	}
	return w
}

func TestPlain(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newTwice(seed%4 != 0, seed%8 > 3)
			for range 100 {
				place, odd := byte(0), byte(rng.Uint32())
				if rng.IntN(12) == 0 {
					place = 192 + byte(rng.Uint32())&63
				}
				if rng.IntN(20) > 0 {
					odd &= 0x3d
				}
				w.step(byte(rng.Uint32())&63, place, odd)
			}
			w.compare(t)
		})
	}
}

func FuzzPlain(f *testing.F) {
	f.Add(true, []byte{0, 0, 0x20, 3, 0, 0, 1, 0, 0x20, 2, 0, 0})
	f.Add(false, []byte{0, 0, 0x20, 3, 0, 0, 1, 240, 0x20, 2, 0, 0xf0})
	f.Add(true, []byte{0, 0, 0x20, 3, 0, 0, 1, 0, 0x20, 2, 0, 0, 0}) // watched
	f.Add(true, []byte{16, 0, 0, 0, 0, 0x20, 20, 0, 4, 3, 0, 0})
	f.Add(true, []byte{0, 0, 0x20, 3, 0, 0, 1, 0, 0x20, 2, 0, 0, 0, 0, 0xab, 3, 0, 0, 1, 0, 0x20, 2, 0, 0})
	f.Fuzz(func(t *testing.T, setup bool, steps []byte) {
		w := newTwice(setup, len(steps)&1 != 0)
		for i := 0; i+3 <= min(len(steps), 600); i += 3 {
			w.step(steps[i], steps[i+1], steps[i+2])
		}
		w.compare(t)
	})
}
