package link

import "encoding/binary"

// Tags that stand between the addresses of a frame and its own EtherType: the port of a virtual machine, a ring, a time.

// decodeFixedTag passes a tag of size bytes whose last two are the EtherType of the frame.
func decodeFixedTag(t TunnelType, size int, data []byte, n int, f *Frame) {
	if len(data) < size {
		f.Problem = ProblemCutPortTag
		return
	}
	if f.enter(Tunnel{Type: t}) {
		f.numbers(data[:size])
		decodeEtherType(binary.BigEndian.Uint16(data[size-2:]), data[size:], n-size, f)
	}
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
func decodeArista(data []byte, n int, f *Frame) {
	if len(data) < 4 {
		f.Problem = ProblemCutPortTag
		return
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
		f.unknown(EtherLayer, etherArista, data, n)
		return
	}
	decodeFixedTag(Arista, 4+size+2, data, n, f)
}
