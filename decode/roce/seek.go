package roce

import (
	"bytes"
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/link"
)

// Seeker finds packets of RoCEv2 in wrappings that nobody knows: an IP header, UDP port 4791 and a right ICRC prove themselves. It keeps
// nothing between frames, so that what it finds does not depend on their order.
type Seeker struct{ c Checker }

const (
	seekWithin = 192 // bytes in which the UDP header begins
	seekTries  = 2   // ICRCs that are computed for a frame
)

// port is Port as it is in a UDP header.
var port = []byte{Port >> 8, Port & 0xff}

// Seek returns where an IP packet with RoCEv2 begins in the payload of a frame that is not decoded, or that carries UDP of no known kind.
// One that the capture cut has no ICRC: a right IPv4 header is enough then.
func (s *Seeker) Seek(f *link.Frame) (at int, ok bool) {
	p := f.Payload
	switch {
	case len(p) < BTHSize:
		return 0, false
	case f.Proto == link.None && f.Problem == link.NoProblem && f.Unknown != icmp && f.Unknown != icmpv6:
	case f.Proto == link.UDP && f.DstPort != Port && f.DstPort != PortSFlow && !rpcLike(p):
	default:
		return 0, false
	}
	tries := seekTries
	for from := 2; from < min(len(p), seekWithin); {
		i := bytes.Index(p[from:min(len(p), seekWithin)], port)
		if i < 0 {
			return 0, false
		}
		udp := from + i - 2
		from += i + 1
		for _, k := range [...]kind{kindIPv4, kindIPv6} {
			at, end, ok := enclosing(k, p, udp, f.PayloadLen)
			if !ok {
				continue
			}
			if end > len(p) {
				if k == kindIPv4 {
					return at, true
				}
				continue
			}
			if tries--; tries < 0 {
				return 0, false
			}
			ib := p[udp+udpSize : end-ICRCSize]
			if verdict(s.c.sum(k, p[at:udp], p[udp:udp+udpSize], ib, false, 0), p[end-ICRCSize:end]) == Good {
				return at, true
			}
		}
	}
	return 0, false
}

// ICMP quotes the packets that it is about.
var icmp, icmpv6 = link.Unknown{Layer: link.IPLayer, Value: 1}, link.Unknown{Layer: link.IPLayer, Value: 58}

// PortSFlow is the UDP port of sFlow, whose datagrams hold samples of packets: what they lack was not lost.
const PortSFlow = 6343

// rpcLike reports whether a datagram begins like a call or a reply of RPC (RFC 5531, section 9): its data may be anything.
func rpcLike(b []byte) bool {
	kind, next := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	return kind == 0 && next == 2 || kind == 1 && next <= 1
}

// enclosing finds the IP header of a UDP header at udp. It ends where both say; n is the length of p on the wire.
func enclosing(k kind, p []byte, udp, n int) (at, end int, ok bool) {
	if len(p) < udp+udpSize+BTHSize {
		return 0, 0, false
	}
	length := int(binary.BigEndian.Uint16(p[udp+4:]))
	end = udp + length
	if length < udpSize+BTHSize+ICRCSize || end > n || opcodes[p[udp+udpSize]].flags == 0 || p[udp+udpSize+bthFlags]&maskTVer != 0 {
		return 0, 0, false
	}
	switch k {
	case kindIPv4:
		if at = udp - ipv4Size; at < 0 {
			return 0, 0, false
		}
		h := p[at:udp]
		ok = h[0] == 0x45 && h[9] == protocolUDP && int(binary.BigEndian.Uint16(h[2:])) == ipv4Size+length && binary.BigEndian.Uint16(h[6:])&0x3fff == 0 && sound(h)
	case kindIPv6:
		if at = udp - ipv6Size; at < 0 {
			return 0, 0, false
		}
		h := p[at:udp]
		ok = h[0]>>4 == 6 && h[6] == protocolUDP && int(binary.BigEndian.Uint16(h[4:])) == length
	}
	return at, end, ok
}

// protocolUDP is the IP protocol number of UDP.
const protocolUDP = 17

// sound reports whether the checksum of an IPv4 header is right (RFC 1071).
func sound(h []byte) bool {
	sum := uint32(0)
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	return (sum>>16+sum)&0xffff == 0xffff
}
