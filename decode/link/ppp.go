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
func decodePPPoE(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 6 {
		return f.stop(ProblemCutPPPoE)
	}
	if data[0] != 0x11 || data[1] != 0 {
		return f.stop(ProblemNotPPPoE)
	}
	// The frame may be padded. The stack writes a length of 0 into a frame that it
	// will split.
	if length := int(binary.BigEndian.Uint16(data[4:])); length != 0 && length < n-6 {
		n = 6 + length
	}
	session := uint32(binary.BigEndian.Uint16(data[2:]))
	return f.within(Tunnel{Type: PPPoE, HasID: true, ID: session}, 6, decodePPP, data[:min(len(data), n)], n)
}

// decodePPP reads a PPP frame: address and control, 0xff 0x03, which may be left
// out; the protocol, 16 bits, or 8 if compressed: those are odd (RFC 1661,
// sections 2 and 6.5).
func decodePPP(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) >= 2 && data[0] == 0xff && data[1] == 0x03 {
		f.numbers(data[:2])
		data, n = data[2:], n-2
	}
	if len(data) < 2 {
		return f.stop(ProblemCutPPP)
	}
	protocol, head := binary.BigEndian.Uint16(data), 2
	if data[0]&1 != 0 {
		protocol, head = uint16(data[0]), 1
	}
	f.numbers(data[:head])
	data, n = data[head:], n-head
	switch protocol {
	case pppIPv4:
		return decodeIPv4, data, n
	case pppIPv6:
		return decodeIPv6, data, n
	case pppMPLS, pppMPLSMult:
		return decodeMPLS, data, n
	}
	return f.unknown(PPPLayer, uint32(protocol), data, n)
}

// decodePPPWithDir reads a byte with the direction, and a PPP frame.
func decodePPPWithDir(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 1 {
		return f.stop(ProblemCutPPP)
	}
	f.numbers(data[:1])
	return decodePPP, data[1:], n - 1
}

// decodeHDLC reads a frame of a serial line (link types PPP_HDLC and C_HDLC):
// PPP if it begins with 0xff, else address 8, control 8 and an EtherType, as
// Cisco has it.
func decodeHDLC(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 4 {
		return f.stop(ProblemCutHDLC)
	}
	if data[0] != 0x0f && data[0] != 0x8f {
		return decodePPP, data, n
	}
	f.numbers(data[:4])
	return f.ether(binary.BigEndian.Uint16(data[2:]), data[4:], n-4)
}
