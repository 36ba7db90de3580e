package rpcrdma

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Version 1 (RFC 8166, section 4):
//
//	 0         4         8         12        16
//	+---------+---------+---------+---------+
//	| XID     | Vers 1  | Credit  | Proc    |
//	+---------+---------+---------+---------+
//	| Align, Threshold (RDMA_MSGP)          |
//	+---------+---------+---------+---------+
//	| Read list, Write list, Reply chunk    |
//	+---------------------------------------+
//
// RDMA_DONE ends after the fixed part; RDMA_ERROR has an error code instead of
// the lists, and two version numbers if that is ERR_VERS.

func (h *Header) decode1(b []byte, full int) error {
	off := fixedLength
	switch h.Type {
	case TypeMsg, TypeNoMsg:
	case TypeMsgP:
		if len(b) < off+8 {
			return h.fail(xdr.Short, off, full, len(b), "rdma_align")
		}
		h.Align = binary.BigEndian.Uint32(b[off:])
		h.Threshold = binary.BigEndian.Uint32(b[off+4:])
		off += 8
	case TypeDone:
		h.payload(b, off, full)
		return nil
	case TypeError:
		return h.decodeError1(b, full)
	default:
		return h.fail(xdr.Value, 12, full, len(b), "proc")
	}
	if len(b) >= off+12 && binary.BigEndian.Uint64(b[off:])|uint64(binary.BigEndian.Uint32(b[off+8:])) == 0 {
		h.payload(b, off+12, full) // three empty lists
		h.plain = h.Type != TypeMsgP
		return nil
	}
	off, err := h.readList(&h.Reads, b, off, full, "rdma_reads")
	if err != nil {
		return err
	}
	if off, err = h.writeList(b, off, full); err != nil {
		return err
	}
	if off, err = h.replyChunk(b, off, full); err != nil {
		return err
	}
	h.payload(b, off, full)
	return nil
}

func (h *Header) decodeError1(b []byte, full int) error {
	off := fixedLength
	if len(b) < off+4 {
		return h.fail(xdr.Short, off, full, len(b), "err")
	}
	h.Error = ErrorCode(binary.BigEndian.Uint32(b[off:]))
	off += 4
	switch h.Error {
	case ErrVers:
		if len(b) < off+8 {
			return h.fail(xdr.Short, off, full, len(b), "rdma_vers_low")
		}
		h.Low = binary.BigEndian.Uint32(b[off:])
		h.High = binary.BigEndian.Uint32(b[off+4:])
		off += 8
	case ErrChunk:
	default:
		return h.fail(xdr.Value, off-4, full, len(b), "err")
	}
	h.payload(b, off, full)
	return nil
}

func (h *Header) size1() int {
	n := fixedLength
	switch h.Type {
	case TypeDone:
		return n
	case TypeError:
		if h.Error == ErrVers {
			return n + 12
		}
		return n + 4
	case TypeMsgP:
		n += 8
	}
	return n + sizeReadList(h.Reads) + sizeWriteList(h.Writes) + h.sizeReply()
}

func (h *Header) appendFixed(b []byte) []byte {
	b = xdr.AppendUint32(b, h.XID)
	b = xdr.AppendUint32(b, h.Version)
	b = xdr.AppendUint32(b, h.Credits)
	return xdr.AppendUint32(b, uint32(h.Type))
}

func (h *Header) append1(b []byte) []byte {
	b = h.appendFixed(b)
	switch h.Type {
	case TypeDone:
		return b
	case TypeError:
		b = xdr.AppendUint32(b, uint32(h.Error))
		if h.Error == ErrVers {
			b = xdr.AppendUint32(b, h.Low)
			b = xdr.AppendUint32(b, h.High)
		}
		return b
	case TypeMsgP:
		b = xdr.AppendUint32(b, h.Align)
		b = xdr.AppendUint32(b, h.Threshold)
	}
	b = appendReadList(b, h.Reads)
	b = appendWriteList(b, h.Writes)
	return h.appendReply(b)
}
