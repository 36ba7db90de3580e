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

// decodeGRE reads a GRE header: flags and version 16, protocol type 16, then,
// each with its flag, checksum and offset 32, key 32, sequence number 32. What
// follows is given by the protocol type.
//
// The checksum is not verified: it covers the inner packet, which has its own.
func decodeGRE(data []byte, n int, f *Frame) {
	if len(data) < 4 {
		f.Problem = ProblemCutGRE
		return
	}
	flags, protocol := binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
	version := flags & greVersion
	head := 4
	if flags&(greChecksum|greRouting) != 0 {
		head += 4
	}
	keyAt := head
	if flags&greKey != 0 {
		head += 4
	}
	if flags&greSequence != 0 {
		head += 4
	}
	if version == 1 && flags&greAck != 0 {
		head += 4
	}
	switch {
	case version > 1 || version == 1 && protocol != etherPPP:
		f.Problem = ProblemGREVersion
		return
	case head > n:
		f.Problem = ProblemShortGRE
		return
	case head > len(data):
		f.Problem = ProblemCutGRE
		return
	}
	t := Tunnel{Type: GRE}
	if flags&greKey != 0 {
		t.HasID, t.ID = true, binary.BigEndian.Uint32(data[keyAt:])
	}
	data, n = data[head:], n-head
	switch {
	case version == 1:
		// RFC 2637, section 4.1: the key is payload length 16, call 16.
		t.Type, t.ID = PPTP, t.ID&0xffff
		if f.enter(t) {
			decodePPP(data, n, f)
		}
	case protocol == etherERSPAN && flags&greSequence == 0:
		if f.enter(Tunnel{Type: ERSPAN, Version: 1}) {
			decodeEthernet(data, n, f)
		}
	case protocol == etherERSPAN || protocol == etherERSPAN3:
		decodeERSPAN(data, n, f)
	case flags&greRouting != 0: // RFC 1701; RFC 2784 has receivers discard them
		f.Problem = ProblemGRERouting
	default:
		// RFC 7637, section 3.2: an NVGRE header has a key and nothing else, VSID
		// 24 bits and flow 8.
		if protocol == etherBridged && flags&(greChecksum|greKey|greSequence) == greKey {
			t.Type, t.ID = NVGRE, t.ID>>8
		}
		if f.enter(t) {
			decodeBridged(protocol, data, n, f)
			if f.Unknown.Layer == EtherLayer && len(f.Tunnels) > 0 && f.Unknown.Value == uint32(protocol) {
				f.Unknown.Layer = GRELayer
			}
		}
	}
}

// decodeBridged continues after a tunnel header that ends with an EtherType; 0x6558 announces an Ethernet
// header.
func decodeBridged(etherType uint16, data []byte, n int, f *Frame) {
	if etherType == etherBridged {
		decodeEthernet(data, n, f)
		return
	}
	decodeEtherType(etherType, data, n, f)
}
