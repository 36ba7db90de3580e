package iwarp

import "github.com/rpcrdma/toolkit/decode/rdma"

// collect records a packet with n bytes of the current FPDU, if there is a tracer.
func (h *half) collect(ref rdma.Ref, n int) {
	if h.conn.t.tracer != nil {
		h.parts = rdma.AddPart(h.parts, rdma.Part{Ref: ref, Bytes: uint32(n)})
	}
}

// collectFound records the packets of size bytes from offset at in the search buffer.
func (h *half) collectFound(at uint64, size int) {
	if h.conn.t.tracer == nil {
		return
	}
	h.parts = h.parts[:0]
	s := h.search
	end := at + uint64(size)
	for i := max(0, s.pieceAt(at)); i < len(s.pieces) && s.pieces[i].start < end; i++ {
		from, to := max(s.pieces[i].start, at), min(s.pieceEnd(i, s.start+uint64(len(s.buf))), end)
		if to > from {
			h.collect(s.pieces[i].ref, int(to-from))
		}
	}
}

// carriers are the packets of a DDP segment with length bytes after its header, nil if it is the last one of
// from alone. Headers, pad and CRC are taken off; markers are not.
func (h *half) carriers(header, length int, from *span) []rdma.Part {
	if len(h.parts) == 0 {
		if from.first.Number == from.last.Number {
			return nil
		}
		// It waited for another packet, which carries none of it.
		h.parts = append(h.parts, rdma.Part{Ref: from.first, Bytes: uint32(FPDUHeaderLen + header + length)})
	}
	skip, left := uint32(FPDUHeaderLen+header), uint32(length)
	for i := range h.parts {
		p := &h.parts[i]
		p.Header = h.conn.c.Header
		n := min(skip, p.Bytes)
		skip -= n
		p.Bytes = min(p.Bytes-n, left)
		left -= p.Bytes
	}
	return h.parts
}

// part reports the packets of a segment of a Send in progress.
func (o *operations) part(h *half, length int, from *span) {
	parts := h.carriers(UntaggedLen, length, from)
	if parts == nil {
		o.parts = rdma.AddPart(o.parts, rdma.Part{Ref: from.last, Header: h.conn.c.Header, Bytes: uint32(length)})
		return
	}
	for _, p := range parts {
		o.parts = rdma.AddPart(o.parts, p)
	}
}

// Opcodes of extents, for the header of a retransmission.
var extentOpcodes = [...]Opcode{
	extentSend: OpSend, extentWrite: OpWrite, extentReadRequest: OpReadRequest, extentReadResponse: OpReadResponse,
}

// trace reports to the tracer what an acknowledgement up to the stream offset end covers. The last FPDU may
// be acknowledged in part.
func (o *operations) trace(h *half, end uint64, ref rdma.Ref) {
	c := h.conn
	defer func(was rdma.Header) { c.c.Header = was }(c.c.Header)
	c.c.Header = rdma.Header{Kind: rdma.HeaderTCP}
	o.traced = max(o.traced, o.extents.oldest())
	for ; o.traced < o.extents.next; o.traced++ {
		e := o.extents.at(o.traced)
		if e.start >= end {
			return
		}
		side := c.side(h)
		switch e.kind {
		case extentSend:
			if s := o.sends.at(e.seq); s != nil && s.done {
				c.t.tracer.Acked(c.c, side, s.tag, ref)
			} else if s != nil && o.sending && e.seq == o.sendSeq {
				o.parts = rdma.AddPart(o.parts, rdma.Part{Ref: ref, Header: c.c.Header, Kind: rdma.PartAck})
			}
		case extentWrite:
			if w := o.writes.at(e.seq); w != nil && w.op.Tag != (rdma.Tag{}) {
				c.t.tracer.Acked(c.c, side, w.op.Tag, ref)
			}
		case extentReadRequest:
			if r := o.reads.at(e.seq); r != nil && r.op.Tag != (rdma.Tag{}) {
				c.t.tracer.Acked(c.c, side, r.op.Tag, ref)
			}
		case extentReadResponse:
			if r := c.peer(h).out.reads.at(e.seq); r != nil && r.op.Tag != (rdma.Tag{}) {
				c.t.tracer.Acked(c.c, side, r.op.Tag, ref)
			}
		}
		if e.end > end {
			return
		}
	}
}
