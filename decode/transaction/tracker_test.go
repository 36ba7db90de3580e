package transaction_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// wire speaks the vocabulary of package rdma by hand.
type wire struct {
	t    *testing.T
	tr   *transaction.Tracker
	c    *rdma.Connection
	out  []*result
	now  int64
	n    uint64
	tags map[uint64]tag
}

type tag struct {
	from rdma.Side
	tag  rdma.Tag
}

func newWire(t *testing.T, fabric rdma.Fabric) *wire {
	w := &wire{t: t, c: &rdma.Connection{ID: 1, Fabric: fabric}, tags: make(map[uint64]tag)}
	w.c.Ends = [2]rdma.End{{Addr: hostA, QPN: 1}, {Addr: hostB, QPN: 2}}
	w.tr = transaction.NewTracker(keepData, func(tx *transaction.Transaction) { w.out = append(w.out, keep(tx)) })
	return w
}

func (w *wire) ref() rdma.Ref {
	w.n++
	w.now += 1000
	return rdma.Ref{Time: w.now, Number: w.n}
}

// send sends a message and returns its packet number.
func (w *wire) send(from rdma.Side, b []byte) uint64 {
	ref := w.ref()
	g := w.tr.Send(w.c, &rdma.Send{From: from, Data: b, Length: len(b), First: ref, Last: ref, Packets: 1})
	w.tags[ref.Number] = tag{from, g}
	return ref.Number
}

func (w *wire) ack(n uint64) {
	g := w.tags[n]
	w.tr.SendAcked(w.c, g.from, g.tag, w.ref())
}

// again sends a message once more.
func (w *wire) again(n uint64) {
	g := w.tags[n]
	w.tr.SendAgain(w.c, g.from, g.tag, w.ref(), true)
}

// event tells of something that a side has sent.
func (w *wire) event(from rdma.Side, e rdma.Event) { w.tr.Event(w.c, from, e, 0, w.ref()) }

// op moves bytes by one operation.
func (w *wire) op(kind rdma.OpKind, from rdma.Side, handle uint32, offset uint64, data []byte) {
	ref := w.ref()
	op := rdma.Op{Kind: kind, From: from, Handle: handle, Offset: offset, Length: uint32(len(data)), First: ref}
	w.tr.OpStart(w.c, &op, ref)
	w.tr.OpData(w.c, &op, &rdma.Fragment{Offset: offset, Length: uint32(len(data)), Data: data, Ref: w.ref(), Last: true})
}

func (w *wire) end() []*result {
	w.tr.Closed(w.c, w.ref())
	w.tr.Flush()
	return w.out
}

// rpc is an RPC message.
func rpc(xid uint32, reply bool, program uint32, body int) []byte {
	words := []uint32{xid, 0, 2, program, 3, 9, 0, 0, 0, 0}
	if reply {
		words = []uint32{xid, 1, 0, 0, 0, 0}
	}
	var b []byte
	for _, v := range words {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	for i := range body {
		b = append(b, byte(i))
	}
	return b
}

func msg(h rpcrdma.Header, body []byte) []byte { return append(h.Append(nil), body...) }

func v1(xid uint32, t rpcrdma.Type) rpcrdma.Header {
	return rpcrdma.Header{XID: xid, Version: 1, Credits: 8, Type: t}
}

func (w *wire) want(what string, ok bool) {
	w.t.Helper()
	if !ok {
		w.t.Errorf("not %s", what)
		for _, r := range w.out {
			w.t.Logf("%v", r)
		}
	}
}

func has(r *result, kind transaction.NoteKind) bool {
	return slices.ContainsFunc(r.notes, func(n transaction.Note) bool { return n.Kind == kind })
}

// resent reports whether a note tells of a reconnect.
func resent(n transaction.Note) bool {
	return n.Kind == transaction.ResentOn || n.Kind == transaction.ResentFrom
}

// TestNotAcknowledged ends the capture before the reply is acknowledged.
func TestNotAcknowledged(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8)))
	w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8)))
	w.c.Terminated = "reset"
	out := w.end()
	w.want("complete without a note", len(out) == 1 && out[0].state == transaction.Complete && len(out[0].notes) == 0 && out[0].phases.Ack < 0)
}

// TestAckTimeout waits for the acknowledgement no longer than
// two seconds.
func TestAckTimeout(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8)))
	n := w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8)))
	w.now += 3e9
	w.send(0, msg(v1(2, rpcrdma.TypeMsg), rpc(2, false, rocetest.Program, 8)))
	w.want("ended", len(w.out) == 1)
	w.ack(n) // too late, and of a transaction whose memory may be in use again
	w.end()
	w.want("two", len(w.out) == 2 && w.out[1].state == transaction.NoReply)
}

// TestWhichCopy moves the end of a message to the copy that counts.
func TestWhichCopy(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	call := w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8)))
	again := func(n uint64, complete bool) uint64 {
		ref := w.ref()
		g := w.tags[n]
		w.tr.SendAgain(w.c, g.from, g.tag, ref, complete)
		return ref.Number
	}
	second := again(call, true)
	w.ack(call)
	again(call, true) // after the acknowledgement: it does not count
	reply := w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8)))
	again(reply, false)
	last := again(reply, true)
	w.ack(reply)
	r := w.end()[0]
	w.want("the copies that count", r.call.last.Number == second && r.reply.last.Number == last && r.retransmits == 4)
	w.want("total to the last copy", int64(r.phases.Total) == r.reply.last.Time-r.call.first.Time)
}

// TestDiffers asks of data whether it can be of a Send.
func TestDiffers(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	of := func(n uint64, at int, data []byte) bool {
		return w.tr.Hooks().Differs(w.c, w.tags[n].from, w.tags[n].tag, at, 0, data)
	}
	call := msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8))
	other := append(slices.Clone(call[40:]), 0)
	other[3]++
	n := w.send(0, call)
	w.want("the call", !of(n, 0, call) && !of(n, 40, call[40:]) && !of(n, 0, call[:20]) && !of(n, len(call), other))
	w.want("another one", of(n, 40, other) && of(n, 41, call[40:]))
	w.want("of nothing", !w.tr.Hooks().Differs(w.c, 0, rdma.Tag{}, 40, 0, other))

	// The client sends it once more in another Send: with the same tag, but it grants other credits.
	again := v1(1, rpcrdma.TypeMsg)
	again.Credits = 4
	second := w.send(0, msg(again, rpc(1, false, rocetest.Program, 8)))
	w.want("unknown of which", !of(second, 8, other) && !of(n, 8, other))

	reply := w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8)))
	w.want("the reply", !of(reply, 28, rpc(1, true, 0, 8)) && of(reply, 40, other))
	w.ack(reply)
	w.want("nothing kept", !of(reply, 40, other))
	w.end()
}

// TestDiffersAfterEnd asks it of messages whose transaction has ended.
func TestDiffersAfterEnd(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	of := func(n uint64, length int, data []byte) bool {
		return w.tr.Hooks().Differs(w.c, w.tags[n].from, w.tags[n].tag, 0, length, data)
	}
	changed := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at] ^= 1
		return b
	}
	call := msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 400))
	reply := msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 400))
	n := w.send(0, call)
	m := w.send(1, reply)
	w.ack(m)
	for i := range uint32(8) { // others end after it
		x := w.send(0, msg(v1(2+i, rpcrdma.TypeMsg), rpc(2+i, false, rocetest.Program, 80)))
		y := w.send(1, msg(v1(2+i, rpcrdma.TypeMsg), rpc(2+i, true, 0, 80)))
		w.ack(y)
		w.want("the others", !of(x, 28+len(rpc(2+i, false, rocetest.Program, 80)), msg(v1(2+i, rpcrdma.TypeMsg), rpc(2+i, false, rocetest.Program, 80))))
	}
	w.want("the call", !of(n, len(call), call) && !of(n, len(call), changed(call, 8)) && of(n, len(call), changed(call, 60)) && of(n, len(call), changed(call, 28+255)))
	w.want("the reply", !of(m, len(reply), reply) && !of(m, len(reply), changed(reply, 8)) && of(m, len(reply), changed(reply, 52)) && of(m, len(reply)+1, reply))
	w.want("what is not remembered", !of(n, len(call), changed(call, 28+256)) && !of(m, len(reply), changed(reply, 64)))
	w.want("too little of it", !of(n, len(call), changed(call, 60)[:28+200]) && !of(m, len(reply), changed(reply, 52)[:60]))
	w.want("of unknown length", !of(n, 0, changed(call, 60)) && !of(m, 0, changed(reply, 52)))
	w.want("not from its beginning", !w.tr.Hooks().Differs(w.c, 0, w.tags[n].tag, 4, len(call), changed(call, 60)))

	// What the capture had cut cannot be compared.
	cut := msg(v1(20, rpcrdma.TypeMsg), rpc(20, false, rocetest.Program, 400))
	g := w.tr.Send(w.c, &rdma.Send{From: 0, Data: cut[:60], Length: len(cut), First: w.ref(), Last: w.ref(), Packets: 1})
	n = w.n
	w.tags[n] = tag{0, g}
	m = w.send(1, msg(v1(20, rpcrdma.TypeMsg), rpc(20, true, 0, 8)))
	w.ack(m)
	w.want("a cut one", !of(n, len(cut), cut))

	// Nor what is in a chunk, as a whole or in part.
	for i, kind := range []rpcrdma.Type{rpcrdma.TypeNoMsg, rpcrdma.TypeMsg, rpcrdma.TypeNoMsg} {
		h := v1(30+uint32(i), kind)
		h.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: 7, Length: 80, Offset: 4096}}}
		body := rpc(30+uint32(i), false, rocetest.Program, 80)
		long := msg(h, nil)
		switch i {
		case 1:
			long = msg(h, body)
		case 2: // with bytes that nobody reads, in place of the chunk
			h.Reads = nil
			long = msg(h, body)
		}
		n = w.send(0, long)
		w.op(rdma.Read, 1, 7, 4096, body[:80])
		m = w.send(1, msg(v1(30+uint32(i), rpcrdma.TypeMsg), rpc(30+uint32(i), true, 0, 8)))
		w.ack(m)
		w.want("one with a Position-Zero Read chunk", !of(n, len(long), long))
	}
	w.end()
}

// TestXIDAgain uses an XID again for another call.
func TestXIDAgain(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8)))
	w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 12)))
	n := w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8)))
	w.ack(n)
	w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 16)))
	n = w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 20)))
	w.ack(n)
	out := w.end()
	w.want("three transactions", len(out) == 3 && out[0].state == transaction.NoReply && has(out[0], transaction.XIDReused) &&
		out[1].state == transaction.Complete && out[1].call.bytes == 52 && out[2].state == transaction.Complete && out[2].reply.bytes == 44)
}

// TestXIDAgainWithoutRDMA is TestXIDAgain without transport headers.
func TestXIDAgainWithoutRDMA(t *testing.T) {
	for _, fabric := range []rdma.Fabric{rdma.TCP, rdma.UDP} {
		w := newWire(t, fabric)
		w.send(0, rpc(1, false, 100005, 8))
		w.send(0, rpc(1, false, 100005, 8)) // the same call
		w.send(0, rpc(1, false, 100005, 12))
		w.ack(w.send(1, rpc(1, true, 0, 8)))
		w.send(0, rpc(1, false, 100005, 16))
		w.ack(w.send(1, rpc(1, true, 0, 20)))
		out := w.end()
		w.want("three transactions", len(out) == 3 && out[0].state == transaction.NoReply && has(out[0], transaction.XIDReused) &&
			out[1].state == transaction.Complete && len(out[1].notes) == 0 && out[2].state == transaction.Complete && len(out[2].notes) == 0)
	}
}

// TestReplyTwice has a reply whose call was not captured, and copies of it.
func TestReplyTwice(t *testing.T) {
	w := newWire(t, rdma.UDP)
	w.send(0, rpc(1, false, 100005, 8))
	w.send(0, rpc(1, false, 100005, 8)) // the client was impatient
	w.send(1, rpc(1, true, 0, 8))
	w.send(1, rpc(1, true, 0, 8))
	w.send(1, rpc(2, true, 0, 8))
	w.send(1, rpc(2, true, 0, 8))
	out := w.end()
	w.want("one whole, one without a call", len(out) == 2 && out[0].state == transaction.Complete && out[0].retransmits == 1 &&
		has(out[0], transaction.CallRepeated) && out[1].state == transaction.NoCall && w.tr.Stats.Duplicates == 2)
}

// TestSameXIDBothWays has a forward and a backward call with one XID, whose
// long messages do not say what they are.
func TestSameXIDBothWays(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	call := v1(5, rpcrdma.TypeNoMsg)
	body := rpc(5, false, rocetest.Program, 4000)
	call.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: 1, Length: uint32(len(body)), Offset: 100}}}
	call.HasReply, call.Reply = true, rpcrdma.WriteChunk{{Handle: 2, Length: 3000, Offset: 500}}
	w.send(0, msg(call, nil))
	back := v1(5, rpcrdma.TypeNoMsg)
	backBody := rpc(5, false, rocetest.CallbackProgram, 2000)
	back.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: 9, Length: uint32(len(backBody)), Offset: 700}}}
	w.send(1, msg(back, nil))
	w.op(rdma.Read, 1, 1, 100, body)
	w.op(rdma.Read, 0, 9, 700, backBody)
	w.send(0, msg(v1(5, rpcrdma.TypeMsg), rpc(5, true, 0, 4)))
	reply := v1(5, rpcrdma.TypeNoMsg)
	long := rpc(5, true, 0, 1000)
	w.op(rdma.Write, 1, 2, 500, long)
	reply.HasReply, reply.Reply = true, rpcrdma.WriteChunk{{Handle: 2, Length: uint32(len(long)), Offset: 500}}
	w.send(1, msg(reply, nil))
	out := w.end()
	w.want("one of each direction", len(out) == 2 && out[0].state == transaction.Complete && out[1].state == transaction.Complete &&
		!out[0].backward && out[1].backward && out[1].program == rocetest.CallbackProgram &&
		string(out[0].call.payload) == string(body) && string(out[0].reply.payload) == string(long) && string(out[1].call.payload) == string(backBody))
}

// TestErrors answers calls with RDMA_ERROR.
func TestErrors(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	call := v1(1, rpcrdma.TypeMsg)
	call.Reads = []rpcrdma.ReadSegment{{Position: 48, Segment: rpcrdma.Segment{Handle: 1, Length: 100}}}
	w.send(0, msg(call, rpc(1, false, rocetest.Program, 8)))
	e := v1(1, rpcrdma.TypeError)
	e.Error = rpcrdma.ErrChunk
	w.ack(w.send(1, msg(e, nil)))
	other := v1(2, rpcrdma.TypeMsg)
	b := msg(other, rpc(2, false, rocetest.Program, 8))
	binary.BigEndian.PutUint32(b[4:], 7) // a version that does not exist
	w.send(0, b)
	e = v1(2, rpcrdma.TypeError)
	e.Error, e.Low, e.High = rpcrdma.ErrVers, 1, 1
	w.ack(w.send(1, msg(e, nil)))
	out := w.end()
	w.want("two with errors", len(out) == 2 && out[0].state == transaction.Complete && out[1].state == transaction.Complete &&
		out[0].reply.bytes == 0 && out[1].reply.seen)
}

// TestNoMsgWithoutReadList: an RDMA_NOMSG without a Read list cannot be a call, but nothing else comes from where calls come from, unless the
// other side has asked for it.
func TestNoMsgWithoutReadList(t *testing.T) {
	room := rpcrdma.WriteChunk{{Handle: 7, Length: 4096}}
	for _, test := range []struct {
		name     string
		from     rdma.Side // of the RDMA_NOMSG
		begun    bool      // it is known where calls come from
		called   bool      // the other side has called with this XID
		reply    rpcrdma.WriteChunk
		isCall   bool
		backward bool
	}{
		{name: "client", from: 0, begun: true, isCall: true},
		{name: "client, with a Reply chunk", from: 0, begun: true, reply: room, isCall: true},
		{name: "client, to a callback", from: 0, begun: true, called: true, reply: room, isCall: false, backward: true},
		{name: "server", from: 1, begun: true, reply: room},
		{name: "nobody knows who it is", from: 0, reply: room},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWire(t, rdma.RoCEv2)
			if test.begun {
				w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8)))
				w.ack(w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8))))
			}
			if test.called {
				w.send(1, msg(v1(2, rpcrdma.TypeMsg), rpc(2, false, 0x40000000, 8)))
			}
			h := v1(2, rpcrdma.TypeNoMsg)
			h.HasReply, h.Reply = test.reply != nil, test.reply
			w.ack(w.send(test.from, msg(h, nil)))
			out := w.end()
			r := out[len(out)-1]
			w.want("as it should be", r.xid == 2 && (r.call.seen && !r.reply.seen) == test.isCall && r.backward == test.backward)
		})
	}
}

// TestRDMAMsgWithPositionZero is a violation that is seen through.
func TestRDMAMsgWithPositionZero(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	call := v1(1, rpcrdma.TypeMsg)
	call.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: 1, Length: 100}}}
	body := rpc(1, false, rocetest.Program, 8)
	w.send(0, msg(call, body))
	w.op(rdma.Read, 1, 1, 0, make([]byte, 100))
	w.ack(w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8))))
	r := w.end()[0]
	w.want("seen through", r.state == transaction.Complete && has(r, transaction.PositionZeroInline) && string(r.call.payload) == string(body))
}

// TestOneReadOfTwoSegments lets neighbours in memory be read at once, and the
// reverse.
func TestOneReadOfTwoSegments(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	call := v1(1, rpcrdma.TypeNoMsg)
	body := rpc(1, false, rocetest.Program, 960)
	for i := range uint64(4) {
		call.Reads = append(call.Reads, rpcrdma.ReadSegment{Segment: rpcrdma.Segment{Handle: 7, Length: 250, Offset: 1000 + i*250}})
	}
	w.send(0, msg(call, nil))
	w.op(rdma.Read, 1, 7, 1000, body[:600])
	w.op(rdma.Read, 1, 7, 1600, body[600:])
	w.ack(w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8))))
	r := w.end()[0]
	w.want("whole", r.state == transaction.Complete && len(r.notes) == 0 && r.reads == 2 && r.readBytes == 1000 && string(r.call.payload) == string(body))
}

// TestBeyondSegment reads more than was offered.
func TestBeyondSegment(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	call := v1(1, rpcrdma.TypeMsg)
	call.Reads = []rpcrdma.ReadSegment{{Position: 48, Segment: rpcrdma.Segment{Handle: 1, Length: 100, Offset: 1<<64 - 50}}}
	w.send(0, msg(call, rpc(1, false, rocetest.Program, 8)))
	w.op(rdma.Read, 1, 1, 1<<64-20, make([]byte, 300))
	w.ack(w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 8))))
	r := w.end()[0]
	w.want("noted", has(r, transaction.BeyondSegment) && r.readBytes <= 100)
}

// TestAskedBeyondSegment has operations that move nothing, because the peer refuses them.
func TestAskedBeyondSegment(t *testing.T) {
	for _, c := range []struct {
		name       string
		kind       rdma.OpKind
		at, length uint32
		want       bool
	}{
		{"to the end", rdma.Read, 0, 100, false},
		{"into the neighbour", rdma.Read, 50, 100, false},
		{"to its end", rdma.Read, 20, 180, false},
		{"beyond it", rdma.Read, 20, 181, true},
		{"beyond both", rdma.Read, 0, 1 << 31, true},
		{"beyond the last", rdma.Read, 150, 51, true},
		{"a Write to the end", rdma.Write, 0, 100, false},
		{"a Write beyond it", rdma.Write, 20, 81, true},
	} {
		w := newWire(t, rdma.RoCEv2)
		call := v1(1, rpcrdma.TypeMsg)
		for i := range uint64(2) { // neighbours
			call.Reads = append(call.Reads, rpcrdma.ReadSegment{Position: 48, Segment: rpcrdma.Segment{Handle: 1, Length: 100, Offset: 4096 + 100*i}})
		}
		call.Writes = []rpcrdma.WriteChunk{{{Handle: 1, Length: 100, Offset: 4096}}}
		w.send(0, msg(call, rpc(1, false, rocetest.Program, 8)))
		ref := w.ref()
		w.tr.OpStart(w.c, &rdma.Op{Kind: c.kind, From: 1, Handle: 1, Offset: 4096 + uint64(c.at), Length: c.length, First: ref}, ref)
		r := w.end()[0]
		w.want(c.name, has(r, transaction.BeyondSegment) == c.want)
	}
}

// TestUsedAgain has operations on the memory of a call, before and after the reply.
func TestUsedAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     rdma.OpKind
		at, n    uint64 // of the second operation
		answered bool   // it comes after the reply
		want     bool
	}{
		{"the rest", rdma.Write, 60, 40, false, false},
		{"overlap", rdma.Write, 30, 40, false, true},
		{"the same", rdma.Write, 0, 60, false, true},
		{"of another kind", rdma.Read, 30, 40, false, false},
		{"elsewhere", rdma.Write, 200, 40, false, false},
		{"for a later call", rdma.Write, 0, 60, true, false},
	} {
		w := newWire(t, rdma.IWARP)
		call, reply := v1(1, rpcrdma.TypeMsg), v1(1, rpcrdma.TypeMsg)
		call.Writes = []rpcrdma.WriteChunk{{{Handle: 1, Length: 100}}}
		reply.Writes = []rpcrdma.WriteChunk{{{Handle: 1, Length: 100}}}
		w.send(0, msg(call, rpc(1, false, rocetest.Program, 8)))
		w.op(rdma.Write, 1, 1, 0, make([]byte, 60))
		if !c.answered {
			w.op(c.kind, 1, 1, c.at, make([]byte, c.n))
		}
		n := w.send(1, msg(reply, rpc(1, true, 0, 8)))
		if c.answered {
			w.op(c.kind, 1, 1, c.at, make([]byte, c.n))
		}
		w.ack(n)
		if r := w.end()[0]; has(r, transaction.UsedAgain) != c.want {
			t.Errorf("%s: %v", c.name, r.notes)
		}
	}
}

// TestWriteChunksOfReply has replies whose Write chunks are not those of the call, or not as long as what was written.
func TestWriteChunksOfReply(t *testing.T) {
	segment := func(handle, length uint32) rpcrdma.Segment { return rpcrdma.Segment{Handle: handle, Length: length} }
	chunk := func(s ...rpcrdma.Segment) rpcrdma.WriteChunk { return s }
	for _, c := range []struct {
		name           string
		call, reply    []rpcrdma.WriteChunk
		written        int // to handle 1
		state          transaction.State
		beyond, extras bool
	}{
		{"as written", []rpcrdma.WriteChunk{chunk(segment(1, 100))}, []rpcrdma.WriteChunk{chunk(segment(1, 5))}, 5, transaction.Complete, false, false},
		{"with padding", []rpcrdma.WriteChunk{chunk(segment(1, 100))}, []rpcrdma.WriteChunk{chunk(segment(1, 5))}, 8, transaction.Complete, false, false},
		{"more written", []rpcrdma.WriteChunk{chunk(segment(1, 100))}, []rpcrdma.WriteChunk{chunk(segment(1, 5))}, 9, transaction.Complete, true, false},
		{"chunk not returned", []rpcrdma.WriteChunk{chunk(segment(1, 100))}, nil, 5, transaction.Complete, true, false},
		{"one more segment", []rpcrdma.WriteChunk{chunk(segment(1, 100))}, []rpcrdma.WriteChunk{chunk(segment(1, 5), segment(2, 300))}, 5, transaction.Incomplete, false, true},
		{"one more segment, empty", []rpcrdma.WriteChunk{chunk(segment(1, 100))}, []rpcrdma.WriteChunk{chunk(segment(1, 5), segment(2, 0))}, 5, transaction.Complete, false, false},
		{"one more chunk", []rpcrdma.WriteChunk{chunk(segment(1, 100))}, []rpcrdma.WriteChunk{chunk(segment(1, 5)), chunk(segment(2, 300))}, 5, transaction.Incomplete, false, true},
		{"empty chunk filled", []rpcrdma.WriteChunk{chunk()}, []rpcrdma.WriteChunk{chunk(segment(1, 5))}, 5, transaction.Incomplete, false, true},
		{"chunk for none", nil, []rpcrdma.WriteChunk{chunk(segment(1, 5))}, 5, transaction.Incomplete, false, true},
	} {
		w := newWire(t, rdma.RoCEv2)
		call, reply := v1(1, rpcrdma.TypeMsg), v1(1, rpcrdma.TypeMsg)
		call.Writes, reply.Writes = c.call, c.reply
		w.send(0, msg(call, rpc(1, false, rocetest.Program, 8)))
		w.op(rdma.Write, 1, 1, 0, make([]byte, c.written))
		w.ack(w.send(1, msg(reply, rpc(1, true, 0, 8))))
		r := w.end()[0]
		if r.state != c.state || has(r, transaction.WrittenBeyondReply) != c.beyond || has(r, transaction.ReplyUnoffered) != c.extras {
			t.Errorf("%s: %v, %v", c.name, r.state, r.notes)
		}
	}
}

// TestReplyTwiceOtherEnd repeats a reply with another last byte, and with other credits.
func TestReplyTwiceOtherEnd(t *testing.T) {
	for _, c := range []struct {
		change func(b []byte)
		want   transaction.NoteKind
	}{
		{func(b []byte) {}, transaction.ReplyRepeated},
		{func(b []byte) { b[11]++ }, transaction.ReplyRepeated},
		{func(b []byte) { b[len(b)-1]++ }, transaction.ReplyRepeatedOther},
	} {
		w := newWire(t, rdma.RoCEv2)
		w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8)))
		w.send(1, msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 200)))
		again := msg(v1(1, rpcrdma.TypeMsg), rpc(1, true, 0, 200))
		c.change(again)
		w.ack(w.send(1, again))
		r := w.end()[0]
		w.want(c.want.Code(), has(r, c.want) && len(r.notes) == 1)
	}
}

// TestReadRead is the model of the pre-standard protocol: the requester reads
// the reply's chunks and says RDMA_DONE.
func TestReadRead(t *testing.T) {
	for _, done := range []bool{true, false} {
		w := newWire(t, rdma.RoCEv2)
		call := rpcrdma.Header{XID: 3, Type: rpcrdma.TypeMsg, Dialect: rpcrdma.DialectSolaris}
		w.send(0, msg(call, rpc(3, false, rocetest.Program, 8)))
		long := rpc(3, true, 0, 3000)
		reply := rpcrdma.Header{XID: 3, Type: rpcrdma.TypeNoMsg, Dialect: rpcrdma.DialectSolaris}
		reply.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: 4, Length: uint32(len(long)), Offset: 64}}}
		w.ack(w.send(1, msg(reply, nil)))
		w.op(rdma.Read, 0, 4, 64, long[:2000])
		w.now += 1_500_000_000
		w.op(rdma.Read, 0, 4, 2064, long[2000:])
		if done {
			w.send(0, msg(rpcrdma.Header{XID: 3, Type: rpcrdma.TypeDone, Dialect: rpcrdma.DialectSolaris}, nil))
		}
		r := w.end()[0]
		w.want("read", r.state == transaction.Complete && string(r.reply.payload) == string(long) &&
			r.byRequester == 2 && r.reads == 2 && r.readBytes == uint64(len(long)) && r.writes == 0)
		w.want("done or a note", done == r.done.Seen() && done != has(r, transaction.DoneNotSeen))
	}
}

// TestLongCallaghan has a long call of the 2003 prototype: RDMA_MSG without a
// message.
func TestLongCallaghan(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	body := rpc(3, false, rocetest.Program, 2000)
	call := rpcrdma.Header{XID: 3, Type: rpcrdma.TypeMsg, Dialect: rpcrdma.DialectCallaghan}
	call.Reads = []rpcrdma.ReadSegment{{Segment: rpcrdma.Segment{Handle: 4, Length: uint32(len(body)), Offset: 64}}}
	w.send(0, msg(call, nil))
	w.op(rdma.Read, 1, 4, 64, body)
	w.ack(w.send(1, msg(rpcrdma.Header{XID: 3, Type: rpcrdma.TypeMsg}, rpc(3, true, 0, 8))))
	r := w.end()[0]
	w.want("assembled", r.state == transaction.Complete && string(r.call.payload) == string(body))
}

// TestVersion2 tells calls, replies and messages about the connection apart.
func TestVersion2(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	h := rpcrdma.Header{XID: 3, Version: rpcrdma.Version2, Credits: 4, Type: rpcrdma.TypeCallInline}
	w.send(0, msg(h, rpc(3, false, rocetest.Program, 8)))
	h.Type = rpcrdma.TypeGrant
	w.send(1, msg(h, nil))
	h.Type = rpcrdma.TypeReplyInline
	w.ack(w.send(1, msg(h, rpc(3, true, 0, 8))))
	r := w.end()[0]
	w.want("one transaction", len(w.out) == 1 && r.state == transaction.Complete && !r.done.Seen() && w.tr.Stats.OtherSends == 1)
}

// TestWritesWithoutCall attributes Writes to a reply whose call is missing.
func TestWritesWithoutCall(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	w.op(rdma.Write, 1, 4, 1000, make([]byte, 700))
	w.op(rdma.Write, 1, 5, 1000, make([]byte, 700)) // of another one
	h := v1(1, rpcrdma.TypeMsg)
	h.Writes = []rpcrdma.WriteChunk{{{Handle: 4, Length: 700, Offset: 1000}}}
	w.ack(w.send(1, msg(h, rpc(1, true, 0, 8))))
	r := w.end()[0]
	w.want("attributed", r.state == transaction.NoCall && r.writes == 1 && r.writeBytes == 700 && len(r.operations) == 1 && !r.backward)
}

// TestDirectionLearntLate has a reply to a callback before any call.
func TestDirectionLearntLate(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	w.send(0, msg(v1(9, rpcrdma.TypeMsg), rpc(9, true, 0, 8))) // answers side 1
	w.send(0, msg(v1(1, rpcrdma.TypeMsg), rpc(1, false, rocetest.Program, 8)))
	out := w.end()
	w.want("told apart", len(out) == 2 && out[0].backward && !out[1].backward)
}

// TestClosedInOrder ends the calls of a connection in their order.
func TestClosedInOrder(t *testing.T) {
	w := newWire(t, rdma.RoCEv2)
	for i := range uint32(200) {
		w.send(rdma.Side(i%2), msg(v1(i*0x9e3779b9, rpcrdma.TypeMsg), rpc(i*0x9e3779b9, false, rocetest.Program, 8)))
	}
	w.c.Terminated = "disconnect request"
	w.tr.Closed(w.c, w.ref())
	w.want("all", len(w.out) == 200)
	inOrder(t, w.out)
	w.want("with the reason", slices.Contains(w.out[0].notes, transaction.Note{Kind: transaction.ConnectionEnded, Why: "disconnect request"}))
}

// TestHeaderNotes: a transport header that the capture has cut is noted, and the next
// one, which is whole, is not.
func TestHeaderNotes(t *testing.T) {
	whole := callMessage(rpcrdma.Header{XID: 7, Type: rpcrdma.TypeMsg, Writes: []rpcrdma.WriteChunk{{{Handle: 5, Length: 10}, {Handle: 6, Length: 10}}}}, 40)
	var got []transaction.Note
	tr := transaction.NewTracker(transaction.Options{}, func(tx *transaction.Transaction) { got = append(got, tx.Notes...) })
	c := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}
	for i, x := range []struct {
		data []byte
		want transaction.NoteKind
	}{{whole[:44], transaction.HeaderCut}, {whole, 0}} {
		got = nil
		binary.BigEndian.PutUint32(x.data, uint32(i+1))
		ref := rdma.Ref{Time: int64(i) * 1e6, Number: uint64(i + 1)}
		tr.Send(c, &rdma.Send{Data: x.data, Length: len(whole), First: ref, Last: ref, Packets: 1})
		tr.Flush()
		has := func(k transaction.NoteKind) bool {
			return slices.ContainsFunc(got, func(n transaction.Note) bool { return n.Kind == k })
		}
		for _, k := range []transaction.NoteKind{transaction.HeaderCut, transaction.HeaderMalformed} {
			if has(k) != (k == x.want) {
				t.Errorf("message %d: %v", i, got)
			}
		}
	}
}

// TestSizeOfCut: wherever the capture cuts a Send, the size of the message is right or unknown.
func TestSizeOfCut(t *testing.T) {
	reads := func(position uint32) []rpcrdma.ReadSegment {
		return []rpcrdma.ReadSegment{
			{Position: position, Segment: rpcrdma.Segment{Handle: 1, Length: 100}}, {Position: position, Segment: rpcrdma.Segment{Handle: 2, Length: 7000}},
		}
	}
	writes := []rpcrdma.WriteChunk{{{Handle: 5, Length: 600}, {Handle: 6, Length: 600}}, {{Handle: 7, Length: 600}}}
	of := func(kind rpcrdma.Type, change func(h *rpcrdma.Header)) rpcrdma.Header {
		h := v1(7, kind)
		change(&h)
		return h
	}
	for name, m := range map[string][2][]byte{
		"inline": {callMessage(v1(7, rpcrdma.TypeMsg), 40), replyMessage(v1(7, rpcrdma.TypeMsg), 40)},
		"data": {
			callMessage(of(rpcrdma.TypeMsg, func(h *rpcrdma.Header) { h.Reads = reads(80) }), 40),
			replyMessage(of(rpcrdma.TypeMsg, func(h *rpcrdma.Header) { h.Writes = writes }), 40),
		},
		"long": {
			callMessage(of(rpcrdma.TypeNoMsg, func(h *rpcrdma.Header) { h.Reads = append(reads(0), reads(80)...) }), 0),
			replyMessage(of(rpcrdma.TypeNoMsg, func(h *rpcrdma.Header) { h.Writes, h.HasReply, h.Reply = writes, true, writes[0] }), 0),
		},
	} {
		size := func(data []byte, full int, other []byte, side rdma.Side) uint64 {
			var got uint64
			tr := transaction.NewTracker(transaction.Options{}, func(tx *transaction.Transaction) {
				got = max(tx.Call.Bytes*uint64(1-side), tx.Reply.Bytes*uint64(side))
			})
			c := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}
			for i := range 2 {
				ref := rdma.Ref{Time: int64(i+1) * 1e6, Number: uint64(i + 1)}
				s := rdma.Send{From: rdma.Side(i), Data: data, Length: full, First: ref, Last: ref, Packets: 1}
				if s.From != side {
					s.Data, s.Length = other, len(other)
				}
				tr.Send(c, &s)
			}
			tr.Flush()
			return got
		}
		for side := range rdma.Side(2) {
			whole, other := m[side], m[side.Other()]
			want := size(whole, len(whole), other, side)
			if want < 40 {
				t.Fatalf("%s, side %d: %d bytes", name, side, want)
			}
			for n := 16; n < len(whole); n++ {
				if got := size(whole[:n], len(whole), other, side); got != 0 && got != want {
					t.Errorf("%s, side %d: %d bytes where %d of %d bytes were captured, want %d or 0", name, side, got, n, len(whole), want)
				}
			}
		}
	}
}

// A reply, then a call with its XID, then another reply: the first one answers a call that was not captured.
func TestReplyBeforeCallAndAfter(t *testing.T) {
	for _, fabric := range []rdma.Fabric{rdma.RoCEv2, rdma.TCP, rdma.UDP} {
		for _, others := range []bool{false, true} {
			w := newWire(t, fabric)
			m := func(xid uint32, reply bool) []byte {
				if b := rpc(xid, reply, rocetest.Program, 8); fabric != rdma.RoCEv2 {
					return b
				} else {
					return msg(v1(xid, rpcrdma.TypeMsg), b)
				}
			}
			first := w.send(1, m(5, true))
			if fabric != rdma.UDP {
				w.ack(first)
			}
			call := w.send(0, m(5, false))
			if others {
				w.send(0, m(6, false))
				w.send(1, m(6, true))
			}
			second := w.send(1, m(5, true))
			if fabric != rdma.UDP {
				w.ack(second)
			}
			var of []*result
			for _, r := range w.end() {
				if r.xid == 5 {
					of = append(of, r)
				}
			}
			w.want("a reply without a call, then a call with its reply", len(of) == 2 &&
				of[0].state == transaction.NoCall && of[0].reply.first.Number == first &&
				of[1].state == transaction.Complete && of[1].call.first.Number == call && of[1].reply.first.Number == second && len(of[1].notes) == 0)
		}
	}
}

// A call that was sent again with other memory is one transaction, whose data goes to the memory that was named last.
func TestResentWithOtherMemory(t *testing.T) {
	for _, c := range []struct {
		name         string
		length, body int // of the second copy
		same         bool
	}{
		{"handle", 64, 8, true},
		{"length", 65, 8, false},
		{"message", 64, 12, false},
	} {
		w := newWire(t, rdma.RoCEv2)
		call := func(handle uint32, length, body int) {
			h := v1(7, rpcrdma.TypeMsg)
			h.Writes = []rpcrdma.WriteChunk{{{Handle: handle, Length: uint32(length), Offset: uint64(handle) << 16}}}
			w.send(0, msg(h, rpc(7, false, rocetest.Program, body)))
		}
		call(1, 64, 8)
		w.now += 10e9
		call(2, c.length, c.body)
		w.op(rdma.Write, 1, 2, 2<<16, make([]byte, 64))
		h := v1(7, rpcrdma.TypeMsg)
		h.Writes = []rpcrdma.WriteChunk{{{Handle: 2, Length: 64, Offset: 2 << 16}}}
		w.ack(w.send(1, msg(h, rpc(7, true, 0, 8))))
		out := w.end()
		if !c.same {
			w.want(c.name+": two", len(out) == 2 && has(out[0], transaction.XIDReused))
			continue
		}
		w.want(c.name+": one", len(out) == 1 && has(out[0], transaction.CallRepeated) && out[0].state == transaction.Complete && out[0].retransmits == 1 &&
			out[0].writeBytes == 64 && out[0].phases.Total > 10e9 && len(out[0].written) == 1 && len(out[0].written[0]) == 64)
	}
}
