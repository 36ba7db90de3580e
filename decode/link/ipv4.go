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
func decodeIPv4(data []byte, n int, f *Frame) {
	if len(data) < 20 {
		f.Problem = ProblemCutIPv4
		return
	}
	if data[0]>>4 != 4 {
		f.Problem = ProblemNotIPv4
		return
	}
	head := int(data[0]&0x0f) * 4
	if head < 20 {
		f.Problem = ProblemIPv4HeaderLength
		return
	}
	// The stack leaves a total length of 0 in a frame of more than 65535 bytes that it merged (GRO) or that
	// the adapter will split (TSO).
	if total := int(binary.BigEndian.Uint16(data[2:])); total != 0 {
		n = total
	}
	if n < head {
		f.Problem = ProblemIPv4TotalLength
		return
	}
	if len(data) < head {
		f.Problem = ProblemCutIPv4Options
		return
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
		f.fragment(uint32(frag&0x1fff)*8, frag&0x2000 != 0, data[9], data[head:], n-head)
		return
	}
	f.transport(data[9], data[head:], n-head)
}

// fragment fills in a part of an IP datagram.
func (f *Frame) fragment(offset uint32, more bool, proto uint8, data []byte, n int) {
	f.Proto = Fragment
	f.FragmentOffset = offset
	f.MoreFragments = more
	f.FragmentProto = proto
	f.Payload = data[:len(data):len(data)]
	f.PayloadLen = n
}

// transport continues after an IP header: n is the length of the IP payload.
func (f *Frame) transport(proto uint8, data []byte, n int) {
	switch proto {
	case ipUDP:
		decodeUDP(data, n, f)
	case ipTCP:
		decodeTCP(data, n, f)
	case ipGRE:
		decodeGRE(data, n, f)
	case ipIPv4:
		if f.enter(Tunnel{Type: IPIP}) {
			decodeIPv4(data, n, f)
		}
	case ipIPv6:
		if f.enter(Tunnel{Type: IPIP}) {
			decodeIPv6(data, n, f)
		}
	case ipMPLS:
		decodeMPLS(data, n, f)
	case ipEtherIP:
		decodeEtherIP(data, n, f)
	default:
		f.unknown(IPLayer, uint32(proto), data, n)
	}
}
