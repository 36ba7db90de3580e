package tcp

import (
	"sort"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// waiting is a piece of the stream after a gap: the offsets [start, end), and the captured part.
type waiting struct {
	start, end uint64
	data       []byte
	first      rdma.Ref
}

// queue holds the waiting pieces, which do not overlap, by offset. An insertion moves 2 bytes for each later
// piece, so that even the worst order of arrival costs little.
type queue struct {
	slots []waiting
	free  []uint16
	order []uint16 // slots by offset
	bytes int      // capacity of all data
	since int64    // time since when the first gap is one
}

// maxPieces is how many pieces an index of 16 bits can distinguish.
const maxPieces = 1 << 16

func (q *queue) len() int { return len(q.order) }

func (q *queue) at(i int) *waiting { return &q.slots[q.order[i]] }

func (q *queue) last() *waiting { return q.at(len(q.order) - 1) }

// search is the index of the first piece that ends after the offset.
func (q *queue) search(offset uint64) int {
	if q.last().end <= offset {
		return len(q.order) // the usual case: segments in order after one gap
	}
	return sort.Search(len(q.order), func(i int) bool { return q.at(i).end > offset })
}

func (q *queue) insert(i int, w waiting) {
	var slot uint16
	if n := len(q.free); n > 0 {
		slot = q.free[n-1]
		q.free = q.free[:n-1]
		q.slots[slot] = w
	} else {
		slot = uint16(len(q.slots))
		q.slots = append(q.slots, w)
	}
	q.order = append(q.order, slot)
	copy(q.order[i+1:], q.order[i:])
	q.order[i] = slot
	q.bytes += cap(w.data)
}

// pop removes the first piece and returns its memory.
func (q *queue) pop() []byte {
	slot := q.order[0]
	q.order = q.order[:copy(q.order, q.order[1:])]
	data := q.slots[slot].data
	q.slots[slot] = waiting{}
	q.free = append(q.free, slot)
	q.bytes -= cap(data)
	return data
}
