package link

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/capture"
)

// maxUndeclared bounds the length of a packet whose IP header has no length (0, as in frames that the stack
// merged or will split). Then only the capture says how long the packet was, and that number is no more
// trustworthy than any other. The largest such frames of Linux have 512 KiB (BIG TCP).
const maxUndeclared = 1 << 20

// Decode takes apart one captured frame. data is what was captured, wire the
// length in bytes that the frame had; link types are defined in package capture.
// f is refilled: nothing of what it held remains.
//
// Decode never fails. A frame that carries nothing of interest has the Proto
// None, and if that is because it is damaged or cut, Problem says why. It is
// safe for use by several goroutines with a Frame for each.
func Decode(lt capture.LinkType, data []byte, wire uint32, f *Frame) {
	tunnels := f.Tunnels[:0]
	*f = Frame{} // without a copy: it is long
	f.Tunnels = tunnels
	decodeLink(lt, data, max(int(min(wire, maxUndeclared)), len(data)), f)
}

// linkType and linkPPI keep the files of single headers independent of package capture.
type linkType = capture.LinkType

const linkPPI = capture.LinkPPI

func decodeLink(lt capture.LinkType, data []byte, n int, f *Frame) {
	switch lt {
	case capture.LinkEthernet:
		decodeEthernet(data, n, f)
	case capture.LinkSLL:
		decodeSLL(data, n, f)
	case capture.LinkSLL2:
		decodeSLL2(data, n, f)
	case capture.LinkRaw, capture.LinkRawBSD, capture.LinkRawOpenBSD, capture.LinkIPv4, capture.LinkIPv6:
		decodeIP(data, n, f)
	case capture.LinkNull, capture.LinkLoop:
		decodeNull(data, n, f)
	case capture.LinkERF:
		decodeERF(data, n, f)
	case capture.LinkInfiniBand:
		decodeLRH(data, f)
	case capture.LinkIPoIB:
		decodeIPoIBCapture(data, n, f)
	case capture.LinkPPP:
		decodePPP(data, n, f)
	case capture.LinkPPPWithDir:
		if len(data) < 1 {
			f.Problem = ProblemCutPPP
			return
		}
		f.numbers(data[:1])
		decodePPP(data[1:], n-1, f)
	case capture.LinkPPPHDLC, capture.LinkCiscoHDLC:
		decodeHDLC(data, n, f)
	case capture.LinkPPPEther:
		decodePPPoE(data, n, f)
	case capture.LinkMPLS:
		decodeMPLS(data, n, f)
	case capture.LinkNFLOG:
		decodeNFLOG(data, n, f)
	case capture.LinkPPI:
		decodePPI(data, n, f)
	default:
		f.unknown(LinkLayer, uint32(lt), data, n)
	}
}

// In all of the functions below, n is the length in bytes of the rest of the frame on the wire, as far as
// known; n >= len(data).

// EtherTypes.
const (
	etherIPv4   = 0x0800
	etherVLAN   = 0x8100 // 802.1Q
	etherIPv6   = 0x86dd
	etherQinQ   = 0x88a8 // 802.1ad
	etherRoCEv1 = 0x8915
	etherOldQ   = 0x9100 // double tags from before 802.1ad

	etherMPLS          = 0x8847
	etherMPLSMulticast = 0x8848
	etherPPPoE         = 0x8864
	etherMACsec        = 0x88e5
	etherPBB           = 0x88e7 // 802.1ah
	etherCiscoMeta     = 0x8909
	etherNSH           = 0x894f
	etherTRILL         = 0x22f3
	etherFabricPath    = 0x8903
	etherVNTag         = 0x8926
	etherHSR           = 0x892f
	etherETag          = 0x893f
	etherArista        = 0xd28b
)

// maxTags is how many VLAN tags are followed. Two are usual.
const maxTags = 8

// decodeEtherType continues after a link header that ends with an EtherType.
func decodeEtherType(etherType uint16, data []byte, n int, f *Frame) {
	for range maxTags {
		switch etherType {
		case etherIPv4:
			decodeIPv4(data, n, f)
			return
		case etherIPv6:
			decodeIPv6(data, n, f)
			return
		case etherRoCEv1:
			decodeRoCEv1(data, n, f)
			return
		case etherVLAN, etherQinQ, etherOldQ:
			// Priority 3, DEI 1, identifier 12; the next EtherType 16.
			if len(data) < 4 {
				f.Problem = ProblemCutVLAN
				return
			}
			f.VLAN = binary.BigEndian.Uint16(data) & 0x0fff
			f.Priority = data[0] >> 5
			f.numbers(data[:4])
			etherType = binary.BigEndian.Uint16(data[2:])
			data, n = data[4:], n-4
		case etherMPLS, etherMPLSMulticast:
			decodeMPLS(data, n, f)
			return
		case etherPPPoE:
			decodePPPoE(data, n, f)
			return
		case etherCiscoMeta:
			decodeCiscoMeta(data, n, f)
			return
		case etherMACsec:
			decodeMACsec(data, n, f)
			return
		case etherPBB:
			decodePBB(data, n, f)
			return
		case etherNSH:
			decodeNSH(data, n, f)
			return
		case etherVNTag, etherETag, etherHSR, etherArista, etherTRILL, etherFabricPath:
			decodeSwitchTag(etherType, data, n, f)
			return
		case etherMACControl:
			f.unknown(EtherLayer, uint32(etherType), data, n)
			f.numbers(data[:min(len(data), pauseSize)])
			return
		default: // other protocols, and lengths of 802.3 frames (below 0x600)
			f.unknown(EtherLayer, uint32(etherType), data, n)
			return
		}
	}
	f.Problem = ProblemManyVLAN
}

// decodeSwitchTag continues with what a switch has put before the frame or its EtherType.
func decodeSwitchTag(etherType uint16, data []byte, n int, f *Frame) {
	switch etherType {
	case etherVNTag:
		decodeFixedTag(VNTag, vnTagSize, data, n, f)
	case etherETag:
		decodeFixedTag(ETag, eTagSize, data, n, f)
	case etherHSR:
		decodeFixedTag(HSR, hsrSize, data, n, f)
	case etherArista:
		decodeArista(data, n, f)
	case etherTRILL:
		decodeTRILL(data, n, f)
	case etherFabricPath:
		decodeFabricPath(data, n, f)
	}
}

// decodeIP tells the IP version by the packet itself.
func decodeIP(data []byte, n int, f *Frame) {
	if len(data) == 0 {
		f.Problem = ProblemCutIP
		return
	}
	switch data[0] >> 4 {
	case 4:
		decodeIPv4(data, n, f)
	case 6:
		decodeIPv6(data, n, f)
	default:
		f.Problem = ProblemNotIP
	}
}
