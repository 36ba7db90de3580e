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
// one byte. It reports false if the tags do not end within the datagram.
func decodeTZSP(data []byte, n int, f *Frame) bool {
	if len(data) < 5 || data[0] != 1 || data[1] > tzspTransmit {
		return false
	}
	protocol := binary.BigEndian.Uint16(data[2:])
	at := 4
	for {
		if at >= len(data) {
			return false
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
			return false
		}
		at += 1 + int(data[at])
	}
	if !f.enter(Tunnel{Type: TZSP}) {
		return true
	}
	f.numbers(data[:4])
	f.tags(data[4:at])
	if protocol != tzspEthernet {
		f.unknown(TZSPLayer, uint32(protocol), data[at:], n-at)
		return true
	}
	decodeEthernet(data[at:], n-at, f)
	return true
}
