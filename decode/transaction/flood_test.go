package transaction_test

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
	"github.com/rpcrdma/toolkit/internal/testtools/spent"
)

// pipe feeds hand-made packets to the trackers.
type pipe struct {
	tx     *transaction.Tracker
	roce   *roce.Tracker
	number uint64
	count  int
	states [4]int
	notes  map[transaction.NoteKind]int
	frame  link.Frame
	packet roce.Packet
}

func newPipe(opt transaction.Options, limits roce.Limits) *pipe {
	p := &pipe{notes: make(map[transaction.NoteKind]int)}
	p.tx = transaction.NewTracker(opt, func(tx *transaction.Transaction) {
		p.count++
		p.states[tx.State]++
		for _, n := range tx.Notes {
			p.notes[n.Kind]++
		}
	})
	p.roce = roce.NewTracker(p.tx, p.tx.Hooks(), new(rdma.Numbers), limits)
	return p
}

var hostA, hostB = netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")

// send gives the trackers a packet from one host to a queue pair of the other.
func (p *pipe) send(src, dst netip.Addr, qp uint32, op roce.Opcode, psn uint32, payload []byte, set func(*roce.Packet)) {
	p.number++
	p.frame = link.Frame{Proto: link.UDP, Src: src, Dst: dst, SrcPort: 0xc000, DstPort: rocetest.Port}
	p.packet = roce.Packet{
		Opcode: op, DestQP: qp, PSN: psn & 0xffffff, Payload: payload, PayloadLen: len(payload), ICRC: roce.Good,
	}
	if set != nil {
		set(&p.packet)
	}
	ref := rdma.Ref{Time: int64(p.number) * 1000, Number: p.number}
	p.roce.Packet(ref, 0, 0, rdma.RoCEv2, &p.frame, &p.packet, roce.Good)
}

func (p *pipe) end() {
	p.roce.Flush(rdma.Ref{Time: int64(p.number) * 1000, Number: p.number})
	p.tx.Flush()
}

// callMessage is an RPC call with a transport header.
func callMessage(h rpcrdma.Header, args int) []byte {
	h.Version = rpcrdma.Version1
	b := h.Append(nil)
	if h.Type != rpcrdma.TypeMsg {
		return b
	}
	for _, w := range []uint32{h.XID, 0, 2, rocetest.Program, 3, 1, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, make([]byte, args)...)
}

func replyMessage(h rpcrdma.Header, results int) []byte {
	h.Version = rpcrdma.Version1
	b := h.Append(nil)
	if h.Type != rpcrdma.TypeMsg {
		return b
	}
	for _, w := range []uint32{h.XID, 1, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, make([]byte, results)...)
}

// heap is the live memory in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// quick is the processor time that a flood may take: it takes less than a second, and what is quadratic minutes.
const quick = 20 * time.Second

// bounded runs a flood and wants it to leave no more than so many bytes and to be quick.
func bounded(t *testing.T, name string, limit uint64, flood func(*pipe)) *pipe {
	t.Helper()
	before := heap()
	start := spent.Time()
	p := newPipe(transaction.Options{}, roce.Limits{})
	flood(p)
	after := heap()
	if d := spent.Time() - start; d > quick {
		t.Errorf("%s took %v", name, d)
	}
	if after > before && after-before > limit {
		t.Errorf("%s holds %d MiB, want at most %d", name, (after-before)>>20, limit>>20)
	}
	p.end()
	runtime.KeepAlive(p)
	return p
}

func TestFloodOfQueuePairs(t *testing.T) {
	payload := make([]byte, 256)
	for name, op := range map[string]roce.Opcode{
		"Sends": roce.RCSendOnly, "Writes": roce.RCWriteFirst, "Reads": roce.RCReadRequest,
		"responses": roce.RCReadResponseMiddle, "beginnings of Sends": roce.RCSendFirst,
	} {
		bounded(t, name, 64<<20, func(p *pipe) {
			for i := range uint32(40_000) {
				p.send(hostA, hostB, 2+i, op, i*7919, payload, func(q *roce.Packet) { q.RETH.DMALen = 1 << 31 })
			}
		})
	}
}

func TestFloodOfCalls(t *testing.T) {
	big := callMessage(rpcrdma.Header{XID: 1}, 4000)
	p := bounded(t, "calls without a reply", 96<<20, func(p *pipe) {
		for i := range uint32(100_000) {
			binary.BigEndian.PutUint32(big, i)
			binary.BigEndian.PutUint32(big[28:], i)
			p.send(hostA, hostB, 17, roce.RCSendOnly, i, big, nil)
		}
	})
	if p.count != 100_000 || p.states[transaction.NoReply] != p.count {
		t.Errorf("%d transactions, states %v", p.count, p.states)
	}
	if p.tx.Stats.Evicted == 0 || p.notes[transaction.GivenUpMemory] == 0 {
		t.Errorf("nothing given up: %v", p.notes)
	}
	small := callMessage(rpcrdma.Header{XID: 1}, 40)
	p = bounded(t, "small calls without a reply", 96<<20, func(p *pipe) {
		for i := range uint32(100_000) {
			binary.BigEndian.PutUint32(small, i)
			binary.BigEndian.PutUint32(small[28:], i)
			p.send(hostA, hostB, 17, roce.RCSendOnly, i, small, nil)
		}
	})
	if p.notes[transaction.GivenUpCalls] == 0 {
		t.Errorf("nothing given up: %v", p.notes)
	}
}

// TestFloodOfClosings ends connection after connection beside many open calls.
func TestFloodOfClosings(t *testing.T) {
	small := callMessage(rpcrdma.Header{XID: 1}, 40)
	bounded(t, "closings", 96<<20, func(p *pipe) {
		for i := range uint32(16_000) {
			binary.BigEndian.PutUint32(small, i)
			binary.BigEndian.PutUint32(small[28:], i)
			p.send(hostA, hostB, 17, roce.RCSendOnly, i, small, nil)
		}
		// Each new connection closes an old one with a call of its own.
		for i := range uint32(60_000) {
			binary.BigEndian.PutUint32(small, i)
			binary.BigEndian.PutUint32(small[28:], i)
			p.send(hostA, hostB, 100+i, roce.RCSendOnly, i*31, small, nil)
		}
	})
}

// TestFloodOnCompletion ends transactions beside many that stay open.
func TestFloodOnCompletion(t *testing.T) {
	start := spent.Time()
	p := newPipe(transaction.Options{OnCompletion: true}, roce.Limits{})
	small, reply := callMessage(rpcrdma.Header{XID: 1}, 40), replyMessage(rpcrdma.Header{XID: 1}, 40)
	psn := uint32(0)
	call := func(xid uint32) {
		binary.BigEndian.PutUint32(small, xid)
		binary.BigEndian.PutUint32(small[28:], xid)
		p.send(hostA, hostB, 17, roce.RCSendOnly, psn, small, nil)
		psn++
	}
	for i := range uint32(16_000) {
		call(i)
	}
	for i := range uint32(100_000) {
		call(1<<20 + i)
		binary.BigEndian.PutUint32(reply, 1<<20+i)
		binary.BigEndian.PutUint32(reply[28:], 1<<20+i)
		p.send(hostB, hostA, 18, roce.RCSendOnly, i, reply, nil)
		p.send(hostA, hostB, 17, roce.RCAcknowledge, i, nil, nil)
	}
	p.end()
	if d := spent.Time() - start; d > quick {
		t.Errorf("took %v", d)
	}
	if p.states[transaction.Complete] != 100_000 {
		t.Errorf("states %v", p.states)
	}
}

// TestFloodOfReplies has replies that nothing acknowledges while time stands
// still.
func TestFloodOfReplies(t *testing.T) {
	p := newPipe(transaction.Options{}, roce.Limits{})
	before := heap()
	small, reply := callMessage(rpcrdma.Header{XID: 1}, 40), replyMessage(rpcrdma.Header{XID: 1}, 40)
	c := &rdma.Connection{ID: 1, Fabric: rdma.TCP}
	for i := range uint32(300_000) {
		binary.BigEndian.PutUint32(small[28:], i)
		binary.BigEndian.PutUint32(reply[28:], i)
		p.number++
		ref := rdma.Ref{Time: 5, Number: p.number}
		p.tx.Send(c, &rdma.Send{From: 0, Data: small[28:], Length: len(small) - 28, First: ref, Last: ref, Packets: 1})
		tag := p.tx.Send(c, &rdma.Send{From: 1, Data: reply[28:], Length: len(reply) - 28, First: ref, Last: ref, Packets: 1})
		if i%1000 != 0 {
			p.tx.SendAcked(c, 1, tag, ref)
		}
	}
	if after := heap(); after > before+64<<20 {
		t.Errorf("holds %d MiB", (after-before)>>20)
	}
	p.tx.Flush()
	if p.states[transaction.Complete] != 300_000 {
		t.Errorf("states %v", p.states)
	}
}

// TestHostileLists has chunk lists that are as long as a message allows.
func TestHostileLists(t *testing.T) {
	start := spent.Time()
	const n = 40_000
	call := rpcrdma.Header{XID: 7, Type: rpcrdma.TypeMsg}
	reply := call
	for i := range uint32(n) {
		s := rpcrdma.Segment{Handle: 5, Length: 10, Offset: uint64(i) * 100}
		call.Writes = append(call.Writes, rpcrdma.WriteChunk{s})
		reply.Writes = append(reply.Writes, rpcrdma.WriteChunk{s})
	}
	tx := 0
	var notes []transaction.Note
	tr := transaction.NewTracker(transaction.Options{}, func(t *transaction.Transaction) {
		tx++
		notes = append(notes[:0], t.Notes...)
	})
	c := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}
	for i := range 5 {
		ref := rdma.Ref{Time: int64(i) * 1e6, Number: uint64(i*10 + 1)}
		b := callMessage(call, 40)
		tr.Send(c, &rdma.Send{From: 0, Data: b, Length: len(b), First: ref, Last: ref, Packets: 1})
		for j := range uint32(2000) {
			op := rdma.Op{Kind: rdma.Write, From: 1, Handle: 5, Offset: uint64(j) * 100, Length: 10, First: ref}
			tr.OpStart(c, &op, ref)
			tr.OpData(c, &op, &rdma.Fragment{Offset: op.Offset, Length: 10, Data: make([]byte, 10), Ref: ref})
		}
		b = replyMessage(reply, 40)
		tag := tr.Send(c, &rdma.Send{From: 1, Data: b, Length: len(b), First: ref, Last: ref, Packets: 1})
		tr.SendAcked(c, 1, tag, ref)
	}
	tr.Flush()
	if d := spent.Time() - start; d > quick {
		t.Errorf("took %v", d)
	}
	if tx != 5 || len(notes) < 2 || len(notes) > 64 {
		t.Errorf("%d transactions, %d notes", tx, len(notes))
	}
}

// TestHostileOperations moves single bytes with holes between them.
func TestHostileOperations(t *testing.T) {
	var reads, lost int
	var bytes uint64
	tr := transaction.NewTracker(transaction.Options{Operations: 100}, func(t *transaction.Transaction) {
		reads, lost, bytes = t.Reads, t.OperationsLost, t.ReadBytes
	})
	c := &rdma.Connection{ID: 1, Fabric: rdma.RoCEv2}
	ref := rdma.Ref{Time: 1, Number: 1}
	h := rpcrdma.Header{XID: 1, Type: rpcrdma.TypeMsg, Reads: []rpcrdma.ReadSegment{{Position: 40, Segment: rpcrdma.Segment{Handle: 1, Length: 1 << 31}}}}
	b := callMessage(h, 40)
	tr.Send(c, &rdma.Send{From: 0, Data: b, Length: len(b), First: ref, Last: ref, Packets: 1})
	for i := range uint64(1000) {
		op := rdma.Op{Kind: rdma.Read, From: 1, Handle: 1, Offset: i * 10, Length: 1, First: ref}
		tr.OpStart(c, &op, ref)
		f := rdma.Fragment{Offset: i * 10, Length: 1, Data: []byte{1}, Ref: ref}
		tr.OpData(c, &op, &f)
		tr.OpData(c, &op, &f) // twice
	}
	tr.Flush()
	if reads != 1000 || lost != 900 || bytes > 1000 {
		t.Errorf("%d Reads, %d of them not listed, %d bytes", reads, lost, bytes)
	}
}
