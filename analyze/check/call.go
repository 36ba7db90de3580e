package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// checkCall checks the header of a call.
func (t *txCheck) checkCall() {
	h, c, tx := t.call, t.c, t.tx
	if t.broken(ruleMSGP, h.Type == rpcrdma.TypeMsgP) {
		t.fail(ruleMSGP, aboutCall, "RDMA_MSG", "RDMA_MSGP")
	}
	zero := h.PositionZero()
	hasZero := len(zero.Segments) > 0
	switch h.Type {
	case rpcrdma.TypeNoMsg:
		if t.broken(ruleNomsgWithoutChunk, zero.Length == 0) {
			t.fail(ruleNomsgWithoutChunk, aboutCall, "a Position-Zero Read chunk", "RDMA_NOMSG without one")
		}
	case rpcrdma.TypeMsg, rpcrdma.TypeMsgP:
		switch {
		case hasZero:
			t.breach(ruleMsgWithPositionZero, aboutCall, func() (string, string) {
				return "a message inline or at position zero, not both", fmt.Sprintf("%d bytes inline, %d at position zero", h.PayloadLength, zero.Length)
			})
		case h.PayloadLength == 0:
			t.fail(ruleMsgWithoutMessage, aboutCall, "an RPC message behind the header", "nothing")
		default:
			c.ok(ruleMsgWithPositionZero)
			c.ok(ruleMsgWithoutMessage)
		}
	}
	if len(h.Reads) > 0 {
		t.readList(hasZero, zero.Length)
	}
	t.segments()
	t.callSize(hasZero, zero.Length)
	t.protected()
	if tx.Backward {
		lists := len(h.Reads)+len(h.Writes) > 0 || h.HasReply
		if t.broken(ruleBackwardChunks, h.Type != rpcrdma.TypeMsg || lists) {
			t.breach(ruleBackwardChunks, aboutCall, func() (string, string) { return "RDMA_MSG without chunks", h.Type.String() + " " + h.Key() })
		}
	}
	t.arguments()
	t.offeredWrites()
}

// readList checks order and positions.
func (t *txCheck) readList(hasZero bool, zeroLength uint64) {
	h, c := t.call, t.c
	ascending, aligned := true, true
	var odd uint32
	for i := range h.Reads {
		p := h.Reads[i].Position
		if i > 0 && p < h.Reads[i-1].Position {
			ascending = false
		}
		if p&3 != 0 && aligned {
			aligned, odd = false, p
		}
	}
	if t.broken(ruleReadListOrder, !ascending) {
		t.breach(ruleReadListOrder, aboutCall, func() (string, string) { return "ascending positions", positions(h) })
	}
	if !aligned {
		t.misplaced = true
		t.breach(rulePositionUnaligned, aboutCall, func() (string, string) { return "a multiple of 4", fmt.Sprintf("position %d", odd) })
	} else {
		c.ok(rulePositionUnaligned)
	}
	chunks := h.ReadChunks()
	if hasZero {
		if t.broken(ruleLongCallWithChunks, h.Type == rpcrdma.TypeNoMsg && len(chunks) > 1) {
			t.breach(ruleLongCallWithChunks, aboutCall, func() (string, string) { return "one Read chunk", positions(h) })
		}
	}
	end := uint64(h.PayloadLength)
	if h.Type == rpcrdma.TypeNoMsg {
		end = zeroLength
	}
	beyond := false
	for i := range chunks {
		p := &chunks[i]
		if p.Position == 0 {
			continue
		}
		if uint64(p.Position) > end {
			beyond = true
			t.misplaced = true
			t.breach(rulePositionBeyond, aboutCall, func() (string, string) {
				return fmt.Sprintf("a position up to %d", end), fmt.Sprintf("position %d", p.Position)
			})
			break
		}
		end += (p.Length + 3) &^ 3
	}
	if !beyond {
		c.ok(rulePositionBeyond)
	}
	if h.Type == rpcrdma.TypeMsg && !hasZero && !t.misplaced {
		if t.broken(rulePadInStream, h.PayloadLength&3 != 0) {
			t.breach(rulePadInStream, aboutCall, func() (string, string) {
				return "a message without the padding of its chunks", fmt.Sprintf("%d bytes inline, no multiple of 4", h.PayloadLength)
			})
		}
	}
}

func positions(h *rpcrdma.Header) string {
	s := "positions"
	for i := range h.Reads {
		if i == 8 {
			return s + " …"
		}
		s += fmt.Sprintf(" %d", h.Reads[i].Position)
	}
	return s
}

// maxPairs bounds the segments of a call that are compared with each other.
const maxPairs = 128

// segments checks the memory that a call offers.
func (t *txCheck) segments() {
	h, c := t.call, t.c
	n := len(h.Reads) + len(h.Reply)
	for _, w := range h.Writes {
		n += len(w)
	}
	switch {
	case n < 2:
		return
	case n > maxPairs:
		c.skip(ruleHandleTwice, Limit)
		c.skip(ruleSegmentsOverlap, Limit)
		return
	}
	at := func(i int) (*rpcrdma.Segment, bool) {
		if i < len(h.Reads) {
			return &h.Reads[i].Segment, true
		}
		i -= len(h.Reads)
		for _, w := range h.Writes {
			if i < len(w) {
				return &w[i], false
			}
			i -= len(w)
		}
		return &h.Reply[i], false
	}
	var same, overlap *rpcrdma.Segment
	for i := range n {
		a, ra := at(i)
		for j := range i {
			b, rb := at(j)
			if a.Handle != b.Handle {
				continue
			}
			same = a
			if !(ra && rb) && a.Length > 0 && b.Length > 0 &&
				(a.Offset-b.Offset < uint64(b.Length) || b.Offset-a.Offset < uint64(a.Length)) {
				overlap = a
			}
		}
	}
	if overlap != nil {
		t.breach(ruleSegmentsOverlap, aboutCall, func() (string, string) {
			return "segments that do not overlap", describe(overlap) + " overlaps another one"
		})
		return
	}
	c.ok(ruleSegmentsOverlap)
	if same != nil {
		t.breach(ruleHandleTwice, aboutCall, func() (string, string) {
			return "a handle for each segment", fmt.Sprintf("handle 0x%08x twice", same.Handle)
		})
	} else {
		c.ok(ruleHandleTwice)
	}
}

func describe(s *rpcrdma.Segment) string {
	return fmt.Sprintf("handle 0x%08x, offset 0x%x, length %d", s.Handle, s.Offset, s.Length)
}

// threshold is the number of bytes that a side may send inline.
func (t *txCheck) threshold(from rdma.Side) (n uint32, ok bool) {
	k := t.tx.Connection.Resolve()
	if !k.Declared(0) || !k.Declared(1) {
		return 0, false
	}
	return rdma.InlineThreshold(&k.Setup[from].Private, &k.Setup[from.Other()].Private), true
}

func (t *txCheck) callSize(hasZero bool, zeroLength uint64) {
	h, c, tx := t.call, t.c, t.tx
	limit, ok := t.threshold(t.requester())
	if !ok {
		c.skip(ruleCallOverInline, NoSetup)
		if hasZero {
			c.skip(ruleLongCallNeedless, NoSetup)
		}
		return
	}
	if t.broken(ruleCallOverInline, tx.Call.SendBytes > int(limit)) {
		t.breach(ruleCallOverInline, aboutCall, func() (string, string) {
			return fmt.Sprintf("at most %d bytes", limit), fmt.Sprintf("a Send of %d bytes", tx.Call.SendBytes)
		})
	}
	if hasZero && h.Type == rpcrdma.TypeNoMsg {
		// As RDMA_MSG it would have the same header without that chunk.
		inline := uint64(h.Size()) - 24*uint64(len(h.PositionZero().Segments)) + zeroLength
		if t.broken(ruleLongCallNeedless, inline <= uint64(limit)) {
			t.breach(ruleLongCallNeedless, aboutCall, func() (string, string) {
				return fmt.Sprintf("RDMA_MSG: %d bytes fit into %d", inline, limit), "RDMA_NOMSG"
			})
		}
	}
}

// protected checks that bodies under integrity or privacy protection are not reduced.
func (t *txCheck) protected() {
	h := t.call
	if t.v.Clean() || t.v.CallErr != nil {
		return
	}
	switch kind := t.v.Call().Protection().Kind(); kind {
	case oncrpc.BodyIntegrity, oncrpc.BodyPrivacy, oncrpc.BodyInit:
		reduced := len(h.Writes) > 0
		for i := range h.Reads {
			reduced = reduced || h.Reads[i].Position != 0
		}
		if t.broken(ruleProtectedReduced, reduced) {
			t.breach(ruleProtectedReduced, aboutCall, func() (string, string) { return "no chunks for data", kind.String() + ": " + h.Key() })
		}
	}
}
