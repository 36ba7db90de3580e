package check

import (
	"math"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// packet is what the rules need of a packet of RoCE or InfiniBand, whether all its headers were decoded or not.
type packet struct {
	*roce.FastPacket
	ref  rdma.Ref
	kind kind
	cnp  *roce.Packet // set if it is a CNP

	// What FastPacket is, of a packet whose headers were all decoded.
	own   roce.FastPacket
	route roce.Route
}

// class is what the IP and VLAN headers of a packet say about its priority.
type class struct {
	dscp, priority uint8
	tagged         bool // with a VLAN identifier other than 0
}

func classOf(f *link.Frame) class { return class{f.DSCP(), f.Priority, f.VLAN != 0} }

// set takes a packet whose headers were all decoded.
func (p *packet) set(v *decode.PacketView, q *roce.Packet) {
	f := v.Frame
	p.route.Src, p.route.Dst = f.Src, f.Dst
	p.own = roce.FastPacket{
		Route: &p.route, Opcode: q.Opcode, Syndrome: q.AETH.Syndrome, AckReq: q.AckReq, Traffic: f.DSCP()<<2 | uint8(f.ECN),
		Tag: uint16(f.Priority)<<13 | f.VLAN, DestQP: q.DestQP, PSN: q.PSN, MSN: q.AETH.MSN,
		PayloadLen: uint16(min(q.PayloadLen, math.MaxUint16)), DMALen: q.RETH.DMALen, VA: q.RETH.VA,
	}
	p.FastPacket, p.cnp = &p.own, q
}

// Packet is decode.Observer.Packet.
func (c *Checker) Packet(v *decode.PacketView) {
	c.packet.ref = rdma.Ref{Time: v.Packet.Time, Number: v.Packet.Number}
	if v.Fabric == rdma.TCP && v.Frame.TCPFlags&(tcp.SYN|tcp.RST) != 0 {
		c.leave()
		c.attempted(v)
	}
	if v.Connection == nil && c.opt.Match == nil {
		c.pauses.pause(v)
	}
	if v.Connection != nil {
		s := c.conns.of(v.Connection)
		s.routes, s.forms = [2]*roce.Route{}, [2]*forms{} // addresses may change with the setup
		if s.c.Fabric == rdma.IWARP && uint32(len(v.Packet.Data)) < v.Packet.Length {
			// It is not known whether operations are missing.
			s.cut[0]++
			s.cut[1]++
		}
		s.losses(c.packet.ref.Time)
		s.tap(v.Frame.Src, v.Packet.Tap)
		if s.c.Fabric == rdma.IWARP {
			c.segment(s, v)
		}
		s.badCRC(c.packet.ref)
		for i := range v.RoCE {
			if q := &v.RoCE[i]; q.Problem == roce.NoProblem && q.ICRC != roce.Bad {
				c.packet.set(v, q)
				c.fabric.wirePacket(s, &c.packet)
			} else if q.ICRC == roce.Bad && kinds[q.Opcode]&kindRequest != 0 {
				s.sawBadICRC(v.Frame.Src, q.PSN)
			}
		}
	}
	c.tracked()
}

// headers returns decode.Observer.Headers, which a method would make take longer: it is called for each packet. Within a large function,
// what it calls would not be inlined.
//
//go:noinline
func (c *Checker) headers() func(p *capture.Packet, l *roce.FastPacket, k *rdma.Connection) {
	return func(p *capture.Packet, l *roce.FastPacket, k *rdma.Connection) {
		x := &c.packet
		x.ref.Time, x.ref.Number = p.Time, p.Number
		if k == nil {
			c.tracked()
			return
		}
		s := c.conns.last
		if s == nil || s.c != k {
			s = c.conns.of(k)
		}
		c.enter(s)
		if s.missing(0) != s.gaps[0] || s.missing(1) != s.gaps[1] {
			s.losses(x.ref.Time)
		}
		if t := int32(p.Tap); s.taps[0] != t || s.taps[1] != t {
			s.tap(l.Route.Src, p.Tap)
		}
		if s.c.Sent[0].BadCRC|s.c.Sent[1].BadCRC != 0 {
			s.badCRC(x.ref)
		}
		x.FastPacket = l
		c.fabric.wirePacket(s, x)
		if len(c.pending)|len(s.suspects)|len(s.repeats) != 0 {
			c.tracked()
		}
	}
}

// tracked judges what had to wait for the packet at hand.
func (c *Checker) tracked() {
	if len(c.pending) > 0 {
		c.settle()
	}
	if s := c.conns.last; s != nil && len(s.suspects) > 0 {
		c.memory.suspected(s, false)
	}
	if s := c.conns.last; s != nil && len(s.repeats) > 0 {
		c.unmatched.reportRepeats(s, c.packet.ref.Number, false)
	}
}

// segment takes a TCP segment of iWARP.
func (c *Checker) segment(s *conn, v *decode.PacketView) {
	for i := range s.first {
		if s.c.Ends[i].Addr != v.Frame.Src {
			continue
		}
		if s.first[i] == 0 && v.Frame.PayloadLen > 0 { // an acknowledgement does not show where a message begins
			s.first[i] = v.Packet.Number
		}
		if v.Frame.TCPFlags&(tcp.FIN|tcp.RST) != 0 && !s.finish[i].Seen() {
			s.finish[i] = c.packet.ref
		}
		s.stream(rdma.Side(i), v.Frame, c.packet.ref.Time)
		if s.ddp != nil {
			s.ddp[i].payload = max(s.ddp[i].payload, v.Frame.PayloadLen)
		}
		if v.Frame.PayloadLen > 0 && s.c.Ends[0].Addr != s.c.Ends[1].Addr {
			c.fabric.marking(s, classOf(v.Frame), c.packet.ref, rdma.Side(i))
		}
	}
}
