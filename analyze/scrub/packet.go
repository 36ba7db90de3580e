package scrub

import (
	"encoding/binary"
	"unsafe"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// held is a packet in the window: what was captured, and its copy, of which only the headers are there at first.
type held struct {
	data, out []byte

	proto     link.Proto
	net       span // IP header, GRH, or LRH and GRH
	transport span // UDP or TCP header
	payload   span // of UDP or TCP, as captured
	places    []place
	units     []unit

	flow     uint64 // of TCP
	sequence uint32 // of the first byte of the payload
}

// span is a part of a packet.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// place is where an address stands.
type place struct {
	at   int
	kind placeKind
}

// unit is a packet of RoCE or InfiniBand within a packet of the capture.
type unit struct {
	bth     int
	payload span // as captured
	icrc    int  // −1 if it was not captured
	data    bool // of an RDMA WRITE or RDMA READ
	key     unitKey
	prev    unitRef // the copy that came before
}

// unitKey tells packets of RoCE apart; copies have the same.
type unitKey struct {
	to      [16]byte
	qpn     uint32
	psn     uint32
	request bool // packets of both directions may go to the same queue pair number
}

// unitRef names a unit in the window.
type unitRef struct {
	number uint64
	index  int
}

func (h *held) reset() {
	*h = held{places: h.places[:0], units: h.units[:0]}
}

// keep copies a part as it is.
func (h *held) keep(from, to int) {
	if to = min(to, len(h.data)); from < to {
		copy(h.out[from:to], h.data[from:to])
	}
}

// address notes an address, if it was captured.
func (h *held) address(at int, kind placeKind) {
	if at+placeSizes[kind] <= len(h.data) {
		h.places = append(h.places, place{at, kind})
	}
}

// within is where part, which is not empty, stands in b.
func within(b, part []byte) span {
	from := int(uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	return span{from, from + len(part)}
}

// hold takes a packet into the window, with its headers copied.
func (s *Scrubber) hold(p *capture.Packet) {
	n := len(p.Data)
	s.double = append(s.double[:0], p.Data...)
	s.double = append(s.double, make([]byte, n)...)
	q := *p
	q.Data = s.double
	s.window.Add(&q)
	h := s.window.At(p.Number) // its place does not change until the next packet comes
	h.reset()
	both := s.window.Packet(p.Number).Data
	h.data, h.out = both[:n:n], both[n:]
	s.stats.Packets++
	if !s.headers(p, h) {
		s.stats.Foreign++
	}
}

// headers copies what is known of the headers of a packet. It returns false if that is next to nothing.
func (s *Scrubber) headers(p *capture.Packet, h *held) bool {
	f := &s.frame
	link.Decode(p.Link, h.data, p.Length, f)
	f.Segment = p.Segment
	if len(f.Tunnels) > 0 {
		return false
	}
	if len(f.Net) == 0 {
		return s.noNetwork(p.Link, h, f)
	}
	h.proto = f.Proto
	h.net = within(h.data, f.Net)
	if !h.link(p.Link, h.net.from) {
		h.places = h.places[:0]
		return false
	}
	if !h.network(f) {
		return false
	}
	switch f.Proto {
	case link.UDP, link.TCP:
		if len(f.Transport) == 0 {
			return true
		}
		h.transport = within(h.data, f.Transport)
		h.payload = span{h.transport.to, h.transport.to}
		if len(f.Payload) > 0 {
			h.payload = within(h.data, f.Payload)
		}
		if f.Proto == link.TCP {
			s.tcp(p.Number, h, f)
			return true
		}
		h.keep(h.transport.from, h.transport.to)
		if f.DstPort == roce.Port {
			s.roce(p.Number, h, f)
		}
	case link.RoCEv1, link.InfiniBand:
		s.roce(p.Number, h, f)
	case link.Fragment:
		s.stats.Fragments++
	default:
		return false
	}
	return true
}

// Headers of the link layer.
const (
	etherSize   = 14
	etherTypeAt = 12
	vlanSize    = 4
	sllSize     = 16
	sll2Size    = 20
)

// typeAt is where the type of what follows stands, for links that may have VLAN tags.
var typeAt = map[capture.LinkType]int{capture.LinkEthernet: etherTypeAt, capture.LinkSLL: 14, capture.LinkSLL2: 0}

func isVLAN(etherType uint16) bool {
	return etherType == 0x8100 || etherType == 0x88a8 || etherType == 0x9100
}

// link copies the header of the link layer, which ends at end. It returns false for one that is not known.
func (h *held) link(t capture.LinkType, end int) bool {
	size, ok := linkSizes[t]
	if !ok || size > end {
		return false
	}
	at := size
	for from, has := typeAt[t]; has && at < end && isVLAN(binary.BigEndian.Uint16(h.data[from:])); at += vlanSize {
		from = at + 2
	}
	if at != end {
		return false
	}
	h.keep(0, end)
	switch t {
	case capture.LinkEthernet:
		h.address(0, placeMAC)
		h.address(6, placeMAC)
	case capture.LinkSLL:
		h.linkAddress(6, int(binary.BigEndian.Uint16(h.data[4:])))
	case capture.LinkSLL2:
		h.linkAddress(12, int(h.data[11]))
	}
	return true
}

// linkSizes are the sizes of link headers that are known, without tags.
var linkSizes = map[capture.LinkType]int{
	capture.LinkEthernet: etherSize, capture.LinkSLL: sllSize, capture.LinkSLL2: sll2Size, capture.LinkInfiniBand: 0,
	capture.LinkRaw: 0, capture.LinkRawBSD: 0, capture.LinkRawOpenBSD: 0, capture.LinkIPv4: 0, capture.LinkIPv6: 0,
	capture.LinkNull: 4, capture.LinkLoop: 4,
}

// linkAddress notes the address in eight bytes of a cooked header. One of another kind than Ethernet's is not copied.
func (h *held) linkAddress(at, size int) {
	clear(h.out[at : at+8])
	if size == placeSizes[placeMAC] {
		h.address(at, placeMAC)
	}
}

// noNetwork copies what there is of a packet without a network header.
func (s *Scrubber) noNetwork(t capture.LinkType, h *held, f *link.Frame) bool {
	const (
		macControl  = 0x8808
		controlSize = 20 // opcode, class enable vector, eight times
	)
	if t != capture.LinkEthernet || len(h.data) < etherSize {
		return false
	}
	h.keep(etherTypeAt, etherSize)
	h.address(0, placeMAC)
	h.address(6, placeMAC)
	if binary.BigEndian.Uint16(h.data[etherTypeAt:]) == macControl && len(f.Payload) > 0 {
		h.keep(etherSize, etherSize+controlSize)
		return true
	}
	return false
}

// Parts of network headers.
const (
	ipv4Size = 20
	ipv4Src  = 12
	ipv4Dst  = 16
	ipv6Size = 40
	ipv6Src  = 8
	ipv6Dst  = 24
	lrhSize  = 8

	lrhVersion = 0x0f
)

// network copies the network header, without options. It returns false for one of another version of InfiniBand.
func (h *held) network(f *link.Frame) bool {
	at := h.net.from
	if f.Proto == link.InfiniBand {
		if h.data[at]&lrhVersion != 0 {
			return false
		}
		h.keep(at, at+lrhSize)
		at += lrhSize
		if at == h.net.to {
			return true
		}
	}
	if f.Proto != link.InfiniBand && h.data[at]>>4 == 4 {
		h.keep(at, at+ipv4Size)
		h.address(at+ipv4Src, placeIPv4)
		h.address(at+ipv4Dst, placeIPv4)
		return true
	}
	h.keep(at, at+ipv6Size)
	h.address(at+ipv6Src, placeIPv6)
	h.address(at+ipv6Dst, placeIPv6)
	h.extensions(h.data[at+6], at+ipv6Size)
	return true
}

// extensions copies the frames of IPv6 extension headers, not what is in them.
func (h *held) extensions(next uint8, at int) {
	const fragment = 44
	for at+8 <= h.net.to {
		size := 8 + 8*int(h.data[at+1])
		h.keep(at, at+2)
		if next == fragment {
			size = 8
			h.keep(at, at+size)
		}
		next, at = h.data[at], at+size
	}
}

// Options of TCP that tell nothing: end, no operation, maximum segment size, window scale, SACK permitted, SACK, timestamps.
const (
	tcpSize       = 20
	tcpEnd        = 0
	tcpNop        = 1
	tcpTimestamps = 8
)

var tcpOptions = [...]bool{2: true, 3: true, 4: true, 5: true, tcpTimestamps: true}

// tcp copies a TCP header, and the frame of MPA if there is one.
func (s *Scrubber) tcp(number uint64, h *held, f *link.Frame) {
	h.keep(h.transport.from, h.transport.from+tcpSize)
	for at := h.transport.from + tcpSize; at < h.transport.to && h.data[at] != tcpEnd; {
		kind := h.data[at]
		if kind == tcpNop {
			h.keep(at, at+1)
			at++
			continue
		}
		if at+2 > h.transport.to {
			break
		}
		size := int(h.data[at+1])
		if size < 2 || at+size > h.transport.to {
			break
		}
		h.keep(at, at+2)
		if int(kind) < len(tcpOptions) && tcpOptions[kind] {
			h.keep(at, at+size)
		}
		at += size
	}
	if h.payload.len() > 0 {
		h.mpa()
		h.flow, h.sequence = s.flowOf(f), f.TCPSeq
		if f.TCPFlags&2 != 0 { // SYN takes a number
			h.sequence++
		}
		s.streams.add(s, number, h)
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

// roce copies the headers of packets of RoCE or InfiniBand.
func (s *Scrubber) roce(number uint64, h *held, f *link.Frame) {
	at := h.net.to
	if f.Proto == link.UDP {
		at = h.transport.to
	}
	end := at + len(f.Payload)
	p := &s.packet
	for s.split.Reset(f); s.split.Next(p) && at < end; {
		size := roce.BTHSize + p.Opcode.Headers().Size()
		h.keep(at, at+roce.BTHSize)
		if p.Problem != roce.NoProblem || at+size > end {
			return // headers that were cut stay zero
		}
		h.keep(at, at+size)
		h.operands(p, at+roce.BTHSize)
		u := unit{bth: at, payload: span{at + size, at + size + len(p.Payload)}, icrc: -1, data: p.Opcode.IsWrite() || p.Opcode.IsReadResponse()}
		next := at + size + p.PayloadLen + int(p.Pad) + roce.ICRCSize
		if next <= end {
			u.icrc = next - roce.ICRCSize
			h.keep(u.icrc, next)
		}
		if p.DestQP == 1 && p.Opcode.Service() == roce.ServiceUD {
			h.management(u.payload)
		} else if u.payload.len() > 0 {
			u.key = unitKey{to: f.Dst.As16(), qpn: p.DestQP, psn: p.PSN, request: !p.Opcode.IsReadResponse()}
			s.copies(number, h, &u)
		}
		h.units = append(h.units, u)
		at = next
	}
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
