package oncrpc

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

const (
	trackerSize = int(unsafe.Sizeof(TCPTracker{}))
	partSize    = int(unsafe.Sizeof(rdma.Part{}))
	sentSize    = int(unsafe.Sizeof(sent{}))
	suspectSize = int(unsafe.Sizeof(suspect{}))
	copiedSize  = int(unsafe.Sizeof(copied{}))
	pieceSize   = int(unsafe.Sizeof(piece{}))
)

// Memory is what the tracker holds, in bytes.
func (t *TCPTracker) Memory() int {
	n := trackerSize
	for i := range t.sides {
		s := &t.sides[i]
		n += s.stream.Memory() + cap(s.parser.buf) + (cap(s.parser.parts)+cap(s.acks))*partSize + cap(s.sends)*sentSize +
			cap(s.parser.suspects)*suspectSize + (cap(s.parser.pieces)+cap(s.parser.released.pieces))*pieceSize + cap(s.parser.released.bytes) + cap(s.copies)*copiedSize
	}
	return n
}

// Trim gives up what is kept for later: the buffers of records that have ended.
func (t *TCPTracker) Trim() {
	for i := range t.sides {
		p := &t.sides[i].parser
		if !p.open {
			p.buf = nil
		}
		if !p.released.busy {
			p.released = released{}
		}
	}
}
