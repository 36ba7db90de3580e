package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// segment is a piece of memory that a message offered, from the message until
// the transaction ends.
type segment struct {
	handle uint32
	length uint32
	offset uint64

	tx    *Transaction
	gen   uint64 // of tx; a stale tag differs
	kind  ChunkKind
	chunk int    // index in its list; for the Read list, of the list of chunks by position
	index int    // of the segment in its chunk
	base  uint64 // where the segment starts in its chunk
	keep  bool   // its bytes are wanted
	cover coverage

	listed       bool
	above, below *segment // newer and older segments with the same handle
}

// holds reports whether the segment contains the range.
func (s *segment) holds(offset uint64, length uint32) bool {
	return offset >= s.offset && offset-s.offset <= uint64(s.length) &&
		uint64(length) <= uint64(s.length)-(offset-s.offset)
}

// segments finds the memory of one side by handle. Several segments may share
// a handle, and a handle may be in use again before its last user is done: the
// newest that holds the range is right.
type segments struct{ byHandle map[uint32]*segment }

func (t *segments) add(s *segment) {
	if t.byHandle == nil {
		t.byHandle = make(map[uint32]*segment)
	}
	s.above, s.below = nil, t.byHandle[s.handle]
	if s.below != nil {
		s.below.above = s
	}
	t.byHandle[s.handle] = s
	s.listed = true
}

func (t *segments) remove(s *segment) {
	if !s.listed {
		return
	}
	s.listed = false
	if s.below != nil {
		s.below.above = s.above
	}
	switch {
	case s.above != nil:
		s.above.below = s.below
	case s.below != nil:
		t.byHandle[s.handle] = s.below
	default:
		delete(t.byHandle, s.handle)
	}
	s.above, s.below = nil, nil
}

// find returns the segment of an operation. An operation that reaches beyond
// its segment still belongs to it if it starts there.
func (t *segments) find(op *rdma.Op) *segment {
	head := t.byHandle[op.Handle]
	if head == nil {
		return nil
	}
	n := 0
	for s := head; s != nil && n < maxSameHandle; s, n = s.below, n+1 {
		if s.holds(op.Offset, op.Length) {
			return s
		}
	}
	n = 0
	for s := head; s != nil && n < maxSameHandle; s, n = s.below, n+1 {
		if s.holds(op.Offset, 0) {
			return s
		}
	}
	return nil
}

// maxSameHandle bounds the search among segments that share a handle
// (all-physical registration gives every segment the same one).
const maxSameHandle = 4096

// coverage counts which bytes of a segment have been moved.
type coverage struct {
	bytes uint64
	spans []span
}

type span struct{ from, to uint64 }

// maxSpans bounds the pieces that are told apart; beyond it, bytes count as
// new.
const maxSpans = 64

// add covers [from, to) and returns how many bytes of it are new.
func (c *coverage) add(from, to uint64) uint64 {
	if from >= to {
		return 0
	}
	n := len(c.spans)
	if n == 0 {
		c.spans = append(c.spans, span{from, to})
		c.bytes += to - from
		return to - from
	}
	if last := &c.spans[n-1]; from == last.to {
		last.to = to
		c.bytes += to - from
		return to - from
	}
	// Find the spans [i, j) that touch the range.
	i := 0
	for i < n && c.spans[i].to < from {
		i++
	}
	j := i
	fresh := to - from
	lo, hi := from, to
	for j < n && c.spans[j].from <= to {
		a, b := max(from, c.spans[j].from), min(to, c.spans[j].to)
		if b > a {
			fresh -= b - a
		}
		lo, hi = min(lo, c.spans[j].from), max(hi, c.spans[j].to)
		j++
	}
	c.bytes += fresh
	switch {
	case j > i:
		c.spans[i] = span{lo, hi}
		c.spans = append(c.spans[:i+1], c.spans[j:]...)
	case n < maxSpans:
		c.spans = append(c.spans, span{})
		copy(c.spans[i+1:], c.spans[i:])
		c.spans[i] = span{from, to}
	}
	return fresh
}

// prefix is how far the segment is covered from its start.
func (c *coverage) prefix() uint64 {
	if len(c.spans) == 0 || c.spans[0].from != 0 {
		return 0
	}
	return c.spans[0].to
}

func (c *coverage) reset() { c.bytes, c.spans = 0, c.spans[:0] }
