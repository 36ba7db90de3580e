package link

import "encoding/binary"

// Versions in an ERSPAN header.
const (
	erspanTypeII  = 1
	erspanTypeIII = 2
)

// Frame types of ERSPAN III.
const (
	erspanEthernet = 0
	erspanIP       = 2
)

// decodeERSPAN reads the headers of the types II and III
// (draft-foschiano-erspan-03, section 4); type I has none.
//
//	+-------+-----------------------+-----+---+-+-------------------+
//	|version|         VLAN          | COS |en |T|      session      |  II and III
//	+-------+---------------+-------+-----+---+-+-------------------+
//	|       reserved        |                index                  |  II
//	+-----------------------+---------------------------------------+
//	|                           timestamp                           |  III
//	+-------------------------------+-+---------+-----------+-+---+-+
//	|      security group tag       |P|   FT    |   Hw ID   |D|Gra|O|  III
//	+-------------------------------+-+---------+-----------+-+---+-+
//	|  platform |        information of the platform, 58 bits       |  III, if O is set
//
// h is the GRE header before it. T says that the switch cut the frame. en of type III is BSO: bad, short or
// oversized.
func decodeERSPAN(h *greHeader, data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 8 {
		return f.stop(ProblemCutERSPAN)
	}
	word := binary.BigEndian.Uint32(data)
	t := Tunnel{Type: ERSPAN, HasID: true, ID: word & 0x03ff, Truncated: word&0x0400 != 0, Sequence: h.sequence, Sequenced: h.has(greSequence)}
	head, frame := 8, uint16(erspanEthernet)
	switch word >> 28 {
	case erspanTypeII:
		t.Version = 2
	case erspanTypeIII:
		t.Version = 3
		head = 12
		if len(data) < head {
			return f.stop(ProblemCutERSPAN)
		}
		t.Clock = uint64(binary.BigEndian.Uint32(data[4:]))
		bits := binary.BigEndian.Uint16(data[10:])
		t.Granularity = Clock100us + Granularity(bits>>1&3)
		frame = bits >> 10 & 0x1f
		if bits&1 != 0 {
			if len(data) < head+8 {
				return f.stop(ProblemCutERSPANSub)
			}
			// These platforms extend the timestamp in the second word.
			switch binary.BigEndian.Uint32(data[head:]) >> 26 {
			case 0, 3, 5, 6, 7:
				t.Clock |= uint64(binary.BigEndian.Uint32(data[head+4:])) << 32
			}
			head += 8
		}
	default:
		return f.stop(ProblemERSPANVersion)
	}
	if !f.enter(t) {
		return nil, nil, 0
	}
	f.numbers(data[:head])
	switch frame {
	case erspanEthernet:
		return decodeEthernet, data[head:], n - head
	case erspanIP:
		return decodeIP, data[head:], n - head
	}
	return f.unknown(ERSPANLayer, uint32(frame), data[head:], n-head)
}
