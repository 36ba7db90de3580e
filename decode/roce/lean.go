package roce

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// Route is the source and destination address of a packet. Packets with the same route usually share a Route,
// so that a pointer identifies both.
type Route struct {
	Src, Dst netip.Addr
	// The bytes of the addresses, for fast comparison; with IPv4, both are in src.
	src, dst uint64
	more     [2]uint64
	slot     uint8
	// Group belongs to whoever takes the Leans: what it knows of the two hosts. It is 0 at first.
	Group uint16
}

// routeSlot is the address's contribution to the index in Tracker.cache.
func routeSlot(src netip.Addr) uint8 {
	b := src.As16()
	return b[15]
}

// Lean is what the Tracker needs of an ordinary packet: one of the RC service that was captured completely,
// has a right ICRC, and has the extension headers of nearly all traffic. If decoding and tracking run on two
// processors, the size of what passes between them matters: a Lean and its index in the batch fill one cache
// line, Frame and Packet seven.
type Lean struct {
	Route      *Route
	VA         uint64 // RETH
	RKey       uint32 // RETH, or IETH
	DMALen     uint32 // RETH
	DestQP     uint32
	PSN        uint32
	MSN        uint32 // AETH
	At         uint32 // offset of the payload in the captured frame
	PayloadLen uint16
	SrcPort    uint16
	Tag        uint16 // of 802.1Q: priority, DEI, identifier; 0 if untagged
	Opcode     Opcode
	Syndrome   Syndrome // AETH
	Pad        uint8
	Traffic    uint8 // traffic class, or type of service: DSCP and ECN
	SE, AckReq bool
}

// Marked reports whether the IP header says "congestion experienced".
func (l *Lean) Marked() bool { return l.Traffic&ecnCE == ecnCE }

// DSCP is the differentiated services code point of the IP header.
func (l *Lean) DSCP() uint8 { return l.Traffic >> 2 }

// Priority is that of the 802.1Q tag, 0 to 7; 0 if untagged.
func (l *Lean) Priority() uint8 { return uint8(l.Tag >> 13) }

// VLAN is the identifier of the 802.1Q tag; 0 if untagged.
func (l *Lean) VLAN() uint16 { return l.Tag & 0xfff }

// LeanDecoder decodes ordinary packets. The zero value is ready for use. It is not safe for concurrent use.
type LeanDecoder struct {
	// The masked headers that the ICRC covers: four bytes for the absent LRH, then IP, UDP and BTH. The zeros
	// in front do not change a CRC that starts at zero.
	scratch [icrcLead + icrcScratch]byte
	routes  [64]*Route
}

const (
	etherSize = 14
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherVLAN = 0x8100
	protoUDP  = 17
	roceUDP   = Port
	ipv4Size  = 20
	ipv6Size  = 40
	ecnCE     = 3
)

// Ethernet decodes a captured Ethernet frame. It returns false if link.Decode and Splitter have to examine
// it: because something is unusual or wrong, or because it is not RoCEv2.
func (d *LeanDecoder) Ethernet(b []byte, l *Lean) bool {
	if len(b) < etherSize+ipv4Size+udpSize+BTHSize+ICRCSize {
		return false
	}
	at := etherSize
	ether := binary.BigEndian.Uint16(b[12:])
	l.Tag = 0
	if ether == etherVLAN {
		at += 4
		l.Tag = binary.BigEndian.Uint16(b[14:])
		ether = binary.BigEndian.Uint16(b[16:])
	}
	var n int // of the IP packet
	var net int
	switch ether {
	case etherIPv4:
		h := b[at : at+ipv4Size]
		n, net = int(binary.BigEndian.Uint16(h[2:])), ipv4Size
		if h[0] != 0x45 || h[9] != protoUDP || binary.BigEndian.Uint16(h[6:])&0x3fff != 0 {
			return false
		}
		l.Traffic = h[1]
	case etherIPv6:
		if len(b) < at+ipv6Size {
			return false
		}
		h := b[at : at+ipv6Size]
		n, net = ipv6Size+int(binary.BigEndian.Uint16(h[4:])), ipv6Size
		if h[0]>>4 != 6 || h[6] != protoUDP {
			return false
		}
		l.Traffic = h[0]<<4 | h[1]>>4
	default:
		return false
	}
	if n < net+udpSize+BTHSize+ICRCSize || n > len(b)-at {
		return false
	}
	p := b[at : at+n]
	u := p[net : net+udpSize]
	if binary.BigEndian.Uint16(u[2:]) != roceUDP || int(binary.BigEndian.Uint16(u[4:])) != n-net {
		return false
	}
	l.SrcPort = binary.BigEndian.Uint16(u)
	ib := p[net+udpSize:]
	if !l.transport(ib) || !d.intact(p, net) {
		return false
	}
	l.At = uint32(at + net + udpSize + opcodes[l.Opcode].sizeInt())
	l.Route = d.route(p, net)
	return true
}

func (i *opcodeInfo) sizeInt() int { return int(i.size) }

// transport decodes BTH and extension headers of ib, which ends with the ICRC.
func (l *Lean) transport(ib []byte) bool {
	h := ib[:BTHSize]
	op, flags := Opcode(h[bthOpcode]), h[bthFlags]
	info := &opcodes[op]
	if op.Service() != ServiceRC || info.flags == 0 || flags&maskTVer != 0 {
		return false
	}
	pad := int(flags & maskPad >> shiftPad)
	size := int(info.size)
	n := len(ib) - size - ICRCSize - pad
	if n < 0 || n > MaxMTU {
		return false
	}
	switch info.payload {
	case payloadMTU:
		if n&(n-1) != 0 || n < 256 {
			return false
		}
	case payloadFixed:
		if n > int(info.fixed) {
			return false
		}
	}
	l.VA, l.RKey, l.DMALen, l.MSN, l.Syndrome = 0, 0, 0, 0, 0
	switch info.headers {
	case 0:
	case HasRETH:
		e := RETH(ib[BTHSize : BTHSize+RETHSize])
		l.VA, l.RKey, l.DMALen = e.VA(), e.RKey(), e.DMALen()
	case HasAETH:
		e := binary.BigEndian.Uint32(ib[BTHSize:])
		l.Syndrome, l.MSN = Syndrome(e>>24), e&mask24
	case HasIETH:
		l.RKey = binary.BigEndian.Uint32(ib[BTHSize:])
	default:
		return false
	}
	l.Opcode, l.Pad, l.SE = op, uint8(pad), flags&flagSE != 0
	l.DestQP = binary.BigEndian.Uint32(h[bthECN:]) & mask24
	psn := binary.BigEndian.Uint32(h[bthAckReq:])
	l.AckReq, l.PSN = psn>>31 != 0, psn&mask24
	l.PayloadLen = uint16(n)
	return true
}

// intact verifies the ICRC of p, an IP packet whose header has net bytes.
func (d *LeanDecoder) intact(p []byte, net int) bool {
	s := d.scratch[icrcLead:]
	binary.LittleEndian.PutUint32(s, 0xffffffff)
	head := net + udpSize + BTHSize
	n := len(p) - ICRCSize
	if n > icrcCopied {
		n = head + (n-head)&15
	}
	copy(s[4:], p[:n])
	h := s[4 : 4+head]
	if net == ipv4Size {
		h[1], h[8], h[10], h[11] = 0xff, 0xff, 0xff, 0xff // TOS, TTL, checksum
	} else {
		binary.BigEndian.PutUint32(h, 0x6fffffff) // traffic class, flow label
		h[7] = 0xff                               // hop limit
	}
	h[net+6], h[net+7] = 0xff, 0xff // UDP checksum
	h[net+udpSize+bthECN] = 0xff
	end := icrcLead + 4 + n
	start := min(icrcLead, end-64)
	start -= (start - end) & 15
	crc := crc32.Update(^uint32(0), crc32.IEEETable, d.scratch[start:end])
	if rest := p[n : len(p)-ICRCSize]; len(rest) > 0 {
		crc = crc32.Update(crc, crc32.IEEETable, rest)
	}
	return crc == binary.LittleEndian.Uint32(p[len(p)-ICRCSize:])
}

// route finds or makes the Route of an IP packet.
func (d *LeanDecoder) route(p []byte, net int) *Route {
	var src, dst uint64
	var more [2]uint64
	if net == ipv4Size {
		src = binary.LittleEndian.Uint64(p[12:])
	} else {
		src, more[0] = binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[16:])
		dst, more[1] = binary.LittleEndian.Uint64(p[24:]), binary.LittleEndian.Uint64(p[32:])
	}
	x := (src ^ dst<<1 ^ more[0] ^ more[1]<<1) * 0x9e3779b97f4a7c15
	slot := &d.routes[x>>58]
	if q := *slot; q != nil && q.src == src && q.dst == dst && q.more == more && q.Src.Is4() == (net == ipv4Size) {
		return q
	}
	q := &Route{src: src, dst: dst, more: more}
	if net == ipv4Size {
		q.Src, q.Dst = netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
	} else {
		q.Src, q.Dst = netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	}
	q.slot = routeSlot(q.Src)
	*slot = q
	return q
}

// packet fills in the fields that the Tracker reads. The rest of p stays zero.
func (l *Lean) packet(data []byte, p *Packet) {
	p.Opcode, p.Pad, p.SE = l.Opcode, l.Pad, l.SE
	p.DestQP, p.PSN = l.DestQP, l.PSN
	p.RETH = RETHFields{l.VA, l.RKey, l.DMALen}
	p.AETH.Syndrome = l.Syndrome
	p.IETH = l.RKey
	end := int(l.At) + int(l.PayloadLen)
	p.Payload, p.PayloadLen = data[l.At:end:end], int(l.PayloadLen)
}

// traced fills in what only a tracer reads.
func (l *Lean) traced(p *Packet) { p.Headers, p.AETH.MSN = opcodes[l.Opcode].headers, l.MSN }
