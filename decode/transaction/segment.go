package transaction

import (
	"maps"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// segment is a piece of memory that a message offered, from the message until
// the transaction ends.
type segment struct {
	handle uint32
	length uint32
	offset uint64

	tx    *Transaction
	kind  ChunkKind
	at    int32  // in Transaction.segments or, if reply is set, served
	chunk int    // index in its list; for the Read list, of the list of chunks by position
	index int    // of the segment in its chunk
	base  uint64 // where the segment starts in its chunk
	keep  bool   // its bytes are wanted
	reply bool   // the reply offered it: the read-read model
	cover coverage
	asked coverage // by the operations that were started

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
type segments struct {
	byHandle map[uint32]*segment
	high     int // entries that byHandle has had: it does not shrink
}

func (t *segments) add(s *segment) {
	if t.byHandle == nil {
		t.byHandle = make(map[uint32]*segment)
	}
	s.above, s.below = nil, t.byHandle[s.handle]
	if s.below != nil {
		s.below.above = s
	}
	t.byHandle[s.handle] = s
	t.high = max(t.high, len(t.byHandle))
	s.listed = true
}

// splice adds a chain of segments with the same handle, given its newest, that
// was made elsewhere.
func (t *segments) splice(s *segment) {
	if t.byHandle == nil {
		t.byHandle = make(map[uint32]*segment)
	}
	oldest := s
	for oldest.below != nil {
		oldest = oldest.below
	}
	if oldest.below = t.byHandle[s.handle]; oldest.below != nil {
		oldest.below.above = oldest
	}
	t.byHandle[s.handle] = s
	t.high = max(t.high, len(t.byHandle))
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

// withdraw removes all segments of a message.
//
//go:noinline
func (t *segments) withdraw(list []segment) {
	for i := range list {
		t.remove(&list[i])
	}
	t.shrink()
}

// fewHandles is how many entries a table may have for those to come.
const fewHandles = 1024

// shrink gives memory of the table back if it was large and is not any more.
func (t *segments) shrink() {
	n := len(t.byHandle)
	if t.high <= fewHandles || n > t.high/4 {
		return
	}
	old := t.byHandle
	t.byHandle, t.high = nil, n
	if n > 0 {
		t.byHandle = make(map[uint32]*segment, n)
		maps.Copy(t.byHandle, old)
	}
}

// find returns the segment of an operation. An operation that reaches beyond
// its segment still belongs to it if it starts there.
//
// Each byte is moved once, and before the reply is sent. An operation on bytes
// that have been moved already, or after the reply, is for a later call with
// the same memory, which was not captured.
func (t *segments) find(op *rdma.Op) *segment {
	var starts *segment
	n := 0
	for s := t.byHandle[op.Handle]; s != nil && n < maxSameHandle; s, n = s.below, n+1 {
		if (s.kind == ReadList) != (op.Kind == rdma.Read) || s.tx.replied && !s.tx.late && !s.reply && !op.Late {
			continue
		}
		if s.holds(op.Offset, op.Length) {
			if !s.used(op.Offset-s.offset, uint64(op.Length)) {
				return s
			}
		} else if starts == nil && op.Offset >= s.offset && op.Offset-s.offset < uint64(s.length) &&
			!s.used(op.Offset-s.offset, uint64(s.length)-(op.Offset-s.offset)) {
			starts = s
		}
	}
	return starts
}

// user is the open transaction whose memory holds an operation for which find has no segment: what it uses has been used. It may be for a later
// call, which the capture lacks; or what was there before is not what the requester gets.
func (t *segments) user(op *rdma.Op) *Transaction {
	n := 0
	for s := t.byHandle[op.Handle]; s != nil && n < maxSameHandle; s, n = s.below, n+1 {
		if (s.kind == ReadList) == (op.Kind == rdma.Read) && !s.tx.replied && s.holds(op.Offset, op.Length) {
			return s.tx
		}
	}
	return nil
}

// used reports whether any of the bytes has been moved or asked for.
func (s *segment) used(from, n uint64) bool {
	return s.cover.touches(from, from+n) || s.asked.touches(from, from+n)
}

// offers reports whether a segment holds the range.
func (t *segments) offers(handle uint32, offset uint64, length uint32) bool {
	n := 0
	for s := t.byHandle[handle]; s != nil && n < maxSameHandle; s, n = s.below, n+1 {
		if s.holds(offset, length) {
			return true
		}
	}
	return false
}

// next returns the segment of the same transaction and list that an operation
// goes on with behind s: neighbours in memory may be served by one operation.
func (s *segment) next(offset uint64) *segment {
	n := 0
	for o := s.newest(); o != nil && o.tx == s.tx && n < maxSameHandle; o, n = o.below, n+1 {
		if o.kind == s.kind && o.reply == s.reply && o.length > 0 &&
			offset >= o.offset && offset-o.offset < uint64(o.length) {
			return o
		}
	}
	return nil
}

// reaches reports whether a range that begins in s ends in it, or in those behind it in memory. Where there are many, nobody looks for the
// end: what is moved tells.
func (s *segment) reaches(offset uint64, length uint32) bool {
	for n := 0; n < maxNeighbours && !s.holds(offset, length); n++ {
		rest := s.offset + uint64(s.length) - offset
		offset += rest
		length -= uint32(rest)
		if s = s.next(offset); s == nil {
			return false
		}
	}
	return true
}

// maxNeighbours is how many segments one operation is followed through before it moves anything.
const maxNeighbours = 16

// newest is the newest segment of the transaction that s is chained with by
// their handle.
func (s *segment) newest() *segment {
	for s.above != nil && s.above.tx == s.tx {
		s = s.above
	}
	return s
}

// maxSameHandle bounds the search among segments that share a handle
// (all-physical registration gives every segment the same one).
const maxSameHandle = 4096
