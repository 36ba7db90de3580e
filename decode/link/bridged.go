package link

import "encoding/binary"

// decodeTRILL reads the header of RFC 6325, section 3; an Ethernet frame follows.
//
//	+---+---+-+----------+-----------+-------------------------------+
//	| V | R |M| op-length| hop count |        egress nickname        |
//	+---+---+-+----------+-----------+-------------------------------+
//	|       ingress nickname         |  options, 4 * op-length bytes …
func decodeTRILL(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 6 {
		return f.stop(ProblemCutTRILL)
	}
	head := binary.BigEndian.Uint16(data)
	size := 6 + 4*int(head>>6&0x1f)
	switch {
	case head>>14 != 0:
		return f.stop(ProblemTRILLVersion)
	case len(data) < size:
		return f.stop(ProblemCutTRILL)
	case !f.enter(Tunnel{Type: TRILL}):
		return nil, nil, 0
	}
	f.numbers(data[:6])
	return decodeEthernet, data[size:], n - size
}

// decodeFabricPath reads Cisco's tag: tree 10, TTL 6. An Ethernet frame follows.
func decodeFabricPath(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 2 {
		return f.stop(ProblemCutFabricPath)
	}
	return f.within(Tunnel{Type: FabricPath}, 2, decodeEthernet, data, n)
}

// decodeEtherIP reads the header of RFC 3378, section 3: version 4 (3), reserved 12. An Ethernet frame follows.
func decodeEtherIP(data []byte, n int, f *Frame) (header, []byte, int) {
	switch {
	case len(data) < 2:
		return f.stop(ProblemCutEtherIP)
	case data[0]>>4 != 3:
		return f.stop(ProblemEtherIPVersion)
	}
	return f.within(Tunnel{Type: EtherIP}, 2, decodeEthernet, data, n)
}
