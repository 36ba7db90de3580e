package roce

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// LRHSize is the size of the local route header in bytes.
const LRHSize = 8

// Values of LNH: what follows the LRH.
const (
	LNHRaw uint8 = iota
	LNHIPNonIBA
	LNHBTH
	LNHGRH
)

const (
	lrhVL     = 0
	lrhSL     = 1
	lrhDLID   = 2
	lrhPktLen = 4
	lrhSLID   = 6
)

// LRH is the local route header of native InfiniBand:
//
//	 0               1               2               3
//	+-------+-------+-------+---+---+-------------------------------+
//	|  VL   | LVer  |  SL   |rsv|LNH|             DLID              |
//	+-------+-+-----+-------+---+---+-------------------------------+
//	|reserved |  packet length      |             SLID              |
//	+---------+---------------------+-------------------------------+
type LRH []byte

// VL is the virtual lane.
func (h LRH) VL() uint8 { return wire.Get8(h, lrhVL) >> 4 }

// LVer is the link version, 0.
func (h LRH) LVer() uint8 { return wire.Get8(h, lrhVL) & 0x0f }

// SL is the service level.
func (h LRH) SL() uint8 { return wire.Get8(h, lrhSL) >> 4 }

// LNH says what follows.
func (h LRH) LNH() uint8 { return wire.Get8(h, lrhSL) & 3 }

// DLID is the destination's local identifier.
func (h LRH) DLID() uint16 { return wire.Get16(h, lrhDLID) }

// PktLen is the packet's length in units of 4 bytes, from the LRH through the
// ICRC.
func (h LRH) PktLen() uint16 { return wire.Get16(h, lrhPktLen) & 0x7ff }

// SLID is the source's local identifier.
func (h LRH) SLID() uint16 { return wire.Get16(h, lrhSLID) }

// SetVL sets the virtual lane.
func (h LRH) SetVL(v uint8) { wire.PutBits(h, lrhVL, 0xf0, v<<4) }

// SetLVer sets the link version.
func (h LRH) SetLVer(v uint8) { wire.PutBits(h, lrhVL, 0x0f, v) }

// SetSL sets the service level.
func (h LRH) SetSL(v uint8) { wire.PutBits(h, lrhSL, 0xf0, v<<4) }

// SetLNH sets what follows.
func (h LRH) SetLNH(v uint8) { wire.PutBits(h, lrhSL, 3, v) }

// SetDLID sets the destination.
func (h LRH) SetDLID(v uint16) { wire.Put16(h, lrhDLID, v) }

// SetPktLen sets the length in units of 4 bytes.
func (h LRH) SetPktLen(v uint16) { wire.Put16(h, lrhPktLen, wire.Get16(h, lrhPktLen)&^0x7ff|v&0x7ff) }

// SetSLID sets the source.
func (h LRH) SetSLID(v uint16) { wire.Put16(h, lrhSLID, v) }
