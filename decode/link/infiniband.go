package link

import (
	"encoding/binary"
	"net/netip"
)

// decodeLRH reads the local route header of native InfiniBand.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-------+-------+---+---+-------------------------------+
//	|  VL   | LVer  |  SL   | 0 |LNH|              DLID             |
//	+---------+---------------------+-------------------------------+
//	|    0    |      PktLen         |              SLID             |
//	+---------+---------------------+-------------------------------+
//
// PktLen counts 4 bytes, from the LRH through the ICRC. What follows is the
// VCRC of the link, 2 bytes, if the capture has it.
func decodeLRH(data []byte, _ int, f *Frame) (header, []byte, int) {
	if len(data) < 8 {
		return f.stop(ProblemCutLRH)
	}
	n := int(binary.BigEndian.Uint16(data[4:])&0x07ff) * 4
	if n < 8 {
		return f.stop(ProblemLRHLength)
	}
	data = data[:min(n, len(data))]
	if data[0]&0xf == 0 { // the version
		f.numbers(data[:8])
	}
	switch data[1] & 3 {
	case 2: // BTH follows
		f.Src = LID(binary.BigEndian.Uint16(data[6:]))
		f.Dst = LID(binary.BigEndian.Uint16(data[2:]))
		f.Proto = InfiniBand
		f.Net = data[:8:8]
		f.Payload = data[8:len(data):len(data)]
		f.PayloadLen = n - 8
	case 3: // GRH, then BTH
		if !decodeGRH(data[8:], n-8, f) {
			break
		}
		f.Proto = InfiniBand
		f.Net = data[:48:48]
		f.PayloadLen = min(f.PayloadLen, n-48) // both headers count the same bytes
	default: // raw packets, and IPv6 without InfiniBand transport
		f.Unknown = Unknown{LRHLayer, uint32(data[1] & 3)}
	}
	return nil, nil, 0
}

// decodeRoCEv1 reads the GRH of RoCEv1; Ethernet may have padded the packet.
func decodeRoCEv1(data []byte, n int, f *Frame) (header, []byte, int) {
	if decodeGRH(data, n, f) {
		f.Proto = RoCEv1
		f.Net = data[:40:40]
	}
	return nil, nil, 0
}

// decodeGRH reads a global route header, which has the layout of an IPv6 header: version 4, traffic class 8,
// flow label 20; payload length 16, next header 8, hop limit 8; source GID, destination GID. The payload
// length counts from after the GRH through the ICRC.
func decodeGRH(data []byte, n int, f *Frame) bool {
	if n < 40 {
		f.Problem = ProblemShortGRH
		return false
	}
	if len(data) < 40 {
		f.Problem = ProblemCutGRH
		return false
	}
	if data[0]>>4 != 6 {
		f.Problem = ProblemGRHVersion
		return false
	}
	if data[6] != ipBTH {
		f.Problem = ProblemGRHNext
		return false
	}
	if payload := int(binary.BigEndian.Uint16(data[4:])); payload != 0 {
		n = 40 + payload
	}
	data = data[:min(n, len(data))]
	f.part(PartIPv6, data[:40], nil)
	f.Src = netip.AddrFrom16([16]byte(data[8:24])).Unmap()
	f.Dst = netip.AddrFrom16([16]byte(data[24:40])).Unmap()
	f.ECN = data[1] >> 4 & 3
	f.TTL = data[7]
	f.Payload = data[40:len(data):len(data)]
	f.PayloadLen = n - 40
	return true
}
