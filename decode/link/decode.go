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
	f.decode(f.link(lt, data, max(int(min(wire, maxUndeclared)), len(data))))
}

// linkType and linkPPI keep the files of single headers independent of package capture.
type linkType = capture.LinkType

const linkPPI = capture.LinkPPI

// link is what a frame of a link type begins with.
func (f *Frame) link(lt linkType, data []byte, n int) (header, []byte, int) {
	var h header
	switch lt {
	case capture.LinkEthernet:
		h = decodeEthernet
	case capture.LinkSLL:
		h = decodeSLL
	case capture.LinkSLL2:
		h = decodeSLL2
	case capture.LinkRaw, capture.LinkRawBSD, capture.LinkRawOpenBSD, capture.LinkIPv4, capture.LinkIPv6:
		h = decodeIP
	case capture.LinkNull, capture.LinkLoop:
		h = decodeNull
	case capture.LinkERF:
		h = decodeERF
	case capture.LinkInfiniBand:
		h = decodeLRH
	case capture.LinkIPoIB:
		h = decodeIPoIBCapture
	case capture.LinkPPP:
		h = decodePPP
	case capture.LinkPPPWithDir:
		h = decodePPPWithDir
	case capture.LinkPPPHDLC, capture.LinkCiscoHDLC:
		h = decodeHDLC
	case capture.LinkPPPEther:
		h = decodePPPoE
	case capture.LinkMPLS:
		h = decodeMPLS
	case capture.LinkNFLOG:
		h = decodeNFLOG
	case capture.LinkPPI:
		h = decodePPI
	default:
		return f.unknown(LinkLayer, uint32(lt), data, n)
	}
	return h, data, n
}

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

// etherHeader is the header that an EtherType announces, nil if Decode does not follow it.
func etherHeader(etherType uint16) header {
	switch etherType {
	case etherIPv4:
		return decodeIPv4
	case etherIPv6:
		return decodeIPv6
	case etherVLAN, etherQinQ, etherOldQ:
		return decodeVLAN
	case etherRoCEv1:
		return decodeRoCEv1
	case etherMPLS, etherMPLSMulticast:
		return decodeMPLS
	case etherPPPoE:
		return decodePPPoE
	case etherCiscoMeta:
		return decodeCiscoMeta
	case etherMACsec:
		return decodeMACsec
	case etherPBB:
		return decodePBB
	case etherNSH:
		return decodeNSH
	case etherVNTag:
		return decodeVNTag
	case etherETag:
		return decodeETag
	case etherHSR:
		return decodeHSR
	case etherArista:
		return decodeArista
	case etherTRILL:
		return decodeTRILL
	case etherFabricPath:
		return decodeFabricPath
	}
	return nil
}

// ether is what follows a header that ends with an EtherType.
func (f *Frame) ether(etherType uint16, data []byte, n int) (header, []byte, int) {
	if h := etherHeader(etherType); h != nil {
		return h, data, n
	}
	if etherType == etherMACControl {
		f.numbers(data[:min(len(data), pauseSize)])
	}
	return f.unknown(EtherLayer, uint32(etherType), data, n) // other protocols, and lengths of 802.3 frames (below 0x600)
}

// maxTags is how many VLAN tags there may be, less one. Two are usual.
const maxTags = 8

// decodeVLAN reads VLAN tags: priority 3, DEI 1, identifier 12; the next EtherType 16.
func decodeVLAN(data []byte, n int, f *Frame) (header, []byte, int) {
	for range maxTags - 1 {
		if len(data) < 4 {
			return f.stop(ProblemCutVLAN)
		}
		f.VLAN = binary.BigEndian.Uint16(data) & 0x0fff
		f.Priority = data[0] >> 5
		f.numbers(data[:4])
		etherType := binary.BigEndian.Uint16(data[2:])
		data, n = data[4:], n-4
		switch etherType {
		case etherVLAN, etherQinQ, etherOldQ:
		default:
			return f.ether(etherType, data, n)
		}
	}
	return f.stop(ProblemManyVLAN)
}

// decodeIP tells the IP version by the packet itself.
func decodeIP(data []byte, n int, f *Frame) (header, []byte, int) {
	if len(data) == 0 {
		return f.stop(ProblemCutIP)
	}
	switch data[0] >> 4 {
	case 4:
		return decodeIPv4, data, n
	case 6:
		return decodeIPv6, data, n
	}
	return f.stop(ProblemNotIP)
}
