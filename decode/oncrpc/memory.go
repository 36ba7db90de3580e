package oncrpc

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

const (
	trackerSize = int(unsafe.Sizeof(TCPTracker{}))
	partSize    = int(unsafe.Sizeof(rdma.Part{}))
	sentSize    = int(unsafe.Sizeof(sent{}))
)

// Memory is what the tracker holds, in bytes.
func (t *TCPTracker) Memory() int {
	n := trackerSize
	for i := range t.sides {
		s := &t.sides[i]
		n += s.stream.Memory() + cap(s.parser.buf) + (cap(s.parser.parts)+cap(s.acks))*partSize + cap(s.sends)*sentSize
	}
	return n
}

// Trim gives up what is kept for later: the buffers of records that have ended.
func (t *TCPTracker) Trim() {
	for i := range t.sides {
		if p := &t.sides[i].parser; !p.open {
			p.buf = nil
		}
	}
}
