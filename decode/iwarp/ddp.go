package iwarp

import "encoding/binary"

// Header sizes in bytes, the control word included.
const (
	ControlLen  = 2
	TaggedLen   = 14
	UntaggedLen = 18
)

// Queue numbers of untagged messages (RFC 5040 7, RFC 7306 4).
const (
	QueueSend           = 0
	QueueReadRequest    = 1 // Atomic Requests too
	QueueTerminate      = 2
	QueueAtomicResponse = 3
)

// Control is the first word of a ULPDU: 8 bits of DDP, 8 bits of RDMAP.
//
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//	+-+-+-------+---+---+---+-------+
//	|T|L| Rsvd  |DV |RV |Rsv|Opcode |
//	+-+-+-------+---+---+---+-------+
type Control uint16

const (
	controlTagged      = 0x8000
	controlLast        = 0x4000
	controlReservedDDP = 0x3c00
	controlDV          = 0x0300
	controlRV          = 0x00c0
	controlReserved    = 0x0030
	controlOpcode      = 0x000f

	controlVersions = 0x0140 // DDP version 1, RDMAP version 1
)

// NewControl is the control word of an IETF (not RDMAC) message segment. The
// tagged flag follows from the opcode.
func NewControl(op Opcode, last bool) Control {
	c := Control(controlVersions) | Control(op)&controlOpcode
	if op.Tagged() {
		c |= controlTagged
	}
	if last {
		c |= controlLast
	}
	return c
}

// Tagged reports whether the segment names its place in memory.
func (c Control) Tagged() bool { return c&controlTagged != 0 }

// Last reports whether this is the last segment of its message.
func (c Control) Last() bool { return c&controlLast != 0 }

// DDPVersion is 1.
func (c Control) DDPVersion() uint8 { return uint8(c & controlDV >> 8) }

// RDMAPVersion is 1, or 0 as specified by the RDMA Consortium.
func (c Control) RDMAPVersion() uint8 { return uint8(c & controlRV >> 6) }

// Opcode is the RDMAP operation.
func (c Control) Opcode() Opcode { return Opcode(c & controlOpcode) }

// Valid reports whether versions, reserved bits, opcode and tagged flag are consistent. Random 16 bits are
// with a probability of about 1 in 1400.
func (c Control) Valid() bool {
	if c&(controlReservedDDP|controlReserved) != 0 || c.DDPVersion() != 1 || c.RDMAPVersion() > 1 {
		return false
	}
	op := c.Opcode()
	return op <= OpAtomicResponse && op.Tagged() == c.Tagged()
}

// ULPDU is a DDP segment: control word, DDP header, payload. Check Valid first; the getters may panic
// otherwise.
type ULPDU []byte

// Control is the control word; at least ControlLen bytes must be there.
func (u ULPDU) Control() Control { return Control(binary.BigEndian.Uint16(u)) }

// HeaderLen is TaggedLen or UntaggedLen.
func (u ULPDU) HeaderLen() int {
	if u.Control().Tagged() {
		return TaggedLen
	}
	return UntaggedLen
}

// Valid reports whether the header is complete and its fields are consistent: see Control.Valid; the queue
// number of an untagged segment must match its opcode. length is the declared length of the ULPDU, which
// exceeds len(u) if the capture cut it.
func (u ULPDU) Valid(length int) bool {
	if len(u) < ControlLen {
		return false
	}
	return plausible(u, length) >= 0 && len(u) >= u.HeaderLen()
}

// Payload is what follows the header.
func (u ULPDU) Payload() []byte { return u[u.HeaderLen():] }

// Tagged is the header of a tagged segment (RDMA Write, Read Response):
//
//	| control 2 | STag 4 | TO 8 |
type Tagged []byte

// Control is the control word.
func (t Tagged) Control() Control { return Control(binary.BigEndian.Uint16(t)) }

// STag is the steering tag of the data sink.
func (t Tagged) STag() uint32 { return binary.BigEndian.Uint32(t[2:]) }

// TO is the tagged offset of the first payload byte.
func (t Tagged) TO() uint64 { return binary.BigEndian.Uint64(t[6:]) }

// SetControl sets the control word.
func (t Tagged) SetControl(c Control) { binary.BigEndian.PutUint16(t, uint16(c)) }

// SetSTag sets the steering tag.
func (t Tagged) SetSTag(v uint32) { binary.BigEndian.PutUint32(t[2:], v) }

// SetTO sets the tagged offset.
func (t Tagged) SetTO(v uint64) { binary.BigEndian.PutUint64(t[6:], v) }

// AppendTagged adds a tagged header to dst.
func AppendTagged(dst []byte, c Control, stag uint32, to uint64) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(c))
	dst = binary.BigEndian.AppendUint32(dst, stag)
	return binary.BigEndian.AppendUint64(dst, to)
}

// Untagged is the header of an untagged segment (all other messages):
//
//	| control 2 | reserved or invalidate STag 4 | QN 4 | MSN 4 | MO 4 |
type Untagged []byte

// Control is the control word.
func (t Untagged) Control() Control { return Control(binary.BigEndian.Uint16(t)) }

// InvalidateSTag is the steering tag that a Send with Invalidate invalidates;
// reserved in other messages.
func (t Untagged) InvalidateSTag() uint32 { return binary.BigEndian.Uint32(t[2:]) }

// QN is the queue number.
func (t Untagged) QN() uint32 { return binary.BigEndian.Uint32(t[6:]) }

// MSN is the message sequence number, from 1 in each queue.
func (t Untagged) MSN() uint32 { return binary.BigEndian.Uint32(t[10:]) }

// MO is the offset of the payload in its message.
func (t Untagged) MO() uint32 { return binary.BigEndian.Uint32(t[14:]) }

// SetControl sets the control word.
func (t Untagged) SetControl(c Control) { binary.BigEndian.PutUint16(t, uint16(c)) }

// SetQN sets the queue number.
func (t Untagged) SetQN(v uint32) { binary.BigEndian.PutUint32(t[6:], v) }

// SetMSN sets the message sequence number.
func (t Untagged) SetMSN(v uint32) { binary.BigEndian.PutUint32(t[10:], v) }

// AppendUntagged adds an untagged header to dst. The queue number follows from
// the opcode in c. stag is the steering tag to invalidate, or 0.
func AppendUntagged(dst []byte, c Control, stag, msn, mo uint32) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(c))
	dst = binary.BigEndian.AppendUint32(dst, stag)
	dst = binary.BigEndian.AppendUint32(dst, c.Opcode().Queue())
	dst = binary.BigEndian.AppendUint32(dst, msn)
	return binary.BigEndian.AppendUint32(dst, mo)
}

// plausible checks the start of a ULPDU, of which u is the available part, at least ControlLen bytes. It
// returns the number of bits that a random start would have had to match, or -1 if u cannot be a ULPDU of
// that length.
func plausible(u []byte, length int) int {
	c := Control(binary.BigEndian.Uint16(u))
	if !c.Valid() {
		return -1
	}
	if c.Tagged() {
		if length < TaggedLen {
			return -1
		}
		bits := bitsControl
		if len(u) >= TaggedLen {
			if to := Tagged(u).TO(); to+uint64(length-TaggedLen) < to {
				return -1
			}
		}
		return bits
	}
	if length < UntaggedLen {
		return -1
	}
	op := c.Opcode()
	bits := bitsControl
	if fixed := op.payloadLen(); fixed > 0 {
		if length != UntaggedLen+fixed || !c.Last() {
			return -1
		}
		bits += 16
	}
	if len(u) >= 10 {
		if Untagged(u).QN() != op.Queue() {
			return -1
		}
		bits += bitsSmall
	}
	if len(u) >= UntaggedLen {
		mo := Untagged(u).MO()
		if uint64(mo)+uint64(length-UntaggedLen) > 1<<32-1 {
			return -1
		}
		if op.payloadLen() > 0 || op == OpTerminate {
			if mo != 0 {
				return -1
			}
			bits += bitsSmall
		}
	}
	return bits
}

// The weight of each kind of evidence: a valid control word; a 32-bit word that must be a certain small
// number. The latter counts less than its size, because most XDR words are small numbers: the attributes of a
// directory occasionally contain what looks like the whole header of a Send. So one alone is not enough
// (bitsEnough), unless a segment starts there.
const (
	bitsControl = 10
	bitsSmall   = 16
)
