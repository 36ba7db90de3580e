package transaction

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// never is a Tracker without the fast path.
type never struct{ *Tracker }

func (n never) Send(c *rdma.Connection, s *rdma.Send) rdma.Tag {
	n.enforce()
	n.expire(s.Last.Time)
	return n.any(c, s)
}

// alone is a transaction without what it points to of its tracker.
func alone(tx *Transaction) Transaction {
	for _, list := range [][]segment{tx.segments, tx.served} {
		for i := range list {
			list[i].tx, list[i].above, list[i].below = nil, nil, nil
		}
	}
	x := *tx
	x.Connection, x.prev, x.next, x.Blame, x.blame = nil, nil, nil, nil, nil
	x.fastCall, x.fast = false, false
	return x
}

// near is where two texts differ, with what is around it.
func near(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-80)
	return fmt.Sprintf("…%s…, not …%s…", a[from:min(n+40, len(a))], b[from:min(n+40, len(b))])
}

// pair is a Tracker and one without the fast path, which have to say the same.
type pair struct {
	testing.TB
	trackers [2]*Tracker
	told     [2][]*Transaction
	n        int // transactions compared
	fast     int // of those, by the fast path
}

func newPair(t testing.TB, opt Options) *pair {
	p := &pair{TB: t}
	opt.Detach = true
	for i := range p.trackers {
		p.trackers[i] = NewTracker(opt, func(tx *Transaction) { p.told[i] = append(p.told[i], tx) })
	}
	return p
}

func (p *pair) handlers() [2]rdma.Handler {
	return [2]rdma.Handler{p.trackers[0], never{p.trackers[1]}}
}

// same compares what the two have said since it was called last.
func (p *pair) same() {
	p.Helper()
	a, b := p.told[0], p.told[1]
	if len(a) != len(b) {
		p.Fatalf("%d transactions, %d by the long way", len(a), len(b))
	}
	for i := range a {
		if v, w := alone(a[i]), alone(b[i]); a[i].Connection.ID != b[i].Connection.ID || !reflect.DeepEqual(v, w) {
			p.Fatalf("transaction %d: %s by the long way", p.n, near(fmt.Sprintf("%+v", v), fmt.Sprintf("%+v", w)))
		}
		if a[i].fast {
			p.fast++
		}
		p.n++
		p.trackers[0].Recycle(a[i])
		p.trackers[1].Recycle(b[i])
	}
	x, y := p.trackers[0], p.trackers[1]
	if x.Stats != y.Stats || x.open != y.open || x.queue.held != y.queue.held || x.queue.heldBytes != y.queue.heldBytes || x.storage.memory.Used() != y.storage.memory.Used() || x.halves.peers.Used() != y.halves.peers.Used() {
		p.Fatalf("%+v, %d open, %d held, %d and %d bytes; by the long way %+v, %d, %d, %d, %d",
			x.Stats, x.open, x.queue.held, x.storage.memory.Used(), x.halves.peers.Used(), y.Stats, y.open, y.queue.held, y.storage.memory.Used(), y.halves.peers.Used())
	}
	p.told[0], p.told[1] = a[:0], b[:0]
}

// flush ends both, and compares what is left.
func (p *pair) flush() {
	p.Helper()
	for _, t := range p.trackers {
		t.Flush()
	}
	p.same()
}

// TestFast compares the short way of a Send with the long one, over whole captures.
func TestFast(t *testing.T) {
	for _, c := range []rocetest.Config{
		{Seed: 1, CM: true, Calls: 300, Kinds: []rocetest.Kind{rocetest.Small}},
		{Seed: 2, CM: true, Calls: 300, Callbacks: 20, Invalidate: true, MTU: 1024},
		{Seed: 3, Calls: 300, Callbacks: 5},
	} {
		var opt Options
		if c.Seed > 1 {
			opt.Ended = func(*Transaction) {}
		}
		p := newPair(t, opt)
		h := p.handlers()
		a := rocetest.Feeder{Tracker: roce.NewTracker(h[0], p.trackers[0].Hooks(), new(rdma.Numbers), roce.Limits{})}
		b := rocetest.Feeder{Tracker: roce.NewTracker(h[1], p.trackers[1].Hooks(), new(rdma.Numbers), roce.Limits{})}
		records := rocetest.Make(c).Taps[0]
		for i := range records {
			a.Feed(&records[i])
			b.Feed(&records[i])
			p.same()
		}
		a.Tracker.Flush(a.Last)
		b.Tracker.Flush(b.Last)
		p.flush()
		if p.n < 300 || p.fast == 0 {
			t.Errorf("%d transactions, %d by the fast path", p.n, p.fast)
		}
	}
}

// FuzzFast compares them for Sends in any order: each needs four bytes, which say what it is, with which XID, and how it is
// damaged.
func FuzzFast(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		b := make([]byte, 160)
		for i := range b {
			b[i] = byte(r.Uint32())
			if i%4 == 3 { // most are not damaged
				b[i] &= 7
			}
		}
		f.Add(b)
	}
	const call, reply, acknowledged = 0x00, 0x41, 0x0c
	f.Add([]byte{call, 1, 4, 0, reply, 1, 4, 0, reply, 1, 4, 0, reply, 1, 8, 0, acknowledged, 1, 0, 0, reply, 1, 4, 0}) // answered again
	f.Add([]byte{call, 1, 28, 6, call, 1, 28, 0, reply, 1, 4, 0, call, 1, 4, 0})                                        // first what is not a message
	f.Add([]byte{call, 1, 4, 0, call, 1, 4, 0, call, 1, 8, 0, reply, 1, 4, 0, acknowledged, 3, 0, 0})                   // called again
	waits := []byte{call, 5, 4, 0, reply, 5, 4, 0, acknowledged, 1, 0, 0, call, 1, 4, 0, call, 2, 4, 0, reply, 1, 4, 0, reply, 2, 4, 0, acknowledged, 4, 0, 0}
	for range 36 {
		waits = append(waits, acknowledged, 4, 0, 0xf0)
	}
	f.Add(append(waits, call, 3, 4, 0))                         // a reply is not acknowledged in time, one before it was
	f.Add([]byte{0x0b, 1, 4, 0, call, 1, 4, 0, reply, 1, 4, 0}) // what proves nothing of the connection
	f.Fuzz(func(t *testing.T, script []byte) {
		p := newPair(t, Options{Open: 12, Held: 8})
		h := p.handlers()
		a, b := director{h: h[0]}, director{h: h[1]}
		for script = script[:min(len(script), 192)]; len(script) >= 4; script = script[4:] {
			a.step([4]byte(script))
			b.step([4]byte(script))
			p.same()
			for i := range a.conns {
				a.known(t, i, &b)
			}
		}
		p.flush()
	})
}

// director makes Sends, acknowledgements and ends of connections of a script.
type director struct {
	h     rdma.Handler
	conns [2]*rdma.Connection
	tags  []sent
	ref   rdma.Ref
}

// known compares what is known of a connection.
func (d *director) known(t *testing.T, i int, o *director) {
	a, b := d.conns[i], o.conns[i]
	if a == nil || a.Upper == nil {
		return
	}
	x, y := of(a), of(b)
	if x.carries != y.carries || x.forward != y.forward || x.calls != y.calls || x.malformed != y.malformed {
		t.Fatalf("%+v of connection %d, %+v by the long way", x, i, y)
	}
	for side := range x.halves {
		h, k := x.halves[side], y.halves[side]
		if h != nil && k != nil && (h.recent != k.recent || h.open.n != k.open.n || h.credits != k.credits || h.size != k.size || h.tables != k.tables) {
			t.Fatalf("%+v of side %d of connection %d, %+v by the long way", h, side, i, k)
		}
	}
}

type sent struct {
	c    *rdma.Connection
	from rdma.Side
	tag  rdma.Tag
}

func (d *director) step(b [4]byte) {
	d.ref.Number++
	d.ref.Time += 1 + int64(b[3]&0xf0)<<18 // up to a second: replies are waited for that long
	n := b[0] >> 7
	c := d.conns[n]
	if c == nil {
		c = &rdma.Connection{ID: int(n) + 1, Fabric: rdma.RoCEv2, State: rdma.Established, First: d.ref}
		if n == 0 {
			c.Setup[0].Message = rdma.SetupREQ
		}
		d.conns[n] = c
	}
	from := rdma.Side(b[0] >> 6 & 1)
	switch kind := b[0] & 15; kind {
	case 15:
		d.h.Closed(c, d.ref)
		d.conns[n] = nil
	case 12, 13, 14:
		if len(d.tags) > 0 {
			s := d.tags[int(b[1])%len(d.tags)]
			d.h.SendAcked(s.c, s.from, s.tag, d.ref)
		}
	default:
		data := message(kind, b[1]&15, b[2])
		length := len(data)
		switch b[3] & 7 {
		case 5:
			data = data[:len(data)*int(b[2])/255]
		case 6:
			data[int(b[2])%len(data)] ^= b[1] | 1
		case 7:
			length += int(b[2])
		}
		tag := d.h.Send(c, &rdma.Send{From: from, Data: data, Length: length, First: d.ref, Last: d.ref, Packets: 1})
		d.tags = append(d.tags, sent{c, from, tag})
	}
}

// message is an RPC-over-RDMA message: one of a few kinds, most of them usual.
func message(kind, xid, size byte) []byte {
	h := rpcrdma.Header{Version: rpcrdma.Version1, XID: uint32(xid), Credits: uint32(size & 7), Type: rpcrdma.TypeMsg}
	rpc := binary.BigEndian.AppendUint32(nil, h.XID)
	rpc = binary.BigEndian.AppendUint32(rpc, uint32(kind)&1)
	for _, word := range []uint32{2, 100003 + uint32(kind>>3&1)*0x40000000, 3, uint32(size) & 31} {
		rpc = binary.BigEndian.AppendUint32(rpc, word)
	}
	rpc = append(rpc, make([]byte, 4*int(size>>2))...)
	segment := rpcrdma.Segment{Handle: 7 + uint32(xid), Length: 4096, Offset: 1 << 20}
	switch kind {
	case 8:
		h.Reads = []rpcrdma.ReadSegment{{Position: 60, Segment: segment}}
	case 9, 10:
		h.Writes = []rpcrdma.WriteChunk{{segment}}
	case 11:
		h.Type, rpc = rpcrdma.TypeDone, nil
	}
	return append(h.Append(nil), rpc...)
}
