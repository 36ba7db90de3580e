package link

import "encoding/binary"

// Tags that stand between the addresses of a frame and its own EtherType: the port of a virtual machine, a ring, a time.

// decodeTag passes a tag of size bytes whose last two are the EtherType of the frame.
func decodeTag(t TunnelType, size int, data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < size {
		return f.stop(ProblemCutPortTag)
	}
	if !f.enter(Tunnel{Type: t}) {
		return nil, nil, 0
	}
	f.numbers(data[:size])
	return f.ether(binary.BigEndian.Uint16(data[size-2:]), data[size:], n-size)
}

func decodeVNTag(data []byte, n int, f *Frame) (header, []byte, int) {
	return decodeTag(VNTag, vnTagSize, data, n, f)
}
func decodeETag(data []byte, n int, f *Frame) (header, []byte, int) {
	return decodeTag(ETag, eTagSize, data, n, f)
}
func decodeHSR(data []byte, n int, f *Frame) (header, []byte, int) {
	return decodeTag(HSR, hsrSize, data, n, f)
}

// Sizes of the tags, with the EtherType that follows.
const (
	vnTagSize = 4 + 2 // direction, pointer, destination VIF 14; looped, version, source VIF 12
	eTagSize  = 6 + 2 // IEEE 802.1BR: priority, ingress E-CID; group, E-CID; their extensions
	hsrSize   = 4 + 2 // IEC 62439-3: path 4, size 12; sequence number 16
)

const (
	aristaTimestamp = 1
	aristaSize48    = 6
	aristaSize64    = 8
)

// decodeArista reads the header that a switch of Arista puts before the EtherType of a copy: subtype 16, version 16. Subtype 1
// is the time: the low byte of its version says how it is written, 0x10 in 64 bits, 0x20 in 48.
func decodeArista(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 4 {
		return f.stop(ProblemCutPortTag)
	}
	size := 0
	if binary.BigEndian.Uint16(data) == aristaTimestamp {
		switch data[3] {
		case 0x10:
			size = aristaSize64
		case 0x20:
			size = aristaSize48
		}
	}
	if size == 0 {
		return f.unknown(EtherLayer, etherArista, data, n)
	}
	return decodeTag(Arista, 4+size+2, data, n, f)
}
