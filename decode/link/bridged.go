package link

import "encoding/binary"

// decodeTRILL reads the header of RFC 6325, section 3; an Ethernet frame follows.
//
//	+---+---+-+----------+-----------+-------------------------------+
//	| V | R |M| op-length| hop count |        egress nickname        |
//	+---+---+-+----------+-----------+-------------------------------+
//	|       ingress nickname         |  options, 4 * op-length bytes …
func decodeTRILL(data []byte, n int, f *Frame) {
	if len(data) < 6 {
		f.Problem = ProblemCutTRILL
		return
	}
	head := binary.BigEndian.Uint16(data)
	size := 6 + 4*int(head>>6&0x1f)
	switch {
	case head>>14 != 0:
		f.Problem = ProblemTRILLVersion
	case len(data) < size:
		f.Problem = ProblemCutTRILL
	case f.enter(Tunnel{Type: TRILL}):
		f.numbers(data[:6])
		decodeEthernet(data[size:], n-size, f)
	}
}

// decodeFabricPath reads Cisco's tag: tree 10, TTL 6. An Ethernet frame follows.
func decodeFabricPath(data []byte, n int, f *Frame) {
	if len(data) < 2 {
		f.Problem = ProblemCutFabricPath
		return
	}
	if f.enter(Tunnel{Type: FabricPath}) {
		f.numbers(data[:2])
		decodeEthernet(data[2:], n-2, f)
	}
}

// decodeEtherIP reads the header of RFC 3378, section 3: version 4 (3), reserved 12. An Ethernet frame follows.
func decodeEtherIP(data []byte, n int, f *Frame) {
	switch {
	case len(data) < 2:
		f.Problem = ProblemCutEtherIP
	case data[0]>>4 != 3:
		f.Problem = ProblemEtherIPVersion
	case f.enter(Tunnel{Type: EtherIP}):
		f.numbers(data[:2])
		decodeEthernet(data[2:], n-2, f)
	}
}
