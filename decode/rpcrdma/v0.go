package rpcrdma

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Dialect tells the two pre-standard protocols with version number 0 apart.
type Dialect uint8

// Dialects. Both have one chunk list and no credits, and both are read-read: the client reads a long reply
// from the server's memory and then sends RDMA_DONE.
const (
	DialectNone Dialect = iota // not version 0
	// DialectEither is an RDMA_MSG with an inline RPC message, which is
	// encoded in the same way by both.
	DialectEither
	// DialectCallaghan is the prototype of Callaghan et al., "NFS over RDMA"
	// (2003). On its wire RDMA_DONE is 1; a long message is an RDMA_MSG whose
	// first chunk is at offset 0 and which nothing follows.
	DialectCallaghan
	// DialectSolaris is OpenSolaris before it adopted version 1 (2005). Its
	// operations have the numbers of version 1, without RDMA_ERROR.
	DialectSolaris
)

var dialectNames = [...]string{"", "version 0", "Callaghan 2003", "OpenSolaris 2005"}

func (d Dialect) String() string {
	if int(d) < len(dialectNames) {
		return dialectNames[d]
	}
	return ""
}

// Version 0:
//
//	 0         4         8         12
//	+---------+---------+---------+
//	| XID     | Vers 0  | Proc    |
//	+---------+---------+---------+---------+---------+---------+
//	| 1       | XDR off | Length  | Handle  | Address           |
//	+---------+---------+---------+---------+-------------------+
//	| 0       |
//	+---------+
//
// The length of a chunk stands before its handle.

const fixedLength0 = 12

// doneCallaghan is RDMA_DONE in the numbering of that dialect.
const doneCallaghan = 1

func (h *Header) decode0(b []byte, full int) error {
	if len(b) < fixedLength0 {
		return h.fail(xdr.Short, 8, full, len(b), "rdma_proc")
	}
	proc := binary.BigEndian.Uint32(b[8:])
	off := fixedLength0
	switch {
	case proc == doneCallaghan && full == fixedLength0:
		// A NOMSG of OpenSolaris has a chunk list, so it is longer.
		h.Type, h.Dialect = TypeDone, DialectCallaghan
	case proc == uint32(TypeDone):
		h.Type, h.Dialect = TypeDone, DialectSolaris
	case proc <= uint32(TypeMsgP):
		h.Type, h.Dialect = Type(proc), DialectSolaris
		if h.Type == TypeMsg {
			h.Dialect = DialectEither
		}
		for {
			more, err := h.discriminator(b, off, full, "rdma_chunks")
			if err != nil {
				return err
			}
			if !more {
				off += 4
				break
			}
			if len(b)-off < readEntrySize {
				return h.fail(xdr.Short, off, full, len(b), "rdma_chunks")
			}
			h.Reads = append(h.Reads, readSegment0(b[off+4:]))
			off += readEntrySize
		}
		if h.Type == TypeMsg && off == full && len(h.Reads) > 0 && h.Reads[0].Position == 0 {
			h.Dialect = DialectCallaghan
		}
	default:
		return h.fail(xdr.Value, 8, full, len(b), "rdma_proc")
	}
	h.payload(b, off, full)
	return nil
}

func readSegment0(b []byte) ReadSegment {
	_ = b[19]
	return ReadSegment{
		Position: binary.BigEndian.Uint32(b),
		Segment: Segment{
			Length: binary.BigEndian.Uint32(b[4:]),
			Handle: binary.BigEndian.Uint32(b[8:]),
			Offset: binary.BigEndian.Uint64(b[12:]),
		},
	}
}

func (h *Header) size0() int {
	if h.Type == TypeDone {
		return fixedLength0
	}
	return fixedLength0 + sizeReadList(h.Reads)
}

func (h *Header) append0(b []byte) []byte {
	b = xdr.AppendUint32(b, h.XID)
	b = xdr.AppendUint32(b, h.Version)
	proc := uint32(h.Type)
	if h.Dialect == DialectCallaghan {
		// That dialect knows two procedures; its long message is an RDMA_MSG.
		proc = uint32(TypeMsg)
		if h.Type == TypeDone {
			proc = doneCallaghan
		}
	}
	b = xdr.AppendUint32(b, proc)
	if h.Type == TypeDone {
		return b
	}
	for i := range h.Reads {
		s := &h.Reads[i]
		b = xdr.AppendUint32(b, 1)
		b = xdr.AppendUint32(b, s.Position)
		b = xdr.AppendUint32(b, s.Length)
		b = xdr.AppendUint32(b, s.Handle)
		b = xdr.AppendUint64(b, s.Offset)
	}
	return xdr.AppendUint32(b, 0)
}
