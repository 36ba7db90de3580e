package iwarp

import (
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

const (
	connSize      = int(unsafe.Sizeof(Conn{}))
	partSize      = int(unsafe.Sizeof(rdma.Part{}))
	searchSize    = int(unsafe.Sizeof(search{}))
	pieceSize     = int(unsafe.Sizeof(piece{}))
	candidateSize = int(unsafe.Sizeof(candidate{}))
	extentSize    = int(unsafe.Sizeof(extent{}))
	sentSendSize  = int(unsafe.Sizeof(sentSend{}))
	sentWriteSize = int(unsafe.Sizeof(sentWrite{}))
	sentReadSize  = int(unsafe.Sizeof(sentRead{}))
	againSize     = int(unsafe.Sizeof(again{}))
)

// Memory is what the connection holds, in bytes.
func (c *Conn) Memory() int {
	return connSize + c.halves[0].memory() + c.halves[1].memory() + c.streams[0].Memory() + c.streams[1].Memory()
}

func (h *half) memory() int {
	o := &h.out
	n := cap(h.buf) + cap(h.framing.pieces)*pieceSize + cap(o.data) + (cap(h.parts)+cap(o.parts))*partSize +
		len(o.extents.buf)*extentSize + len(o.sends.buf)*sentSendSize +
		len(o.writes.buf)*sentWriteSize + len(o.reads.buf)*sentReadSize + cap(o.pending)*againSize
	if s := h.search; s != nil {
		n += searchSize + cap(s.buf) + cap(s.pieces)*pieceSize + cap(s.candidates)*candidateSize
	}
	return n
}

// Idle is what the tracker keeps for connections to come, in bytes.
func (t *Tracker) Idle() int { return t.spareBytes + cap(t.scratch) }

// Drop gives up what the tracker keeps.
func (t *Tracker) Drop() { t.spare, t.spareBytes, t.scratch = nil, 0, nil }
