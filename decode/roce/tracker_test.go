package roce_test

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"net/netip"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// recorder is a Handler that records its calls.
type recorder struct {
	lines  []string
	sends  uint64
	acked  map[uint64]int
	closed []*rdma.Connection
	merged int
	quiet  bool

	mergedAt map[*rdma.Connection]uint64 // the newest packet then
}

func (r *recorder) add(format string, args ...any) {
	if !r.quiet {
		r.lines = append(r.lines, fmt.Sprintf(format, args...))
	}
}

func (r *recorder) Send(c *rdma.Connection, s *rdma.Send) rdma.Tag {
	r.sends++
	r.add("send %d %d/%d packets %d again %d from %d to %d", s.From, len(s.Data), s.Length, s.Packets, s.Again, s.First.Number, s.Last.Number)
	if s.Invalidates {
		r.add("invalidates %#x", s.Handle)
	}
	return rdma.Tag{W0: r.sends}
}

func (r *recorder) SendAgain(c *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref, complete bool) {
	r.add("again %d send %d complete %v", from, tag.W0, complete)
}

func (r *recorder) SendAcked(c *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref) {
	if r.acked == nil {
		r.acked = make(map[uint64]int)
	}
	r.acked[tag.W0]++
	r.add("acked %d send %d", from, tag.W0)
}

func (r *recorder) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	r.add("start %d %d %#x+%d", op.Kind, op.From, op.Offset, op.Length)
}

func (r *recorder) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	r.add("data %d %#x+%d again %v last %v", op.Kind, f.Offset, f.Length, f.Again, f.Last)
}

func (r *recorder) OpAgain(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	r.add("again %d %#x", op.Kind, op.Offset)
}

func (r *recorder) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	r.add("event %d %d %#x", from, e, value)
}

func (r *recorder) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	r.merged++
	if r.mergedAt == nil {
		r.mergedAt = make(map[*rdma.Connection]uint64)
	}
	r.mergedAt[into] = into.Last.Number
}

func (r *recorder) Closed(c *rdma.Connection, ref rdma.Ref) { r.closed = append(r.closed, c) }

func (r *recorder) FindCall(c *rdma.Connection, xid uint32) (rdma.Side, bool) {
	return 0, false
}

var a, b = netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")

// wire feeds a tracker with packets of one connection: client a with queue
// pair 5, server b with queue pair 9.
type wire struct {
	rec  *recorder
	t    *roce.Tracker
	n    uint64
	now  int64
	c    *rdma.Connection
	acks acks // see twice.watch
}

func newWire() *wire {
	w := &wire{rec: new(recorder)}
	w.t = roce.NewTracker(w.rec, rdma.Hooks{}, new(rdma.Numbers), roce.Limits{})
	return w
}

func (w *wire) packet(from rdma.Side, op roce.Opcode, psn uint32, n int, set func(*roce.Packet)) {
	w.n++
	w.now += 200_000
	f := &link.Frame{Proto: link.UDP, Src: a, Dst: b, SrcPort: 0xc001, DstPort: 4791}
	p := &roce.Packet{Opcode: op, DestQP: 9, PSN: psn & 0xffffff, PayloadLen: n, Payload: make([]byte, n)}
	if from == 1 {
		f.Src, f.Dst, p.DestQP = b, a, 5
	}
	if set != nil {
		set(p)
	}
	if c := w.t.Packet(rdma.Ref{Time: w.now, Number: w.n}, 0, 0, rdma.RoCEv2, f, p, roce.Good); c != nil {
		w.c = c
	}
}

func reth(va uint64, key, n uint32) func(*roce.Packet) {
	return func(p *roce.Packet) { p.RETH = roce.RETHFields{VA: va, RKey: key, DMALen: n} }
}

func syndrome(s roce.Syndrome) func(*roce.Packet) {
	return func(p *roce.Packet) { p.AETH.Syndrome = s }
}

func (w *wire) ack(from rdma.Side, psn uint32) {
	w.packet(from, roce.RCAcknowledge, psn, 0, syndrome(roce.ACKUnlimited))
}

// setup makes the connection with messages, so that the directions are known.
func (w *wire) setup(psnA, psnB uint32) {
	w.connect([2]netip.Addr{a, b}, [2]uint32{5, 9}, [2]uint32{psnA, psnB})
}

// connect makes a connection of two hosts, between two queue pairs.
func (w *wire) connect(addr [2]netip.Addr, qpn, psn [2]uint32) {
	c := rocetest.Config{CM: true, Calls: 1, Kinds: []rocetest.Kind{rocetest.Small}, StayOpen: true, QPN: qpn, PSN: psn, Addr: addr}
	f := rocetest.Feeder{Tracker: w.t, Number: w.n}
	for _, r := range rocetest.Make(c).Taps[0] {
		if r.Role == rocetest.Management {
			f.Feed(&r)
		}
	}
	w.n, w.now = f.Number, f.Last.Time
}

// take returns what was recorded since.
func (w *wire) take() []string {
	l := w.rec.lines
	w.rec.lines = nil
	return l
}

func (w *wire) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := w.take(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestSequence(t *testing.T) {
	const s = 0xfffffe // wraps
	w := newWire()
	w.setup(s, 100)
	w.packet(0, roce.RCSendFirst, s, 1024, nil)
	w.packet(0, roce.RCSendMiddle, s+1, 1024, nil)
	w.want(t, "under way")
	w.packet(0, roce.RCSendLastInvalidate, s+2, 10, func(p *roce.Packet) { p.IETH = 7 })
	w.want(t, "Send", "send 0 2058/2058 packets 3 again 0 from 4 to 6", "invalidates 0x7")
	w.ack(1, s+1)
	w.want(t, "acknowledged in part")
	w.ack(1, s+2)
	w.want(t, "acknowledged", "acked 0 send 1")
	w.packet(0, roce.RCSendLastInvalidate, s+2, 10, nil)
	w.want(t, "again", "again 0 send 1 complete true")

	w.packet(1, roce.RCWriteFirst, 100, 1024, reth(0x1000, 3, 2048))
	w.want(t, "Write", "start 1 1 0x1000+2048", "data 1 0x1000+1024 again false last false")
	w.packet(1, roce.RCWriteLast, 101, 1024, nil)
	w.packet(1, roce.RCWriteOnly, 101, 1024, reth(0x1400, 3, 1024)) // resumed, with its own address
	w.want(t, "resumed", "data 1 0x1400+1024 again false last true", "data 1 0x1400+1024 again true last true")

	w.packet(0, roce.RCReadRequest, s+3, 0, reth(0x8000, 4, 3000))
	w.packet(0, roce.RCSendOnly, s+6, 4, nil)
	w.packet(1, roce.RCReadResponseFirst, s+3, 1024, nil)
	w.packet(1, roce.RCReadResponseLast, s+5, 3000-2048, nil) // the one between is late
	w.packet(1, roce.RCReadResponseMiddle, s+4, 1024, nil)
	w.packet(1, roce.RCReadResponseMiddle, s+4, 1024, nil)
	w.want(t, "Read", "start 2 0 0x8000+3000", "send 0 4/4 packets 1 again 0 from 14 to 14",
		"data 2 0x8000+1024 again false last false", "data 2 0x8800+952 again false last true",
		"data 2 0x8400+1024 again false last false", "data 2 0x8400+1024 again true last false")
	w.packet(0, roce.RCReadRequest, s+4, 0, reth(0x8400, 4, 3000-1024)) // resumed
	w.want(t, "resumed Read", "again 2 0x8000")
	w.packet(1, roce.RCReadResponseFirst, s+4, 1024, nil)
	w.want(t, "its response", "data 2 0x8400+1024 again true last false")
	if g := w.c.Sent[0].Gaps + w.c.Sent[1].Gaps; g != 0 {
		t.Errorf("%d gaps", g)
	}
}

func TestGap(t *testing.T) {
	w := newWire()
	w.setup(10, 100)
	w.packet(0, roce.RCSendOnly, 10, 4, nil)
	w.packet(0, roce.RCSendOnly, 13, 4, nil)
	w.take()
	w.ack(1, 13)
	w.want(t, "gap", "acked 0 send 1", "acked 0 send 2", "event 0 7 0x2")
	// A Read Request that was not captured is one packet, not as many as its
	// responses.
	w.packet(0, roce.RCSendOnly, 24, 4, nil)
	w.packet(1, roce.RCReadResponseFirst, 14, 1024, nil)
	for i := range uint32(8) {
		w.packet(1, roce.RCReadResponseMiddle, 15+i, 1024, nil)
	}
	w.packet(1, roce.RCReadResponseLast, 23, 5, nil)
	w.ack(1, 24)
	if got := w.c.Sent[0].Gaps; got != 3 {
		t.Errorf("%d packets lacking, want 3", got)
	}
	// An acknowledgement beyond all that was seen is one of that, too.
	w.take()
	w.packet(0, roce.RCSendOnly, 25, 4, nil)
	w.take()
	w.ack(1, 27)
	w.want(t, "beyond", "acked 0 send 4")
}

// TestGoBack: a sender whose timer has run out repeats what it believes to be under way, though the acknowledgements
// have been captured. However many were sent before, and however many slots that has made the tracker remember, these
// are repetitions.
func TestGoBack(t *testing.T) {
	for _, alone := range []uint32{0, 1, 3, 15, 16, 17, 40, 114, 300} { // acknowledged one by one
		for _, together := range []uint32{1, 2, 5, 16, 17, 33, 60, 65, 128, 200} {
			for _, back := range []uint32{0, 1, 2, 7, 14, 31, 47, 100} {
				if back > alone {
					continue
				}
				w := newWire()
				w.rec.quiet = true
				psn := uint32(7137365)
				w.setup(psn, 100)
				send := func() {
					number := psn
					w.packet(0, roce.RCSendOnly, psn, 32, func(p *roce.Packet) { binary.LittleEndian.PutUint32(p.Payload, number) })
					psn++
				}
				for range alone {
					send()
					w.ack(1, psn-1)
				}
				for range together {
					send()
				}
				for n := range together {
					w.ack(1, psn-together+n)
				}
				psn -= together + back
				for range together + back {
					send()
				}
				if c := &w.c.Sent[0]; c.Resyncs != 0 || c.Retransmitted != uint64(together+back) || c.Sends != uint64(alone+together) {
					t.Errorf("%d, %d together, %d of the former again: %d resyncs, %d packets again, %d Sends",
						alone, together, back, c.Resyncs, c.Retransmitted, c.Sends)
				}
			}
		}
	}
}

// TestReadFromItsMiddle: a Read that is asked again from its middle, after as many requests that were acknowledged, is a repetition. One that ends
// elsewhere is not.
func TestReadFromItsMiddle(t *testing.T) {
	for _, behind := range []uint32{0, 1, 15, 40, 120} {
		for _, end := range []uint32{0, 256} {
			w := newWire()
			w.rec.quiet = true
			psn := uint32(0xffffc0)
			w.setup(psn, 100)
			for range 40 { // under way at once
				w.packet(0, roce.RCSendOnly, psn, 32, nil)
				psn++
			}
			w.ack(1, psn-1)
			read := psn
			w.packet(0, roce.RCReadRequest, read, 0, reth(0x1000, 7, 2048))
			w.packet(1, roce.RCReadResponseFirst, read, 1024, nil)
			w.packet(1, roce.RCReadResponseLast, read+1, 1024, nil)
			psn += 2
			for range behind {
				w.packet(0, roce.RCSendOnly, psn, 32, nil)
				w.ack(1, psn)
				psn++
			}
			w.packet(0, roce.RCReadRequest, read+1, 0, reth(0x1400, 7, 1024+end))
			want := uint64(0)
			if end > 0 {
				want = 1
			}
			if c := &w.c.Sent[0]; c.Resyncs != want || c.Retransmitted != 1-want || c.Gaps != 0 {
				t.Errorf("%d behind, %d bytes more: %d resyncs, %d packets again, %d missing", behind, end, c.Resyncs, c.Retransmitted, c.Gaps)
			}
		}
	}
}

// TestShortFirst: a message behind a First packet is its continuation only if that was full.
func TestShortFirst(t *testing.T) {
	for _, c := range []struct {
		first int
		want  []string
	}{
		{1024, []string{"send 0 1028/1028 packets 2 again 0 from 4 to 5"}},
		{1000, []string{"send 0 4/4 packets 1 again 0 from 5 to 5"}},
		{152, []string{"send 0 4/4 packets 1 again 0 from 5 to 5"}},
	} {
		w := newWire()
		w.setup(10, 100)
		w.packet(0, roce.RCSendFirst, 10, c.first, nil)
		w.packet(0, roce.RCSendOnly, 11, 4, nil)
		w.want(t, fmt.Sprint(c.first), c.want...)
	}
}

func TestNAKs(t *testing.T) {
	w := newWire()
	w.setup(10, 100)
	w.packet(0, roce.RCSendOnly, 10, 4, nil)
	w.packet(0, roce.RCSendOnly, 11, 4, nil)
	w.take()
	w.packet(1, roce.RCAcknowledge, 11, 0, syndrome(roce.NAKPSNSequence))
	w.want(t, "sequence NAK", "acked 0 send 1", "event 1 1 0xb")
	w.packet(1, roce.RCAcknowledge, 11, 0, syndrome(roce.RNR(3)))
	w.want(t, "RNR NAK", "event 1 5 0xb")
	if w.c.Terminated != "" {
		t.Errorf("ended: %q", w.c.Terminated)
	}
	w.packet(1, roce.RCAcknowledge, 11, 0, syndrome(roce.NAKRemoteAccess))
	w.want(t, "access NAK", "event 1 3 0xb")
	if w.c.Terminated != "NAK (remote access error) from 192.0.2.1" {
		t.Errorf("ended: %q", w.c.Terminated)
	}
	if s := w.c.Sent[1]; s.NAKs != 2 || s.RNRs != 1 || s.Acks != 3 {
		t.Errorf("counters: %+v", s)
	}
	// The request that is said to have ended the connection is acknowledged: it did not.
	w.packet(1, roce.RCAcknowledge, 10, 0, nil)
	if w.c.Terminated == "" {
		t.Errorf("an acknowledgement of what came before the NAK contradicts it")
	}
	w.packet(1, roce.RCAcknowledge, 11, 0, nil)
	if s := w.c.Sent[1]; w.c.Terminated != "" || s.FalseEnds != 1 {
		t.Errorf("ended: %q, %d false ends", w.c.Terminated, s.FalseEnds)
	}
	w.packet(1, roce.RCAcknowledge, 11, 0, nil)
	if s := w.c.Sent[1]; s.FalseEnds != 1 {
		t.Errorf("%d false ends", s.FalseEnds)
	}
}

// TestUnpairedTraffic pairs directions by their PSNs alone, once that has
// happened often enough.
func TestUnpairedTraffic(t *testing.T) {
	w := newWire()
	for i := range uint32(600) {
		w.packet(0, roce.RCWriteOnly, 5000+i, 64, reth(uint64(i), 1, 64))
		w.ack(1, 5000+i)
	}
	if w.rec.merged != 1 || w.c.Sent[1].Acks != 600 || w.c.Ends[0].QPN != 5 || w.c.Ends[1].QPN != 9 || w.c.ID != 1 {
		t.Errorf("merged %d times, %d ACKs, ends %v", w.rec.merged, w.c.Sent[1].Acks, w.c.Ends)
	}
}

// TestPairedSoon pairs each kind of traffic without RPC by few exact answers,
// and none by answers that only fit roughly or belong to another.
func TestPairedSoon(t *testing.T) {
	writes := func(w *wire, i uint32) {
		w.packet(0, roce.RCWriteFirst, 5000+2*i, 1024, reth(uint64(i), 1, 1100))
		w.packet(0, roce.RCWriteLast, 5001+2*i, 76, nil)
		w.ack(1, 5001+2*i)
	}
	reads := func(w *wire, i uint32) {
		w.packet(0, roce.RCReadRequest, 5000+2*i, 0, reth(uint64(i)<<12, 1, 1100))
		w.packet(1, roce.RCReadResponseFirst, 5000+2*i, 1024, nil)
		w.packet(1, roce.RCReadResponseLast, 5001+2*i, 76, nil)
	}
	only := func(w *wire, i uint32) {
		w.packet(0, roce.RCWriteOnly, 5000+i, 8, reth(uint64(i), 1, 8))
		w.ack(1, 5000+i)
	}
	rough := func(w *wire, i uint32) {
		w.packet(0, roce.RCWriteFirst, 5000+2*i, 1024, reth(uint64(i), 1, 1100))
		w.packet(0, roce.RCWriteLast, 5001+2*i, 76, nil)
		w.ack(1, 5000+2*i)
	}
	beyond := func(w *wire, i uint32) {
		w.packet(0, roce.RCWriteOnly, 5000+i, 8, reth(uint64(i), 1, 8))
		w.ack(1, 5000+i+i%2)
	}
	late := func(w *wire, i uint32) {
		for k := range uint32(3) {
			w.packet(0, roce.RCWriteOnly, 5000+3*i+k, 8, reth(uint64(i), 1, 8))
		}
		w.ack(1, 5000+3*i)
		w.ack(1, 5001+3*i)
	}
	for _, test := range []struct {
		name  string
		step  func(*wire, uint32)
		steps uint32
		want  int
		atEnd int // of the capture
	}{
		{"one write", writes, 1, 0, 0}, {"two writes", writes, 2, 0, 1}, {"writes", writes, 3, 1, 1}, {"two reads", reads, 2, 0, 1}, {"reads", reads, 3, 1, 1},
		{"one packet each", only, 3, 1, 1}, {"rough", rough, 100, 0, 0}, {"rough for long", rough, 300, 1, 1}, {"beyond", beyond, 300, 0, 0},
		{"late", late, 2, 0, 1}, {"late once", late, 1, 0, 0},
	} {
		w := newWire()
		for i := range test.steps {
			test.step(w, i)
		}
		if w.rec.merged != test.want {
			t.Errorf("%s: joined %d times, want %d", test.name, w.rec.merged, test.want)
		}
		if w.t.Flush(rdma.Ref{Time: 2, Number: w.n}); w.rec.merged != test.atEnd {
			t.Errorf("%s: joined %d times at the end of the capture, want %d", test.name, w.rec.merged, test.atEnd)
		}
	}
}

// TestWrongJoin: whatever fits by chance, two directions that do not belong together part soon. All begin with the same PSNs, and of
// half the connections one direction was captured.
func TestWrongJoin(t *testing.T) {
	responses := func(k, n uint32) roce.Opcode {
		switch {
		case n == 1:
			return roce.RCReadResponseOnly
		case k == 0:
			return roce.RCReadResponseFirst
		case k == n-1:
			return roce.RCReadResponseLast
		}
		return roce.RCReadResponseMiddle
	}
	for seed := range int64(30) {
		r := rand.New(rand.NewSource(seed))
		w := newWire()
		w.rec.quiet = true
		reads := seed%3 == 0
		const conns = 8
		var next [conns]uint32
		joined := map[*rdma.Connection]bool{}
		for step := range 3000 {
			i := r.Intn(conns)
			n := uint32(1 + r.Intn(3)*r.Intn(3))
			if step < 4*conns {
				i, n = step%conns, 1 // so that some fit
			}
			w.c = nil
			at := func(from rdma.Side) func(*roce.Packet) {
				return func(p *roce.Packet) {
					p.DestQP = uint32(100 + i)
					if from == 1 {
						p.DestQP = uint32(200 + i)
					}
					p.AETH.Syndrome = roce.ACKUnlimited
					p.RETH.DMALen = 1024 * n
				}
			}
			for k := range n {
				op := roce.RCWriteMiddle
				switch {
				case n == 1:
					op = roce.RCWriteOnly
				case k == 0:
					op = roce.RCWriteFirst
				case k == n-1:
					op = roce.RCWriteLast
				}
				if i%4 != 1 && !reads {
					w.packet(0, op, next[i]+k, 1024, at(0))
				}
			}
			if reads && i%4 != 1 {
				w.packet(0, roce.RCReadRequest, next[i], 0, at(0))
			}
			for k := range n {
				if op := responses(k, n); reads && i%4 != 3 {
					w.packet(1, op, next[i]+k, 1024, at(1))
				}
			}
			next[i] += n
			if i%4 != 3 && !reads {
				w.packet(1, roce.RCAcknowledge, next[i]-1, 0, at(1))
			}
			if w.c != nil {
				joined[w.c] = true
			}
		}
		closed := map[*rdma.Connection]bool{}
		for _, c := range w.rec.closed {
			closed[c] = true
		}
		whole := 0
		for c := range joined {
			if a, b := c.Ends[0].QPN, c.Ends[1].QPN; c.MergedInto == nil && !closed[c] && a != 0 && b != 0 {
				if whole++; max(a, b)-min(a, b) != 100 && w.n-w.rec.mergedAt[c] > 1000 {
					t.Errorf("seed %d: queue pairs %d and %d stay joined", seed, a, b)
				}
			}
		}
		if whole < conns/2 {
			t.Errorf("seed %d: %d of %d connections are joined", seed, whole, conns/2)
		}
		before := w.rec.merged
		if w.t.Flush(rdma.Ref{Time: 2, Number: w.n}); w.rec.merged != before {
			t.Errorf("seed %d: %d connections are joined at the end", seed, w.rec.merged-before)
		}
	}
}

// TestShortHalves joins the halves of short connections at the end of the capture, and none of those of which one direction was captured.
func TestShortHalves(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		w := newWire()
		w.rec.quiet = true
		const conns = 12 // of every four, one lacks its requests and one its answers
		var next [conns]uint32
		for i := range next {
			next[i] = uint32(r.Intn(1 << 24))
		}
		for step := range conns * (2 + r.Intn(3)) {
			i := step % conns
			at := func(side uint32) func(*roce.Packet) {
				return func(p *roce.Packet) { p.DestQP, p.AETH.Syndrome, p.RETH.DMALen = side+uint32(i), roce.ACKUnlimited, 8 }
			}
			for range 1 + r.Intn(3) {
				if i%4 != 1 {
					w.packet(0, roce.RCWriteOnly, next[i], 8, at(100))
				}
				next[i] = (next[i] + 1) & 0xffffff
			}
			if i%4 != 3 {
				w.packet(1, roce.RCAcknowledge, (next[i]-1)&0xffffff, 0, at(200))
			}
		}
		w.t.Flush(rdma.Ref{Time: 2, Number: w.n})
		whole := 0
		for _, c := range w.rec.closed {
			if a, b := c.Ends[0].QPN, c.Ends[1].QPN; a != 0 && b != 0 {
				if whole++; max(a, b)-min(a, b) != 100 {
					t.Errorf("seed %d: queue pairs %d and %d are joined", seed, a, b)
				}
			}
		}
		if whole != conns/2 {
			t.Errorf("seed %d: %d of %d connections are joined", seed, whole, conns/2)
		}
	}
}

// TestUnlike: a request without an answer, and packets of its peer.
func TestUnlike(t *testing.T) {
	for _, c := range []struct {
		fabric    rdma.Fabric // of the request
		pkey      uint16      // of the request
		peers     uint16      // of the peer's packet; 0: there is none
		version   bool
		different bool
	}{
		{rdma.RoCEv2, 0xffff, 0, false, false},
		{rdma.RoCEv2, 0xffff, 0x7fff, false, false},
		{rdma.RoCEv2, 0x7fff, 0x7fff, false, true}, // neither is a full member
		{rdma.RoCEv2, 0x8001, 0xffff, false, true},
		{rdma.RoCEv1, 0xffff, 0xffff, true, false},
	} {
		w := newWire()
		records := rocetest.Make(rocetest.Config{CM: true, Calls: 1, QPN: [2]uint32{5, 9}, Addr: [2]netip.Addr{a, b}}).Taps[0]
		request := records[slices.IndexFunc(records, func(r rocetest.Record) bool { return r.Role == rocetest.Management })].Packet
		var m ibcm.Message
		if !ibcm.Decode(request.Payload, request.PayloadLen, &m) || m.Attribute != ibcm.AttributeREQ {
			t.Fatal("no REQ")
		}
		ibcm.REQ(m.Data).SetPKey(c.pkey)
		f := &link.Frame{Proto: link.UDP, Src: request.Src, Dst: request.Dst, DstPort: 4791}
		w.t.Packet(rdma.Ref{Time: 1, Number: 1}, 0, 0, c.fabric, f, &request.Packet, roce.Good)
		if w.n = 1; c.peers != 0 {
			w.packet(1, roce.RCSendOnly, 1, 4, func(p *roce.Packet) { p.DestQP, p.PKey = 77, c.peers })
		}
		w.t.Flush(rdma.Ref{Time: 2, Number: 2})
		k := w.rec.closed[0]
		if k.Requests != 1 || k.OtherVersion != c.version || (k.PKeys == [2]uint16{c.pkey, c.peers}) != c.different {
			t.Errorf("%+v: %d requests, other version %v, P_Keys %x", c, k.Requests, k.OtherVersion, k.PKeys)
		}
	}
}

// TestUnlikePackets: packets of both sides whose queue pairs have nothing in common but the hosts.
func TestUnlikePackets(t *testing.T) {
	for _, c := range []struct {
		pkeys     [2]uint16
		different bool
	}{
		{[2]uint16{0xffff, 0xffff}, false},
		{[2]uint16{0xffff, 0x7fff}, false},
		{[2]uint16{0x7fff, 0x7fff}, true}, // neither is a full member
		{[2]uint16{0x8001, 0x8002}, true},
	} {
		w := newWire()
		for side, pkey := range c.pkeys {
			w.packet(rdma.Side(side), roce.RCSendOnly, 1, 4, func(p *roce.Packet) { p.DestQP, p.PKey = 77, pkey })
		}
		w.t.Flush(rdma.Ref{Time: 2, Number: 3})
		if len(w.rec.closed) != 2 {
			t.Fatalf("%d connections", len(w.rec.closed))
		}
		for _, k := range w.rec.closed {
			if (k.PKeys != [2]uint16{}) != c.different {
				t.Errorf("%x: P_Keys %x", c.pkeys, k.PKeys)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	rec := &recorder{}
	tr := roce.NewTracker(rec, rdma.Hooks{}, new(rdma.Numbers), roce.Limits{Connections: 4, SendBytes: 2048, Requests: 16})
	w := &wire{rec: rec, t: tr}
	for i := range uint32(10) {
		w.packet(0, roce.RCSendOnly, 1, 4, func(p *roce.Packet) { p.DestQP = 20 + i })
	}
	if len(rec.closed) != 6 || rec.closed[0].Terminated != "evicted: too many connections at once" {
		t.Errorf("%d closed", len(rec.closed))
	}
	w.packet(0, roce.RCSendFirst, 1, 1024, nil)
	for i := range uint32(3) {
		w.packet(0, roce.RCSendMiddle, 2+i, 1024, nil)
	}
	w.take()
	w.packet(0, roce.RCSendLast, 5, 100, nil)
	w.want(t, "long Send", "send 0 2048/4196 packets 5 again 0 from 11 to 15")
}

// TestDamagedPackets: the receiver drops a packet with a wrong ICRC, unless
// all are wrong.
func TestDamagedPackets(t *testing.T) {
	rec := &recorder{}
	tr := roce.NewTracker(rec, rdma.Hooks{}, new(rdma.Numbers), roce.Limits{})
	f := &link.Frame{Proto: link.UDP, Src: a, Dst: b, DstPort: 4791}
	feed := func(psn uint32, v roce.Verdict) {
		p := &roce.Packet{Opcode: roce.RCSendOnly, DestQP: 9, PSN: psn, Payload: []byte{1}, PayloadLen: 1}
		tr.Packet(rdma.Ref{Time: int64(psn), Number: uint64(psn)}, 0, 0, rdma.RoCEv2, f, p, v)
	}
	for i := range uint32(20) {
		feed(1+i, roce.Good)
	}
	feed(21, roce.Bad)
	feed(21, roce.Good)
	if rec.sends != 21 {
		t.Errorf("%d Sends, want 21", rec.sends)
	}
	tr = roce.NewTracker(rec, rdma.Hooks{}, new(rdma.Numbers), roce.Limits{})
	for i := range uint32(20) {
		feed(1+i, roce.Bad)
	}
	if rec.sends != 41 {
		t.Errorf("%d Sends, want 41", rec.sends)
	}
}

// FuzzTracker makes packets out of bytes: eight of them one packet.
//
//	opcode, queue pair and side, PSN, length, AETH, address, key, time
func FuzzTracker(f *testing.F) {
	script := func(steps ...[8]byte) {
		var in []byte
		for _, s := range steps {
			in = append(in, s[:]...)
		}
		f.Add(in)
	}
	script([8]byte{0, 0, 0, 1}, [8]byte{1, 0, 1, 1}, [8]byte{2, 0, 2, 9}, [8]byte{17, 1, 2, 0})
	script([8]byte{12, 1, 10, 200, 0, 0, 1}, [8]byte{13, 0, 10, 1}, [8]byte{15, 0, 11, 7}, [8]byte{4, 1, 30, 5}, [8]byte{17, 0, 20, 0, 0x60})
	script([8]byte{6, 1, 0, 3, 0, 1, 1}, [8]byte{7, 1, 2, 1}, [8]byte{6, 1, 1, 2, 0, 2, 1}, [8]byte{8, 1, 3, 1}, [8]byte{23, 1, 4, 60})
	script([8]byte{0, 4, 250, 1}, [8]byte{2, 4, 252, 9}, [8]byte{0, 4, 251, 1}, [8]byte{4, 4, 0x80, 1}, [8]byte{17, 5, 251, 0, 0x22})
	f.Fuzz(func(t *testing.T, in []byte) {
		rec := &recorder{quiet: true}
		tr := roce.NewTracker(rec, rdma.Hooks{}, new(rdma.Numbers), roce.Limits{Connections: 6, SendBytes: 8192, Requests: 16, Assembly: 32768})
		var last rdma.Ref
		payload := make([]byte, 4096)
		packets := uint64(0)
		seen := make(map[*rdma.Connection]bool)
		for ; len(in) >= 8 && packets < 4000; in = in[8:] {
			packets++
			from := rdma.Side(in[1] & 1)
			qp := uint32(2 + in[1]>>1&7)
			fr := &link.Frame{Proto: link.UDP, Src: a, Dst: b, SrcPort: uint16(in[1]) & 1, DstPort: 4791}
			p := &roce.Packet{Opcode: roce.Opcode(in[0]), DestQP: qp, PSN: (0xffff80 + uint32(in[2])) & 0xffffff}
			if in[1]&0x40 != 0 {
				p.PSN = (p.PSN + uint32(in[7])<<15) & 0xffffff
			}
			if from == 1 {
				fr.Src, fr.Dst = b, a
			}
			p.PayloadLen = int(in[3])
			switch {
			case p.Opcode.IsFirst() || p.Opcode.IsMiddle():
				p.PayloadLen = 256 << (in[3] & 3)
			case p.Opcode.IsReadRequest() || p.Opcode.IsAcknowledge():
				p.PayloadLen = 0
			}
			p.Payload = payload[:p.PayloadLen]
			if in[1]&0x80 != 0 {
				p.Payload = p.Payload[:p.PayloadLen/2]
			}
			p.RETH = roce.RETHFields{VA: uint64(in[5]) << 56 >> (in[5] & 63), RKey: uint32(in[6]), DMALen: uint32(in[3]) << (in[6] & 31)}
			p.AETH.Syndrome = roce.Syndrome(in[4])
			binary.BigEndian.PutUint32(payload, uint32(in[5]))
			last = rdma.Ref{Time: last.Time + int64(int8(in[7]))<<uint(in[4]&31), Number: packets}
			if c := tr.Packet(last, uint16(in[4]>>7), 0, rdma.RoCEv2, fr, p, roce.Verdict(in[4]&3)); c != nil {
				seen[c] = true
			}
		}
		tr.Flush(last)
		open := make(map[*rdma.Connection]bool)
		for _, c := range rec.closed {
			if open[c] {
				t.Fatalf("connection %d closed twice", c.ID)
			}
			open[c] = true
		}
		for c := range seen {
			if !open[c.Resolve()] {
				t.Fatalf("connection %d not closed", c.ID)
			}
			for _, s := range c.Sent {
				if s.Packets > packets {
					t.Fatalf("%d packets of %d", s.Packets, packets)
				}
			}
		}
		if rec.sends > packets {
			t.Fatalf("%d Sends in %d packets", rec.sends, packets)
		}
		for gen, n := range rec.acked {
			if n > 1 {
				t.Fatalf("Send %d acknowledged %d times", gen, n)
			}
		}
	})
}

// TestMisfit: Read Responses that have other lengths than their request asks for, and the right one after them.
func TestMisfit(t *testing.T) {
	w := newWire()
	w.setup(10, 100)
	w.packet(0, roce.RCReadRequest, 10, 0, reth(0x8000, 4, 3000))
	w.take()
	w.packet(1, roce.RCReadResponseFirst, 10, 1024, nil)
	w.take()
	unplaced := func(psn uint32) string { return fmt.Sprintf("event 1 %d %#x", rdma.EventUnrequested, psn) }
	w.packet(1, roce.RCReadResponseLast, 11, 1024, nil)
	w.want(t, "too early an end", unplaced(11))
	w.packet(1, roce.RCReadResponseLast, 12, 900, nil)
	w.want(t, "too short an end", unplaced(12))
	w.packet(1, roce.RCReadResponseLast, 12, 953, nil)
	w.want(t, "too long an end", unplaced(12))
	w.packet(1, roce.RCReadResponseLast, 12, 952, nil)
	w.want(t, "the end", "data 2 0x8800+952 again false last true")
}
