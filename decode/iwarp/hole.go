package iwarp

import "github.com/rpcrdma/toolkit/decode/rdma"

// hole is a part of an FPDU, in offsets of its stream, that no packet of the capture has. What the capture has cut from its packets
// is none: its packet shows that it was sent.
type hole struct{ from, to uint64 }

// maxHoles is how many holes of an FPDU are distinguished. What lies between further ones counts as missing.
const maxHoles = 16

// lacks notes a hole of the current FPDU.
func (h *half) lacks(from, to uint64) {
	if n := len(h.holes); n > 0 && (h.holes[n-1].to == from || n == maxHoles) {
		h.holes[n-1].to = to
		return
	}
	h.holes = append(h.holes, hole{from, to})
}

// payload reports t.fragment, the payload of a tagged FPDU that starts at a stream offset, in parts that leave out the holes. It returns the number of bytes in the
// holes.
func (h *half) payload(op *rdma.Op, start uint64) (lost uint64) {
	c := h.conn
	f := &c.t.fragment
	if len(h.holes) == 0 {
		c.t.handler.OpData(c.c, op, f)
		return 0
	}
	whole := *f
	first, length := h.unmarked(start)+FPDUHeaderLen+TaggedLen, uint64(whole.Length)
	at := uint64(0)
	report := func(to uint64, last bool) {
		*f = rdma.Fragment{Offset: whole.Offset + at, Length: uint32(to - at), Ref: whole.Ref, Last: last}
		if at == 0 {
			f.Data, f.Parts = whole.Data[:min(uint64(len(whole.Data)), to)], whole.Parts
		}
		c.t.handler.OpData(c.c, op, f)
	}
	for _, x := range h.holes {
		from, to := h.unmarked(x.from), h.unmarked(x.to)
		from, to = min(max(from, first)-first, length), min(max(to, first)-first, length)
		if from == to {
			continue // header, pad or CRC only
		}
		if from > at {
			report(from, false)
		}
		at, lost = to, lost+to-from
	}
	if at < length || whole.Last {
		report(length, whole.Last)
	}
	return lost
}
