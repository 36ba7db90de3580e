package roce

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
)

// GRHSize is the size of the global route header in bytes.
const GRHSize = 40

// GRHNextBTH is the next-header value that announces a BTH.
const GRHNextBTH = 0x1b

const (
	grhPayloadLen = 4
	grhNext       = 6
	grhHopLimit   = 7
	grhSGID       = 8
	grhDGID       = 24
)

// GRH is the global route header of RoCEv1 and of routed InfiniBand packets.
// It is laid out as an IPv6 header.
type GRH []byte

// Version is 6.
func (h GRH) Version() uint8 { return wire.Get8(h, 0) >> 4 }

// TrafficClass is the traffic class.
func (h GRH) TrafficClass() uint8 { return uint8(wire.Get16(h, 0) >> 4) }

// FlowLabel is the flow label, 20 bits.
func (h GRH) FlowLabel() uint32 { return wire.Get32(h, 0) & 0xfffff }

// PayloadLen is the length in bytes of what follows the GRH, ICRC included.
func (h GRH) PayloadLen() uint16 { return wire.Get16(h, grhPayloadLen) }

// NextHeader is GRHNextBTH for packets of interest.
func (h GRH) NextHeader() uint8 { return wire.Get8(h, grhNext) }

// HopLimit is the number of routers that the packet may still pass.
func (h GRH) HopLimit() uint8 { return wire.Get8(h, grhHopLimit) }

// SGID is the source; the zero Addr if h is too short.
func (h GRH) SGID() netip.Addr { return gid(h, grhSGID) }

// DGID is the destination; the zero Addr if h is too short.
func (h GRH) DGID() netip.Addr { return gid(h, grhDGID) }

func gid(b []byte, off int) netip.Addr {
	if off+16 > len(b) {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(b[off:]))
}

// SetVersion sets the version, 6.
func (h GRH) SetVersion(v uint8) { wire.PutBits(h, 0, 0xf0, v<<4) }

// SetTrafficClass sets the traffic class.
func (h GRH) SetTrafficClass(v uint8) {
	wire.PutBits(h, 0, 0x0f, v>>4)
	wire.PutBits(h, 1, 0xf0, v<<4)
}

// SetFlowLabel sets the flow label, 20 bits.
func (h GRH) SetFlowLabel(v uint32) {
	wire.PutBits(h, 1, 0x0f, uint8(v>>16))
	wire.Put16(h, 2, uint16(v))
}

// SetPayloadLen sets the length in bytes of what follows the GRH.
func (h GRH) SetPayloadLen(v uint16) { wire.Put16(h, grhPayloadLen, v) }

// SetNextHeader sets the next-header value.
func (h GRH) SetNextHeader(v uint8) { wire.PutBits(h, grhNext, 0xff, v) }

// SetHopLimit sets the hop limit.
func (h GRH) SetHopLimit(v uint8) { wire.PutBits(h, grhHopLimit, 0xff, v) }

// SetSGID sets the source; IPv4 addresses are written as ::ffff:a.b.c.d.
func (h GRH) SetSGID(a netip.Addr) { putGID(h, grhSGID, a) }

// SetDGID sets the destination.
func (h GRH) SetDGID(a netip.Addr) { putGID(h, grhDGID, a) }

func putGID(b []byte, off int, a netip.Addr) {
	if off+16 > len(b) || !a.IsValid() {
		return
	}
	g := a.As16()
	copy(b[off:], g[:])
}
