package roce

import "github.com/rpcrdma/toolkit/decode/internal/wire"

// BTHSize is the size of the base transport header in bytes.
const BTHSize = 12

const (
	bthOpcode = 0
	bthFlags  = 1
	bthPKey   = 2
	bthECN    = 4 // forced to ones by the ICRC: switches change it
	bthDestQP = 5
	bthAckReq = 8
	bthPSN    = 9

	flagSE     = 0x80
	flagMigReq = 0x40
	maskPad    = 0x30
	shiftPad   = 4
	maskTVer   = 0x0f
	flagFECN   = 0x80
	flagBECN   = 0x40
	flagAckReq = 0x80
	mask24     = 0xffffff
)

// DefaultPKey is the default partition with full membership, the only one
// that RoCE uses in practice.
const DefaultPKey = 0xffff

// BTH is a base transport header:
//
//	 0               1               2               3
//	+---------------+-+-+---+-------+-------------------------------+
//	|    opcode     |S|M|pad| TVer  |             P_Key             |
//	+-+-+-----------+-+-+---+-------+-------------------------------+
//	|F|B|  reserved |            destination QP                     |
//	+-+-+-----------+-----------------------------------------------+
//	|A|  reserved   |                  PSN                          |
//	+-+-------------+-----------------------------------------------+
type BTH []byte

// Opcode is the kind of the packet.
func (h BTH) Opcode() Opcode { return Opcode(wire.Get8(h, bthOpcode)) }

// SE is the solicited event bit.
func (h BTH) SE() bool { return wire.Get8(h, bthFlags)&flagSE != 0 }

// MigReq is the path migration state bit.
func (h BTH) MigReq() bool { return wire.Get8(h, bthFlags)&flagMigReq != 0 }

// Pad is the number of bytes, 0 to 3, between payload and ICRC.
func (h BTH) Pad() uint8 { return wire.Get8(h, bthFlags) & maskPad >> shiftPad }

// TVer is the transport header version; only 0 is defined.
func (h BTH) TVer() uint8 { return wire.Get8(h, bthFlags) & maskTVer }

// PKey is the partition key.
func (h BTH) PKey() uint16 { return wire.Get16(h, bthPKey) }

// FECN says that the packet met congestion.
func (h BTH) FECN() bool { return wire.Get8(h, bthECN)&flagFECN != 0 }

// BECN says that packets in the other direction met congestion.
func (h BTH) BECN() bool { return wire.Get8(h, bthECN)&flagBECN != 0 }

// DestQP is the destination queue pair number, 24 bits.
func (h BTH) DestQP() uint32 { return wire.Get24(h, bthDestQP) }

// AckReq asks the responder for an acknowledgement.
func (h BTH) AckReq() bool { return wire.Get8(h, bthAckReq)&flagAckReq != 0 }

// PSN is the packet sequence number, 24 bits.
func (h BTH) PSN() uint32 { return wire.Get24(h, bthPSN) }

// SetOpcode sets the opcode.
func (h BTH) SetOpcode(v Opcode) { wire.PutBits(h, bthOpcode, 0xff, uint8(v)) }

// SetSE sets the solicited event bit.
func (h BTH) SetSE(on bool) { wire.PutBits(h, bthFlags, flagSE, flag(on, flagSE)) }

// SetMigReq sets the path migration state bit.
func (h BTH) SetMigReq(on bool) { wire.PutBits(h, bthFlags, flagMigReq, flag(on, flagMigReq)) }

// SetPad sets the number of pad bytes, 0 to 3.
func (h BTH) SetPad(n uint8) { wire.PutBits(h, bthFlags, maskPad, n<<shiftPad) }

// SetTVer sets the transport header version.
func (h BTH) SetTVer(v uint8) { wire.PutBits(h, bthFlags, maskTVer, v) }

// SetPKey sets the partition key.
func (h BTH) SetPKey(v uint16) { wire.Put16(h, bthPKey, v) }

// SetFECN sets the forward congestion bit.
func (h BTH) SetFECN(on bool) { wire.PutBits(h, bthECN, flagFECN, flag(on, flagFECN)) }

// SetBECN sets the backward congestion bit.
func (h BTH) SetBECN(on bool) { wire.PutBits(h, bthECN, flagBECN, flag(on, flagBECN)) }

// SetDestQP sets the destination queue pair number, 24 bits.
func (h BTH) SetDestQP(v uint32) { wire.Put24(h, bthDestQP, v) }

// SetAckReq sets the acknowledge request bit.
func (h BTH) SetAckReq(on bool) { wire.PutBits(h, bthAckReq, flagAckReq, flag(on, flagAckReq)) }

// SetPSN sets the packet sequence number, 24 bits.
func (h BTH) SetPSN(v uint32) { wire.Put24(h, bthPSN, v) }
