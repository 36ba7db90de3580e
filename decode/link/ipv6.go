package link

import (
	"encoding/binary"
	"net/netip"
)

// maxExtensions bounds the IPv6 extension headers that are followed. RFC 8200 section 4.1 allows each of them
// once, destination options twice.
const maxExtensions = 10

// decodeIPv6 reads an IPv6 header and the extension headers after it (RFC
// 8200): version 4, traffic class 8, flow label 20; payload length 16, next
// header 8, hop limit 8; source, destination.
func decodeIPv6(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) < 40 {
		return f.stop(ProblemCutIPv6)
	}
	if data[0]>>4 != 6 {
		return f.stop(ProblemNotIPv6)
	}
	// A jumbogram (RFC 2675) has a payload length of 0, and so does a merged frame above 64 KiB with or
	// without that option.
	if payload := int(binary.BigEndian.Uint16(data[4:])); payload != 0 {
		n = 40 + payload
	}
	data = data[:min(n, len(data))]
	f.Src = netip.AddrFrom16([16]byte(data[8:24]))
	f.Dst = netip.AddrFrom16([16]byte(data[24:40]))
	f.Net = data[:40:40]
	f.part(PartIPv6, f.Net, nil)
	f.ECN = data[1] >> 4 & 3
	f.TTL = data[7]
	next := data[6]
	at := 40
	for range maxExtensions {
		size := 8
		switch next {
		case ipHopByHop, ipRouting, ipDestination, ipMobility:
			if len(data) >= at+2 {
				size = 8 + int(data[at+1])*8
			}
		case ipAuth: // RFC 4302 section 2.2: the length counts 4-byte units, without the first two
			if len(data) >= at+2 {
				size = 8 + int(data[at+1])*4
			}
		case ipFragment:
		default:
			f.Net = data[:at:at]
			return f.transport(next, data[at:], n-at)
		}
		if n < at+size {
			return f.stop(ProblemIPv6Extension)
		}
		if len(data) < at+size {
			return f.stop(ProblemCutIPv6Extension)
		}
		header := data[at : at+size]
		f.numbers(header[:2])
		at += size
		if next == ipFragment {
			// Next header 8, reserved 8; offset 13 in units of 8 bytes,
			// reserved 2, more 1; identification 32. Offset 0 and no more is
			// an "atomic" fragment, a whole datagram (RFC 6946).
			f.numbers(header)
			if frag := binary.BigEndian.Uint16(header[2:]); frag&0xfff9 != 0 {
				f.Net = data[:at:at]
				f.FragmentID = binary.BigEndian.Uint32(header[4:])
				return f.fragment(uint32(frag&0xfff8), frag&1 != 0, header[0], data[at:], n-at)
			}
		}
		next = header[0]
	}
	return f.stop(ProblemManyIPv6Extensions)
}
