package link

import "encoding/binary"

// Attributes of NFLOG (linux/netfilter/nfnetlink_log.h).
const nflogPayload = 9

// decodeNFLOG reads a message of Linux's netfilter log (LINKTYPE_NFLOG): address
// family 8, version 8, resource 16, then attributes: length 16 with these four
// bytes, type 16, value, padding to 4. Length and type are in the order of the
// host that captured: little-endian unless that makes no sense. The payload is
// an IP packet.
func decodeNFLOG(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 4 {
		return f.stop(ProblemCutNFLOG)
	}
	family := data[0]
	left := data[4:]
	f.numbers(data[:4])
	n -= 4
	for len(left) >= 4 {
		size, kind := int(binary.LittleEndian.Uint16(left)), binary.LittleEndian.Uint16(left[2:])
		if kind&0xff == 0 && kind != 0 { // no kind is above 255
			size, kind = int(binary.BigEndian.Uint16(left)), binary.BigEndian.Uint16(left[2:])
		}
		if size < 4 {
			return f.stop(ProblemNFLOGAttribute)
		}
		f.numbers(left[:4])
		if kind == nflogPayload {
			end := min(size, len(left))
			switch family {
			case 2, 10, 7: // AF_INET, AF_INET6, AF_BRIDGE: the packet tells its version
				return decodeIP, left[4:end], max(size-4, 0)
			}
			return f.unknown(FamilyLayer, uint32(family), left[4:end], max(size-4, 0))
		}
		padded := (size + 3) &^ 3
		if padded > len(left) {
			break
		}
		left, n = left[padded:], n-padded
	}
	return f.stop(ProblemNFLOGPacket)
}

// decodePPI reads a per-packet information header (LINKTYPE_PPI): version 8 (0),
// flags 8, length 16, link type 32, all little-endian, then fields up to the
// length. A frame of that link type follows.
func decodePPI(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 8 {
		return f.stop(ProblemCutPPI)
	}
	head := int(binary.LittleEndian.Uint16(data[2:]))
	lt := binary.LittleEndian.Uint32(data[4:])
	switch {
	case data[0] != 0 || head < 8 || head > n:
		return f.stop(ProblemNotPPI)
	case len(data) < head:
		return f.stop(ProblemCutPPI)
	case lt == uint32(linkPPI) || lt > 0xffff: // no frame within a frame without end
		return f.unknown(LinkLayer, lt, data[head:], n-head)
	}
	f.numbers(data[:8])
	return f.link(linkType(lt), data[head:], n-head)
}
