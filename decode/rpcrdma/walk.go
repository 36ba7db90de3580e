package rpcrdma

import "github.com/rpcrdma/toolkit/decode/xdr"

// Walk shows the header to v under the names of its XDR definition.
func (h *Header) Walk(v xdr.Visitor) {
	v.Begin("rpcrdma", "rdma_msg", -1)
	v.Uint("rdma_xid", uint64(h.XID))
	v.Uint("rdma_vers", uint64(h.Version))
	switch h.Version {
	case Version0:
		v.Enum("rdma_proc", uint32(h.Type), h.Type.String())
		if h.Type != TypeDone {
			walkReads(v, "rdma_chunks", h.Reads)
		}
	case Version2:
		h.walk2(v)
	default:
		h.walk1(v)
	}
	v.End()
}

func (h *Header) walk1(v xdr.Visitor) {
	v.Uint("rdma_credit", uint64(h.Credits))
	v.Enum("rdma_proc", uint32(h.Type), h.Type.String())
	switch h.Type {
	case TypeError:
		v.Enum("err", uint32(h.Error), h.Error.Name(Version1))
		if h.Error == ErrVers {
			v.Uint("rdma_vers_low", uint64(h.Low))
			v.Uint("rdma_vers_high", uint64(h.High))
		}
		return
	case TypeMsgP:
		v.Uint("rdma_align", uint64(h.Align))
		v.Uint("rdma_thresh", uint64(h.Threshold))
	case TypeMsg, TypeNoMsg:
	default:
		return
	}
	walkReads(v, "rdma_reads", h.Reads)
	walkWrites(v, h.Writes)
	h.walkReply(v)
}

func (h *Header) walk2(v xdr.Visitor) {
	v.Uint("rdma_credit", uint64(h.Credits))
	name := h.Type.String()
	if h.Type == TypeError {
		name = "RDMA2_ERROR"
	}
	v.Enum("rdma_htype", uint32(h.Type), name)
	switch h.Type {
	case TypeError:
		v.Enum("rdma_err", uint32(h.Error), h.Error.Name(Version2))
		h.walkErrorArgs2(v)
		return
	case TypeConnPropMiddle, TypeConnPropFinal:
		for i, p := range h.Properties {
			v.Begin("rdma_props", "rpcrdma2_propval", i)
			v.Enum("rdma_which", p.ID, PropertyName(p.ID))
			n, ok := p.Uint32()
			switch {
			case p.ID == PropertyReverse && ok:
				v.Enum("rdma_data", n, ReverseName(n))
			case p.ID >= PropertySendSize && p.ID < PropertyReverse && ok:
				v.Uint("rdma_data", uint64(n))
			default:
				v.Bytes("rdma_data", p.Value)
			}
			v.End()
		}
		return
	}
	parts := h.Type.parts2()
	if h.Type.middle2() {
		v.Uint("rdma_remaining", uint64(h.Remaining))
	} else if parts.word {
		v.Uint("rdma_inv_handle", uint64(h.InvalidateHandle))
	}
	if parts.call {
		walkReads(v, "rdma_call", h.Call)
	}
	if parts.reads {
		walkReads(v, "rdma_reads", h.Reads)
	}
	if parts.writes {
		walkWrites(v, h.Writes)
	}
	if parts.reply {
		h.walkReply(v)
	}
}

func (h *Header) walkErrorArgs2(v xdr.Visitor) {
	switch h.Error {
	case ErrVers:
		v.Uint("rdma_vers_low", uint64(h.Low))
		v.Uint("rdma_vers_high", uint64(h.High))
	case Err2ReadChunks, Err2WriteChunks:
		v.Uint("rdma_max_chunks", uint64(h.Low))
	case Err2Segments:
		v.Uint("rdma_max_segments", uint64(h.Low))
	case Err2WriteResource:
		v.Uint("rdma_chunk_index", uint64(h.Low))
		v.Uint("rdma_length_needed", uint64(h.High))
	case Err2ReplyResource:
		v.Uint("rdma_length_needed", uint64(h.Low))
	}
}

func walkReads(v xdr.Visitor, name string, list []ReadSegment) {
	for i := range list {
		v.Begin(name, "xdr_read_chunk", i)
		v.Uint("position", uint64(list[i].Position))
		walkSegment(v, list[i].Segment, -1)
		v.End()
	}
}

func walkWrites(v xdr.Visitor, list []WriteChunk) {
	for i, c := range list {
		v.Begin("rdma_writes", "xdr_write_chunk", i)
		for j := range c {
			walkSegment(v, c[j], j)
		}
		v.End()
	}
}

func (h *Header) walkReply(v xdr.Visitor) {
	if !h.HasReply {
		return
	}
	v.Begin("rdma_reply", "xdr_write_chunk", -1)
	for j := range h.Reply {
		walkSegment(v, h.Reply[j], j)
	}
	v.End()
}

func walkSegment(v xdr.Visitor, s Segment, index int) {
	v.Begin("target", "xdr_rdma_segment", index)
	v.Uint("handle", uint64(s.Handle))
	v.Uint("length", uint64(s.Length))
	v.Uint("offset", s.Offset)
	v.End()
}
