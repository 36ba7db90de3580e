package check

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// scene is a capture that a test writes packet by packet: client is side 0,
// server side 1. It knows the rules of the fabric, so that a test breaks only
// those that it wants to.
type scene struct {
	recs   []rocetest.Record
	now    int64
	psn    [2]uint32 // next request of each side
	qpn    [2]uint32
	last   [2]uint32 // last PSN that was sent by each side
	msn    [2]uint32 // messages of each side that have ended, up to newest
	newest [2]uint32
	xid    uint32
	va     uint64
	rkey   uint32
	spoil  map[int]bool // records whose ICRC is wrong
	comm   uint32
	other  bool   // the upper layer is not NFS
	depth  uint8  // RDMA Reads at once
	asks   uint32 // credits
}

const (
	client = rdma.Side(0)
	server = rdma.Side(1)
	mtu    = 1024
)

var addr = [2]netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")}

func newScene() *scene {
	return &scene{
		now: 1_800_000_000_000_000_000, psn: [2]uint32{1000, 5000}, qpn: [2]uint32{0x21, 0x31},
		xid: 0x5000, va: 0x100000, rkey: 0x700, spoil: make(map[int]bool), comm: 77, depth: 4, asks: 32,
	}
}

// wait lets time pass, in nanoseconds.
func (s *scene) wait(ns int64) { s.now += ns }

func (s *scene) packet(from rdma.Side, op roce.Opcode) *rocetest.Packet {
	p := &rocetest.Packet{From: from, Src: addr[from], Dst: addr[from.Other()], SrcPort: 0xc123}
	p.Opcode = op
	p.PKey = roce.DefaultPKey
	p.DestQP = s.qpn[from.Other()]
	return p
}

func (s *scene) put(p *rocetest.Packet) *rocetest.Packet {
	s.now += 2000
	p.PayloadLen = len(p.Payload)
	p.Pad = uint8(-len(p.Payload) & 3)
	s.recs = append(s.recs, rocetest.Record{Time: s.now, Cut: -1, Packet: p})
	return p
}

func (s *scene) request(from rdma.Side, op roce.Opcode, payload []byte) *rocetest.Packet {
	p := s.packet(from, op)
	p.PSN = s.psn[from]
	s.last[from] = p.PSN
	s.psn[from] = (s.psn[from] + 1) & psnMask
	p.Payload = payload
	p.AckReq = op.Ends()
	if (op.Ends() || !op.IsSend() && !op.IsWrite()) && (s.msn[from] == 0 || reached(p.PSN, s.newest[from])) {
		s.msn[from]++
		s.newest[from] = s.psn[from]
	}
	return s.put(p)
}

// ack acknowledges all that the other side has sent.
func (s *scene) ack(from rdma.Side) {
	p := s.packet(from, roce.RCAcknowledge)
	p.PSN = s.last[from.Other()]
	p.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: s.msn[from.Other()]}
	s.put(p)
}

func (s *scene) nak(from rdma.Side, syndrome roce.Syndrome) {
	p := s.packet(from, roce.RCAcknowledge)
	p.PSN = s.last[from.Other()]
	p.AETH = roce.AETHFields{Syndrome: syndrome, MSN: s.msn[from.Other()] - 1}
	s.put(p)
}

// send sends a message, and has it acknowledged.
func (s *scene) send(from rdma.Side, data []byte) { s.sendInvalidate(from, data, 0) }

func (s *scene) sendInvalidate(from rdma.Side, data []byte, handle uint32) {
	s.sendRaw(from, data, handle)
	s.ack(from.Other())
}

func (s *scene) sendRaw(from rdma.Side, data []byte, handle uint32) {
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), mtu)
		part, rest := data[:n], data[n:]
		op := roce.RCSendMiddle
		switch {
		case first && len(rest) == 0:
			op = roce.RCSendOnly
		case first:
			op = roce.RCSendFirst
		case len(rest) == 0:
			op = roce.RCSendLast
		}
		if handle != 0 && len(rest) == 0 {
			op = map[roce.Opcode]roce.Opcode{roce.RCSendOnly: roce.RCSendOnlyInvalidate, roce.RCSendLast: roce.RCSendLastInvalidate}[op]
		}
		p := s.request(from, op, part)
		p.IETH = handle
		data = rest
	}
}

// write is an RDMA Write.
func (s *scene) write(from rdma.Side, seg rpcrdma.Segment, data []byte) {
	total := uint32(len(data))
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), mtu)
		part, rest := data[:n], data[n:]
		op := roce.RCWriteMiddle
		switch {
		case first && len(rest) == 0:
			op = roce.RCWriteOnly
		case first:
			op = roce.RCWriteFirst
		case len(rest) == 0:
			op = roce.RCWriteLast
		}
		p := s.request(from, op, part)
		if first {
			p.RETH = roce.RETHFields{VA: seg.Offset, RKey: seg.Handle, DMALen: total}
		}
		data = rest
	}
}

// read is an RDMA Read with its response.
func (s *scene) read(from rdma.Side, seg rpcrdma.Segment, data []byte) {
	p := s.request(from, roce.RCReadRequest, nil)
	p.RETH = roce.RETHFields{VA: seg.Offset, RKey: seg.Handle, DMALen: uint32(len(data))}
	start := p.PSN
	n := max(1, (len(data)+mtu-1)/mtu)
	for i := range n {
		part := data[i*mtu : min(len(data), (i+1)*mtu)]
		op := roce.RCReadResponseMiddle
		switch {
		case n == 1:
			op = roce.RCReadResponseOnly
		case i == 0:
			op = roce.RCReadResponseFirst
		case i == n-1:
			op = roce.RCReadResponseLast
		}
		q := s.packet(from.Other(), op)
		q.PSN = (start + uint32(i)) & psnMask
		q.Payload = part
		q.AETH = roce.AETHFields{Syndrome: roce.ACKUnlimited, MSN: s.msn[from]}
		s.put(q)
	}
	s.psn[from] = (start + uint32(n)) & psnMask
	s.last[from] = (start + uint32(n) - 1) & psnMask
}

func (s *scene) manage(from rdma.Side, a ibcm.Attribute, fill func([]byte)) {
	b, mad := ibcm.Append(nil, a, 1)
	fill(mad.Data())
	p := s.packet(from, roce.UDSendOnly)
	p.DestQP = 1
	p.DETH = roce.DETHFields{QKey: 0x80010000, SrcQP: 1}
	p.Payload = b
	s.put(p)
}

// private is the message of RFC 8797.
func private(send, receive uint32, invalidate bool) []byte {
	p := rdma.PrivateData{RemoteInvalidate: invalidate, SendSize: send, ReceiveSize: receive}
	return p.Append(nil)
}

// connect sets a connection up with an inline threshold of 4096 bytes and
// remote invalidation.
func (s *scene) connect() {
	s.connectWith(private(4096, 4096, true), private(4096, 4096, true))
}

func (s *scene) connectWith(mine, theirs []byte) {
	s.ask(mine)
	s.manage(server, ibcm.AttributeREP, func(d []byte) {
		r := ibcm.REP(d)
		r.SetIDs(s.comm+1000, s.comm)
		r.SetLocalQPN(s.qpn[server])
		r.SetStartingPSN(s.psn[client])
		r.SetResponderResources(s.depth)
		r.SetInitiatorDepth(s.depth)
		r.SetPrivate(theirs)
	})
	s.manage(client, ibcm.AttributeRTU, func(d []byte) { ibcm.RTU(d).SetIDs(s.comm, s.comm+1000) })
}

func (s *scene) ask(private []byte) {
	s.manage(client, ibcm.AttributeREQ, func(d []byte) {
		r := ibcm.REQ(d)
		r.SetLocalID(s.comm)
		r.SetLocalQPN(s.qpn[client])
		r.SetStartingPSN(s.psn[server])
		r.SetResponderResources(s.depth)
		r.SetInitiatorDepth(s.depth)
		r.Primary().SetAckTimeout(18) // 1.07 s
		r.SetPathMTU(ibcm.MTUCode(mtu))
		r.SetServiceID(ibcm.ServiceID(0x0000000001064e51))
		if s.other {
			r.SetServiceID(ibcm.ServiceID(0x0000000001064863)) // port 18531
		}
		r.SetIP(netip.AddrPortFrom(addr[client], 4000), addr[server], private)
	})
}

func (s *scene) disconnect(from rdma.Side) {
	s.manage(from, ibcm.AttributeDREQ, func(d []byte) {
		r := ibcm.DREQ(d)
		if from == client {
			r.SetIDs(s.comm, s.comm+1000)
		} else {
			r.SetIDs(s.comm+1000, s.comm)
		}
		r.SetRemoteQPN(s.qpn[from.Other()])
	})
	s.manage(from.Other(), ibcm.AttributeDREP, func(d []byte) {
		r := ibcm.DREP(d)
		if from == client {
			r.SetIDs(s.comm+1000, s.comm)
		} else {
			r.SetIDs(s.comm, s.comm+1000)
		}
	})
}

// again takes new queue pairs, for another connection.
func (s *scene) again() {
	s.comm += 10
	s.qpn[0] += 2
	s.qpn[1] += 2
	s.msn = [2]uint32{}
	s.psn[0] += 70000
	s.psn[1] += 70000
}

// segment is new memory of the client.
func (s *scene) segment(n uint32) rpcrdma.Segment {
	s.rkey += 0x101
	s.va += 1 << 24
	return rpcrdma.Segment{Handle: s.rkey, Length: n, Offset: s.va}
}

// next is a header for the next call.
func (s *scene) next() *rpcrdma.Header {
	s.xid++
	return &rpcrdma.Header{XID: s.xid, Version: rpcrdma.Version1, Credits: s.asks, Type: rpcrdma.TypeMsg}
}

// answer is a header for the reply to a call.
func answer(h *rpcrdma.Header) *rpcrdma.Header {
	return &rpcrdma.Header{XID: h.XID, Version: h.Version, Credits: 16, Type: rpcrdma.TypeMsg}
}

func message(h *rpcrdma.Header, rpc []byte) []byte { return append(h.Append(nil), rpc...) }

// words encodes numbers and opaques.
func words(list ...any) (b []byte) {
	for _, x := range list {
		switch v := x.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case uint32:
			b = binary.BigEndian.AppendUint32(b, v)
		case uint64:
			b = binary.BigEndian.AppendUint64(b, v)
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
			b = append(b, make([]byte, -len(v)&3)...)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

const (
	nfsProgram      = 100003
	callbackProgram = 0x40000000
	fh              = "filehandle0123456789"
)

func callOf(xid uint32, program, version, procedure int, body []byte) []byte {
	return words(xid, 0, 2, program, version, procedure, 0, 0, 0, 0, body)
}

func replyOf(xid uint32, body []byte) []byte { return words(xid, 1, 0, 0, 0, 0, body) }

// nfs3 calls.
func getattr(xid uint32) []byte { return callOf(xid, nfsProgram, 3, 1, words(fh)) }

// The result of a GETATTR that fails is its status alone.
func failed(xid uint32) []byte { return replyOf(xid, words(70)) }

func read3(xid uint32, count int) []byte {
	return callOf(xid, nfsProgram, 3, 6, words(fh, uint64(0), count))
}

// read3Reply has its data in a chunk.
func read3Reply(xid uint32, n int) []byte { return replyOf(xid, words(0, 0, n, 1, n)) }

func read3Inline(xid uint32, n int) []byte {
	return replyOf(xid, words(0, 0, n, 1, string(make([]byte, n))))
}

// write3 has its data in a chunk.
func write3(xid uint32, n int) []byte {
	return callOf(xid, nfsProgram, 3, 7, words(fh, uint64(0), n, 2, n))
}

func write3Reply(xid uint32, n int) []byte { return replyOf(xid, words(0, 0, 0, n, 2, uint64(1))) }

// write3Position is where the data of write3 belongs.
var write3Position = uint32(len(write3(0, 0)))

// readdir3Reply is a long one.
func readdir3Reply(xid uint32) []byte {
	b := words(0, 0, uint64(0))
	for i := range 100 {
		b = words(b, 1, uint64(i), "a name of some length", uint64(i+1))
	}
	return replyOf(xid, words(b, 0, 1))
}

func readdir3(xid uint32) []byte {
	return callOf(xid, nfsProgram, 3, 16, words(fh, uint64(0), uint64(0), 8192))
}

// rename3 is a long call.
func rename3(xid uint32) []byte {
	return callOf(xid, nfsProgram, 3, 14, words(fh, string(make([]byte, 2200)), fh, string(make([]byte, 2200))))
}

func rename3Reply(xid uint32) []byte { return replyOf(xid, words(0, 0, 0, 0, 0)) }

// small is a call and its reply, both inline.
func (s *scene) small() {
	h := s.next()
	s.send(client, message(h, getattr(h.XID)))
	s.send(server, message(answer(h), failed(h.XID)))
}

// readData is a READ of n bytes into a Write chunk of that many; edit may
// change both headers before they are sent.
func (s *scene) readData(n int, edit func(call, reply *rpcrdma.Header)) {
	h := s.next()
	seg := s.segment(uint32(n))
	h.Writes = []rpcrdma.WriteChunk{{seg}}
	r := answer(h)
	r.Writes = []rpcrdma.WriteChunk{{seg}}
	if edit != nil {
		edit(h, r)
	}
	s.send(client, message(h, read3(h.XID, n)))
	s.write(server, seg, make([]byte, n))
	s.send(server, message(r, read3Reply(h.XID, n)))
}

// writeData is a WRITE of n bytes from a Read chunk.
func (s *scene) writeData(n int, edit func(call *rpcrdma.Header)) {
	h := s.next()
	seg := s.segment(uint32(n))
	h.Reads = []rpcrdma.ReadSegment{{Position: write3Position, Segment: seg}}
	if edit != nil {
		edit(h)
	}
	s.send(client, message(h, write3(h.XID, n)))
	s.read(server, seg, make([]byte, n))
	s.send(server, message(answer(h), write3Reply(h.XID, n)))
}

// longReply is a READDIR whose reply comes in a Reply chunk.
func (s *scene) longReply(edit func(call, reply *rpcrdma.Header, rpc *[]byte)) {
	h := s.next()
	rpc := readdir3Reply(h.XID)
	seg := s.segment(uint32(len(rpc)) + 100)
	h.HasReply, h.Reply = true, rpcrdma.WriteChunk{seg}
	r := answer(h)
	r.Type, r.HasReply = rpcrdma.TypeNoMsg, true
	used := seg
	used.Length = uint32(len(rpc))
	r.Reply = rpcrdma.WriteChunk{used}
	if edit != nil {
		edit(h, r, &rpc)
	}
	s.send(client, message(h, readdir3(h.XID)))
	s.write(server, seg, rpc)
	b := r.Append(nil)
	if r.Type == rpcrdma.TypeMsg {
		b = append(b, failed(r.XID)...)
	}
	s.send(server, b)
}

// longCall is a RENAME in a Position-Zero Read chunk.
func (s *scene) longCall(edit func(call *rpcrdma.Header, rpc *[]byte)) {
	h := s.next()
	rpc := rename3(h.XID)
	seg := s.segment(uint32(len(rpc)))
	h.Type = rpcrdma.TypeNoMsg
	h.Reads = []rpcrdma.ReadSegment{{Segment: seg}}
	if edit != nil {
		edit(h, &rpc)
	}
	s.send(client, h.Append(nil))
	s.read(server, seg, rpc)
	s.send(server, message(answer(h), rename3Reply(h.XID)))
}

// frames are the packets of the capture.
func (s *scene) frames() []capture.Packet {
	out := rocetest.Frames(s.recs)
	for i := range out {
		if s.spoil[i] {
			out[i].Data[len(out[i].Data)-1] ^= 1
		}
	}
	return out
}

// result is what a Checker said.
type result struct {
	findings []*Finding
	check    *Checker
	known    []string // of the packets of each connection, at its end
}

// run checks packets.
func run(opt Options, packets []capture.Packet) result { return runBy(opt, packets, false) }

// runBy checks packets. decoded says that no packet is told of by Observer.Headers.
func runBy(opt Options, packets []capture.Packet, decoded bool) result {
	var r result
	r.check = New(opt, func(f *Finding) { r.findings = append(r.findings, f) })
	var v rpc.View
	how := r.check.Observer()
	how.Closed = func(k *rdma.Connection) {
		r.known = append(r.known, r.check.Known(k))
		r.check.Closed(k)
	}
	if decoded {
		how.Headers = nil
	}
	d := decode.New(decode.Options{Observers: []decode.Observer{how}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		r.check.Transaction(&v)
	})
	b := capture.Batch{Packets: packets}
	d.Batch(&b)
	d.Flush()
	r.check.Finish()
	return r
}

func (s *scene) run(profile Profile) result {
	return run(Options{Profile: profile, Rules: All()}, s.frames())
}

func (r result) ids() []string {
	var out []string
	for _, f := range r.findings {
		out = append(out, f.Rule.ID)
	}
	return out
}

// A conversation that breaks no rule gives no finding, and whatever it needs is
// judged.
func TestGoodConversation(t *testing.T) {
	s := newScene()
	s.connect()
	s.small()
	s.readData(5000, nil)
	s.readData(10, nil)
	s.writeData(5000, nil)
	s.writeData(10, nil)
	s.longReply(nil)
	s.longCall(nil)
	s.callback(nil)
	s.small()
	s.disconnect(client)
	for _, p := range []Profile{RFC8166, RFC5666, Linux} {
		r := s.run(p)
		for _, f := range r.findings {
			t.Errorf("%v: %s", p, describeFinding(f))
		}
		if n := r.check.Count(Lookup("chunk-bytes-missing")).Judged; n != 3 {
			t.Errorf("%v: chunk-bytes-missing judged %d times, want 3", p, n)
		}
		for _, rule := range Rules() {
			if n := r.check.Count(rule); n.Skipped() > 0 {
				t.Errorf("%v: %s not judged: %v", p, rule.ID, n.NotJudged)
			}
		}
	}
}

// callback is a call of the server to the client.
func (s *scene) callback(edit func(call *rpcrdma.Header)) {
	s.xid++
	h := &rpcrdma.Header{XID: 0x99000000 + s.xid, Version: rpcrdma.Version1, Credits: 2, Type: rpcrdma.TypeMsg}
	if edit != nil {
		edit(h)
	}
	s.send(server, message(h, callOf(h.XID, callbackProgram, 1, 0, nil)))
	r := answer(h)
	r.Credits = 16
	s.send(client, message(r, replyOf(h.XID, nil)))
}

func describeFinding(f *Finding) string {
	return fmt.Sprintf("%v %s frame %d xid %08x by %v %v: expected %s, seen %s, then %s", f.Severity, f.Rule.ID, f.Ref.Number, f.XID, f.By, f.From, f.Expected, f.Seen, f.Reaction)
}

func segmentAt(handle uint32, offset uint64) rpcrdma.Segment {
	return rpcrdma.Segment{Handle: handle, Offset: offset}
}

// edit returns the packet of a record, to be changed.
func (s *scene) edit(at int) *rocetest.Packet { return s.recs[at].Packet }
