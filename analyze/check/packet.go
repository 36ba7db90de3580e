package check

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// packet is what the rules need of a packet of RoCE or InfiniBand. Ordinary packets and all others are brought into this
// form, so that the rules do not know the difference.
type packet struct {
	ref        rdma.Ref
	src        *netip.Addr
	opcode     roce.Opcode
	syndrome   roce.Syndrome // AETH
	ackReq     bool
	marked     bool // "congestion experienced"
	class      class
	destQP     uint32
	psn        uint32
	msn        uint32 // AETH
	payloadLen uint32
	dmaLen     uint32 // RETH
	va         uint64 // RETH
	cnp        *roce.Packet
}

// class is what the IP and VLAN headers of a packet say about its priority.
type class struct {
	dscp, priority uint8
	tagged         bool // with a VLAN identifier other than 0
}

func classOf(f *link.Frame) class { return class{f.DSCP(), f.Priority, f.VLAN != 0} }

// set takes a packet whose headers were all decoded.
func (p *packet) set(v *decode.PacketView, q *roce.Packet) {
	*p = packet{
		ref: rdma.Ref{Time: v.Packet.Time, Number: v.Packet.Number}, src: &v.Frame.Src,
		opcode: q.Opcode, syndrome: q.AETH.Syndrome, ackReq: q.AckReq, marked: v.Frame.ECN == link.CongestionExperienced,
		class: classOf(v.Frame), destQP: q.DestQP, psn: q.PSN, msn: q.AETH.MSN,
		payloadLen: uint32(q.PayloadLen), dmaLen: q.RETH.DMALen, va: q.RETH.VA, cnp: q,
	}
}

// ordinary takes an ordinary packet. It is no CNP: what is said of one is left alone.
func (p *packet) ordinary(v *decode.OrdinaryView) {
	l := v.Lean
	// Field by field: to assign the whole costs several times as much.
	p.ref.Time, p.ref.Number, p.src = v.Packet.Time, v.Packet.Number, &l.Route.Src
	p.opcode, p.syndrome, p.ackReq, p.marked = l.Opcode, l.Syndrome, l.AckReq, l.Marked()
	p.class.dscp, p.class.priority, p.class.tagged = l.DSCP(), l.Priority(), l.VLAN() != 0
	p.destQP, p.psn, p.msn, p.payloadLen = l.DestQP, l.PSN, l.MSN, uint32(l.PayloadLen)
	p.dmaLen, p.va = l.DMALen, l.VA
}

// Packet is decode.Observer.Packet.
func (c *Checker) Packet(v *decode.PacketView) {
	c.seen.Latest = rdma.Ref{Time: v.Packet.Time, Number: v.Packet.Number}
	if v.Fabric == rdma.TCP && v.Frame.TCPFlags&(tcp.SYN|tcp.RST) != 0 {
		c.leave()
		c.attempted(v)
	}
	if v.Connection != nil {
		s := c.used(v.Connection)
		if s == nil {
			s = c.conn(v.Connection)
		}
		c.enter(s)
		c.stir(s)
		if s.c.Fabric == rdma.IWARP && uint32(len(v.Packet.Data)) < v.Packet.Length {
			// It is not known whether operations are missing.
			s.cut[0]++
			s.cut[1]++
		}
		s.losses(c.seen.Latest.Time)
		s.tap(v.Frame.Src, v.Packet.Tap)
		if s.c.Fabric == rdma.IWARP {
			c.segment(s, v)
		}
		s.badCRC(c.seen.Latest)
		for i := range v.RoCE {
			if q := &v.RoCE[i]; q.Problem == roce.NoProblem && q.ICRC != roce.Bad {
				c.packet.set(v, q)
				c.wirePacket(s, &c.packet)
			}
		}
	}
	c.tracked()
}

// Ordinary is decode.Observer.Ordinary.
func (c *Checker) Ordinary(v *decode.OrdinaryView) {
	c.seen.Latest.Time, c.seen.Latest.Number = v.Packet.Time, v.Packet.Number
	if v.Connection == nil {
		c.tracked()
		return
	}
	s := c.used(v.Connection)
	if s == nil {
		c.ordinary(c.conn(v.Connection), v)
		c.tracked()
		return
	}
	if !c.follows(s, v) {
		c.enter(s)
		c.ordinary(s, v)
	}
	if len(c.pending)|len(s.suspects)|len(s.repeats) != 0 {
		c.enter(s)
		c.tracked()
	}
}

// ordinary judges an ordinary packet that was not expected.
func (c *Checker) ordinary(s *conn, v *decode.OrdinaryView) {
	s.losses(c.seen.Latest.Time)
	if t := int32(v.Packet.Tap); s.taps[0] != t || s.taps[1] != t {
		s.tap(v.Lean.Route.Src, v.Packet.Tap)
	}
	s.badCRC(c.seen.Latest)
	if !c.usual(s, v, c.seen.Latest) {
		c.stir(s)
		c.packet.ordinary(v)
		c.wirePacket(s, &c.packet)
	}
}

// follows judges a packet if it is one that was expected. If it returns false, nothing has changed but that no stretch goes on.
func (c *Checker) follows(s *conn, v *decode.OrdinaryView) bool {
	if s.stretch.on {
		if s.stretch.takes(s.c, v) {
			return true
		}
		c.halt(s)
	}
	if v.Plain && c.expected(s, v) {
		c.seen.Each = c.apart.on || len(c.pending) > 0 || c.doubtful()
		return true
	}
	return false
}

// doubtful reports whether there is something that has to be looked at after each packet.
func (c *Checker) doubtful() bool {
	for n := len(c.doubts); n > 0; n = len(c.doubts) {
		s := c.doubts[n-1]
		if len(s.suspects)|len(s.repeats) != 0 && c.conns[s.c] == s {
			return true
		}
		s.doubted = false
		c.doubts[n-1], c.doubts = nil, c.doubts[:n-1]
	}
	return false
}

// doubt says that a connection has suspects or repeats.
func (c *Checker) doubt(s *conn) {
	c.seen.Each = true
	if !s.doubted {
		s.doubted = true
		c.doubts = append(c.doubts, s)
	}
}

// tracked judges what had to wait for the packet at hand.
func (c *Checker) tracked() {
	if len(c.pending) > 0 {
		c.settle()
	}
	if s := c.last; s != nil && len(s.suspects) > 0 {
		c.suspected(s, false)
	}
	if s := c.last; s != nil && len(s.repeats) > 0 {
		c.doubled(s, false)
	}
}

// segment takes a TCP segment of iWARP.
func (c *Checker) segment(s *conn, v *decode.PacketView) {
	for i := range s.first {
		if s.c.Ends[i].Addr != v.Frame.Src {
			continue
		}
		if s.first[i] == 0 {
			s.first[i] = v.Packet.Number
		}
		if v.Frame.TCPFlags&(tcp.FIN|tcp.RST) != 0 && !s.finish[i].Seen() {
			s.finish[i] = c.seen.Latest
		}
		s.stream(rdma.Side(i), v.Frame, c.seen.Latest.Time)
		if s.ddp != nil {
			s.ddp[i].payload = max(s.ddp[i].payload, v.Frame.PayloadLen)
		}
		if v.Frame.PayloadLen > 0 && s.c.Ends[0].Addr != s.c.Ends[1].Addr {
			c.marking(s, classOf(v.Frame), c.seen.Latest, rdma.Side(i))
		}
	}
}
