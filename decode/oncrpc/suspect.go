package oncrpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// A record mark may claim more than the record has. Then the record swallows what follows it, and the stream gives no sign of that. But it
// does if a segment within the record starts with the mark and the header of a call, and the peer answers just that call.

const (
	// maxPieces is how many segments are remembered of an open record, from the first on that may be such a call.
	maxPieces = 256
	// maxSwallowed is how many bytes they may have: each call that proves to be one has them read again.
	maxSwallowed = 256 << 10
)

// suspect is a call that starts with a segment within an open record: it may be data of that record.
type suspect struct {
	off    uint64 // in the stream
	end    uint64 // by its own mark
	xid    uint32
	piece  int // in RecordParser.pieces
	before before
}

// before is what was known of the open record before a segment.
type before struct {
	last           rdma.Ref
	packets, parts int
}

// piece is a segment that an open record with suspects has taken.
type piece struct {
	off        uint64
	ref, ready rdma.Ref
}

// released is what a record had swallowed, while it is read again.
type released struct {
	busy   bool
	bytes  []byte
	pieces []piece
}

// suspicious remembers a segment within the open record, if that has suspects or the segment is one.
func (p *RecordParser) suspicious(b []byte, ref rdma.Ref) {
	call := len(b) >= 16 && binary.BigEndian.Uint32(b[8:]) == uint32(TypeCall) && binary.BigEndian.Uint32(b[12:]) == Version && StartsRecord(b)
	if !call && len(p.pieces) == 0 {
		return
	}
	if n := len(p.pieces); n == maxPieces || n > 0 && p.off-p.pieces[0].off > maxSwallowed {
		p.suspects, p.pieces = p.suspects[:0], p.pieces[:0]
		return
	}
	if call {
		n := binary.BigEndian.Uint32(b) &^ lastFragment
		p.suspects = append(p.suspects, suspect{
			off: p.off, end: p.off + markSize + uint64(n), xid: binary.BigEndian.Uint32(b[markSize:]), piece: len(p.pieces),
			before: before{p.rec.Last, p.rec.Packets, len(p.parts)},
		})
	}
	p.pieces = append(p.pieces, piece{p.off, ref, p.ready})
}

// kept reports whether all bytes of the open record that have come are there, which has one fragment as far as its mark says.
func (p *RecordParser) kept() bool {
	return p.rec.Fragments == 1 && p.last && uint64(len(p.buf)) == p.off-p.rec.Start-markSize
}

// suspected returns the suspect with an XID, nil if there is none.
func (p *RecordParser) suspected(xid uint32) *suspect {
	if p.released.busy || !p.kept() {
		return nil
	}
	for i := range p.suspects {
		if s := &p.suspects[i]; s.xid == xid {
			return s
		}
	}
	return nil
}

// release ends the open record before a suspect that has proved to be a call, and takes what it has swallowed for the records that they are.
// Those that lead up to the suspect are calls, too.
func (p *RecordParser) release(found *suspect) {
	s := *found // its place is used again
	for i := len(p.suspects) - 1; i >= 0; i-- {
		if p.suspects[i].end == s.off {
			s = p.suspects[i]
		}
	}
	n := s.off - p.rec.Start - markSize
	r := &p.released // kept for the next time: a record may lie for each call within it
	r.busy, r.bytes, r.pieces = true, append(r.bytes[:0], p.buf[n:]...), append(r.pieces[:0], p.pieces[s.piece:]...)
	end := p.off
	p.rec.Claimed, p.rec.Length = p.rec.Length, int(n)
	p.rec.Last, p.rec.Packets, p.parts = s.before.last, s.before.packets, p.parts[:s.before.parts]
	p.off = s.off
	p.Given.Add(rdma.Given{Count: 1, First: p.rec.First.Number, Offset: p.rec.Start})
	p.deliver(p.buf[:n])
	for i, x := range r.pieces {
		to := end
		if i+1 < len(r.pieces) {
			to = r.pieces[i+1].off
		}
		p.data(r.bytes[x.off-s.off:to-s.off], x.ref, x.ready)
	}
	r.busy = false
}
