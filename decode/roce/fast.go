package roce

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
)

// Route is the source and destination address of a packet. Packets with the same route usually share a Route,
// so that a pointer identifies both.
type Route struct {
	Src, Dst netip.Addr
	hosts    hosts
	hash     uint32 // see flowSlot
	// Group belongs to whoever calls FastDecoder.RouteOf: what it knows of the two hosts. It is 0 at first.
	Group uint16
}

// hosts are the bytes of both addresses, for fast comparison; with IPv4, both are in src.
type hosts struct {
	src, dst uint64
	more     [2]uint64
	six      bool // the addresses are IPv6
}

// newRoute makes a Route.
func newRoute(src, dst netip.Addr) *Route {
	return &Route{Src: src, Dst: dst, hash: routeHash(src, dst)}
}

// routeHash mixes the bytes of two addresses.
func routeHash(src, dst netip.Addr) uint32 {
	h := uint64(0)
	for _, b := range [2][16]byte{src.As16(), dst.As16()} {
		h = (h ^ binary.LittleEndian.Uint64(b[:8])) * golden
		h = (h ^ h>>32 ^ binary.LittleEndian.Uint64(b[8:])) * golden
	}
	return uint32(h >> 32)
}

// golden is 2^64 divided by the golden ratio: multiplication with it mixes bits upwards.
const golden = 0x9e3779b97f4a7c15

// FastPacket is what the Tracker needs of a packet of the fast path: one of the RC service that was captured completely,
// has a right ICRC, and has the extension headers of nearly all traffic. If decoding and tracking run on two
// processors, the size of what passes between them matters: a Unit, which holds a FastPacket, fills one cache
// line, Frame and Packet seven.
type FastPacket struct {
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
func (l *FastPacket) Marked() bool { return l.Traffic&ecnCE == ecnCE }

// DSCP is the differentiated services code point of the IP header.
func (l *FastPacket) DSCP() uint8 { return l.Traffic >> 2 }

// Priority is that of the 802.1Q tag, 0 to 7; 0 if untagged.
func (l *FastPacket) Priority() uint8 { return uint8(l.Tag >> 13) }

// VLAN is the identifier of the 802.1Q tag; 0 if untagged.
func (l *FastPacket) VLAN() uint16 { return l.Tag & 0xfff }

// FastDecoder decodes packets of the fast path. The zero value is ready for use. It is not safe for concurrent use.
type FastDecoder struct {
	// The masked headers that the ICRC covers: four bytes for the absent LRH, then IP, UDP and BTH. The zeros
	// in front do not change a CRC that starts at zero.
	scratch [icrcLead + icrcScratch]byte
	// Routes are found in known, the last of those with the same routeSlot in recent.
	recent [1024]*Route
	known  map[hosts]*Route
	peek   FastPacket // of RouteOf
	inner  [1]capture.Packet
	copied [icrcOnes + foldMost]byte // a packet that nothing precedes in memory
}

// maxRoutes bounds FastDecoder.known: if it is full, it begins anew.
const maxRoutes = 1 << 11

const (
	etherSize       = 14
	untaggedHeaders = etherSize + ipv4Size + udpSize + BTHSize // without tags and options
	etherIPv4       = 0x0800
	etherIPv6       = 0x86dd
	etherVLAN       = 0x8100
	etherQinQ       = 0x88a8
	etherOldQ       = 0x9100
	protoUDP        = 17
	roceUDP         = Port
	ipv4Size        = 20
	ipv6Size        = 40
	ecnCE           = 3
)

// Unit is a packet of the fast path, or where to find all of another one. It fills a cache line, since it is written on
// one processor and read on another.
type Unit struct {
	Fast FastPacket
	// Full belongs to whoever takes the Units; it is negative if FastPacket says it all.
	Full int32
}

// Decode decodes packets up to the first that is not on the fast path: that one has to be examined by link.Decode and Splitter, because
// it is not RoCEv2, or in a tunnel, or because something in it is unusual or wrong. It returns how many precede it. There must be as many
// units as packets.
func (d *FastDecoder) Decode(packets []capture.Packet, units []Unit) int {
	units = units[:len(packets)]
	for i := range packets {
		p, u := &packets[i], &units[i]
		b, l := p.Data, &u.Fast
		// Most frames are of Ethernet, and have neither a tag nor IP options: then everything is where it always is, and several fields
		// are compared at once.
		var h *[untaggedHeaders + ICRCSize]byte
		var start uint32 // EtherType, version and length of the header, type of service
		if p.Link == capture.LinkEthernet && len(b) >= untaggedHeaders+ICRCSize {
			h = (*[untaggedHeaders + ICRCSize]byte)(b)
			start = binary.BigEndian.Uint32(h[12:])
		}
		var x *[BTHSize + ICRCSize]byte // BTH, and what follows in any case
		var at, end uint                // from the BTH to the ICRC
		if start>>8 == etherIPv4<<8|0x45 {
			const fragment, proto = 0x3fff0000, 0xff
			at, end = untaggedHeaders-BTHSize, etherSize+uint(binary.BigEndian.Uint16(h[16:]))
			udp := binary.BigEndian.Uint64(h[etherSize+ipv4Size:])
			if binary.BigEndian.Uint32(h[20:])&(fragment|proto) != protoUDP || end > uint(len(b)) || end < untaggedHeaders+ICRCSize ||
				uint32(udp>>16) != roceUDP<<16|uint32(end-etherSize-ipv4Size) {
				return i
			}
			var good bool
			switch { // as Intact, without the call
			case foldsWide:
				good = fold512(&h[etherSize-icrcOnes], int(end-etherSize+icrcOnes), &ones4) == foldResidue
			case folds && end <= etherSize+foldMost:
				good = fold128(&h[etherSize-icrcOnes], int(end-etherSize+icrcOnes), &ones4) == foldResidue
			default:
				good = d.intact(b[etherSize:end], ipv4Size)
			}
			if !good {
				return i
			}
			// Read after the call, so that it need not be kept beyond it.
			l.SrcPort, l.Traffic, l.Tag = binary.BigEndian.Uint16(h[etherSize+ipv4Size:]), h[etherSize+1], 0
			both := binary.LittleEndian.Uint64(h[etherSize+12:])
			if q := d.recent[routeSlot(both)]; q != nil && q.hosts.src == both && !q.hosts.six {
				l.Route = q
			} else {
				l.Route = d.route(b[etherSize:], ipv4Size)
			}
			x = (*[BTHSize + ICRCSize]byte)(h[untaggedHeaders-BTHSize:])
		} else {
			if at, end = d.anywhere(p.Link, b, l); end == 0 {
				return i
			}
			x = (*[BTHSize + ICRCSize]byte)(b[at:])
		}

		bth := binary.BigEndian.Uint64(x[:])
		op, flags := Opcode(bth>>56), uint8(bth>>48)
		o := &fastOpcodes[op]
		pad := flags & maskPad >> shiftPad
		n := int(end-at) - int(o.other) - int(pad)
		if flags&maskTVer != 0 || uint(n-int(o.least)) > uint(o.span) || o.least != 0 && n&(n-1) != 0 {
			return i
		}
		l.VA, l.RKey, l.DMALen, l.MSN, l.Syndrome = 0, 0, 0, 0, 0
		switch o.headers {
		case withAETH:
			e := binary.BigEndian.Uint32(x[BTHSize:])
			l.Syndrome, l.MSN = Syndrome(e>>24), e&mask24
		case withRETH:
			e := RETH(b[at+BTHSize:][:RETHSize])
			l.VA, l.RKey, l.DMALen = e.VA(), e.RKey(), e.DMALen()
		case withIETH:
			l.RKey = binary.BigEndian.Uint32(x[BTHSize:])
		case notFast:
			return i
		}
		l.Opcode, l.Pad, l.SE = op, pad, flags&flagSE != 0
		l.DestQP = uint32(bth) & mask24
		psn := binary.BigEndian.Uint32(x[bthAckReq:])
		l.AckReq, l.PSN = psn>>31 != 0, psn&mask24
		l.At, l.PayloadLen = uint32(at)+uint32(o.other)-ICRCSize, uint16(n)
		u.Full = -1
	}
	return len(packets)
}

// Inner is Decode for one packet that link.Decode has taken apart: f, of which Net, Transport and Payload lie in the packet. It is meant for those in
// tunnels, and for link types that Decode does not know. It returns false if Splitter has to examine it; u says nothing then.
func (d *FastDecoder) Inner(p *capture.Packet, f *link.Frame, u *[1]Unit) bool {
	if f.Proto != link.UDP || f.Segment != 0 || len(f.Net) == 0 {
		return false
	}
	n := len(f.Net) + len(f.Transport) + len(f.Payload)
	at := int(uintptr(unsafe.Pointer(&f.Net[0])) - uintptr(unsafe.Pointer(unsafe.SliceData(p.Data))))
	if at < 0 || n > len(p.Data)-at {
		return false // elsewhere
	}
	if len(f.Tunnels) == 0 {
		if _, ether := beginning(p.Link, p.Data); ether != 0 {
			return false // Decode has seen it
		}
	}
	q := &d.inner[0]
	q.Link = capture.LinkRaw
	if at >= etherSize { // nearly always it is in Ethernet, or at least behind an EtherType
		if e := binary.BigEndian.Uint16(p.Data[at-2:]); e == etherIPv4 || e == etherIPv6 {
			q.Link = capture.LinkEthernet
			at -= etherSize
			n += etherSize
		}
	}
	q.Data = p.Data[at : at+n]
	fast := d.Decode(d.inner[:], u[:]) == 1
	q.Data = nil // keeps no memory alive
	if fast {
		l := &u[0].Fast
		l.At += uint32(at)
		l.Tag = uint16(f.Priority)<<13 | f.VLAN
	}
	return fast
}

// anywhere finds BTH and end of the packet in a frame that may have tags, or IPv6, or that is not of Ethernet. It returns 0 if link.Decode has to
// examine it, or if the ICRC is wrong.
func (d *FastDecoder) anywhere(lt capture.LinkType, b []byte, l *FastPacket) (bth, end uint) {
	at, net, n := datagram(lt, b, l)
	if n == 0 || !d.within(b, at, net, n) {
		return 0, 0
	}
	l.Route = d.route(b[at:at+n], net)
	return uint(at + net + udpSize), uint(at + n)
}

// within verifies the ICRC of an IP packet of n bytes, at an offset of a frame.
func (d *FastDecoder) within(b []byte, at, net, n int) bool {
	if at < icrcOnes { // nothing precedes it
		if !folds || n > len(d.copied)-icrcOnes {
			return d.intact(b[at:at+n], net)
		}
		copy(d.copied[icrcOnes:], b[at:at+n])
		return d.Intact(d.copied[:icrcOnes+n], net)
	}
	return d.Intact(b[at-icrcOnes:at+n], net)
}

// leastIPv4 is how long a packet of RoCEv2 is at least, from the IP header on.
const leastIPv4 = ipv4Size + udpSize + BTHSize + ICRCSize

// beginning is where the layer behind a link header begins, and its EtherType; 0 for link types, and frames, that link.Decode has to examine.
func beginning(lt capture.LinkType, b []byte) (at int, ether uint16) {
	if len(b) < leastIPv4 {
		return 0, 0
	}
	switch lt {
	case capture.LinkEthernet:
		return etherSize, binary.BigEndian.Uint16(b[12:])
	case capture.LinkSLL:
		return 16, binary.BigEndian.Uint16(b[14:])
	case capture.LinkSLL2:
		return 20, binary.BigEndian.Uint16(b)
	case capture.LinkRaw, capture.LinkRawBSD, capture.LinkRawOpenBSD, capture.LinkIPv4, capture.LinkIPv6:
		switch b[0] >> 4 {
		case 4:
			return 0, etherIPv4
		case 6:
			return 0, etherIPv6
		}
	}
	return 0, 0
}

// datagram finds the IP packet of RoCEv2 in a frame that may have one tag or two: where it begins, the length of its header, and its length. That
// is 0 if link.Decode has to examine it.
func datagram(lt capture.LinkType, b []byte, l *FastPacket) (at, net, n int) {
	at, ether := beginning(lt, b)
	l.Tag = 0
	for range 2 {
		if ether != etherVLAN && ether != etherQinQ && ether != etherOldQ {
			break
		}
		l.Tag = binary.BigEndian.Uint16(b[at:])
		ether = binary.BigEndian.Uint16(b[at+2:])
		at += 4
	}
	if len(b) < at+leastIPv4 {
		return 0, 0, 0
	}
	switch ether {
	case etherIPv4:
		h := b[at : at+ipv4Size]
		n, net = int(binary.BigEndian.Uint16(h[2:])), ipv4Size
		if h[0] != 0x45 || h[9] != protoUDP || binary.BigEndian.Uint16(h[6:])&0x3fff != 0 {
			return 0, 0, 0
		}
		l.Traffic = h[1]
	case etherIPv6:
		if len(b) < at+ipv6Size {
			return 0, 0, 0
		}
		h := b[at : at+ipv6Size]
		n, net = ipv6Size+int(binary.BigEndian.Uint16(h[4:])), ipv6Size
		if h[0]>>4 != 6 || h[6] != protoUDP {
			return 0, 0, 0
		}
		l.Traffic = h[0]<<4 | h[1]>>4
	default:
		return 0, 0, 0
	}
	if n < net+udpSize+BTHSize+ICRCSize || n > len(b)-at {
		return 0, 0, 0
	}
	u := (*[udpSize]byte)(b[at+net:])
	if binary.BigEndian.Uint16(u[2:]) != roceUDP || int(binary.BigEndian.Uint16(u[4:])) != n-net {
		return 0, 0, 0
	}
	l.SrcPort = binary.BigEndian.Uint16(u[:])
	return at, net, n
}

// Groups writes down the Route.Group of packets that may be on the fast path, by their headers up to UDP alone, up to the first packet that may not, or whose
// Group is 0. It returns how many precede that one. There must be as many groups as packets.
func (d *FastDecoder) Groups(packets []capture.Packet, groups []uint16) int {
	groups = groups[:len(packets)]
	for i := range packets {
		p := &packets[i]
		b := p.Data
		var q *Route
		if p.Link == capture.LinkEthernet && len(b) >= untaggedHeaders+ICRCSize {
			h := (*[untaggedHeaders + ICRCSize]byte)(b)
			both := binary.LittleEndian.Uint64(h[etherSize+12:])
			if q = d.recent[routeSlot(both)]; q != nil && (q.hosts.src != both || q.hosts.six || !untaggedIPv4(h, len(b))) {
				q = nil
			}
		}
		if q == nil {
			if q = d.RouteOf(p); q == nil {
				return i
			}
		}
		if groups[i] = q.Group; q.Group == 0 {
			return i
		}
	}
	return len(packets)
}

// RouteOf returns the Route of a packet that may be on the fast path, by its headers up to UDP alone; nil if link.Decode has to say between
// which hosts it is. Of any other packet link.Decode says the same addresses, that it is UDP, and that it is in no tunnel.
func (d *FastDecoder) RouteOf(p *capture.Packet) *Route {
	b := p.Data
	if p.Link == capture.LinkEthernet && len(b) >= untaggedHeaders+ICRCSize && untaggedIPv4((*[untaggedHeaders + ICRCSize]byte)(b), len(b)) {
		return d.route(b[etherSize:], ipv4Size)
	}
	at, net, n := datagram(p.Link, b, &d.peek)
	if n == 0 {
		return nil
	}
	return d.route(b[at:], net)
}

// untaggedIPv4 reports whether a frame of n bytes is RoCEv2 in IPv4, without tag and options, as far as its headers up to UDP say.
func untaggedIPv4(h *[untaggedHeaders + ICRCSize]byte, n int) bool {
	const fragment, proto = 0x3fff0000, 0xff // as in Decode
	end := etherSize + uint(binary.BigEndian.Uint16(h[16:]))
	udp := binary.BigEndian.Uint64(h[etherSize+ipv4Size:])
	return binary.BigEndian.Uint32(h[12:])>>8 == etherIPv4<<8|0x45 && binary.BigEndian.Uint32(h[20:])&(fragment|proto) == protoUDP &&
		end <= uint(n) && end >= untaggedHeaders+ICRCSize && uint32(udp>>16) == roceUDP<<16|uint32(end-etherSize-ipv4Size)
}

// fastOpcode says of an opcode what is needed of one that may be on the fast path.
type fastOpcode struct {
	other   uint8  // bytes from the BTH on that are no payload: headers and ICRC
	headers uint8  // one of those below
	least   uint16 // payload; if it is not 0, the payload is a path MTU, a power of two
	span    uint16 // how much longer the longest payload is than the shortest
	_       uint16 // to a size that is quick to multiply with
}

const (
	notFast uint8 = iota // no FastPacket
	withNone
	withRETH
	withAETH
	withIETH
)

var fastOpcodes = fastTable()

func fastTable() (table [256]fastOpcode) {
	for i := range table {
		info, t := &opcodes[i], &table[i]
		switch {
		case Opcode(i).Service() != ServiceRC || info.flags == 0:
			continue
		case info.headers == 0:
			t.headers = withNone
		case info.headers == HasRETH:
			t.headers = withRETH
		case info.headers == HasAETH:
			t.headers = withAETH
		case info.headers == HasIETH:
			t.headers = withIETH
		}
		t.other, t.span = info.size+ICRCSize, MaxMTU
		switch info.payload {
		case payloadMTU:
			t.least, t.span = 256, MaxMTU-256
		case payloadFixed:
			t.span = uint16(info.fixed)
		}
	}
	return table
}

// intact verifies the ICRC of p, an IP packet whose header has net bytes, if Intact does not.
func (d *FastDecoder) intact(p []byte, net int) bool {
	head := net + udpSize + BTHSize
	n := len(p) - ICRCSize
	if n > icrcCopied {
		n = head + (n-head)&15
	}
	s := d.scratch[icrcLead:]
	binary.LittleEndian.PutUint32(s, 0xffffffff)
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

// routeSlot is the place of a Route in FastDecoder.recent.
func routeSlot(x uint64) uint64 { return x * golden >> (64 - 10) }

// route finds or makes the Route of an IP packet.
func (d *FastDecoder) route(p []byte, net int) *Route {
	h := hosts{six: net != ipv4Size}
	if h.six {
		h.src, h.more[0] = binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[16:])
		h.dst, h.more[1] = binary.LittleEndian.Uint64(p[24:]), binary.LittleEndian.Uint64(p[32:])
	} else {
		h.src = binary.LittleEndian.Uint64(p[12:])
	}
	slot := &d.recent[routeSlot(h.src^h.dst<<1^h.more[0]^h.more[1]<<1)]
	if q := *slot; q != nil && q.hosts == h {
		return q
	}
	q := d.known[h]
	if q == nil {
		if h.six {
			q = newRoute(netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40])))
		} else {
			q = newRoute(netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20])))
		}
		q.hosts = h
		if d.known == nil || len(d.known) == maxRoutes {
			d.known = make(map[hosts]*Route)
		}
		d.known[h] = q
	}
	*slot = q
	return q
}

// Packet fills in the fields of p that the Tracker reads; data is the captured frame. The rest stays as it is.
func (l *FastPacket) Packet(data []byte, p *Packet) {
	p.Opcode, p.Pad, p.SE = l.Opcode, l.Pad, l.SE
	p.DestQP, p.PSN = l.DestQP, l.PSN
	p.RETH = RETHFields{l.VA, l.RKey, l.DMALen}
	p.AETH.Syndrome = l.Syndrome
	p.IETH = l.RKey
	p.Payload, p.PayloadLen = l.payload(data), int(l.PayloadLen)
}

// pkey is the P_Key in the captured frame; 0 if that holds no headers.
func (l *FastPacket) pkey(data []byte) uint16 {
	at := int(l.At) - l.Opcode.HeaderSize()
	if at < 0 {
		return 0
	}
	return binary.BigEndian.Uint16(data[at+bthPKey:])
}

// payload is the payload of the captured frame.
func (l *FastPacket) payload(data []byte) []byte {
	end := int(l.At) + int(l.PayloadLen)
	return data[l.At:end:end]
}

// size is the length from the BTH to the ICRC: see arrival.size.
func (l *FastPacket) size() int { return l.Opcode.HeaderSize() + l.rest() }

// rest is size without the headers.
func (l *FastPacket) rest() int { return int(l.PayloadLen) + int(l.Pad) + ICRCSize }

// traced fills in what only a tracer reads.
func (l *FastPacket) traced(p *Packet) { p.Headers, p.AETH.MSN = opcodes[l.Opcode].headers, l.MSN }
