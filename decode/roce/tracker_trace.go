package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

// headerOf is the part of a packet that a tracer shows.
func headerOf(p *Packet) rdma.Header {
	h := rdma.Header{Kind: rdma.HeaderBTH, Opcode: uint8(p.Opcode), PSN: p.PSN}
	if p.Headers.Has(HasAETH) {
		h.HasAETH, h.Syndrome, h.MSN = true, uint8(p.AETH.Syndrome), p.AETH.MSN
	}
	return h
}

// header is headerOf for a packet of the fast path.
func (l *FastPacket) header() rdma.Header {
	h := rdma.Header{Kind: rdma.HeaderBTH, Opcode: uint8(l.Opcode), PSN: l.PSN}
	if opcodes[l.Opcode].headers.Has(HasAETH) {
		h.HasAETH, h.Syndrome, h.MSN = true, uint8(l.Syndrome), l.MSN
	}
	return h
}

// part reports a packet of a Send in progress to the tracer, if there is one.
func (m *messages) part(a *assembly, p *Packet, kind rdma.PartKind, ref rdma.Ref) {
	if m.tracer != nil {
		a.parts = rdma.AddPart(a.parts, rdma.Part{Ref: ref, Header: headerOf(p), Kind: kind, Bytes: uint32(p.PayloadLen)})
	}
}

// untimely reports a packet whose message is not yet known to the tracer.
func (m *messages) untimely(fl *flow, psn uint32, ref rdma.Ref) {
	if m.tracer != nil {
		m.tracer.Early(fl.c.Connection, fl.side, psn, ref)
	}
}

// cutParts removes the packets past the end of a Send from it.
func (m *messages) cutParts(fl *flow, a *assembly) {
	kept := a.parts[:0]
	for _, p := range a.parts {
		if p.Kind == rdma.PartAck || uint32(a.indexOf(p.Header.PSN)) < a.count {
			kept = append(kept, p)
		} else {
			m.untimely(fl, p.Header.PSN, p.Ref)
		}
	}
	a.parts = kept
}

// partAcked reports the acknowledgement of a part of a Send in progress.
func (m *messages) partAcked(fl *flow, a *assembly, psn uint32, ref rdma.Ref) {
	if a.indexOf(psn) >= 0 {
		a.parts = rdma.AddPart(a.parts, rdma.Part{Ref: ref, Header: fl.c.Header, Kind: rdma.PartAck})
	}
}

// traceAck reports to the tracer that a request, or a part of it, was acknowledged.
func (m *messages) traceAck(fl *flow, r *request, ref rdma.Ref) {
	tag := r.tag
	if r.kind != sendRequest {
		tag = r.op.Tag
	}
	if tag != (rdma.Tag{}) {
		m.tracer.Acked(fl.c.Connection, fl.side, tag, ref)
	}
}
