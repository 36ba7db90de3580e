package hostile

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// gen writes packets.
type gen struct {
	w      *capture.Writer
	now    int64 // ns since the epoch
	rng    *rand.Rand
	err    error
	buf    []byte
	ib     []byte
	ids    uint32 // of whatever needs one that is new
	subnet byte   // of the addresses, so that kinds keep apart in a mix
}

// step is the time from one packet to the next.
const step = 1000

func (g *gen) id() uint32 { g.ids++; return g.ids }

// host is an address of this kind's subnet.
func (g *gen) host(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, g.subnet ^ byte(n>>16), byte(n >> 8), byte(n)})
}

func (g *gen) write(frame []byte) {
	if g.err != nil {
		return
	}
	g.err = g.w.Write(&capture.Packet{Time: g.now, Link: capture.LinkEthernet, Length: uint32(len(frame)), Data: frame})
	g.now += step
}

// ip begins a frame with Ethernet and IPv4 headers of a payload. field is
// flags and fragment offset.
func (g *gen) ip(src, dst netip.Addr, proto byte, size int, id, field uint16) []byte {
	s, d := src.As4(), dst.As4()
	b := append(g.buf[:0], 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(20+size))
	b = binary.BigEndian.AppendUint16(b, id)
	b = binary.BigEndian.AppendUint16(b, field)
	b = append(b, 64, proto, 0, 0)
	b = append(b, s[:]...)
	return append(b, d[:]...)
}

const dontFragment = 0x4000

func (g *gen) udp(src, dst netip.AddrPort, payload []byte) {
	b := g.ip(src.Addr(), dst.Addr(), 17, 8+len(payload), 0, dontFragment)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = append(b, 0, 0)
	g.buf = append(b, payload...)
	g.write(g.buf)
}

func (g *gen) tcp(src, dst netip.AddrPort, seq, ack uint32, flags byte, payload []byte) {
	b := g.ip(src.Addr(), dst.Addr(), 6, 20+len(payload), 0, dontFragment)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
	g.buf = append(b, payload...)
	g.write(g.buf)
}

// stream is a TCP connection whose setup was not captured.
type stream struct {
	g    *gen
	ends [2]netip.AddrPort
	seq  [2]uint32
}

func (g *gen) stream(client netip.AddrPort, server netip.AddrPort) *stream {
	return &stream{g: g, ends: [2]netip.AddrPort{client, server}, seq: [2]uint32{1, 1}}
}

// segment is the payload of the frames that segmentation offload shows.
const segment = 60000

func (s *stream) send(side int, msg []byte) {
	rec := binary.BigEndian.AppendUint32(nil, uint32(len(msg))|1<<31)
	msg = append(rec, msg...)
	for len(msg) > 0 {
		n := min(len(msg), segment)
		s.g.tcp(s.ends[side], s.ends[1-side], s.seq[side], s.seq[1-side], 0x18, msg[:n])
		s.seq[side] += uint32(n)
		msg = msg[n:]
	}
}

// pair is two connected queue pairs of RoCEv2; side 0 is the client.
type pair struct {
	g    *gen
	addr [2]netip.Addr
	qpn  [2]uint32
	psn  [2]uint32
	path [2]*roce.Path
}

const (
	rocePort = 4791
	ephemer  = 0xc000
	mtu      = 4096
)

func (g *gen) pair(client, server netip.Addr, qpn uint32) *pair {
	p := &pair{g: g, addr: [2]netip.Addr{client, server}, qpn: [2]uint32{qpn & 0xffffff, (qpn + 1) & 0xffffff}}
	for side := range 2 {
		p.path[side], _ = roce.NewPath(netip.AddrPortFrom(p.addr[side], ephemer), netip.AddrPortFrom(p.addr[1-side], rocePort))
	}
	return p
}

// packet sends one packet. PSN and queue pair are set here.
func (p *pair) packet(side int, q *roce.Packet, payload []byte) {
	q.DestQP, q.PKey, q.PSN = p.qpn[1-side], 0xffff, p.psn[side]
	p.psn[side] = (p.psn[side] + 1) & 0xffffff
	p.raw(side, q, payload)
}

func (p *pair) raw(side int, q *roce.Packet, payload []byte) {
	g := p.g
	q.Pad = uint8(-len(payload) & 3)
	b := q.AppendHeaders(g.ib[:0])
	b = append(b, payload...)
	b = append(b, make([]byte, q.Pad)...)
	g.ib = p.path[side].Append(b, 0, 0)
	g.udp(netip.AddrPortFrom(p.addr[side], ephemer), netip.AddrPortFrom(p.addr[1-side], rocePort), g.ib)
}

// send sends a message.
func (p *pair) send(side int, msg []byte) {
	op := [4]roce.Opcode{roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly}
	p.cut(side, msg, op, nil)
}

// put writes to a handle.
func (p *pair) put(side int, handle uint32, offset uint64, data []byte) {
	op := [4]roce.Opcode{roce.RCWriteFirst, roce.RCWriteMiddle, roce.RCWriteLast, roce.RCWriteOnly}
	p.cut(side, data, op, &roce.RETHFields{VA: offset, RKey: handle, DMALen: uint32(len(data))})
}

func (p *pair) cut(side int, msg []byte, op [4]roce.Opcode, reth *roce.RETHFields) {
	for first := true; first || len(msg) > 0; first = false {
		n := min(len(msg), mtu)
		last := n == len(msg)
		q := &roce.Packet{}
		switch {
		case first && last:
			q.Opcode = op[3]
		case first:
			q.Opcode = op[0]
		case last:
			q.Opcode = op[2]
		default:
			q.Opcode = op[1]
		}
		if reth != nil {
			q.RETH = *reth
		}
		q.AckReq = last
		p.packet(side, q, msg[:n])
		msg = msg[n:]
	}
}

// manage sends a connection management datagram.
func (p *pair) manage(side int, a ibcm.Attribute, id uint64, fill func(ibcm.MAD)) {
	b, mad := ibcm.Append(nil, a, id)
	fill(mad)
	q := &roce.Packet{Opcode: roce.UDSendOnly, DETH: roce.DETHFields{QKey: 0x80010000, SrcQP: 1}}
	q.DestQP, q.PKey = 1, 0xffff
	p.raw(side, q, b)
}
