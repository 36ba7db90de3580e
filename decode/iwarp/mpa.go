package iwarp

import "encoding/binary"

// MPA frame sizes in bytes.
const (
	MPAHeaderLen  = 20  // key, flags, revision, private data length
	MPAMaxPrivate = 512 // RFC 5044 7.1.1: longer private data is an error
	mpaKeyLen     = 16
	mpaWordsLen   = 4 // RFC 6581: IRD and ORD words in front of the private data
)

// mpaRevisions is how many revisions there are: 1 (RFC 5044) and 2 (RFC 6581).
const mpaRevisions = 2

const (
	mpaRequestKey = "MPA ID Req Frame"
	mpaReplyKey   = "MPA ID Rep Frame"
)

// Flag bits in byte 16 of an MPA frame.
const (
	mpaMarkers  = 0x80
	mpaCRC      = 0x40
	mpaReject   = 0x20
	mpaEnhanced = 0x10 // RFC 6581 "S"
	mpaReserved = 0x0f
)

// Bits of the two words of RFC 6581 9.
const (
	mpaPeerToPeer = 0x8000 // IRD word, A
	mpaRTRSend    = 0x4000 // IRD word, B
	mpaRTRWrite   = 0x8000 // ORD word, C
	mpaRTRRead    = 0x4000 // ORD word, D
	mpaDepthMask  = 0x3fff
)

// MPADepthUnlimited as IRD or ORD means that the sender leaves the depth to the other side (RFC 6581 9.1: all
// ones).
const MPADepthUnlimited = mpaDepthMask

// MPAFrame is an MPA Request or Reply, the first bytes of each direction:
//
//	 0               1               2               3
//	+---------------------------------------------------------------+
//	|  "MPA ID Req Frame" or "MPA ID Rep Frame" (16 bytes)          |
//	+---------------------------------------------------------------+
//	|M|C|R|S| Res   |   Revision    |      private data length      |
//	+---------------------------------------------------------------+
//	|A|B|   IRD                     |C|D|   ORD                     |  if S
//	+---------------------------------------------------------------+
//	|  private data                                                 |
//	+---------------------------------------------------------------+
type MPAFrame struct {
	Reply    bool
	Markers  bool // the sender wants markers in the data that it receives
	CRC      bool // the sender wants CRCs in both directions
	Reject   bool // Reply only: the connection is refused
	Revision uint8
	Reserved uint8 // the four low flag bits; 0x08 is used privately by Linux

	// Enhanced is the S flag of revision 2. The fields below it, up to
	// Private, are on the wire only if it is set.
	Enhanced   bool
	PeerToPeer bool
	RTRSend    bool   // a zero-length Send may be the ready-to-receive message
	RTRWrite   bool   // a zero-length RDMA Write may be it
	RTRRead    bool   // a zero-length RDMA Read may be it
	IRD        uint16 // RDMA Reads that the sender answers at once, 0–16383
	ORD        uint16 // RDMA Reads that the sender starts at once, 0–16383

	// Private is the consumer's private data, without the words above. After
	// Decode it aliases the input.
	Private []byte
}

// mpaKind classifies the start of b: the key of a Request or Reply, a prefix of one (short), or something
// else.
func mpaKind(b []byte) (request, reply, short bool) {
	n := min(len(b), mpaKeyLen)
	request = string(b[:n]) == mpaRequestKey[:n]
	reply = string(b[:n]) == mpaReplyKey[:n]
	return request, reply, n < mpaKeyLen
}

// Decode reads a frame from the start of b and returns its size in bytes. The
// error is ErrShort if b ends too early, ErrMalformed if b does not start with
// an MPA frame or the frame contradicts itself.
func (f *MPAFrame) Decode(b []byte) (int, error) {
	request, reply, short := mpaKind(b)
	if !request && !reply {
		return 0, ErrMalformed
	}
	if short || len(b) < MPAHeaderLen {
		return 0, ErrShort
	}
	private := int(binary.BigEndian.Uint16(b[18:]))
	if private > MPAMaxPrivate {
		return 0, ErrMalformed
	}
	size := MPAHeaderLen + private
	flags := b[16]
	*f = MPAFrame{
		Reply:    reply,
		Markers:  flags&mpaMarkers != 0,
		CRC:      flags&mpaCRC != 0,
		Reject:   flags&mpaReject != 0,
		Enhanced: flags&mpaEnhanced != 0 && b[17] >= 2,
		Revision: b[17],
		Reserved: flags & mpaReserved,
	}
	if !f.Enhanced {
		// The bit had no meaning before revision 2: keep it unchanged.
		f.Reserved |= flags & mpaEnhanced
	}
	if f.Enhanced && private < mpaWordsLen {
		return 0, ErrMalformed
	}
	if len(b) < size {
		return 0, ErrShort
	}
	p := b[MPAHeaderLen:size:size]
	if f.Enhanced {
		ird, ord := binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:])
		f.PeerToPeer, f.RTRSend, f.IRD = ird&mpaPeerToPeer != 0, ird&mpaRTRSend != 0, ird&mpaDepthMask
		f.RTRWrite, f.RTRRead, f.ORD = ord&mpaRTRWrite != 0, ord&mpaRTRRead != 0, ord&mpaDepthMask
		p = p[mpaWordsLen:]
	}
	f.Private = p
	return size, nil
}

// Size is the number of bytes that Append adds.
func (f *MPAFrame) Size() int {
	n := MPAHeaderLen + len(f.Private)
	if f.Enhanced {
		n += mpaWordsLen
	}
	return n
}

// Append appends the frame to dst. Private must fit: 512 bytes, of which the words of an enhanced frame take
// 4; the excess is cut off.
func (f *MPAFrame) Append(dst []byte) []byte {
	key := mpaRequestKey
	if f.Reply {
		key = mpaReplyKey
	}
	dst = append(dst, key...)
	flags := f.Reserved & (mpaReserved | mpaEnhanced)
	room := MPAMaxPrivate
	if f.Enhanced {
		flags |= mpaEnhanced
		room -= mpaWordsLen
	}
	private := f.Private[:min(len(f.Private), room)]
	setBit(&flags, mpaMarkers, f.Markers)
	setBit(&flags, mpaCRC, f.CRC)
	setBit(&flags, mpaReject, f.Reject)
	dst = append(dst, flags, f.Revision)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(private)+MPAMaxPrivate-room))
	if f.Enhanced {
		ird, ord := f.IRD&mpaDepthMask, f.ORD&mpaDepthMask
		setBit(&ird, mpaPeerToPeer, f.PeerToPeer)
		setBit(&ird, mpaRTRSend, f.RTRSend)
		setBit(&ord, mpaRTRWrite, f.RTRWrite)
		setBit(&ord, mpaRTRRead, f.RTRRead)
		dst = binary.BigEndian.AppendUint16(dst, ird)
		dst = binary.BigEndian.AppendUint16(dst, ord)
	}
	return append(dst, private...)
}

func setBit[T uint8 | uint16](v *T, bit T, on bool) {
	if on {
		*v |= bit
	}
}
