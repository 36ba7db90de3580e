package link

import "encoding/binary"

// PPP protocols (RFC 1661, section 2; IANA registry).
const (
	pppIPv4     = 0x0021
	pppIPv6     = 0x0057
	pppMPLS     = 0x0281
	pppMPLSMult = 0x0283
)

// decodePPPoE reads the header of a PPPoE session (RFC 2516, section 4): version
// 4 and type 4, both 1; code 8, 0 for session data; session 16; length 16. A PPP
// frame follows.
func decodePPPoE(data []byte, n int, f *Frame) {
	if len(data) < 6 {
		f.Problem = ProblemCutPPPoE
		return
	}
	if data[0] != 0x11 || data[1] != 0 {
		f.Problem = ProblemNotPPPoE
		return
	}
	// The frame may be padded. The stack writes a length of 0 into a frame that it
	// will split.
	if length := int(binary.BigEndian.Uint16(data[4:])); length != 0 && length < n-6 {
		n = 6 + length
	}
	session := uint32(binary.BigEndian.Uint16(data[2:]))
	if f.enter(Tunnel{Type: PPPoE, HasID: true, ID: session}) {
		f.numbers(data[:6])
		decodePPP(data[6:min(len(data), n)], n-6, f)
	}
}

// decodePPP reads a PPP frame: address and control, 0xff 0x03, which may be left
// out; the protocol, 16 bits, or 8 if compressed: those are odd (RFC 1661,
// sections 2 and 6.5).
func decodePPP(data []byte, n int, f *Frame) {
	if len(data) >= 2 && data[0] == 0xff && data[1] == 0x03 {
		f.numbers(data[:2])
		data, n = data[2:], n-2
	}
	if len(data) < 2 {
		f.Problem = ProblemCutPPP
		return
	}
	protocol, head := binary.BigEndian.Uint16(data), 2
	if data[0]&1 != 0 {
		protocol, head = uint16(data[0]), 1
	}
	f.numbers(data[:head])
	data, n = data[head:], n-head
	switch protocol {
	case pppIPv4:
		decodeIPv4(data, n, f)
	case pppIPv6:
		decodeIPv6(data, n, f)
	case pppMPLS, pppMPLSMult:
		decodeMPLS(data, n, f)
	default:
		f.unknown(PPPLayer, uint32(protocol), data, n)
	}
}

// decodeHDLC reads a frame of a serial line (link types PPP_HDLC and C_HDLC):
// PPP if it begins with 0xff, else address 8, control 8 and an EtherType, as
// Cisco has it.
func decodeHDLC(data []byte, n int, f *Frame) {
	switch {
	case len(data) < 4:
		f.Problem = ProblemCutHDLC
	case data[0] == 0x0f || data[0] == 0x8f:
		f.numbers(data[:4])
		decodeEtherType(binary.BigEndian.Uint16(data[2:]), data[4:], n-4, f)
	default:
		decodePPP(data, n, f)
	}
}
