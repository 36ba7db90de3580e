package link

import "encoding/binary"

// ipoibHeader is the size of the encapsulation header of IP over InfiniBand
// (RFC 4391, section 6): EtherType 16, reserved 16.
const ipoibHeader = 4

// decodeIPoIBCapture reads a frame of LINKTYPE_IPOIB: a GRH, of which captures
// of the receiving side may have but the addresses, or none at all (then it
// is 40 bytes of zero), and the encapsulation header.
func decodeIPoIBCapture(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 40+ipoibHeader {
		return f.stop(ProblemCutIPoIB)
	}
	f.part(PartGID, data[8:24], nil)
	f.part(PartGID, data[24:40], nil)
	return decodeIPoIB, data[40:], n - 40
}

// decodeIPoIB reads the encapsulation header of RFC 4391 and what it carries.
func decodeIPoIB(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < ipoibHeader {
		return f.stop(ProblemCutIPoIB)
	}
	f.numbers(data[:ipoibHeader])
	return f.ether(binary.BigEndian.Uint16(data), data[ipoibHeader:], n-ipoibHeader)
}

// DecodeIPoIB decodes a message of an InfiniBand queue pair if it is IP over InfiniBand (RFC 4391, section 6;
// connected mode RFC 4755). outer is the frame of its last packet, pkey its partition, n its declared length.
// It returns false, with f undefined, if it is something else: no preceding header identifies it, so the IP
// header must be consistent.
func DecodeIPoIB(outer *Frame, pkey uint16, data []byte, n int, f *Frame) bool {
	if !StartsIPoIB(data, n) {
		return false
	}
	*f = Frame{Src: outer.Src, Dst: outer.Dst, Tunnels: append(f.Tunnels[:0], outer.Tunnels...), parts: outer.parts}
	if f.enter(Tunnel{Type: IPoIB, HasID: true, ID: uint32(pkey & 0x7fff)}) {
		f.decode(decodeIPoIB, data, n)
	}
	return true
}

// StartsIPoIB reports whether the first bytes of a message of n bytes look like IP over InfiniBand.
func StartsIPoIB(data []byte, n int) bool {
	if len(data) < ipoibHeader+20 || data[2] != 0 || data[3] != 0 {
		return false
	}
	switch binary.BigEndian.Uint16(data) {
	case etherIPv4:
		return data[4]>>4 == 4 && plausibleIP(data[4:], n-ipoibHeader)
	case etherIPv6:
		return data[4]>>4 == 6 && plausibleIP(data[4:], n-ipoibHeader)
	}
	return false
}
