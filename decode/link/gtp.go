package link

import "encoding/binary"

const (
	gtpSize       = 8
	gtpPDU        = 0xff // message type of a user's packet
	gtpOptional   = 0x07 // E, S or PN: four more bytes
	gtpExtended   = 0x04
	gtpExtensions = 8 // followed at most
)

// decodeGTP reads a header of GTP-U (3GPP TS 29.281, section 5): version 3 (1), protocol type 1 (1), reserved, E, S, PN; message
// type 8; length 16; tunnel endpoint 32; with E, S or PN sequence number 16, N-PDU number 8, next extension 8. An extension has
// its length in units of four bytes 8, its content, and the type of the next 8. An IP packet follows. It reports false if this is
// no packet of a user.
func decodeGTP(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < gtpSize || data[0]>>4 != 3 || data[1] != gtpPDU || int(binary.BigEndian.Uint16(data[2:])) > n-gtpSize {
		return nil, nil, 0
	}
	size := gtpSize
	if data[0]&gtpOptional != 0 {
		size += 4
	}
	if len(data) <= size {
		return nil, nil, 0
	}
	for i := 0; data[0]&gtpExtended != 0 && data[size-1] != 0; i++ {
		more := 4 * int(data[size])
		if more == 0 || i == gtpExtensions || len(data) <= size+more {
			return nil, nil, 0
		}
		size += more
	}
	if v := data[size] >> 4; v != 4 && v != 6 {
		return nil, nil, 0
	}
	id := binary.BigEndian.Uint32(data[4:])
	if f.enter(Tunnel{Type: GTP, HasID: true, ID: id}) {
		f.extensions(data[:size])
		return decodeIP, data[size:], n - size
	}
	return nil, nil, 0
}
