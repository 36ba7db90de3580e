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

// overUDP is the tunnel in a datagram to the port of one. The ports are also used otherwise, so its header must be consistent, or there is
// none.
func (f *Frame) overUDP() (header, []byte, int) {
	var h header
	switch data := f.Payload; f.DstPort {
	case udpVXLAN, udpVXLANOld:
		h = decodeVXLAN
	case udpVXLANGPE:
		h = decodeVXLANGPE
	case udpGENEVE:
		h = decodeGENEVE
	case udpGTP:
		h = decodeGTP
	case udpTZSP:
		h = decodeTZSP
	case udpGREPort:
		if len(data) < 4 || binary.BigEndian.Uint16(data)&greReserved != 0 {
			return nil, nil, 0
		}
		f.Proto, h = None, decodeGRE
	case udpMPLS:
		if len(data) < 4 {
			return nil, nil, 0
		}
		f.Proto, h = None, decodeMPLS
	}
	return h, f.Payload, f.PayloadLen
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
func decodeVXLAN(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < vxlanHeaderSize || data[0]&0x08 == 0 || data[0]&0x33 != 0 {
		return nil, nil, 0
	}
	if data[0]&0x04 != 0 {
		return decodeVXLANGPE, data, n
	}
	return f.within(Tunnel{Type: VXLAN, HasID: true, ID: binary.BigEndian.Uint32(data[4:]) >> 8}, vxlanHeaderSize, decodeEthernet, data, n)
}

// decodeVXLANGPE reads the generic protocol extension
// (draft-ietf-nvo3-vxlan-gpe-12, section 3): flags Ver 2, I 0x08, P 0x04,
// B 0x02, O 0x01; reserved 16; next protocol 8; VNI 24; reserved 8. Without P
// an Ethernet frame follows.
func decodeVXLANGPE(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < vxlanHeaderSize || data[0]&0xf0 != 0 && data[0]&0xf0 != 0x80 || data[0]&0x0c == 0 {
		return nil, nil, 0
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
	if !f.enter(t) {
		return nil, nil, 0
	}
	f.numbers(data[:vxlanHeaderSize])
	return f.next(next, data[vxlanHeaderSize:], n-vxlanHeaderSize)
}

// next is what follows a next-protocol field of VXLAN-GPE or NSH.
func (f *Frame) next(protocol byte, data []byte, n int) (header, []byte, int) {
	switch protocol {
	case nextIPv4:
		return decodeIPv4, data, n
	case nextIPv6:
		return decodeIPv6, data, n
	case nextEthernet:
		return decodeEthernet, data, n
	case nextNSH:
		return decodeNSH, data, n
	case nextMPLS:
		return decodeMPLS, data, n
	}
	return f.unknown(NextLayer, uint32(protocol), data, n)
}
