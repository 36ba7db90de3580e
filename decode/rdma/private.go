package rdma

import "encoding/binary"

// PrivateDataSize is the size of the message of RFC 8797 in bytes.
const PrivateDataSize = 8

// DefaultInlineThreshold is how much each side can receive in a Send, in
// bytes, if the other does not say more (RFC 8166, section 3.3.2).
const DefaultInlineThreshold = 1024

// MaxInlineThreshold is the largest size that the message can express, in bytes.
const MaxInlineThreshold = 256 * inlineUnit

const (
	privateMagic   = 0xf6ab0e18 // RFC 8797, section 4.1: the format identifier
	privateVersion = 1

	privateAtVersion = 4
	privateAtFlags   = 5
	privateAtSend    = 6
	privateAtReceive = 7

	privateRemoteInvalidate = 0x01
	inlineUnit              = 1024 // sizes are coded as size/1024 − 1
)

// Decode reads the message of RFC 8797 at the start of b, the private data of
// a connection request or reply:
//
//	 0               1               2               3
//	+---------------------------------------------------------------+
//	|                       format identifier                       |
//	+---------------+-------------+-+---------------+---------------+
//	|    version    |  reserved   |R|   send size   | receive size  |
//	+---------------+-------------+-+---------------+---------------+
//
// It returns false, with p zero, if b holds no such message or one of another
// version. Both count as if nothing had been sent (RFC 8797, section 4.1).
func (p *PrivateData) Decode(b []byte) bool {
	*p = PrivateData{}
	if len(b) < PrivateDataSize || binary.BigEndian.Uint32(b) != privateMagic || b[privateAtVersion] != privateVersion {
		return false
	}
	*p = PrivateData{
		Present:          true,
		Version:          privateVersion,
		RemoteInvalidate: b[privateAtFlags]&privateRemoteInvalidate != 0,
		SendSize:         (uint32(b[privateAtSend]) + 1) * inlineUnit,
		ReceiveSize:      (uint32(b[privateAtReceive]) + 1) * inlineUnit,
	}
	return true
}

// Append appends the message of RFC 8797 with the values of p to b, whatever
// p.Present and p.Version say. Sizes are rounded down to a multiple of 1024
// bytes; less than 1024 becomes 1024, more than MaxInlineThreshold becomes
// that.
func (p *PrivateData) Append(b []byte) []byte {
	flags := byte(0)
	if p.RemoteInvalidate {
		flags = privateRemoteInvalidate
	}
	b = binary.BigEndian.AppendUint32(b, privateMagic)
	return append(b, privateVersion, flags, sizeCode(p.SendSize), sizeCode(p.ReceiveSize))
}

func sizeCode(size uint32) byte {
	return byte(min(max(size/inlineUnit, 1), 256) - 1)
}

// InlineThreshold is the largest number of bytes that sender may put in one Send to receiver, according to
// their messages: the smaller of what the one sends and the other receives (RFC 8797, section 4.1).
func InlineThreshold(sender, receiver *PrivateData) uint32 {
	return min(sender.sendSize(), receiver.receiveSize())
}

func (p *PrivateData) sendSize() uint32 {
	if !p.Present {
		return DefaultInlineThreshold
	}
	return p.SendSize
}

func (p *PrivateData) receiveSize() uint32 {
	if !p.Present {
		return DefaultInlineThreshold
	}
	return p.ReceiveSize
}
