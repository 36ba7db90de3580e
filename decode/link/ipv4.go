package link

import (
	"encoding/binary"
	"net/netip"
)

// IP protocol numbers.
const (
	ipHopByHop    = 0
	ipIPv4        = 4
	ipTCP         = 6
	ipUDP         = 17
	ipIPv6        = 41
	ipGRE         = 47
	ipMPLS        = 137 // RFC 4023
	ipEtherIP     = 97  // RFC 3378
	ipBTH         = 27  // InfiniBand transport after a GRH
	ipRouting     = 43
	ipFragment    = 44
	ipAuth        = 51
	ipDestination = 60
	ipMobility    = 135
)

// decodeIPv4 reads an IPv4 header (RFC 791).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-------+---------------+-------------------------------+
//	|   4   |  IHL  |   DSCP    |ECN|          total length         |
//	+-------+-------+---------------+-----+-------------------------+
//	|        identification         |0|D|M|     fragment offset     |
//	+---------------+---------------+-----+-------------------------+
//	|      TTL      |   protocol    |            checksum           |
//	+---------------+---------------+-------------------------------+
//	|                  source, destination, options                 |
//	+---------------------------------------------------------------+
func decodeIPv4(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 20 {
		return f.stop(ProblemCutIPv4)
	}
	if data[0]>>4 != 4 {
		return f.stop(ProblemNotIPv4)
	}
	head := int(data[0]&0x0f) * 4
	if head < 20 {
		return f.stop(ProblemIPv4HeaderLength)
	}
	// The stack leaves a total length of 0 in a frame of more than 65535 bytes that it merged (GRO) or that
	// the adapter will split (TSO).
	if total := int(binary.BigEndian.Uint16(data[2:])); total != 0 {
		n = total
	}
	if n < head {
		return f.stop(ProblemIPv4TotalLength)
	}
	if len(data) < head {
		return f.stop(ProblemCutIPv4Options)
	}
	data = data[:min(n, len(data))] // strips the padding of short Ethernet frames
	f.Src = netip.AddrFrom4([4]byte(data[12:16]))
	f.Dst = netip.AddrFrom4([4]byte(data[16:20]))
	f.Net = data[:head:head]
	f.IPID = binary.BigEndian.Uint16(data[4:])
	f.ECN = data[1] & 3
	f.TTL = data[8]
	f.part(PartIPv4, f.Net, nil)
	if frag := binary.BigEndian.Uint16(data[6:]); frag&0x3fff != 0 {
		f.FragmentID = uint32(f.IPID)
		return f.fragment(uint32(frag&0x1fff)*8, frag&0x2000 != 0, data[9], data[head:], n-head)
	}
	return f.transport(data[9], data[head:], n-head)
}

// fragment fills in a part of an IP datagram.
func (f *Frame) fragment(offset uint32, more bool, proto uint8, data []byte, n int) (header, []byte, int) {
	f.Proto = Fragment
	f.FragmentOffset = offset
	f.MoreFragments = more
	f.FragmentProto = proto
	f.Payload = data[:len(data):len(data)]
	f.PayloadLen = n
	return nil, nil, 0
}

// transport is what follows an IP header: n is the length of the IP payload.
func (f *Frame) transport(proto uint8, data []byte, n int) (header, []byte, int) {
	switch proto {
	case ipUDP:
		return decodeUDP, data, n
	case ipTCP:
		return decodeTCP, data, n
	case ipGRE:
		return decodeGRE, data, n
	case ipIPv4:
		return f.within(Tunnel{Type: IPIP}, 0, decodeIPv4, data, n)
	case ipIPv6:
		return f.within(Tunnel{Type: IPIP}, 0, decodeIPv6, data, n)
	case ipMPLS:
		return decodeMPLS, data, n
	case ipEtherIP:
		return decodeEtherIP, data, n
	}
	return f.unknown(IPLayer, uint32(proto), data, n)
}
