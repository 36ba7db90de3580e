package ladder

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// segment is a piece of memory offered by the call or, in the read-read model, by the reply.
type segment struct {
	rpcrdma.Segment
	list  byte // R, Z, W, P as in the listing; S: Read list of a reply
	chunk int  // in its list
	index int  // in its chunk

	position uint32 // of a Read chunk in the call

	done    uint64 // bytes moved by the packets shown so far
	moved   uint64 // bytes that operations moved, not counting retransmissions
	used    uint64 // bytes used according to the reply; for a Read list its length
	ops     int    // operations that served it
	first   int    // the first and last of them, counted from 1
	last    int
	hasUsed bool
}

// segments are all segments of a transaction.
type segments struct {
	all    []segment
	sorted []int // indexes sorted by handle and offset
}

// reset loads the segments of a transaction and accounts for its operations.
func (s *segments) reset(tx *transaction.Transaction) {
	s.all = s.all[:0]
	if tx.Call.Transport {
		s.offered(&tx.Call.Header, false)
	}
	if tx.Reply.Transport && tx.Reply.Header.Type != rpcrdma.TypeError {
		r := &tx.Reply.Header
		s.offered(r, true)
		for i := range s.all {
			x := &s.all[i]
			var c rpcrdma.WriteChunk
			switch {
			case x.list == 'P':
				c = r.Reply
			case x.list == 'W' && x.chunk < len(r.Writes):
				c = r.Writes[x.chunk]
			default:
				continue
			}
			x.hasUsed = true
			if x.index < len(c) {
				x.used = uint64(c[x.index].Length)
			}
		}
	}
	s.sorted = s.sorted[:0]
	for i := range s.all {
		s.sorted = append(s.sorted, i)
	}
	slices.SortStableFunc(s.sorted, func(a, b int) int {
		x, y := &s.all[a], &s.all[b]
		return cmp.Or(cmp.Compare(x.Handle, y.Handle), cmp.Compare(x.Offset, y.Offset))
	})
	for i := range tx.Operations {
		s.account(&tx.Operations[i], i+1)
	}
}

// maxSegments bounds the segments of a header that are examined, as in decoding.
const maxSegments = 4096

// offered adds the segments of a header. Of a reply only the Read list offers
// memory.
func (s *segments) offered(h *rpcrdma.Header, reply bool) {
	n := 0
	position := uint32(0)
	add := func(list byte, chunk, index int, x rpcrdma.Segment) {
		if n++; n <= maxSegments {
			s.all = append(s.all, segment{Segment: x, list: list, chunk: chunk, index: index, position: position})
		}
	}
	if h.Version == rpcrdma.Version2 {
		for i := range h.Call {
			add('Z', 0, i, h.Call[i].Segment)
		}
	}
	chunk := 0
	for _, c := range h.ReadChunks() {
		list := byte('R')
		position = c.Position
		switch {
		case reply:
			list = 'S'
		case c.Position == 0 && h.Version != rpcrdma.Version2:
			list = 'Z'
		}
		for i := range c.Segments {
			add(list, chunk, i, c.Segments[i].Segment)
		}
		if list != 'Z' {
			chunk++
		}
	}
	if reply {
		return
	}
	for ci, c := range h.Writes {
		for i := range c {
			add('W', ci, i, c[i])
		}
	}
	for i := range h.Reply {
		add('P', 0, i, h.Reply[i])
	}
}

// find returns the segment that contains an address, or nil. kind is the kind of the operation.
func (s *segments) find(kind rdma.OpKind, handle uint32, offset uint64) *segment {
	i, _ := slices.BinarySearchFunc(s.sorted, 0, func(at, _ int) int {
		x := &s.all[at]
		if c := cmp.Compare(x.Handle, handle); c != 0 {
			return c
		}
		if x.Offset <= offset {
			return -1
		}
		return 1
	})
	// Several segments may start at the same address; a few steps back suffice.
	for n := 0; i > 0 && n < 16; n++ {
		i--
		x := &s.all[s.sorted[i]]
		if x.Handle != handle {
			return nil
		}
		reads := x.list == 'R' || x.list == 'Z' || x.list == 'S'
		if reads == (kind == rdma.Read) && offset-x.Offset < uint64(x.Length) {
			return x
		}
	}
	return nil
}

// account records which segments an operation served. One operation may serve several that are adjacent in
// memory.
func (s *segments) account(o *transaction.Operation, number int) {
	at, left := o.Offset, uint64(o.Bytes)
	for range maxSegments {
		x := s.find(o.Kind, o.Handle, at)
		if x == nil {
			return
		}
		n := min(left, uint64(x.Length)-(at-x.Offset))
		x.moved += n
		if x.ops++; x.ops == 1 {
			x.first = number
		}
		x.last = number
		if left -= n; left == 0 {
			return
		}
		at += n
	}
}

// appendName appends "W0[3]": the list, the chunk in the list, the segment in the chunk.
func (x *segment) appendName(b []byte) []byte {
	b = append(b, x.list)
	if x.list == 'W' || x.list == 'R' || x.list == 'S' {
		b = strconv.AppendInt(b, int64(x.chunk), 10)
	}
	b = append(b, '[')
	b = strconv.AppendInt(b, int64(x.index), 10)
	return append(b, ']')
}
