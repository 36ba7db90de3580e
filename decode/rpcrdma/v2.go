package rpcrdma

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Version 2 is an expired draft (draft-ietf-nfsv4-rpcrdma-version-two). The
// fixed part is the same as in version 1; the type decides which lists follow:
//
//	CALL_EXTERNAL   invalidate handle, Call chunk, Reads, Writes, Reply chunk
//	CALL_MIDDLE     bytes remaining, payload
//	CALL_INLINE     invalidate handle, Reads, Writes, Reply chunk, payload
//	REPLY_EXTERNAL  Writes, Reply chunk
//	REPLY_MIDDLE    bytes remaining, payload
//	REPLY_INLINE    Writes, payload
//	CONNPROP_*      counted array of properties
//	ERROR           code and its arguments
//	GRANT           nothing

// Property is a transport property of version 2.
type Property struct {
	ID    uint32
	Value []byte // aliases the message
}

// Transport properties of version 2.
const (
	PropertySendSize     = 1 // bytes
	PropertyReceiveSize  = 2 // bytes
	PropertySegmentSize  = 3 // largest segment in bytes
	PropertySegmentCount = 4 // most segments of a message
	PropertyReverse      = 5 // see ReverseName
	PropertyHostAuth     = 6
)

// minPropertySize is the encoded size of a property with an empty value.
const minPropertySize = 8

var propertyNames = [...]string{
	"RDMA2_PROPID_SBSIZ", "RDMA2_PROPID_RBSIZ", "RDMA2_PROPID_RSSIZ",
	"RDMA2_PROPID_RCSIZ", "RDMA2_PROPID_BRS", "RDMA2_PROPID_HOSTAUTH",
}

// PropertyName is the draft's name of a property; empty if it has none.
func PropertyName(id uint32) string {
	if i := id - 1; i < uint32(len(propertyNames)) {
		return propertyNames[i]
	}
	return ""
}

var reverseNames = [...]string{
	"RDMA2_RVRSDIR_NONE", "RDMA2_RVRSDIR_SIMPLE", "RDMA2_RVRSDIR_CONT", "RDMA2_RVRSDIR_GENL",
}

// ReverseName names the value of PropertyReverse; empty if it has no name.
func ReverseName(v uint32) string {
	if v < uint32(len(reverseNames)) {
		return reverseNames[v]
	}
	return ""
}

// Uint32 is the value of a property that is a number.
func (p Property) Uint32() (v uint32, ok bool) {
	if len(p.Value) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(p.Value), true
}

var error2Names = [...]string{
	"RDMA2_ERR_VERS", "RDMA2_ERR_BAD_XDR", "RDMA2_ERR_BAD_PROPVAL", "RDMA2_ERR_INVAL_HTYPE",
	"RDMA2_ERR_INVAL_CONT", "RDMA2_ERR_READ_CHUNKS", "RDMA2_ERR_WRITE_CHUNKS", "RDMA2_ERR_SEGMENTS",
	"RDMA2_ERR_WRITE_RESOURCE", "RDMA2_ERR_REPLY_RESOURCE", "RDMA2_ERR_VERS_MISMATCH",
}

func error2Name(e ErrorCode) string {
	if e == Err2System {
		return "RDMA2_ERR_SYSTEM"
	}
	if i := uint32(e) - 1; i < uint32(len(error2Names)) {
		return error2Names[i]
	}
	return ""
}

// error2Args is how many words follow the error code.
func error2Args(e ErrorCode) int {
	switch e {
	case ErrVers, Err2WriteResource:
		return 2
	case Err2ReadChunks, Err2WriteChunks, Err2Segments, Err2ReplyResource:
		return 1
	}
	return 0
}

// parts2 says which parts a message type of version 2 has, in this order.
type parts2 struct {
	word, call, reads, writes, reply bool
}

func (t Type) parts2() parts2 {
	switch t {
	case TypeCallExternal:
		return parts2{word: true, call: true, reads: true, writes: true, reply: true}
	case TypeCallInline:
		return parts2{word: true, reads: true, writes: true, reply: true}
	case TypeCallMiddle, TypeReplyMiddle:
		return parts2{word: true}
	case TypeReplyExternal:
		return parts2{writes: true, reply: true}
	case TypeReplyInline:
		return parts2{writes: true}
	}
	return parts2{}
}

func (t Type) middle2() bool { return t == TypeCallMiddle || t == TypeReplyMiddle }

func (h *Header) decode2(b []byte, full int) (err error) {
	off := fixedLength
	switch {
	case h.Type == TypeError:
		off, err = h.decodeError2(b, off, full)
	case h.Type == TypeConnPropMiddle || h.Type == TypeConnPropFinal:
		off, err = h.decodeProperties(b, off, full)
	case h.Type < TypeError || h.Type > TypeReplyInline:
		return h.fail(xdr.Value, 12, full, len(b), "rdma_htype")
	default:
		off, err = h.decodeLists2(b, off, full)
	}
	if err != nil {
		return err
	}
	h.payload(b, off, full)
	return nil
}

func (h *Header) decodeLists2(b []byte, off, full int) (int, error) {
	parts := h.Type.parts2()
	var err error
	if parts.word {
		if len(b)-off < 4 {
			return off, h.fail(xdr.Short, off, full, len(b), "rdma_inv_handle")
		}
		v := binary.BigEndian.Uint32(b[off:])
		if h.Type.middle2() {
			h.Remaining = v
		} else {
			h.InvalidateHandle = v
		}
		off += 4
	}
	if parts.call {
		if off, err = h.readList(&h.Call, b, off, full, "rdma_call"); err != nil {
			return off, err
		}
	}
	if parts.reads {
		if off, err = h.readList(&h.Reads, b, off, full, "rdma_reads"); err != nil {
			return off, err
		}
	}
	if parts.writes {
		if off, err = h.writeList(b, off, full); err != nil {
			return off, err
		}
	}
	if parts.reply {
		off, err = h.replyChunk(b, off, full)
	}
	return off, err
}

func (h *Header) decodeError2(b []byte, off, full int) (int, error) {
	if len(b)-off < 4 {
		return off, h.fail(xdr.Short, off, full, len(b), "rdma_err")
	}
	h.Error = ErrorCode(binary.BigEndian.Uint32(b[off:]))
	off += 4
	args := error2Args(h.Error)
	if len(b)-off < 4*args {
		return off, h.fail(xdr.Short, off, full, len(b), "rdma_err")
	}
	if args > 0 {
		h.Low = binary.BigEndian.Uint32(b[off:])
	}
	if args > 1 {
		h.High = binary.BigEndian.Uint32(b[off+4:])
	}
	return off + 4*args, nil
}

func (h *Header) decodeProperties(b []byte, off, full int) (int, error) {
	const field = "rdma_props"
	if len(b)-off < 4 {
		return off, h.fail(xdr.Short, off, full, len(b), field)
	}
	n := binary.BigEndian.Uint32(b[off:])
	if uint64(n) > uint64(full-off-4)/minPropertySize {
		return off, h.fail(xdr.Range, off, full, len(b), field)
	}
	off += 4
	for ; n > 0; n-- {
		if len(b)-off < minPropertySize {
			return off, h.fail(xdr.Short, off, full, len(b), field)
		}
		id := binary.BigEndian.Uint32(b[off:])
		size := binary.BigEndian.Uint32(b[off+4:])
		end := uint64(off) + minPropertySize + (uint64(size)+3)&^3
		if end > uint64(full) {
			return off, h.fail(xdr.Range, off+4, full, len(b), field)
		}
		if end > uint64(len(b)) {
			return off, h.fail(xdr.Short, off+4, full, len(b), field)
		}
		v := b[off+8 : off+8+int(size) : off+8+int(size)]
		h.Properties = append(h.Properties, Property{ID: id, Value: v})
		off = int(end)
	}
	return off, nil
}

func (h *Header) size2() int {
	n := fixedLength
	switch h.Type {
	case TypeError:
		return n + 4 + 4*error2Args(h.Error)
	case TypeConnPropMiddle, TypeConnPropFinal:
		n += 4
		for i := range h.Properties {
			n += 4 + xdr.SizeOpaque(len(h.Properties[i].Value))
		}
		return n
	}
	parts := h.Type.parts2()
	if parts.word {
		n += 4
	}
	if parts.call {
		n += sizeReadList(h.Call)
	}
	if parts.reads {
		n += sizeReadList(h.Reads)
	}
	if parts.writes {
		n += sizeWriteList(h.Writes)
	}
	if parts.reply {
		n += h.sizeReply()
	}
	return n
}

func (h *Header) append2(b []byte) []byte {
	b = h.appendFixed(b)
	switch h.Type {
	case TypeError:
		b = xdr.AppendUint32(b, uint32(h.Error))
		args := error2Args(h.Error)
		if args > 0 {
			b = xdr.AppendUint32(b, h.Low)
		}
		if args > 1 {
			b = xdr.AppendUint32(b, h.High)
		}
		return b
	case TypeConnPropMiddle, TypeConnPropFinal:
		b = xdr.AppendUint32(b, uint32(len(h.Properties)))
		for i := range h.Properties {
			b = xdr.AppendUint32(b, h.Properties[i].ID)
			b = xdr.AppendOpaque(b, h.Properties[i].Value)
		}
		return b
	}
	parts := h.Type.parts2()
	if parts.word {
		if h.Type.middle2() {
			b = xdr.AppendUint32(b, h.Remaining)
		} else {
			b = xdr.AppendUint32(b, h.InvalidateHandle)
		}
	}
	if parts.call {
		b = appendReadList(b, h.Call)
	}
	if parts.reads {
		b = appendReadList(b, h.Reads)
	}
	if parts.writes {
		b = appendWriteList(b, h.Writes)
	}
	if parts.reply {
		b = h.appendReply(b)
	}
	return b
}
