package link

import "encoding/binary"

// UDP destination ports of tunnels.
const (
	udpGTP          = 2152  // 3GPP TS 29.281
	udpGREPort      = 4754  // RFC 8086
	udpVXLAN        = 4789  // RFC 7348
	udpVXLANGPE     = 4790  // draft-ietf-nvo3-vxlan-gpe
	udpGENEVE       = 6081  // RFC 8926
	udpMPLS         = 6635  // RFC 7510
	udpVXLANOld     = 8472  // before the port was assigned; Linux's default
	udpTZSP         = 37008 // by convention
	vxlanHeaderSize = 8
)

// Next protocols of VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe-12, section 3.1) and
// NSH (RFC 8300, section 2.2).
const (
	nextIPv4     = 1
	nextIPv6     = 2
	nextEthernet = 3
	nextNSH      = 4
	nextMPLS     = 5
)

// decodeUDPTunnel looks for a tunnel after a UDP header with the given destination port; n is the declared
// length of data. It returns false if there is none: the ports are also used otherwise, so the headers must
// be consistent.
func decodeUDPTunnel(port uint16, data []byte, n int, f *Frame) bool {
	switch port {
	case udpVXLAN, udpVXLANOld:
		return decodeVXLAN(data, n, f)
	case udpVXLANGPE:
		return decodeVXLANGPE(data, n, f)
	case udpGENEVE:
		return decodeGENEVE(data, n, f)
	case udpGTP:
		return decodeGTP(data, n, f)
	case udpTZSP:
		return decodeTZSP(data, n, f)
	case udpGREPort:
		if len(data) < 4 || binary.BigEndian.Uint16(data)&greReserved != 0 {
			return false
		}
		f.Proto = None
		decodeGRE(data, n, f)
		return true
	case udpMPLS:
		if len(data) < 4 {
			return false
		}
		f.Proto = None
		decodeMPLS(data, n, f)
		return true
	}
	return false
}

// decodeVXLAN reads the header of RFC 7348, section 5; an Ethernet frame
// follows.
//
//	+-+-+-+-+-+-+-+-+-----------------------------------------------+
//	|R R R R I R R R|                   reserved                    |
//	+---------------+-------------------------------+---------------+
//	|      VXLAN network identifier (VNI)           |   reserved    |
//	+-----------------------------------------------+---------------+
//
// Extensions use reserved bits (group policy 0x80, the protocol 0x04); they
// keep the size and the place of the VNI.
func decodeVXLAN(data []byte, n int, f *Frame) bool {
	if len(data) < vxlanHeaderSize || data[0]&0x08 == 0 || data[0]&0x33 != 0 {
		return false
	}
	if data[0]&0x04 != 0 {
		return decodeVXLANGPE(data, n, f)
	}
	if f.enter(Tunnel{Type: VXLAN, HasID: true, ID: binary.BigEndian.Uint32(data[4:]) >> 8}) {
		f.numbers(data[:vxlanHeaderSize])
		decodeEthernet(data[vxlanHeaderSize:], n-vxlanHeaderSize, f)
	}
	return true
}

// decodeVXLANGPE reads the generic protocol extension
// (draft-ietf-nvo3-vxlan-gpe-12, section 3): flags Ver 2, I 0x08, P 0x04,
// B 0x02, O 0x01; reserved 16; next protocol 8; VNI 24; reserved 8. Without P
// an Ethernet frame follows.
func decodeVXLANGPE(data []byte, n int, f *Frame) bool {
	if len(data) < vxlanHeaderSize || data[0]&0xf0 != 0 && data[0]&0xf0 != 0x80 || data[0]&0x0c == 0 {
		return false
	}
	next := byte(nextEthernet)
	if data[0]&0x04 != 0 {
		next = data[3]
	}
	has := data[0]&0x08 != 0
	t := Tunnel{Type: VXLANGPE, HasID: has}
	if has {
		t.ID = binary.BigEndian.Uint32(data[4:]) >> 8
	}
	if f.enter(t) {
		f.numbers(data[:vxlanHeaderSize])
		decodeNext(next, data[vxlanHeaderSize:], n-vxlanHeaderSize, f)
	}
	return true
}

// decodeNext continues after a next-protocol field of VXLAN-GPE or NSH.
func decodeNext(next byte, data []byte, n int, f *Frame) {
	switch next {
	case nextIPv4:
		decodeIPv4(data, n, f)
	case nextIPv6:
		decodeIPv6(data, n, f)
	case nextEthernet:
		decodeEthernet(data, n, f)
	case nextNSH:
		decodeNSH(data, n, f)
	case nextMPLS:
		decodeMPLS(data, n, f)
	default:
		f.unknown(NextLayer, uint32(next), data, n)
	}
}
