package scrub

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// wire is a capture under construction.
type wire struct {
	all packets
}

// Addresses of the tests: their bytes are canaries, too.
var (
	canaryMAC  = [2][6]byte{{0x02, 'Q', 'm', 'a', 'c', '1'}, {0x02, 'Z', 'm', 'a', 'c', '2'}}
	canaryAddr = [2]netip.Addr{netip.MustParseAddr("203.113.81.67"), netip.MustParseAddr("198.117.83.71")}
	canaryIPv6 = [2]netip.Addr{netip.MustParseAddr("2a5b:6b77:9153:4c8d:1337:7f3e:5d21:8e9b"), netip.MustParseAddr("2a5b:6b77:9153:4c8d:ab13:97c4:62e8:d51f")}
)

func (w *wire) packet(link capture.LinkType, b []byte) {
	n := len(w.all) + 1
	w.all = append(w.all, capture.Packet{Number: uint64(n), Time: int64(n) * 1e6, Length: uint32(len(b)), Link: link, Data: b})
}

// frame sends an IP packet with its payload, of which a part is the header of a transport.
func (w *wire) frame(from int, protocol byte, payload, trailer []byte, options []byte) {
	m := append(append([]byte(nil), canaryMAC[1-from][:]...), canaryMAC[from][:]...)
	b := append(m, 0x08, 0x00, 0x45+byte(len(options)/4), 0)
	b = binary.BigEndian.AppendUint16(b, uint16(20+len(options)+len(payload)))
	b = append(b, 0, 1, 0x40, 0, 64, protocol, 0, 0)
	b = append(b, canaryAddr[from].AsSlice()...)
	b = append(b, canaryAddr[1-from].AsSlice()...)
	b = append(append(b, options...), payload...)
	sum := checksum(b[14 : 34+len(options)])
	binary.BigEndian.PutUint16(b[24:], sum)
	w.packet(capture.LinkEthernet, append(b, trailer...))
}

func checksum(b []byte) uint16 { return ^uint16((sum(b)+0xfffe)%0xffff + 1) }

func (w *wire) udp(from int, src, dst uint16, payload []byte) {
	b := binary.BigEndian.AppendUint16(nil, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	w.frame(from, 17, append(append(b, 0, 0), payload...), nil, nil)
}

// stream is a TCP connection.
type stream struct {
	*wire
	ports [2]uint16 // client, server
	seq   [2]uint32
	count int
}

func (s *stream) segment(from int, seq uint32, flags byte, options, payload []byte) {
	b := binary.BigEndian.AppendUint16(nil, s.ports[from])
	b = binary.BigEndian.AppendUint16(b, s.ports[1-from])
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, s.seq[1-from])
	b = append(b, 0x50+byte(len(options)/4)<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	s.frame(from, 6, append(append(b, options...), payload...), nil, nil)
}

func (s *stream) open() {
	s.seq = [2]uint32{0xfffffff0, 77} // the numbers of one side wrap
	s.segment(0, s.seq[0]-1, 2, nil, nil)
	s.segment(1, s.seq[1]-1, 0x12, nil, nil)
}

// most is the size of a segment.
const most = 700

// bytes sends some bytes. Now and then two segments change places, or a part comes again with other cuts.
func (s *stream) bytes(from int, b []byte) {
	type piece struct{ from, to int }
	var pieces []piece
	for at := 0; at < len(b); {
		s.count++
		to := min(at+most-s.count%7, len(b))
		pieces = append(pieces, piece{at, to})
		if n := len(pieces); n > 1 && s.count%11 == 3 {
			pieces[n-1], pieces[n-2] = pieces[n-2], pieces[n-1]
		}
		at = to
	}
	if s.count%5 == 0 && len(b) > 40 {
		pieces = append(pieces, piece{13, min(len(b), 13+most)})
	}
	for _, p := range pieces {
		s.segment(from, s.seq[from]+uint32(p.from), 0x18, nil, b[p.from:p.to])
	}
	s.seq[from] += uint32(len(b))
}

// fabric carries RPC messages; side 0 is the client.
type fabric interface {
	send(from int, xid uint32, msg []byte)
}

// records is RPC over TCP.
type records struct{ stream }

func (r *records) send(from int, _ uint32, msg []byte) {
	if middle := len(msg) / 2 &^ 3; r.count%3 == 0 && middle > 0 { // a record of two fragments
		r.bytes(from, append(binary.BigEndian.AppendUint32(nil, uint32(middle)), msg[:middle]...))
		msg = msg[middle:]
	}
	r.bytes(from, append(binary.BigEndian.AppendUint32(nil, uint32(len(msg))|lastFragment), msg...))
}

// datagrams is RPC over UDP.
type datagrams struct{ *wire }

func (d datagrams) send(from int, _ uint32, msg []byte) {
	ports := [2]uint16{801, 2049}
	d.udp(from, ports[from], ports[1-from], msg)
}

// fragments is RPC over UDP in IP fragments.
type fragments struct {
	*wire
	id uint16
}

func (d *fragments) send(from int, _ uint32, msg []byte) {
	ports := [2]uint16{801, 2049}
	b := binary.BigEndian.AppendUint16(nil, ports[from])
	b = binary.BigEndian.AppendUint16(b, ports[1-from])
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(msg)))
	b = append(append(b, 0, 0), msg...)
	d.id++
	for at := 0; at < len(b); at += 104 {
		part := b[at:min(at+104, len(b))]
		d.frame(from, 17, part, nil, nil)
		ip := d.all[len(d.all)-1].Data[14:34]
		binary.BigEndian.PutUint16(ip[4:], d.id)
		flags := at / 8
		if at+len(part) < len(b) {
			flags |= 0x2000
		}
		binary.BigEndian.PutUint16(ip[6:], uint16(flags))
		copy(ip[10:], []byte{0, 0})
		binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	}
}

// withHeader is a message of RPC-over-RDMA.
func withHeader(xid uint32, msg []byte) []byte {
	h := rpcrdma.Header{XID: xid, Version: 1, Credits: 32, Type: rpcrdma.TypeMsg}
	return append(h.Append(nil), msg...)
}

// ddp is RPC over iWARP.
type ddp struct {
	stream
	marked, crc bool
	sent        [2]uint64 // bytes of FPDUs
	msn         [2]uint32
}

func (d *ddp) open(private []byte) {
	d.stream.open()
	for side, reply := range []bool{false, true} {
		f := iwarp.MPAFrame{Reply: reply, Markers: d.marked, CRC: d.crc, Revision: 1, Private: private}
		d.bytes(side, f.Append(nil))
	}
}

func (d *ddp) fpdu(from int, u []byte) {
	var b []byte
	if d.marked {
		b = iwarp.AppendMarkedFPDU(nil, u, d.crc, d.sent[from])
	} else {
		b = iwarp.AppendFPDU(nil, u, d.crc)
	}
	d.sent[from] += uint64(len(b))
	d.bytes(from, b)
}

const mostDDP = 1000

func (d *ddp) send(from int, xid uint32, msg []byte) {
	d.msn[from]++
	b := withHeader(xid, msg)
	for at := 0; at < len(b); at += mostDDP {
		to := min(at+mostDDP, len(b))
		c := iwarp.NewControl(iwarp.OpSend, to == len(b))
		d.fpdu(from, append(iwarp.AppendUntagged(nil, c, 0, d.msn[from], uint32(at)), b[at:to]...))
	}
}

func (d *ddp) write(from int, b []byte) {
	d.fpdu(from, append(iwarp.AppendTagged(nil, iwarp.NewControl(iwarp.OpWrite, true), 0x1234, 0x1000), b...))
}

// pair is RPC over RoCE.
type pair struct {
	*wire
	psn  [2]uint32
	path [2]*roce.Path
	mtu  int
}

func newPair(w *wire, mtu int) *pair {
	p := &pair{wire: w, mtu: mtu, psn: [2]uint32{0xfffffe, 9}}
	for side := range 2 {
		p.path[side], _ = roce.NewPath(netip.AddrPortFrom(canaryAddr[side], 0xc000), netip.AddrPortFrom(canaryAddr[1-side], roce.Port))
	}
	return p
}

func (p *pair) raw(from int, q *roce.Packet, payload []byte) {
	q.Pad, q.PKey = uint8(-len(payload)&3), 0xffff
	b := append(q.AppendHeaders(nil), payload...)
	b = append(b, make([]byte, q.Pad)...)
	p.udp(from, 0xc000, roce.Port, p.path[from].Append(b, 0, 0))
}

func (p *pair) cut(from int, b []byte, op [4]roce.Opcode, fill roce.Packet) {
	for first := true; first || len(b) > 0; first = false {
		n := min(len(b), p.mtu)
		q := fill
		switch last := n == len(b); {
		case first && last:
			q.Opcode = op[3]
		case first:
			q.Opcode = op[0]
		case last:
			q.Opcode = op[2]
		default:
			q.Opcode = op[1]
		}
		q.DestQP, q.PSN = uint32(0x100+from), p.psn[from]
		p.psn[from] = (p.psn[from] + 1) & 0xffffff
		p.raw(from, &q, b[:n])
		if q.PSN%9 == 0 { // and again
			p.raw(from, &q, b[:n])
		}
		b = b[n:]
	}
}

func (p *pair) send(from int, xid uint32, msg []byte) {
	p.cut(from, withHeader(xid, msg), [4]roce.Opcode{roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly}, roce.Packet{})
}

func (p *pair) write(from int, b []byte) {
	p.cut(from, b, [4]roce.Opcode{roce.RCWriteFirst, roce.RCWriteMiddle, roce.RCWriteLast, roce.RCWriteOnly},
		roce.Packet{RETH: roce.RETHFields{VA: 0x1000, RKey: 0x1234, DMALen: uint32(len(b))}})
}

// manage sends a message of connection management whose private data is a canary.
func (p *pair) manage(from int, a ibcm.Attribute, service ibcm.ServiceID, private int) {
	b, m := ibcm.Append(nil, a, 7)
	d := m.Data()
	copy(d[private:], canaryOf(len(d)-private))
	if a == ibcm.AttributeREQ {
		r := ibcm.REQ(d)
		r.SetLocalID(5)
		r.SetLocalQPN(0x100)
		r.SetServiceID(service)
		r.SetPathMTU(ibcm.MTUCode(1024))
	}
	q := &roce.Packet{Opcode: roce.UDSendOnly, DETH: roce.DETHFields{QKey: 0x80010000, SrcQP: 1}}
	q.DestQP = 1
	p.raw(from, q, b)
}

// chunked is RPC over RoCE whose forward messages travel in Position-Zero Read chunks and in Reply chunks.
type chunked struct{ *pair }

func (p chunked) send(from int, xid uint32, msg []byte) {
	const room = 1 << 20
	reply := len(msg) >= 8 && msg[7] == 1
	if reply == (from == 0) || len(msg) < 24 { // backward, or no message
		p.pair.send(from, xid, msg)
		return
	}
	call := rpcrdma.Segment{Handle: xid<<8 | 1, Length: uint32(len(msg)), Offset: uint64(xid) << 32}
	back := rpcrdma.Segment{Handle: xid<<8 | 2, Length: room, Offset: uint64(xid)<<32 | room}
	h := rpcrdma.Header{XID: xid, Version: 1, Credits: 32, Type: rpcrdma.TypeNoMsg, HasReply: true, Reply: rpcrdma.WriteChunk{back}}
	sends := [4]roce.Opcode{roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly}
	if reply {
		p.cut(1, msg, [4]roce.Opcode{roce.RCWriteFirst, roce.RCWriteMiddle, roce.RCWriteLast, roce.RCWriteOnly},
			roce.Packet{RETH: roce.RETHFields{VA: back.Offset, RKey: back.Handle, DMALen: call.Length}})
		h.Reply[0].Length = call.Length
		p.cut(1, h.Append(nil), sends, roce.Packet{})
		return
	}
	h.Reads = []rpcrdma.ReadSegment{{Segment: call}}
	p.cut(0, h.Append(nil), sends, roce.Packet{})
	psn := p.psn[1]
	q := roce.Packet{Opcode: roce.RCReadRequest, RETH: roce.RETHFields{VA: call.Offset, RKey: call.Handle, DMALen: call.Length}}
	q.DestQP, q.PSN = 0x101, psn
	p.raw(1, &q, nil)
	n := (len(msg) + p.mtu - 1) / p.mtu
	for i := range n {
		q := roce.Packet{Opcode: roce.RCReadResponseMiddle, AETH: roce.AETHFields{Syndrome: roce.ACKUnlimited}}
		switch {
		case n == 1:
			q.Opcode = roce.RCReadResponseOnly
		case i == 0:
			q.Opcode = roce.RCReadResponseFirst
		case i == n-1:
			q.Opcode = roce.RCReadResponseLast
		}
		q.DestQP, q.PSN = 0x100, (psn+uint32(i))&0xffffff
		p.raw(0, &q, msg[i*p.mtu:min((i+1)*p.mtu, len(msg))])
	}
	p.psn[1] = (psn + uint32(n)) & 0xffffff
}
