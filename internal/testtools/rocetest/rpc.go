package rocetest

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// Programs that the calls name.
const (
	Program         = 100003
	CallbackProgram = 0x40000000
)

// pending is a call that waits for its reply.
type pending struct {
	tx     *Transaction
	memory []memory
}

func (l *Link) begin() {
	client, server := l.Ends[0], l.Ends[1]
	client.receive = func(m []byte, _ bool, _ uint32) { l.atClient(m) }
	server.receive = func(m []byte, _ bool, _ uint32) { l.atServer(m) }
	for range l.n.Outstanding {
		l.n.after(l.n.rng.Int64N(20_000), l.call)
	}
	if l.cbLeft > 0 {
		l.n.after(30_000+l.n.rng.Int64N(30_000), l.callback)
	}
}

// message is an RPC call or reply whose body is n bytes.
func (l *Link) message(xid uint32, reply bool, program, procedure uint32, n int) []byte {
	var b []byte
	words := []uint32{xid, 0, 2, program, 3, procedure, 0, 0, 0, 0}
	if reply {
		words = []uint32{xid, 1, 0, 0, 0, 0}
	}
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	for i := range n &^ 3 {
		b = append(b, byte(xid)+byte(i*7))
	}
	return b
}

func (l *Link) data(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(l.n.rng.Uint32())
	}
	return b
}

// length draws the length of a chunk, sometimes an awkward one.
func (l *Link) length() int {
	r := l.n.rng
	switch r.IntN(6) {
	case 0:
		return int(l.n.MTU)
	case 1:
		return 1 + r.IntN(int(l.n.MTU))
	case 2:
		return int(l.n.MTU) * (1 + r.IntN(4))
	}
	return 1 + r.IntN(l.n.Data)
}

// segments offers n bytes of memory.
func (l *Link) segments(p *pending, n int) []rpcrdma.Segment {
	var list []rpcrdma.Segment
	net := l.n
	for n > 0 {
		length := min(n, net.Segment)
		var m memory
		switch k := len(net.spare); {
		case net.ReuseHandle && k > 0:
			m, net.spare = net.spare[0], net.spare[1:]
		default:
			net.handle += 0x101
			net.address += 1 << 24
			m = memory{net.handle, net.address}
			if net.XIDInOffset {
				m.offset = uint64(p.tx.XID)<<32 | m.offset&0xffffffff
			}
		}
		if net.SameHandle {
			m.handle = 0x8000
		}
		p.memory = append(p.memory, m)
		p.tx.handles = append(p.tx.handles, m.handle)
		list = append(list, rpcrdma.Segment{Handle: m.handle, Length: uint32(length), Offset: m.offset})
		n -= length
	}
	return list
}

// offer lets the server read data.
func (l *Link) offer(p *pending, data []byte, position uint32) (list []rpcrdma.ReadSegment) {
	for _, s := range l.segments(p, len(data)) {
		list = append(list, rpcrdma.ReadSegment{Position: position, Segment: s})
		e := l.Ends[0]
		e.regions[s.Handle] = append(e.regions[s.Handle], region{s.Offset, data[:s.Length]})
		data = data[s.Length:]
	}
	return list
}

// call makes the next call.
func (l *Link) call() {
	if l.left == 0 {
		l.finish()
		return
	}
	l.left--
	n := l.n
	tx := &Transaction{
		Connection: l.Index, XID: l.xid, Kind: n.Kinds[n.rng.IntN(len(n.Kinds))], Procedure: 1 + n.rng.Uint32N(20),
	}
	l.xid++
	n.transactions = append(n.transactions, tx)
	p := &pending{tx: tx}
	l.open[tx.XID] = p
	h := rpcrdma.Header{XID: tx.XID, Version: rpcrdma.Version1, Credits: 32, Type: rpcrdma.TypeMsg}
	rpc := l.message(tx.XID, false, Program, tx.Procedure, n.rng.IntN(max(n.Inline-40, 4)))
	tx.CallBytes = uint64(len(rpc))
	chunk := func() {
		rpc = rpc[:min(len(rpc), 120)&^3]
		tx.Read = l.data(l.length())
		rpc = binary.BigEndian.AppendUint32(rpc, uint32(len(tx.Read)))
		h.Reads = l.offer(p, tx.Read, uint32(len(rpc)))
		tx.CallBytes = uint64(len(rpc) + (len(tx.Read)+3)&^3)
	}
	switch tx.Kind {
	case WriteData:
		chunk()
	case ReadData:
		h.Writes = []rpcrdma.WriteChunk{l.segments(p, l.length())}
	case LongCall:
		rpc = l.message(tx.XID, false, Program, tx.Procedure, 1000+n.rng.IntN(n.Data))
		h.Type = rpcrdma.TypeNoMsg
		h.Reads = l.offer(p, rpc, 0)
		tx.CallBytes = uint64(len(rpc))
	case LongReply:
		h.HasReply, h.Reply = true, l.segments(p, 24+l.length())
	case Exchange:
		chunk()
		h.Writes = []rpcrdma.WriteChunk{l.segments(p, l.length()), l.segments(p, l.length())}
	case Unused:
		h.Writes = []rpcrdma.WriteChunk{l.segments(p, l.length())}
		h.HasReply, h.Reply = true, l.segments(p, l.length())
	}
	tx.Call = rpc
	send := h.Append(nil)
	if h.Type == rpcrdma.TypeMsg {
		send = append(send, rpc...)
	}
	l.Ends[0].add(&request{kind: sendRequest, data: send, tx: tx, role: CallSend})
}

// callback makes a backward call.
func (l *Link) callback() {
	if l.cbLeft == 0 || l.ended {
		return
	}
	l.cbLeft--
	tx := &Transaction{Connection: l.Index, XID: l.cbXID, Backward: true, Procedure: 1}
	l.cbXID++
	l.n.transactions = append(l.n.transactions, tx)
	l.cbOpen[tx.XID] = &pending{tx: tx}
	h := rpcrdma.Header{XID: tx.XID, Version: rpcrdma.Version1, Credits: 1, Type: rpcrdma.TypeMsg}
	tx.Call = l.message(tx.XID, false, CallbackProgram, 1, l.n.rng.IntN(200))
	tx.CallBytes = uint64(len(tx.Call))
	l.Ends[1].add(&request{kind: sendRequest, data: append(h.Append(nil), tx.Call...), tx: tx, role: CallSend})
	l.n.after(5000+l.n.rng.Int64N(100_000), l.callback)
}

// atServer takes a message that the client has sent.
func (l *Link) atServer(m []byte) {
	var h rpcrdma.Header
	if err := h.Decode(m, len(m)); err != nil {
		panic(err)
	}
	if h.Inline() && binary.BigEndian.Uint32(h.Payload[4:]) == 1 {
		p := l.cbOpen[h.XID]
		p.tx.Answered = true
		delete(l.cbOpen, h.XID)
		l.finish()
		return
	}
	p := l.open[h.XID]
	if p.tx.Kind == Silent {
		l.n.after(1000, l.call)
		return
	}
	server := l.Ends[1]
	left := 0
	reply := func() {
		if left--; left <= 0 {
			l.n.after(2000+l.n.rng.Int64N(20_000), func() { l.reply(p, &h) })
		}
	}
	for _, s := range h.Reads {
		for off := 0; off < int(s.Length); off += l.n.Transfer {
			left++
			length := min(int(s.Length)-off, l.n.Transfer)
			p.tx.Reads++
			p.tx.ReadBytes += uint64(length)
			server.add(&request{
				kind: readRequest, length: length, handle: s.Handle, offset: s.Offset + uint64(off),
				tx: p.tx, role: ReadRequest, done: reply,
			})
		}
	}
	if left == 0 {
		reply()
	}
}

// push writes data into a chunk and returns the chunk as the reply names it.
func (l *Link) push(tx *Transaction, c rpcrdma.WriteChunk, data []byte) (used rpcrdma.WriteChunk) {
	for _, s := range c {
		n := min(len(data), int(s.Length))
		for off := 0; off < n; off += l.n.Transfer {
			part := data[off:min(n, off+l.n.Transfer)]
			tx.Writes++
			tx.WriteBytes += uint64(len(part))
			l.Ends[1].add(&request{
				kind: writeRequest, data: part, handle: s.Handle, offset: s.Offset + uint64(off), tx: tx, role: Write,
			})
		}
		data = data[n:]
		s.Length = uint32(n)
		used = append(used, s)
	}
	return used
}

func (l *Link) reply(p *pending, call *rpcrdma.Header) {
	tx, n := p.tx, l.n
	h := rpcrdma.Header{XID: tx.XID, Version: rpcrdma.Version1, Credits: 16, Type: rpcrdma.TypeMsg}
	rpc := l.message(tx.XID, true, 0, 0, n.rng.IntN(max(n.Inline-24, 4)))
	tx.ReplyBytes = uint64(len(rpc))
	switch tx.Kind {
	case ReadData, Exchange:
		rpc = rpc[:min(len(rpc), 100)&^3]
		tx.ReplyBytes = uint64(len(rpc))
		for _, c := range call.Writes {
			data := l.data(n.rng.IntN(int(c.Length()) + 1))
			if n.rng.IntN(3) > 0 {
				data = l.data(int(c.Length()))
			}
			tx.Written = append(tx.Written, data)
			tx.ReplyBytes += uint64((len(data) + 3) &^ 3)
			h.Writes = append(h.Writes, l.push(tx, c, data))
		}
	case LongReply:
		rpc = l.message(tx.XID, true, 0, 0, n.rng.IntN(int(call.Reply.Length())-24+1))
		tx.ReplyBytes = uint64(len(rpc))
		h.Type, h.HasReply = rpcrdma.TypeNoMsg, true
		h.Reply = l.push(tx, call.Reply, rpc)
	case Unused:
		for _, c := range call.Writes {
			h.Writes = append(h.Writes, l.push(tx, c, nil))
		}
	case Refused:
		h.Type, h.Error = rpcrdma.TypeError, rpcrdma.ErrChunk
		rpc, tx.ReplyBytes = nil, 0
	}
	tx.Reply = rpc
	send := h.Append(nil)
	if h.Type == rpcrdma.TypeMsg {
		send = append(send, rpc...)
	}
	r := &request{kind: sendRequest, data: send, tx: tx, role: ReplySend}
	if n.Invalidate && len(tx.handles) > 0 {
		r.inv, r.handle = true, tx.handles[0]
		tx.Invalidated = r.handle
	}
	l.Ends[1].add(r)
}

// atClient takes a message that the server has sent.
func (l *Link) atClient(m []byte) {
	xid := binary.BigEndian.Uint32(m)
	var h rpcrdma.Header
	if err := h.Decode(m, len(m)); err != nil {
		panic(err)
	}
	if h.Inline() && binary.BigEndian.Uint32(h.Payload[4:]) == 0 {
		tx := l.cbOpen[xid].tx
		l.n.after(2000+l.n.rng.Int64N(5000), func() {
			h := rpcrdma.Header{XID: xid, Version: rpcrdma.Version1, Credits: 1, Type: rpcrdma.TypeMsg}
			tx.Reply = l.message(xid, true, 0, 0, 32)
			tx.ReplyBytes = uint64(len(tx.Reply))
			l.Ends[0].add(&request{kind: sendRequest, data: append(h.Append(nil), tx.Reply...), tx: tx, role: ReplySend})
		})
		return
	}
	p := l.open[xid]
	p.tx.Answered = true
	delete(l.open, xid)
	for _, m := range p.memory {
		e := l.Ends[0]
		for i, r := range e.regions[m.handle] {
			if r.offset == m.offset {
				e.regions[m.handle] = append(e.regions[m.handle][:i], e.regions[m.handle][i+1:]...)
				break
			}
		}
		l.n.spare = append(l.n.spare, m)
	}
	l.n.after(500+l.n.rng.Int64N(3000), l.call)
}

// finish ends the connection when all is done.
func (l *Link) finish() {
	if l.ended || l.left > 0 || l.cbLeft > 0 || len(l.cbOpen) > 0 || len(l.open) > 0 {
		return
	}
	l.ended = true
	if l.n.CM && !l.n.StayOpen {
		l.n.after(3*timeout, func() { l.teardown() })
	}
}

// manage sends a connection-management message.
func (l *Link) manage(from rdma.Side, a ibcm.Attribute, fill func(ibcm.MAD)) {
	b, mad := ibcm.Append(nil, a, uint64(l.Index)+1)
	fill(mad)
	p := l.packet(from, roce.UDSendOnly)
	p.DestQP, p.Role = 1, Management
	p.DETH = roce.DETHFields{QKey: 0x80010000, SrcQP: 1}
	p.Payload, p.PayloadLen = b, len(b)
	near := l.n.now + toNear
	l.n.record(int(from), near, p)
	l.n.record(int(from.Other()), near+toFar, p)
}

func (l *Link) ids() (client, server uint32) {
	id := 100 + uint32(l.Index) + l.QPN[0]<<8
	return id, id + 0x10000
}

// setup makes the connection.
func (l *Link) setup() {
	client, server := l.ids()
	l.manage(0, ibcm.AttributeREQ, func(m ibcm.MAD) {
		r := ibcm.REQ(m.Data())
		r.SetLocalID(client)
		r.SetLocalQPN(l.QPN[0])
		r.SetStartingPSN(l.PSN[1])
		r.SetPathMTU(ibcm.MTUCode(l.n.MTU))
		r.SetServiceID(ibcm.ServiceID(0x0000000001064e51))
	})
	l.n.after(20_000, func() {
		l.manage(1, ibcm.AttributeREP, func(m ibcm.MAD) {
			r := ibcm.REP(m.Data())
			r.SetIDs(server, client)
			r.SetLocalQPN(l.QPN[1])
			r.SetStartingPSN(l.PSN[0])
		})
	})
	l.n.after(40_000, func() {
		l.manage(0, ibcm.AttributeRTU, func(m ibcm.MAD) { ibcm.RTU(m.Data()).SetIDs(client, server) })
	})
}

// teardown ends the connection.
func (l *Link) teardown() {
	client, server := l.ids()
	l.manage(0, ibcm.AttributeDREQ, func(m ibcm.MAD) {
		r := ibcm.DREQ(m.Data())
		r.SetIDs(client, server)
		r.SetRemoteQPN(l.QPN[1])
	})
	l.n.after(20_000, func() {
		l.manage(1, ibcm.AttributeDREP, func(m ibcm.MAD) { ibcm.DREP(m.Data()).SetIDs(server, client) })
	})
}
