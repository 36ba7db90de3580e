package simulate

import (
	"encoding/binary"
	"slices"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// Over iWARP, the model sends each packet as a TCP segment with one FPDU, and TCP acknowledges it. TCP sends a lost segment again under
// its sequence number. There are no notifications of congestion, and no receiver says that it is not ready.

// segment is a packet as a segment of TCP.
type segment struct {
	seq, ack uint32
	flags    byte
	msn      uint32
	body     []byte // instead of an FPDU
	closed   bool   // the sender has no room
	length   int
}

const (
	tcpHeader = 20
	tcpSYN    = 2
	tcpPSH    = 8
	tcpACK    = 16
)

// tcpStream is what an end knows of its TCP connection.
type tcpStream struct {
	next    uint32            // sequence number of the next new segment
	sent    map[uint64]uint32 // sequence numbers of packets
	came    map[uint32]uint32 // lengths of segments that came before others, by their sequence numbers
	has     uint32            // all before it has come
	sends   uint32            // messages of the queue of Sends
	reads   uint32            // and of that of Read Requests
	unacked int               // segments that came since the last acknowledgement
}

// delayedAck is for how long TCP lets an acknowledgement wait for data that may carry it.
const delayedAck = 40 * ms

// ulpdu is the length of the DDP segment of a packet; 0 if it is an acknowledgement.
func (p *packet) ulpdu() int {
	switch op := p.Opcode; {
	case op.IsReadRequest():
		return 18 + 28
	case op.IsSend():
		return 18 + p.PayloadLen
	case op == roce.RCAcknowledge:
		return 0
	}
	return 14 + p.PayloadLen
}

// segment makes a packet of a connection a segment. It returns false for a packet that TCP does not have.
func (n *network) segment(p *packet) bool {
	if p.seg != nil {
		return true
	}
	if p.Opcode == roce.CNP {
		return false
	}
	e := p.to.other
	t := &e.tcp
	s := &segment{seq: t.next, ack: t.has, flags: tcpACK, msn: p.msn, closed: e.closed}
	p.seg = s
	if n.DelayedAck && e.acking && p.Opcode != roce.RCAcknowledge {
		e.acking, p.carries, p.carried = false, true, (e.expected-1)&mask24
	}
	t.unacked = 0
	u := p.ulpdu()
	if u == 0 {
		return true
	}
	length := (2+u+3)&^3 + 4
	key := uint64(p.PSN) << 1
	if p.Opcode.IsResponse() {
		key |= 1
	}
	seq, again := t.sent[key]
	switch {
	case p.Opcode.IsReadRequest() && (p.part > 0 || again && int32(e.other.tcp.has-seq) > 0):
		return true // the request had come: its responder sends the rest again, the requester only acknowledges
	case !again:
		seq = t.next
		t.sent[key] = seq
		t.next += uint32(length)
	}
	s.seq, s.length = seq, length
	s.flags |= tcpPSH
	return true
}

// got notes that a segment has come.
func (e *end) got(p *packet) {
	s := p.seg
	if s == nil || s.length == 0 || int32(s.seq-e.tcp.has) < 0 {
		return
	}
	t := &e.tcp
	t.unacked++
	t.came[s.seq] = uint32(s.length)
	for {
		n, ok := t.came[t.has]
		if !ok {
			return
		}
		delete(t.came, t.has)
		t.has += n
	}
}

// opens makes the streams of a connection.
func (c *connection) opens() {
	r := stream(c.n.seed, "tcp", uint64(c.client.h.index)<<32|uint64(c.index)<<16|uint64(c.times))
	for _, e := range c.ends {
		e.tcp = tcpStream{next: r.Uint32(), sent: make(map[uint64]uint32), came: make(map[uint32]uint32)}
	}
	c.ends[0].tcp.has, c.ends[1].tcp.has = c.ends[1].tcp.next, c.ends[0].tcp.next
}

// plain sends a segment that carries no FPDU.
func (c *connection) plain(from int, flags byte, body []byte, arrive func()) {
	e := c.ends[from]
	s := &segment{seq: e.tcp.next, ack: e.tcp.has, flags: flags, body: body, length: len(body)}
	if flags&tcpSYN != 0 {
		s.seq--
	}
	e.tcp.next += uint32(len(body))
	p := &packet{src: e.h, dst: e.other.h, seg: s, port: c.ports(e)}
	p.arrive = func() {
		e.other.got(p)
		arrive()
	}
	p.src.manage = append(p.src.manage, p)
	p.src.wake()
}

// ports returns the source and destination port of segments that an end sends.
func (c *connection) ports(e *end) [2]uint16 {
	client := 0x8000 + uint16(c.ends[0].qpn*5+c.ends[1].qpn)&0x3fff
	if e == c.ends[0] {
		return [2]uint16{client, 20049}
	}
	return [2]uint16{20049, client}
}

// setupTCP connects over TCP, and MPA.
func (c *connection) setupTCP() {
	if c.up {
		return
	}
	c.connect()
	times := c.times
	c.n.after(reconnectTime, func() {
		if c.times == times && !c.up {
			c.setupTCP()
		}
	})
	private := (&rdma.PrivateData{Version: 1, SendSize: inlineSize, ReceiveSize: inlineSize}).Append(nil)
	hello := iwarp.MPAFrame{CRC: true, Enhanced: true, Revision: 2, IRD: uint16(c.depth(false)), ORD: 16, Private: private}
	answer := hello
	answer.Reply, answer.IRD, answer.ORD = true, 16, uint16(min(c.depth(true), c.depth(false)))
	c.plain(0, tcpSYN, nil, func() {
		c.plain(1, tcpSYN|tcpACK, nil, func() {
			c.plain(0, tcpACK|tcpPSH, hello.Append(nil), func() {
				c.plain(1, tcpACK|tcpPSH, answer.Append(nil), func() { c.established(times) })
			})
		})
	})
}

// ulpduOf appends the DDP segment of a packet.
func (p *packet) ulpduOf(b []byte) []byte {
	switch op := p.Opcode; {
	case op.IsReadRequest():
		b = iwarp.AppendUntagged(b, iwarp.NewControl(iwarp.OpReadRequest, true), 0, p.seg.msn, 0)
		return iwarp.AppendReadRequest(b, sink(p.stag), p.offset, p.RETH.DMALen, p.stag, p.offset)
	case op.IsSend():
		b = iwarp.AppendUntagged(b, iwarp.NewControl(iwarp.OpSend, op.Ends()), 0, p.seg.msn, uint32(p.offset))
	case op.IsResponse():
		b = iwarp.AppendTagged(b, iwarp.NewControl(iwarp.OpReadResponse, p.ends), sink(p.stag), p.offset)
	default:
		b = iwarp.AppendTagged(b, iwarp.NewControl(iwarp.OpWrite, op.Ends()), p.stag, p.offset)
	}
	b = append(b, p.Payload...)
	return append(b, make([]byte, p.PayloadLen-len(p.Payload))...)
}

// sink is the steering tag of the server's memory that takes what it reads from a client's.
func sink(stag uint32) uint32 { return stag ^ 0x55000000 }

// frameTCP appends the frame of a segment to b.
func (r record) frameTCP(b []byte) []byte {
	p, s := r.packet, r.seg
	n := tcpHeader + s.length
	b = append(b, p.dst.mac()...)
	b = append(b, p.src.mac()...)
	b = append(b, 0x08, 0x00, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(20+n))
	b = append(b, 0, 0, 0x40, 0, 64, 6, 0, 0)
	b = append(b, p.src.addr.AsSlice()...)
	b = append(b, p.dst.addr.AsSlice()...)
	ip := b[len(b)-20 : len(b) : len(b)]
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, p.port[0])
	b = binary.BigEndian.AppendUint16(b, p.port[1])
	b = binary.BigEndian.AppendUint32(b, s.seq)
	ack := s.ack
	if s.flags&tcpACK == 0 {
		ack = 0
	}
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, tcpHeader/4<<4, s.flags, 0xff, 0xff, 0, 0, 0, 0)
	if s.closed {
		b[start+14], b[start+15] = 0, 0
	}
	switch {
	case s.length == 0:
	case s.body != nil:
		b = append(b, s.body...)
	default:
		b = iwarp.AppendFPDU(b, p.ulpduOf(nil), true)
	}
	pseudo := slices.Concat(p.src.addr.AsSlice(), p.dst.addr.AsSlice(), []byte{0, 6, byte(n >> 8), byte(n)}, b[start:])
	if len(pseudo)&1 != 0 {
		pseudo = append(pseudo, 0)
	}
	binary.BigEndian.PutUint16(b[start+16:], checksum(pseudo))
	return b
}
