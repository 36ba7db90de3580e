// Package link decodes the layers below the transports of interest: Ethernet and its relatives, IPv4, IPv6,
// UDP, TCP, and the InfiniBand local and global route headers.
package link

import "net/netip"

// Proto names what Frame.Payload holds.
type Proto uint8

// What a frame carries.
const (
	None       Proto = iota // nothing of interest, or not decodable (see Frame.Problem)
	UDP                     // Payload follows the UDP header
	TCP                     // Payload follows the TCP header and its options
	RoCEv1                  // Payload starts at the BTH; Net holds the GRH
	InfiniBand              // Payload starts at the BTH; Net holds LRH and, if present, GRH
	Fragment                // an IP fragment: Payload is the fragment's data
)

// Frame is the result of Decode, refilled for each packet. Its slices alias the packet. The most used fields
// come first: frames are often decoded on one processor and read on another, cache line by cache line.
type Frame struct {
	Proto Proto
	// Src and Dst are IP addresses or GIDs. A GID that maps an IPv4 address
	// is given as that address. A LID is an address with the zone "lid" and
	// the value in its last two bytes (see LID); native InfiniBand has LIDs
	// here where a packet has no GRH.
	Src, Dst netip.Addr
	// SrcPort and DstPort are UDP or TCP ports.
	SrcPort, DstPort uint16
	ECN              uint8 // the two ECN bits of IP or GRH: 3 is "congestion experienced"
	// PayloadLen is the length that the headers declare. It exceeds
	// len(Payload) when the capture cut the frame.
	PayloadLen int

	// Net is the network header that the ICRC covers, from its first byte up
	// to the transport header: the IP header with options or extension
	// headers, the GRH, or LRH and GRH.
	Net []byte
	// Transport is the UDP or TCP header; empty for others. The capture may have cut TCP options: Payload is
	// empty then, and everything else is as declared.
	Transport []byte
	// Payload is the captured part of the transport's payload (of a frame that is not decoded: from behind its EtherType or IP header on), without Ethernet padding, and without the VCRC
	// of native InfiniBand.
	Payload []byte

	// Segment is the size in bytes of the payloads that segmentation offload cuts this one into: all have it
	// except the last, which may be shorter. It is 0 if there are none, or if the capture does not say.
	// Decode does not set it.
	Segment uint16

	IPID      uint16 // IPv4 identification
	TTL       uint8
	Priority  uint8  // of the innermost 802.1Q tag, 0 to 7; 0 if untagged
	VLAN      uint16 // innermost 802.1Q identifier; 0 if untagged
	TCPSeq    uint32
	TCPAck    uint32
	TCPWindow uint16 // as sent, not scaled
	TCPFlags  uint8  // FIN 0x01, SYN 0x02, RST 0x04, PSH 0x08, ACK 0x10, URG 0x20

	// TSVal and TSEcr are the timestamps option of TCP (RFC 7323), valid if
	// HasTimestamps is set.
	TSVal, TSEcr  uint32
	HasTimestamps bool
	// DSACK means that the acknowledgment reports duplicate data (RFC 2883).
	DSACK bool

	// FragmentID, FragmentOffset (bytes) and MoreFragments belong to
	// Proto == Fragment, as does FragmentProto, the IP protocol number.
	FragmentID     uint32
	FragmentOffset uint32
	MoreFragments  bool
	FragmentProto  uint8

	// Tunnels are the encapsulations that were removed, outermost first. All other fields describe the
	// innermost frame.
	Tunnels []Tunnel

	// Unknown is what a frame carries whose Proto is None although nothing is wrong with it.
	Unknown Unknown

	// Problem is why a frame of interest could not be decoded; empty if there was no problem.
	Problem Problem

	parts *[]Part // see DecodeParts
}

// Cut reports whether less of the payload is there than the headers declare.
func (f *Frame) Cut() bool { return len(f.Payload) < f.PayloadLen }

// CongestionExperienced is the value of Frame.ECN in a packet that a router has marked (RFC 3168, section 5).
const CongestionExperienced = 3

// DSCP is the differentiated services codepoint of the IP header, or of the GRH over RoCEv1 (RFC 2474, section
// 3); 0 over native InfiniBand, and if the header was not captured.
func (f *Frame) DSCP() uint8 {
	if len(f.Net) < 2 || f.Proto == InfiniBand {
		return 0
	}
	if f.Net[0]>>4 == 6 {
		return f.Net[0]&0xf<<2 | f.Net[1]>>6
	}
	return f.Net[1] >> 2
}
