package roce_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// routes are how the packets of clients and servers come: by pair of hosts, FastDecoder and direction.
var routes = func() (all [4][2][2]*roce.Route) {
	for i := range all {
		client, server := a, b
		for range i { // other hosts
			client, server = client.Next().Next(), server.Prev()
		}
		for j := range all[i] {
			all[i][j] = [2]*roce.Route{roce.NewRoute(client, server), roce.NewRoute(server, client)}
		}
	}
	return all
}()

// twice feeds two trackers with the same packets: one by FastPacket, which goes the short way for most of them, the other by Packet.
type twice struct {
	fast, full *wire
	next       [len(routes)][2]uint32 // PSNs of the directions, by pair of hosts
}

func (w *twice) packet(pair int, from rdma.Side, tap uint16, gap int64, l *roce.FastPacket) {
	payload := make([]byte, l.PayloadLen)
	for i := range payload {
		payload[i] = byte(l.PSN) + byte(i)
	}
	l.Route, l.SrcPort = routes[pair][w.fast.n>>3&1][from], 0xc001+uint16(from)
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
	for _, x := range []*wire{w.fast, w.full} {
		x.n++
		x.now += gap
		ref := rdma.Ref{Time: x.now, Number: x.n}
		var c *rdma.Connection
		if x == w.fast {
			c = x.t.Fast(&capture.Packet{Time: ref.Time, Number: ref.Number, Data: payload}, tap, 0, l)
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

// step makes a packet of three bytes: which, its place in the sequence or its pair of hosts, and what is unusual about it.
func (w *twice) step(which, place, odd byte) {
	from, pair := rdma.Side(which&1), 0
	if place < 192 {
		pair = int(place) % len(routes)
	}
	next := &w.next[pair]
	l := roce.FastPacket{Opcode: ops[which>>1&15], SE: odd&1 != 0, RKey: uint32(place), VA: 1 << 20, DMALen: 64}
	if odd&4 != 0 {
		l.DMALen = 64 << 10 // more than a packet: how many answer it depends on the path MTU
	}
	base := &next[from]
	if l.Opcode.IsResponse() {
		l.PSN = next[from.Other()] - 1
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
		next[from] += 1 << 20 // another connection
	case 0xab, 0xac:
		for _, x := range []*wire{w.fast, w.full} {
			x.t.Evict(rdma.Ref{Time: x.now, Number: x.n})
		}
	}
	w.packet(pair, from, tap, gap, &l)
}

// compare closes both connections, and compares all that was reported, what the trackers know, and what the connections are in the end.
func (w *twice) compare(t *testing.T) {
	t.Helper()
	for _, x := range []*wire{w.fast, w.full} {
		x.rec.lines = append(x.rec.lines, x.t.State()...)
		x.t.Flush(rdma.Ref{Time: x.now, Number: x.n})
		for _, c := range x.rec.closed {
			x.rec.add("%+v", *c)
		}
		x.rec.add("used %d", x.t.Used())
	}
	if !maps.Equal(w.fast.acks.by, w.full.acks.by) {
		t.Fatalf("acknowledged in the short way\n%v\nin the full way\n%v", w.fast.acks.by, w.full.acks.by)
	}
	if !slices.Equal(w.fast.rec.lines, w.full.rec.lines) {
		for i, line := range w.full.rec.lines {
			short := "nothing"
			if i < len(w.fast.rec.lines) {
				short = w.fast.rec.lines[i]
			}
			if short != line {
				t.Fatalf("line %d: short way\n%s\nfull way\n%s", i, short, line)
			}
		}
		t.Fatal("the short way reports more")
	}
}

// acks is a RunWatcher that notes what is acknowledged, and by which packet; the operations of a connection have different
// numbers.
type acks struct{ by map[string]uint64 }

var _ rdma.RunWatcher = acks{}

func (acks) WorkStarted(*rdma.Connection, *rdma.Work, rdma.Ref)                     {}
func (acks) WorkData(*rdma.Connection, rdma.Side, uint64, uint32, bool, rdma.Ref)   {}
func (acks) WorkDone(*rdma.Connection, rdma.Side, uint64, uint32, []byte, rdma.Ref) {}
func (acks) Saw(*rdma.Connection, *rdma.Sighting)                                   {}
func (acks) Merged(*rdma.Connection, rdma.Side, *rdma.Connection, rdma.Side)        {}
func (acks) Closed(*rdma.Connection, rdma.Ref)                                      {}
func (acks) Paused(*rdma.Pause, rdma.Ref)                                           {}
func (acks) NextSend(*rdma.Connection, *rdma.Send, uint64, uint32) *rdma.Run        { return nil }
func (acks) NextAck(*rdma.Connection, rdma.Side, uint32, rdma.Ref)                  {}
func (a acks) NextSendAcked(c *rdma.Connection, from rdma.Side, seq uint64, _ uint32, ref rdma.Ref) {
	a.WorkAcked(c, from.Other(), seq, ref)
}
func (a acks) WorkAcked(c *rdma.Connection, from rdma.Side, seq uint64, ref rdma.Ref) {
	a.by[fmt.Sprintf("operation %d of side %d of connection %d", seq, from, c.First.Number)] = ref.Number
}

// watch gives both trackers, which have seen nothing yet, a Watcher.
func (w *twice) watch() {
	for _, x := range []*wire{w.fast, w.full} {
		x.acks = acks{make(map[string]uint64)}
		x.t = roce.NewTracker(x.rec, rdma.Hooks{Watcher: x.acks, Runs: x.acks}, new(rdma.Numbers), roce.Limits{})
	}
}

func newTwice(setup, watch bool) *twice {
	w := &twice{fast: newWire(), full: newWire()}
	for i := range w.next {
		w.next[i] = [2]uint32{1000, 1<<24 - 3}
	}
	if watch {
		w.watch()
	}
	for i := range w.next {
		if r := routes[i][0][0]; setup {
			w.fast.connect([2]netip.Addr{r.Src, r.Dst}, [2]uint32{5, 9}, w.next[i])
			w.full.connect([2]netip.Addr{r.Src, r.Dst}, [2]uint32{5, 9}, w.next[i])
		}
	}
	return w
}

func TestPlain(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newTwice(seed%4 != 0, seed%8 > 3)
			for range 100 {
				place, odd := byte(rng.IntN(1+int(seed)%3)), byte(rng.Uint32())
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

// Each packet is plain that would be plain alone, though the flows of many hosts and queue pairs share slots of the cache, and two
// FastDecoders take turns.
func TestPlainAmongMany(t *testing.T) {
	const clients, pairs, rounds = 40, 30, 6
	w := newWire()
	var routes [clients][2][2]*roce.Route
	psn := func(i int) [2]uint32 { return [2]uint32{uint32(i) << 8, 1<<24 - 2 - uint32(i)} }
	qpn := func(i int) [2]uint32 { return [2]uint32{1000 + uint32(i/clients), 2000 + uint32(i/clients)} }
	client := a
	for i := range routes {
		client = client.Next()
		for j := range routes[i] {
			routes[i][j] = [2]*roce.Route{roce.NewRoute(client, b), roce.NewRoute(b, client)}
		}
	}
	for i := range clients * pairs {
		w.connect([2]netip.Addr{routes[i%clients][0][0].Src, b}, qpn(i), psn(i))
	}
	w.rec.quiet = true
	for round := range rounds {
		for i := range clients * pairs {
			// A Send and its acknowledgement, and the same in the other direction.
			for k := range 4 {
				from, sender := (k+1)>>1&1, k>>1
				l := roce.FastPacket{
					Route: routes[i%clients][round&1][from], DestQP: qpn(i)[1-from],
					PSN: (psn(i)[sender] + uint32(round)) & (1<<24 - 1), Opcode: roce.RCSendOnly, PayloadLen: 64,
				}
				if from != sender {
					l.Opcode, l.Syndrome, l.PayloadLen = roce.RCAcknowledge, roce.ACKUnlimited, 0
				}
				w.n++
				w.now += 1000
				before := w.t.Epoch()
				w.t.Fast(&capture.Packet{Time: w.now, Number: w.n, Data: make([]byte, 64)}, 0, 0, &l)
				if round > 0 && w.t.Epoch() != before {
					t.Fatalf("round %d, connection %d, packet %d is not plain", round, i, k)
				}
			}
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add(true, []byte{0, 0, 0x20, 3, 0, 0, 1, 0, 0x20, 2, 0, 0})
	f.Add(false, []byte{0, 0, 0x20, 3, 0, 0, 1, 240, 0x20, 2, 0, 0xf0})
	f.Add(true, []byte{0, 0, 0x20, 3, 0, 0, 1, 0, 0x20, 2, 0, 0, 0}) // watched
	f.Add(false, []byte{0, 1, 0x20, 0, 2, 0x20, 3, 1, 0, 3, 2, 0, 1, 1, 0x20, 1, 2, 0x20, 2, 1, 0, 2, 2, 0})
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
