// Package rpcrdma decodes and encodes the transport header that precedes an
// RPC message on an RDMA connection: RPC-over-RDMA version 1 (RFC 8166, and
// RFC 5666 before it), the two pre-standard dialects of version 0, and the
// expired draft of version 2.
//
// The package knows nothing of fabrics: it is given the payload of a Send.
package rpcrdma

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Versions of the protocol.
const (
	Version0 = 0 // pre-standard, see Dialect
	Version1 = 1 // RFC 8166
	Version2 = 2 // draft-ietf-nfsv4-rpcrdma-version-two
)

// Type says what a message is: rdma_proc of version 1 (RFC 8166, section
// 4.2.4), rdma_htype of version 2. The values of version 0 are mapped to those
// of version 1 (see Dialect).
type Type uint32

// Message types. The first five belong to version 1; 4 and those after it to
// version 2.
const (
	TypeMsg   Type = 0 // the RPC message follows the header
	TypeNoMsg Type = 1 // the RPC message is in a chunk
	TypeMsgP  Type = 2 // as TypeMsg, with padding; obsolete (RFC 8166, section 4.2.4)
	TypeDone  Type = 3 // the client has read the reply's chunks; obsolete
	TypeError Type = 4

	TypeGrant          Type = 5
	TypeConnPropMiddle Type = 6
	TypeConnPropFinal  Type = 7
	TypeCallExternal   Type = 8
	TypeCallMiddle     Type = 9
	TypeCallInline     Type = 10
	TypeReplyExternal  Type = 11
	TypeReplyMiddle    Type = 12
	TypeReplyInline    Type = 13
)

var typeNames = [...]string{
	"RDMA_MSG", "RDMA_NOMSG", "RDMA_MSGP", "RDMA_DONE", "RDMA_ERROR",
	"RDMA2_GRANT", "RDMA2_CONNPROP_MIDDLE", "RDMA2_CONNPROP_FINAL",
	"RDMA2_CALL_EXTERNAL", "RDMA2_CALL_MIDDLE", "RDMA2_CALL_INLINE",
	"RDMA2_REPLY_EXTERNAL", "RDMA2_REPLY_MIDDLE", "RDMA2_REPLY_INLINE",
}

// String is the name that the specification uses; empty if it has none.
func (t Type) String() string {
	if int64(t) < int64(len(typeNames)) {
		return typeNames[t]
	}
	return ""
}

// ErrorCode is rdma_err of an RDMA_ERROR message.
type ErrorCode uint32

// Error codes of version 1 (RFC 8166, section 4.5).
const (
	ErrVers  ErrorCode = 1 // Low and High are the versions that the sender supports
	ErrChunk ErrorCode = 2
)

// Error codes of version 2. Its ErrVers equals that of version 1.
const (
	Err2BadXDR        ErrorCode = 2
	Err2BadPropVal    ErrorCode = 3
	Err2InvalHType    ErrorCode = 4
	Err2InvalCont     ErrorCode = 5
	Err2ReadChunks    ErrorCode = 6  // Low is the maximum
	Err2WriteChunks   ErrorCode = 7  // Low is the maximum
	Err2Segments      ErrorCode = 8  // Low is the maximum
	Err2WriteResource ErrorCode = 9  // Low is the chunk's index, High the length needed
	Err2ReplyResource ErrorCode = 10 // Low is the length needed
	Err2VersMismatch  ErrorCode = 11
	Err2System        ErrorCode = 100
)

// Name is the name of the code in the given version of the protocol; empty if
// it has none.
func (e ErrorCode) Name(version uint32) string {
	if version == Version2 {
		return error2Name(e)
	}
	switch e {
	case ErrVers:
		return "ERR_VERS"
	case ErrChunk:
		return "ERR_CHUNK"
	}
	return ""
}

// Header is a decoded transport header. Decode refills it and keeps the memory
// of its lists, so a Header that is used again does not allocate. Its lists
// belong to it; Payload and property values alias the message.
type Header struct {
	XID     uint32
	Version uint32
	Credits uint32 // requested by a call, granted by a reply; not in version 0
	Type    Type
	Dialect Dialect // version 0 only

	// Cut says that the capture ends within the header. The lists hold what
	// could be decoded.
	Cut bool
	// HasReply says that there is a Reply chunk; it may have no segments.
	HasReply bool
	// plain says that all below PayloadLength is empty, since Decode or Reset
	// found or made it so. Most messages have no chunks: they touch one cache
	// line of this struct.
	plain bool

	// Length is the size of the header in bytes, as far as it was decoded.
	Length int
	// Payload is what follows the header, as far as it was captured: the RPC message if Inline reports true.
	// Bytes after a header that should be the whole message are here, too.
	Payload []byte
	// PayloadLength is the size of the payload on the wire in bytes.
	PayloadLength int

	// Call is the Call chunk of version 2, which that version keeps apart
	// from the Read list. In version 1 it is the part of Reads at position 0.
	Call []ReadSegment
	// Reads is the Read list in the order of the wire. In version 0 it is the
	// only list, in calls and in replies.
	Reads []ReadSegment
	// Writes is the Write list.
	Writes []WriteChunk
	Reply  WriteChunk

	Align, Threshold uint32 // RDMA_MSGP

	Error     ErrorCode // RDMA_ERROR
	Low, High uint32    // RDMA_ERROR: see ErrorCode

	InvalidateHandle uint32     // version 2 calls: may be invalidated by the reply; 0 for none
	Remaining        uint32     // version 2 MIDDLE messages: bytes of the message still to come
	Properties       []Property // version 2 CONNPROP messages

	segments []Segment     // memory of Writes and Reply
	chunks   []ReadChunk   // memory of ReadChunks
	sorted   []ReadSegment // memory of ReadChunks
	err      xdr.Error
}

const fixedLength = 16 // xid, vers, credit, proc: at the same place in versions 1 and 2

// Decode reads the header at the start of b, the captured part of a message
// of full bytes (a full less than len(b) counts as len(b)).
//
// An error is an *xdr.Error that belongs to h; the fields before the error
// are valid. If h.Cut is set as well, the message is well-formed as far as it
// was captured. RDMA_ERROR messages are understood in every version, since
// RFC 8166, section 4.2.1 fixes their layout.
func (h *Header) Decode(b []byte, full int) error {
	if full < len(b) {
		full = len(b)
	}
	if !chunkless(b) {
		return h.decode(b, full)
	}
	h.decodeChunkless(b, full)
	return nil
}

// decodeChunkless is Decode for what chunkless says.
func (h *Header) decodeChunkless(b []byte, full int) {
	if !h.plain {
		h.resetLists()
	}
	f := (*[minMessage]byte)(b)
	h.XID, h.Version, h.Credits = binary.BigEndian.Uint32(f[:]), Version1, binary.BigEndian.Uint32(f[8:])
	h.Type, h.Dialect, h.Cut, h.HasReply = TypeMsg, DialectNone, false, false
	h.Length, h.PayloadLength = minMessage, full-minMessage
	h.Payload = b[minMessage:len(b):len(b)]
}

// decode is Decode for what is not chunkless.
func (h *Header) decode(b []byte, full int) error {
	h.Reset()
	h.plain = false
	if len(b) >= 4 {
		h.XID = binary.BigEndian.Uint32(b)
	}
	if len(b) < 8 {
		return h.fail(xdr.Short, len(b), full, len(b), "rdma_xid")
	}
	h.Version = binary.BigEndian.Uint32(b[4:])
	if h.Version == Version0 {
		return h.decode0(b, full)
	}
	if len(b) < fixedLength {
		return h.fail(xdr.Short, 8, full, len(b), "rdma_credit")
	}
	h.Credits = binary.BigEndian.Uint32(b[8:])
	h.Type = Type(binary.BigEndian.Uint32(b[12:]))
	h.Length = fixedLength
	switch h.Version {
	case Version1:
		return h.decode1(b, full)
	case Version2:
		return h.decode2(b, full)
	}
	if h.Type == TypeError {
		return h.decode1(b, full)
	}
	return h.fail(xdr.Value, 4, full, len(b), "rdma_vers")
}

// chunkless reports whether b starts with a header of version 1 that has no chunks and is followed by a message: most
// are so.
func chunkless(b []byte) bool {
	if len(b) < minMessage {
		return false
	}
	f := (*[minMessage]byte)(b) // type and lists are 16 bytes of zeros
	return binary.BigEndian.Uint32(f[4:]) == Version1 && binary.LittleEndian.Uint64(f[12:])|binary.LittleEndian.Uint64(f[20:]) == uint64(TypeMsg)
}

// Fixed reports whether the fixed part was captured, up to the message's type.
// Without it only the XID is known, and the version if Length is 8.
func (h *Header) Fixed() bool {
	return !h.Cut || h.Length >= fixedLength || h.Version == Version0 && h.Length >= fixedLength0
}

// Reset empties h and keeps its memory. (What was added by hand to the lists
// of a header that Decode had found without any stays.)
func (h *Header) Reset() {
	if !h.plain {
		h.resetLists()
	}
	h.ResetPlain()
}

// ResetPlain is Reset for a plain header. It is small enough to be inlined.
func (h *Header) ResetPlain() {
	h.XID, h.Version, h.Credits, h.Type, h.Dialect = 0, 0, 0, 0, DialectNone
	h.Cut, h.HasReply, h.Length, h.Payload, h.PayloadLength = false, false, 0, nil, 0
}

// Plain reports that Decode has found no chunks, no error and nothing else but a message: all after PayloadLength is empty,
// and Memory is what it was before. It may be false nevertheless, and is for a Header that was not decoded.
func (h *Header) Plain() bool { return h.plain }

func (h *Header) resetLists() {
	h.plain = true
	h.Call = h.Call[:0]
	h.Reads = h.Reads[:0]
	h.Writes = h.Writes[:0]
	h.Reply = nil
	h.Align, h.Threshold = 0, 0
	h.Error, h.Low, h.High = 0, 0, 0
	h.InvalidateHandle, h.Remaining = 0, 0
	h.Properties = h.Properties[:0]
	h.segments = h.segments[:0]
	h.err.Kind = xdr.None
}

// Take moves the contents of from to h; from can be decoded into next. The two may exchange their memory.
func (h *Header) Take(from *Header) {
	if !from.plain {
		h.swap(from)
		return
	}
	if !h.plain {
		h.resetLists()
	}
	h.HasReply = false
	h.XID, h.Version, h.Credits, h.Type, h.Dialect = from.XID, from.Version, from.Credits, from.Type, from.Dialect
	h.Cut, h.Length, h.Payload, h.PayloadLength = from.Cut, from.Length, from.Payload, from.PayloadLength
}

// swap is apart from Take, which would else reserve and check the stack for the copy.
//
//go:noinline
func (h *Header) swap(with *Header) { *h, *with = *with, *h }

// fail records an error at offset off of a message of full bytes, have of
// which were captured.
func (h *Header) fail(k xdr.Kind, off, full, have int, field string) error {
	h.err = xdr.Error{Kind: k, Offset: off, Field: field}
	h.Cut = k == xdr.Short && full > have
	h.Length = off
	return &h.err
}

// payload notes that the header ends at off.
func (h *Header) payload(b []byte, off, full int) {
	h.Length = off
	h.Payload = b[off:len(b):len(b)]
	h.PayloadLength = full - off
}

// Inline reports whether an RPC message, or a part of one, follows the header.
func (h *Header) Inline() bool {
	switch h.Type {
	case TypeMsg, TypeMsgP:
		return h.PayloadLength > 0
	case TypeCallMiddle, TypeCallInline, TypeReplyMiddle, TypeReplyInline:
		return h.Version == Version2 && h.PayloadLength > 0
	}
	return false
}

// Size is the number of bytes that Append writes.
func (h *Header) Size() int {
	switch h.Version {
	case Version0:
		return h.size0()
	case Version2:
		return h.size2()
	}
	return h.size1()
}

// Append encodes the header, without the message that follows it. Fields that
// do not belong to the version and type are left out.
func (h *Header) Append(b []byte) []byte {
	switch h.Version {
	case Version0:
		return h.append0(b)
	case Version2:
		return h.append2(b)
	}
	return h.append1(b)
}
