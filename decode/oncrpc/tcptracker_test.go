package oncrpc

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// recorder is a Handler that records its calls.
type recorder struct {
	lines []string
	gen   uint64
	quiet bool
}

func (r *recorder) line(format string, args ...any) {
	if !r.quiet {
		r.lines = append(r.lines, fmt.Sprintf(format, args...))
	}
}

func (r *recorder) Send(_ *rdma.Connection, s *rdma.Send) rdma.Tag {
	if r.quiet {
		return rdma.Tag{}
	}
	m, _ := Peek(s.Data)
	r.gen++
	r.line("send %d: %v %d, %d of %d bytes, frames %d to %d, %d packets, %d again",
		s.From, m.Type, m.XID, len(s.Data), s.Length, s.First.Number, s.Last.Number, s.Packets, s.Again)
	return rdma.Tag{W0: uint64(m.XID), W1: r.gen}
}

func (r *recorder) SendAgain(_ *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref, complete bool) {
	r.line("again %d: %v in frame %d, complete %v", from, tag.W0, ref.Number, complete)
}

func (r *recorder) SendAcked(_ *rdma.Connection, from rdma.Side, tag rdma.Tag, ref rdma.Ref) {
	r.line("acked %d: %v in frame %d", from, tag.W0, ref.Number)
}

func (r *recorder) Event(_ *rdma.Connection, from rdma.Side, e rdma.Event, v uint32, ref rdma.Ref) {
	r.line("event %d: %d %d in frame %d", from, e, v, ref.Number)
}

func (r *recorder) Closed(c *rdma.Connection, ref rdma.Ref) {
	r.line("closed %q in frame %d", c.Terminated, ref.Number)
}

func (r *recorder) OpStart(*rdma.Connection, *rdma.Op, rdma.Ref)                    {}
func (r *recorder) OpData(*rdma.Connection, *rdma.Op, *rdma.Fragment)               {}
func (r *recorder) OpAgain(*rdma.Connection, *rdma.Op, rdma.Ref)                    {}
func (r *recorder) Merged(*rdma.Connection, rdma.Side, *rdma.Connection, rdma.Side) {}
func (r *recorder) FindCall(*rdma.Connection, uint32) (rdma.Side, bool)             { return 0, false }

// wire makes the frames of a connection: side 0 has port 900, side 1 port 2049.
type wire struct {
	t       *testing.T
	tracker *TCPTracker
	conn    *rdma.Connection
	rec     *recorder
	frame   int
	start   [2]uint32 // sequence number of offset 0
}

var wireEnds = [2]rdma.End{
	{Addr: netip.MustParseAddr("192.0.2.2"), Port: 900},
	{Addr: netip.MustParseAddr("192.0.2.1"), Port: 2049},
}

func newWire(t *testing.T) *wire {
	w := &wire{t: t, rec: new(recorder), start: [2]uint32{0xffffff80, 5000}}
	w.conn = &rdma.Connection{ID: 1, Fabric: rdma.TCP, Ends: wireEnds}
	w.tracker = NewTCPTracker(w.conn, w.rec, nil, tcp.NewPool(tcp.Options{}), 0)
	return w
}

// send sends p from side at an offset of its stream; the other side's stream
// is acknowledged up to ack.
func (w *wire) send(side int, offset int, p []byte, ack int, flags uint8) bool {
	return w.cut(side, offset, p, len(p), ack, flags)
}

func (w *wire) cut(side int, offset int, p []byte, n, ack int, flags uint8) bool {
	w.frame++
	from, to := wireEnds[side], wireEnds[1-side]
	f := link.Frame{
		Proto: link.TCP, Src: from.Addr, Dst: to.Addr, SrcPort: from.Port, DstPort: to.Port,
		Payload: p, PayloadLen: n, TCPFlags: flags | ackFlag,
		TCPSeq: w.start[side] + uint32(offset), TCPAck: w.start[1-side] + uint32(ack),
	}
	return w.tracker.Segment(&f, ref(w.frame))
}

func (w *wire) expect(want ...string) {
	w.t.Helper()
	if !reflect.DeepEqual(w.rec.lines, want) {
		w.t.Errorf("got\n  %s\nwant\n  %s", strings.Join(w.rec.lines, "\n  "), strings.Join(want, "\n  "))
	}
}

func reply(xid uint32, n int) []byte {
	r := Reply{XID: xid}
	return append(r.Append(nil), make([]byte, n)...)
}

// TestDisplaced sends the segments of 40 calls in several orders: what came too late is counted if it is much.
func TestDisplaced(t *testing.T) {
	for _, c := range []struct {
		name  string
		order func(i int) int
		want  uint64 // bytes
	}{
		{"in order", func(i int) int { return i }, 0},
		{"pairs swapped", func(i int) int { return i ^ 1 }, 0}, // a few come before the first that was seen
		{"reversed", func(i int) int { return 39 - i }, 39 * 1044},
	} {
		w := newWire(t)
		w.rec.quiet = true
		for i := range 40 {
			n := c.order(i)
			w.send(0, 1044*n, AppendRecord(nil, call(uint32(n), 1000)), 0, 0)
		}
		w.tracker.Close(ref(w.frame))
		got := w.tracker.Displaced()
		if got.Bytes != c.want || got.Count != min(c.want, 1) {
			t.Errorf("%s: %+v, want %d bytes", c.name, got, c.want)
		}
	}
}

// TestCopies: a packet of an open record that comes again and again is counted, and takes no more memory than a few times.
func TestCopies(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 1000))
	for range 10001 {
		w.send(0, 0, c[:600], 0, 0)
	}
	if n := w.tracker.Memory(); n > 64<<10 {
		t.Errorf("%d bytes", n)
	}
	w.send(0, 600, c[600:], 0, 0)
	w.expect("send 0: CALL 1, 1040 of 1040 bytes, frames 1 to 10002, 2 packets, 10000 again")
}

func TestTCPTracker(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 1000)) // 1044 bytes
	r := AppendRecord(nil, reply(1, 72))  // 100 bytes
	w.send(0, 0, c[:600], 0, 0)
	w.send(0, 600, c[600:], 0, 0)
	w.send(1, 0, nil, 600, 0)
	w.send(1, 0, r, 1044, 0) // acknowledges the call
	w.send(0, 1044, nil, 100, 0)
	w.send(0, 1044, nil, 100, tcp.FIN)
	w.send(1, 100, nil, 1045, tcp.FIN)
	w.send(0, 1045, nil, 101, 0)
	w.expect(
		"send 0: CALL 1, 1040 of 1040 bytes, frames 1 to 2, 2 packets, 0 again",
		"acked 0: 1 in frame 4",
		"send 1: REPLY 1, 96 of 96 bytes, frames 4 to 4, 1 packets, 0 again",
		"acked 1: 1 in frame 5",
		`closed "closed" in frame 7`,
	)
	if !w.tracker.Closed() || w.conn.State != rdma.Closed || w.conn.Last.Number != 8 {
		t.Errorf("%+v", w.conn)
	}
	if s := w.conn.Sent[0]; s.Packets != 5 || s.Bytes != 1044 || s.Sends != 1 || s.Acks != 3 {
		t.Errorf("%+v", s)
	}
	if w.send(0, 5000, nil, 0, tcp.SYN) {
		t.Error("a new connection was taken for the old one")
	}
}

func TestTCPTrackerRetransmission(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 1000))
	w.send(0, 0, c[:500], 0, 0)
	w.send(0, 0, c[:500], 0, 0) // again, before the record is complete
	w.send(0, 500, c[500:], 0, 0)
	w.send(0, 0, c[:500], 0, 0)
	w.send(0, 500, c[500:], 0, 0)
	w.send(1, 0, nil, 1044, 0)
	w.send(0, 500, c[500:], 0, 0) // after its acknowledgment: of no interest
	w.expect(
		"send 0: CALL 1, 1040 of 1040 bytes, frames 1 to 3, 2 packets, 1 again",
		"again 0: 1 in frame 4, complete false",
		"again 0: 1 in frame 5, complete true",
		"acked 0: 1 in frame 6",
	)
	if w.conn.Sent[0].Retransmitted != 4 {
		t.Errorf("%+v", w.conn.Sent[0])
	}
}

func TestTCPTrackerReorder(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 1000))
	d := AppendRecord(nil, call(2, 0))
	w.send(0, 0, c[:300], 0, 0)
	w.send(0, 600, append(bytes.Clone(c[600:]), d...), 0, 0)
	w.send(0, 300, c[300:600], 0, 0)
	w.expect(
		"send 0: CALL 1, 1040 of 1040 bytes, frames 1 to 3, 3 packets, 0 again",
		"send 0: CALL 2, 40 of 40 bytes, frames 2 to 3, 1 packets, 0 again",
	)
}

// A segment that the capture lacks: the peer acknowledges it.
func TestTCPTrackerLost(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 1000))
	d := AppendRecord(nil, call(2, 0))
	w.send(0, 0, c[:300], 0, 0)
	w.send(0, 600, c[600:], 0, 0)
	w.send(0, 1044, d, 0, 0)
	w.send(1, 0, nil, 1088, 0)
	w.expect(
		"event 0: 7 300 in frame 4",
		"send 0: CALL 1, 296 of 1040 bytes, frames 1 to 2, 2 packets, 0 again",
		"send 0: CALL 2, 40 of 40 bytes, frames 3 to 3, 1 packets, 0 again",
		"acked 0: 1 in frame 4",
		"acked 0: 2 in frame 4",
	)
	if w.conn.Sent[0].Gaps != 300 {
		t.Errorf("%+v", w.conn.Sent[0])
	}
}

// A capture that holds only the start of each frame.
func TestTCPTrackerCut(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 1000))
	d := AppendRecord(nil, call(2, 200))
	w.cut(0, 0, c[:100], 600, 0, 0)
	w.cut(0, 600, c[600:700], 444, 0, 0)
	w.cut(0, 1044, d[:100], 244, 0, 0)
	w.expect(
		"send 0: CALL 1, 96 of 1040 bytes, frames 1 to 2, 2 packets, 0 again",
		"send 0: CALL 2, 96 of 240 bytes, frames 3 to 3, 1 packets, 0 again",
	)
}

// The capture starts while a record is on its way.
func TestTCPTrackerMidStream(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 1000))
	w.send(1, 0, make([]byte, 500), 0, 0)
	w.send(1, 500, append(make([]byte, 300), AppendRecord(nil, reply(7, 0))...), 0, 0)
	w.send(0, 0, c, 0, 0)
	w.expect(
		"send 1: REPLY 7, 24 of 24 bytes, frames 2 to 2, 1 packets, 0 again",
		"send 0: CALL 1, 1040 of 1040 bytes, frames 3 to 3, 1 packets, 0 again",
	)
}

func TestTCPTrackerReset(t *testing.T) {
	w := newWire(t)
	w.send(0, 0, AppendRecord(nil, call(1, 0)), 0, 0)
	w.send(1, 0, nil, 44, tcp.RST)
	w.tracker.Close(ref(9))
	w.expect(
		"send 0: CALL 1, 40 of 40 bytes, frames 1 to 1, 1 packets, 0 again",
		"acked 0: 1 in frame 2",
		`closed "reset" in frame 2`,
	)
}

// The end of the capture closes what is open, without a reason.
func TestTCPTrackerClose(t *testing.T) {
	w := newWire(t)
	c := AppendRecord(nil, call(1, 100))
	w.send(0, 0, c[:50], 0, 0)
	w.send(0, 100, c[100:], 0, 0)
	w.tracker.Close(ref(3))
	w.tracker.Close(ref(4))
	w.expect(
		"event 0: 7 50 in frame 3",
		"send 0: CALL 1, 46 of 140 bytes, frames 1 to 2, 2 packets, 0 again",
		`closed "" in frame 3`,
	)
	if w.conn.State != rdma.Established {
		t.Errorf("state %v", w.conn.State)
	}
}

// More calls than are remembered, none acknowledged.
func TestTCPTrackerManySends(t *testing.T) {
	w := newWire(t)
	off := 0
	for i := range 3 * maxSends {
		c := AppendRecord(nil, call(uint32(i), 0))
		w.send(0, off, c, 0, 0)
		off += len(c)
	}
	if n := len(w.tracker.sides[0].sends); n != maxSends {
		t.Errorf("%d remembered", n)
	}
	w.rec.lines = nil
	w.send(1, 0, nil, off, 0)
	if len(w.rec.lines) != maxSends {
		t.Errorf("%d acknowledged", len(w.rec.lines))
	}
}

func TestTCPTrackerAllocations(t *testing.T) {
	w := newWire(t)
	w.rec.quiet = true
	c, r := AppendRecord(nil, call(1, 3000)), AppendRecord(nil, reply(1, 100))
	off, back := 0, 0
	n := testing.AllocsPerRun(100, func() {
		w.send(0, off, c[:1500], back, 0)
		w.send(0, off+1500, c[1500:], back, 0)
		off += len(c)
		w.send(1, back, r, off, 0)
		back += len(r)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s := w.conn.Sent; s[0].Sends != 101 || s[1].Sends != 101 {
		t.Errorf("%+v", s)
	}
}

func FuzzTCPTracker(f *testing.F) {
	c := AppendRecord(nil, call(1, 60))
	f.Add(append(bytes.Clone(c), c...), []byte{0x00, 60, 0x10, 60, 0x00, 61, 0x81, 0})
	f.Add(AppendRecord(nil, reply(1, 60)), []byte{0x01, 30, 0x02, 30, 0x04, 0, 0x40, 200})
	f.Fuzz(func(t *testing.T, stream, script []byte) {
		w := newWire(t)
		w.rec.quiet = true
		var off [2]int
		for len(script) >= 2 {
			op, n := script[0], int(script[1])
			script = script[2:]
			side := int(op & 1)
			p := stream[:min(n, len(stream))]
			if off[side] < len(stream) {
				p = stream[off[side]:min(off[side]+n, len(stream))]
			}
			at := off[side]
			switch op >> 4 & 3 {
			case 1:
				at -= n // again
			case 2:
				at += n // early
			}
			var flags uint8
			if op&0x40 != 0 {
				flags = op >> 1 & 7
			}
			ack := off[1-side]
			if op&0x80 != 0 {
				ack += n << (op & 0x0e)
			}
			w.cut(side, at, p, max(n, len(p)), ack, flags)
			off[side] += n
		}
		w.tracker.Close(ref(w.frame + 1))
		if w.conn.Sent[0].Packets+w.conn.Sent[1].Packets > uint64(w.frame) {
			t.Fatalf("%+v", w.conn.Sent)
		}
	})
}

func BenchmarkTCPTracker(b *testing.B) {
	c := &rdma.Connection{ID: 1, Fabric: rdma.TCP, Ends: wireEnds}
	tr := NewTCPTracker(c, &recorder{quiet: true}, nil, tcp.NewPool(tcp.Options{}), 0)
	p := AppendRecord(nil, call(1, 100))
	f := link.Frame{Proto: link.TCP, Src: wireEnds[0].Addr, Dst: wireEnds[1].Addr, SrcPort: 900, DstPort: 2049, Payload: p, PayloadLen: len(p)}
	g := link.Frame{Proto: link.TCP, Src: wireEnds[1].Addr, Dst: wireEnds[0].Addr, SrcPort: 2049, DstPort: 900, TCPFlags: ackFlag}
	b.ReportAllocs()
	for b.Loop() {
		tr.Segment(&f, ref(1))
		f.TCPSeq += uint32(len(p))
		g.TCPAck = f.TCPSeq
		tr.Segment(&g, ref(2))
	}
}
