package link

import "encoding/binary"

// Types of TZSP packets that carry a frame, and what they carry.
const (
	tzspReceived = 0
	tzspTransmit = 1
	tzspEthernet = 1
)

// decodeTZSP reads a packet of the TaZmen Sniffer Protocol: version 8 (1), type 8, encapsulated protocol 16,
// then tags, each of type 8, length 8 and as many bytes, except for the tags 0 (pad) and 1 (end), which are
// one byte. The tags must end within the datagram.
func decodeTZSP(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 5 || data[0] != 1 || data[1] > tzspTransmit {
		return nil, nil, 0
	}
	protocol := binary.BigEndian.Uint16(data[2:])
	at := 4
	for {
		if at >= len(data) {
			return nil, nil, 0
		}
		tag := data[at]
		at++
		if tag == 1 {
			break
		}
		if tag == 0 {
			continue
		}
		if at >= len(data) {
			return nil, nil, 0
		}
		at += 1 + int(data[at])
	}
	if !f.enter(Tunnel{Type: TZSP}) {
		return nil, nil, 0
	}
	f.numbers(data[:4])
	f.tags(data[4:at])
	if protocol != tzspEthernet {
		return f.unknown(TZSPLayer, uint32(protocol), data[at:], n-at)
	}
	return decodeEthernet, data[at:], n - at
}
