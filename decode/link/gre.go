package link

import "encoding/binary"

// Flags of a GRE header, and its version (RFC 2784, RFC 2890, RFC 1701).
const (
	greChecksum = 0x8000
	greRouting  = 0x4000
	greKey      = 0x2000
	greSequence = 0x1000
	greAck      = 0x0080 // version 1
	greVersion  = 0x0007
	greReserved = 0x0f7f // neither flag of version 0 or 1 nor version: strict route, recursion, reserved
)

// EtherTypes that occur within tunnels.
const (
	etherBridged = 0x6558 // transparent Ethernet bridging: a frame with its header
	etherERSPAN  = 0x88be // types I and II
	etherERSPAN3 = 0x22eb
	etherPPP     = 0x880b
)

// greHeader is a GRE header: flags and version 16, protocol type 16, then,
// each with its flag, checksum and offset 32, key 32, sequence number 32, in
// version 1 also acknowledgment 32. What follows is given by the protocol type.
//
// The checksum is not verified: it covers the inner packet, which has its own.
type greHeader struct {
	flags, protocol uint16
	key, sequence   uint32
}

func (h *greHeader) has(flags uint16) bool { return h.flags&flags != 0 }
func (h *greHeader) version() uint16       { return h.flags & greVersion }

// keyAt is the offset of the key.
func (h *greHeader) keyAt() int {
	if h.has(greChecksum | greRouting) {
		return 8
	}
	return 4
}

// size is the length in bytes.
func (h *greHeader) size() int {
	n := h.keyAt()
	if h.has(greKey) {
		n += 4
	}
	if h.has(greSequence) {
		n += 4
	}
	if h.version() == 1 && h.has(greAck) {
		n += 4
	}
	return n
}

// decode reads the header of a packet of n bytes, and reports what is wrong
// with it.
func (h *greHeader) decode(data []byte, n int) Problem {
	if len(data) < 4 {
		return ProblemCutGRE
	}
	h.flags, h.protocol = binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
	switch size := h.size(); {
	case h.version() > 1 || h.version() == 1 && h.protocol != etherPPP:
		return ProblemGREVersion
	case size > n:
		return ProblemShortGRE
	case size > len(data):
		return ProblemCutGRE
	}
	at := h.keyAt()
	if h.has(greKey) {
		h.key = binary.BigEndian.Uint32(data[at:])
		at += 4
	}
	if h.has(greSequence) {
		h.sequence = binary.BigEndian.Uint32(data[at:])
	}
	return NoProblem
}

// tunnel is the tunnel of a header of version 0, other than ERSPAN. RFC 7637, section 3.2: an NVGRE header has
// a key and nothing else, VSID 24 bits and flow 8.
func (h *greHeader) tunnel() Tunnel {
	t := Tunnel{Type: GRE, HasID: h.has(greKey), ID: h.key, Sequence: h.sequence, Sequenced: h.has(greSequence)}
	if h.protocol == etherBridged && h.flags&(greChecksum|greKey|greSequence) == greKey {
		t.Type, t.ID = NVGRE, h.key>>8
	}
	return t
}

// decodeGRE reads a GRE header and what it carries.
func decodeGRE(data []byte, n int, f *Frame) (header, []byte, int) {
	var h greHeader
	if p := h.decode(data, n); p != NoProblem {
		return f.stop(p)
	}
	head := data[:h.size()]
	data, n = data[h.size():], n-h.size()
	f.part(PartGRE, head, data)
	switch {
	case h.version() == 1:
		// RFC 2637, section 4.1: the key is payload length 16, call 16.
		return f.within(Tunnel{Type: PPTP, HasID: h.has(greKey), ID: h.key & 0xffff}, 0, decodePPP, data, n)
	case h.protocol == etherERSPAN && !h.has(greSequence):
		return f.within(Tunnel{Type: ERSPAN, Version: 1}, 0, decodeEthernet, data, n)
	case h.protocol == etherERSPAN || h.protocol == etherERSPAN3:
		return decodeERSPAN(&h, data, n, f)
	case h.has(greRouting): // RFC 1701; RFC 2784 has receivers discard them
		return f.stop(ProblemGRERouting)
	}
	if !f.enter(h.tunnel()) {
		return nil, nil, 0
	}
	next, data, n := f.bridged(h.protocol, data, n)
	if f.Unknown.Layer == EtherLayer {
		f.Unknown.Layer = GRELayer
	}
	return next, data, n
}

// bridged is what follows a tunnel header that ends with an EtherType; 0x6558 announces an Ethernet
// header.
func (f *Frame) bridged(etherType uint16, data []byte, n int) (header, []byte, int) {
	if etherType == etherBridged {
		return decodeEthernet, data, n
	}
	return f.ether(etherType, data, n)
}
