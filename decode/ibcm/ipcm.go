package ibcm

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

// IPHeaderSize is the size of the header that starts the private data of a
// REQ for an IP addressed service, in bytes.
const IPHeaderSize = 36

const (
	ipVersionByte = 1
	ipSrcPort     = 2
	ipSrc         = 4
	ipDst         = 20
	ipV4          = 12 // offset of an IPv4 address in its 16 bytes
)

// IPHeader holds the addresses of both ends of a connection, as the consumers know them (IBTA annex A11).
// IPv4 addresses are in the last four bytes of their field.
type IPHeader []byte

// IsValid reports whether h is whole, of version 0 and for a known version of
// IP.
func (h IPHeader) IsValid() bool {
	return len(h) >= IPHeaderSize && h[0]>>4 == 0 && (h.IPVersion() == 4 || h.IPVersion() == 6)
}

// IPVersion is 4 or 6.
func (h IPHeader) IPVersion() uint8 { return wire.Get8(h, ipVersionByte) >> 4 }

// SrcPort is the port of the requester.
func (h IPHeader) SrcPort() uint16 { return wire.Get16(h, ipSrcPort) }

// Src is the address of the requester.
func (h IPHeader) Src() netip.Addr { return h.addr(ipSrc) }

// Dst is the address of the responder.
func (h IPHeader) Dst() netip.Addr { return h.addr(ipDst) }

func (h IPHeader) addr(off int) netip.Addr {
	a := getGID(h, off)
	if a.IsValid() && h.IPVersion() == 4 {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[ipV4:]))
	}
	return a
}

// Set fills the header in. Both addresses must be of the same version of IP.
func (h IPHeader) Set(src netip.AddrPort, dst netip.Addr) {
	if len(h) < IPHeaderSize {
		return
	}
	clear(h[:IPHeaderSize])
	s, d := src.Addr().Unmap(), dst.Unmap()
	wire.Put16(h, ipSrcPort, src.Port())
	if s.Is4() && d.Is4() {
		wire.Put8(h, ipVersionByte, 4<<4)
		copy(h[ipSrc+ipV4:], s.AsSlice())
		copy(h[ipDst+ipV4:], d.AsSlice())
		return
	}
	wire.Put8(h, ipVersionByte, 6<<4)
	putGID(h, ipSrc, s)
	putGID(h, ipDst, d)
}
