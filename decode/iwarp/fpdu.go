package iwarp

import "encoding/binary"

// FPDU sizes in bytes.
const (
	FPDUHeaderLen = 2 // ULPDU length
	CRCLen        = 4
	MaxULPDU      = 1<<16 - 1
)

// FPDULen is the size of the FPDU that carries a ULPDU of n bytes, without
// markers. The CRC field is always there, even when CRCs are off.
func FPDULen(n int) int { return (FPDUHeaderLen+n+3)&^3 + CRCLen }

// FPDU is a whole FPDU without markers, as ParseFPDU returns it:
//
//	| ULPDU length 2 | ULPDU | pad 0–3 | CRC32C 4, little-endian |
//
// Length, ULPDU and pad make a multiple of 4.
type FPDU []byte

// ParseFPDU returns the FPDU at the start of b. ErrShort means that b does not hold all of it. No FPDU is
// invalid at this layer; ULPDU checks the next one.
func ParseFPDU(b []byte) (FPDU, error) {
	if len(b) < FPDUHeaderLen {
		return nil, ErrShort
	}
	n := FPDULen(int(binary.BigEndian.Uint16(b)))
	if len(b) < n {
		return nil, ErrShort
	}
	return FPDU(b[:n:n]), nil
}

// ULPDULen is the length of the ULPDU in bytes.
func (f FPDU) ULPDULen() int { return int(binary.BigEndian.Uint16(f)) }

// ULPDU is the DDP segment.
func (f FPDU) ULPDU() []byte {
	end := FPDUHeaderLen + f.ULPDULen()
	return f[FPDUHeaderLen:end:end]
}

// CRC is the value of the CRC field.
func (f FPDU) CRC() uint32 { return binary.LittleEndian.Uint32(f[len(f)-CRCLen:]) }

// Checksum computes the value of the CRC field if CRCs are on.
func (f FPDU) Checksum() uint32 { return checksum(f[:len(f)-CRCLen]) }

// AppendFPDU adds the FPDU of a ULPDU (at most MaxULPDU bytes) to dst. Without
// crc the CRC field is zero.
func AppendFPDU(dst, ulpdu []byte, crc bool) []byte {
	start := len(dst)
	dst = append(dst, 0, 0)
	return SealFPDU(append(dst, ulpdu...), start, crc)
}

// SealFPDU finishes an FPDU that was built in place: b[start:] holds two bytes
// for the length and the ULPDU. It sets the length and appends pad and CRC.
func SealFPDU(b []byte, start int, crc bool) []byte {
	n := len(b) - start - FPDUHeaderLen
	binary.BigEndian.PutUint16(b[start:], uint16(n))
	for (len(b)-start)&3 != 0 {
		b = append(b, 0)
	}
	var sum uint32
	if crc {
		sum = checksum(b[start:])
	}
	return binary.LittleEndian.AppendUint32(b, sum)
}
