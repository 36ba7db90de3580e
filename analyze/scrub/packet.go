package scrub

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// held is a packet in the window: what was captured, and its copy, of which only the headers are there at first.
type held struct {
	data, out []byte

	net       span     // IP header, GRH, or LRH and GRH
	transport span     // UDP or TCP header
	payload   span     // of UDP or TCP but for RoCE, as captured
	sums      []summed // outermost first
	within    int      // how many of them are outside of units
	units     []unit

	fragment *fragment // of a datagram of UDP

	flow     uint64 // of TCP
	sequence uint32 // of the first byte of the payload
}

// Usual numbers of what a packet has, for which there is room at first: headers of IP and UDP, one unit.
const (
	cachedSums  = 2
	cachedUnits = 1
)

// span is a part of a packet.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// unit is a packet of RoCE or InfiniBand within a packet of the capture.
type unit struct {
	bth     int
	payload span   // as captured
	icrc    int    // −1 if it was not captured, or removed
	error   uint32 // what the ICRC differs by from the CRC of what it covers
	data    bool   // of an RDMA WRITE or RDMA READ
	psn     uint32
	key     unitKey // 0: none
	prev    unitRef // one that came before, perhaps a copy
}

// odd is the multiplier of Knuth's multiplicative hashing.
const odd = 0x9e3779b97f4a7c15

// unitKey is a hash that tells packets of RoCE apart; copies have the same. What happens to have the same differs in its bytes. Those of
// packets that follow each other do, too, so that they are close to each other in newest.
type unitKey uint64

func unitKeyOf(f *link.Frame, p *roce.Packet) unitKey {
	to := f.Dst.As16()
	k := binary.BigEndian.Uint64(to[:])*odd ^ binary.BigEndian.Uint64(to[8:])
	k = (k*odd^uint64(p.DestQP))*odd + uint64(p.PSN)
	if p.Opcode.IsReadResponse() { // packets of both directions may go to the same queue pair number
		k ^= 1 << 63
	}
	return unitKey(k | 1<<62)
}

// unitRef names a unit in the window.
type unitRef struct {
	number uint64
	index  int
}

func (h *held) reset() {
	if h.sums == nil {
		room := new(struct {
			sums  [cachedSums]summed
			units [cachedUnits]unit
		})
		h.sums, h.units = room.sums[:0], room.units[:0]
	}
	h.sums, h.units, h.within = h.sums[:0], h.units[:0], 0
	h.net, h.transport, h.payload, h.fragment = span{}, span{}, span{}, nil
}

// keep copies a part as it is.
func (h *held) keep(from, to int) {
	if to = min(to, len(h.data)); from < to {
		copy(h.out[from:to], h.data[from:to])
	}
}

// address replaces an address, if it was captured.
func (s *Scrubber) address(h *held, at int, kind placeKind) {
	switch to := at + placeSizes[kind]; {
	case to > len(h.data):
	case s.opt.KeepAddresses:
		h.keep(at, to)
	default:
		s.addresses.replace(kind, h.out[at:to], h.data[at:to])
	}
}

// within is where part, which is not empty, stands in b.
func within(b, part []byte) span {
	from := int(uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	return span{from, from + len(part)}
}

// Arrival is decode.Observer.Arrival: it takes a packet into the window, with its headers copied.
func (o *observer) Arrival(p *capture.Packet, l *roce.FastPacket) {
	s := (*Scrubber)(o)
	h, both := s.window.Add(p), s.window.Packet(p.Number).Data
	h.reset()
	h.data, h.out = both[:len(p.Data):len(p.Data)], both[len(p.Data):]
	s.stats.Packets++
	if !s.known(s.window.Packet(p.Number), h, l) {
		s.stats.Foreign++
	}
}

// known copies what can be copied at once. It returns false if a packet is not of a kind that is known.
func (s *Scrubber) known(p *capture.Packet, h *held, l *roce.FastPacket) bool {
	if p.Link == capture.LinkTrace {
		return s.event(p, h)
	}
	return s.headers(p, h, l)
}

// headers copies what is known of the headers of a packet. It returns false if that is not to its end.
func (s *Scrubber) headers(p *capture.Packet, h *held, l *roce.FastPacket) bool {
	f := &s.frame
	s.layers = s.layers[:0]
	link.DecodeParts(p.Link, h.data, p.Length, f, &s.layers)
	f.Segment = p.Segment
	if l == nil {
		if at, ok := s.seeker.Seek(f); ok {
			f.Unwrap(at) // what is in front of it stays zero
		}
	}
	known := understood(f)
	if f.Proto == link.InfiniBand && f.Net[0]&lrhVersion != 0 || !known && !identified(p.Link, s.layers) {
		return false
	}
	s.layered(h, s.layers, known)
	if !known || len(f.Net) == 0 {
		return known
	}
	h.net = within(h.data, f.Net)
	switch f.Proto {
	case link.UDP, link.TCP:
		h.transport = within(h.data, f.Transport)
		if f.Proto == link.UDP && f.DstPort == roce.Port {
			s.roce(p.Number, h, f, l)
		} else {
			s.carried(p.Number, h, f)
		}
	case link.RoCEv1, link.InfiniBand:
		s.roce(p.Number, h, f, nil)
	case link.Fragment:
		s.fragment(p.Number, h, f)
	default:
		return false
	}
	return true
}

// carried notes the payload of UDP or TCP.
func (s *Scrubber) carried(number uint64, h *held, f *link.Frame) {
	if len(f.Payload) == 0 {
		return
	}
	h.payload = within(h.data, f.Payload)
	if f.Proto != link.TCP {
		return
	}
	h.mpa()
	h.flow, h.sequence = s.flowOf(f), f.TCPSeq
	if f.TCPFlags&2 != 0 { // SYN takes a number
		h.sequence++
	}
	s.streams.add(s, number, h)
}

// understood reports whether a frame carries what has a name. What a tunnel seems to carry may be no frame at all.
func understood(f *link.Frame) bool { return f.Proto != link.None || f.Unknown.Named() }

// identified reports whether something before all tunnels says what a frame is.
func identified(t capture.LinkType, layers []link.Part) bool {
	return t == capture.LinkEthernet || slices.ContainsFunc(layers, func(x link.Part) bool {
		return x.Tunnels == 0 && (x.Kind == link.PartIPv4 || x.Kind == link.PartIPv6)
	})
}

const lrhVersion = 0x0f

// Parts of network headers.
const (
	ipv4Size = 20
	ipv4Src  = 12
	ipv4Dst  = 16
	ipv6Size = 40
	ipv6Src  = 8
	ipv6Dst  = 24
)

// layered copies headers, of those in tunnels only if all of them are known.
func (s *Scrubber) layered(h *held, all []link.Part, known bool) {
	var addresses span
	for i := range all {
		p := &all[i]
		if len(p.Head) == 0 || p.Tunnels > 0 && !known {
			continue
		}
		head := within(h.data, p.Head)
		at := head.from
		switch p.Kind {
		case link.PartMAC:
			s.address(h, at, placeMAC)
			continue
		case link.PartGID:
			s.address(h, at, placeIPv6)
			continue
		case link.PartIPv4:
			h.keep(at, at+ipv4Size)
			s.address(h, at+ipv4Src, placeIPv4)
			s.address(h, at+ipv4Dst, placeIPv4)
			addresses = span{at + ipv4Src, at + ipv4Size}
		case link.PartIPv6:
			h.keep(at, at+ipv6Size)
			s.address(h, at+ipv6Src, placeIPv6)
			s.address(h, at+ipv6Dst, placeIPv6)
			addresses = span{at + ipv6Src, at + ipv6Size}
			continue
		case link.PartTCP:
			h.tcp(head)
		case link.PartNumbers:
			h.keep(at, head.to)
			continue
		default:
			h.keep(at, head.to)
		}
		var body span
		if len(p.Body) > 0 {
			body = within(h.data, p.Body)
		}
		h.summed(p.Kind, addresses, head, body)
	}
}

const (
	tcpSize = 20
	tcpEnd  = 0
	tcpNop  = 1
)

// tcpOptions are the sizes of options of TCP that tell nothing: maximum segment size, window scale, SACK permitted, timestamps, and SACK with
// up to four blocks.
var tcpOptions = [...][]int{2: {4}, 3: {3}, 4: {2}, 5: {10, 18, 26, 34}, 8: {10}}

// tcp copies a TCP header.
func (h *held) tcp(x span) {
	h.keep(x.from, x.from+tcpSize)
	for at := x.from + tcpSize; at < x.to && h.data[at] != tcpEnd; {
		kind := h.data[at]
		if kind == tcpNop {
			h.keep(at, at+1)
			at++
			continue
		}
		if at+2 > x.to {
			break
		}
		size := int(h.data[at+1])
		if size < 2 || at+size > x.to {
			break
		}
		h.keep(at, at+2)
		if int(kind) < len(tcpOptions) && slices.Contains(tcpOptions[kind], size) {
			h.keep(at, at+size)
		}
		at += size
	}
}

// mpa copies a request or reply of MPA (RFC 5044, RFC 6581), with what RPC-over-RDMA says in it.
func (h *held) mpa() {
	const (
		key      = 16
		size     = 20
		revision = 17
		enhanced = 4
	)
	b := h.data[h.payload.from:h.payload.to]
	if len(b) < size || string(b[:key]) != "MPA ID Req Frame" && string(b[:key]) != "MPA ID Rep Frame" {
		return
	}
	at := h.payload.from + size
	h.keep(h.payload.from, at)
	length := int(binary.BigEndian.Uint16(b[18:]))
	if b[revision] >= 2 && length >= enhanced {
		h.keep(at, min(at+enhanced, h.payload.to))
		at += enhanced
		length -= enhanced
	}
	h.private(at, min(at+length, h.payload.to))
}

// private copies private data of RPC-over-RDMA (RFC 8797), and no other.
func (h *held) private(from, to int) {
	var p rdma.PrivateData
	if from+rdma.PrivateDataSize <= to && p.Decode(h.data[from:to]) {
		h.keep(from, from+rdma.PrivateDataSize)
	}
}

// faultSize is the size of what a base transport header begins with: opcode, pad count and version (IBTA volume 1, section 9.2). They say why a
// packet is no packet of RoCE.
const faultSize = 2

// reserved are the reserved bits of a base transport header (IBTA volume 1, section 9.2). Text has some.
func reserved(bth []byte) byte { return bth[4]&0x3f | bth[8]&0x7f }

// roce copies the headers of packets of RoCE or InfiniBand. l is the only one, whose ICRC is right, or nil.
func (s *Scrubber) roce(number uint64, h *held, f *link.Frame, l *roce.FastPacket) {
	at := h.net.to
	if f.Proto == link.UDP {
		at = h.transport.to
	}
	h.within = len(h.sums)
	if l != nil {
		l.Packet(h.data, &s.fast)
		s.transported(number, h, f, &s.fast, at, at+len(f.Payload))
		return
	}
	end, p, ok := at+len(f.Payload), &s.packet, true
	for s.split.Reset(f); ok && s.split.Next(p) && at < end; {
		at, ok = s.transported(number, h, f, p, at, end)
	}
}

// transported copies the headers of the packet of RoCE or InfiniBand that begins at an offset. It returns where the next one begins, and
// false if what follows is not known.
func (s *Scrubber) transported(number uint64, h *held, f *link.Frame, p *roce.Packet, at, end int) (next int, ok bool) {
	size := p.Opcode.HeaderSize()
	switch {
	case p.Problem == roce.NoProblem && (p.ICRC != roce.Bad || !p.Opcode.IsManufacturer() && reserved(h.data[at:]) == 0):
	case p.Problem == roce.ProblemCutBTH || p.Problem == roce.ProblemCutHeaders:
		h.keep(at, at+roce.BTHSize) // extension headers that were cut stay zero
		return 0, false
	default:
		h.keep(at, at+faultSize) // it may be anything that came to RoCE's port
		return 0, false
	}
	if at+size > end {
		h.keep(at, at+roce.BTHSize)
		return 0, false
	}
	h.keep(at, at+size)
	h.operands(p, at+roce.BTHSize)
	h.units = append(h.units, unit{})
	index := len(h.units) - 1
	u := &h.units[index]
	u.bth, u.payload, u.icrc, u.psn = at, span{at + size, at + size + len(p.Payload)}, -1, p.PSN
	u.data = p.Opcode.IsWrite() || p.Opcode.IsReadResponse()
	if next = at + size + p.PayloadLen + int(p.Pad) + roce.ICRCSize; next <= end {
		h.keep(next-roce.ICRCSize, next)
		s.invariant(h, u, next-roce.ICRCSize)
	}
	if p.DestQP == 1 && p.Opcode.Service() == roce.ServiceUD {
		s.management(h, u.payload)
	} else if u.payload.len() > 0 && !s.ipoib(number, h, f, p) {
		u.key = unitKeyOf(f, p)
		s.copies(unitRef{number, index}, h, u)
	}
	return next, true
}

// ipoib copies the headers of an IP packet in a message of one packet of InfiniBand (RFC 4391, RFC 4755), if there is one.
func (s *Scrubber) ipoib(number uint64, h *held, f *link.Frame, p *roce.Packet) bool {
	n := len(s.layers)
	if f.Proto != link.InfiniBand || !p.Opcode.IsSend() || !p.Opcode.IsOnly() || !link.DecodeIPoIB(f, p.PKey, p.Payload, p.PayloadLen, &s.inner) {
		return false
	}
	if !understood(&s.inner) {
		s.layers = s.layers[:n]
		return true
	}
	s.layered(h, s.layers[n:], true)
	s.carried(number, h, &s.inner)
	return true
}

// withoutData is the copy of a packet, up to its headers if nothing but zeros follows.
func (h *held) withoutData() []byte {
	if len(h.units) != 1 || !h.units[0].data {
		return h.out
	}
	if p := h.units[0].payload; !constant(h.out[p.from:p.to], 0) {
		return h.out
	}
	return h.out[:h.units[0].payload.from]
}

// operands takes away the operands of atomics and immediate data, which are data.
func (h *held) operands(p *roce.Packet, at int) {
	const (
		atomicData = 12 // behind the address and the key
		atomicSize = 28
		ackSize    = 8
	)
	headers := p.Headers
	if headers.Has(roce.HasAtomicETH) {
		from := at + (headers & (roce.HasAtomicETH - 1)).Size()
		clear(h.out[from+atomicData : from+atomicSize])
	}
	if headers.Has(roce.HasAtomicAckETH) {
		from := at + (headers & (roce.HasAtomicAckETH - 1)).Size()
		clear(h.out[from : from+ackSize])
	}
	if headers.Has(roce.HasImmDt) {
		from := at + (headers & (roce.HasImmDt - 1)).Size()
		clear(h.out[from : from+roce.ImmDtSize])
	}
}
