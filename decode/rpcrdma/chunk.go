package rpcrdma

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Segment is a piece of registered memory (RFC 8166, section 3.4.3).
//
//	 0                   4                   8
//	+---------+---------+-------------------+
//	| Handle  | Length  | Offset            |
//	+---------+---------+-------------------+
type Segment struct {
	Handle uint32 // steering tag: R_Key or STag
	Length uint32 // bytes
	Offset uint64 // address within the memory that Handle names
}

// segmentSize is the encoded size of a Segment, readEntrySize that of an entry
// of the Read list: discriminator, position, segment.
const (
	segmentSize   = 16
	readEntrySize = 24
)

// ReadSegment is an entry of the Read list (RFC 8166, section 3.4.5).
type ReadSegment struct {
	Position uint32 // where the bytes belong in the XDR stream; 0: the message itself
	Segment
}

// WriteChunk is the counted array of segments of one entry of the Write list,
// or of the Reply chunk (RFC 8166, section 3.4.6).
type WriteChunk []Segment

// Length is the size of all segments together in bytes.
func (c WriteChunk) Length() uint64 {
	var n uint64
	for i := range c {
		n += uint64(c[i].Length)
	}
	return n
}

// ReadChunk is the read segments that share a position, in the order of the
// Read list.
type ReadChunk struct {
	Position uint32
	Length   uint64 // of all segments together in bytes
	Segments []ReadSegment
}

// ReadChunks groups the Read list into chunks, by ascending position. The
// result belongs to h and is valid until its next use.
//
// A list that is not ascending is legal: segments of one chunk need not stand
// next to each other (RFC 8166, section 3.4.5 only asks for their order).
func (h *Header) ReadChunks() []ReadChunk {
	if len(h.Reads) == 0 {
		return nil
	}
	list := h.Reads
	for i := 1; i < len(list); i++ {
		if list[i].Position < list[i-1].Position {
			h.sorted = append(h.sorted[:0], list...)
			slices.SortStableFunc(h.sorted, func(a, b ReadSegment) int { return cmp.Compare(a.Position, b.Position) })
			list = h.sorted
			break
		}
	}
	h.chunks = h.chunks[:0]
	for i := 0; i < len(list); {
		c := ReadChunk{Position: list[i].Position}
		j := i
		for ; j < len(list) && list[j].Position == c.Position; j++ {
			c.Length += uint64(list[j].Length)
		}
		c.Segments = list[i:j:j]
		h.chunks = append(h.chunks, c)
		i = j
	}
	return h.chunks
}

// PositionZero is the Position-Zero Read chunk, which holds the call itself
// (RFC 8166, section 3.5.3), or the Call chunk of version 2. Segments is empty
// if there is none.
func (h *Header) PositionZero() ReadChunk {
	if h.Version == Version2 {
		c := ReadChunk{Segments: h.Call}
		for i := range h.Call {
			c.Length += uint64(h.Call[i].Length)
		}
		return c
	}
	if chunks := h.ReadChunks(); len(chunks) > 0 && chunks[0].Position == 0 {
		return chunks[0]
	}
	return ReadChunk{}
}

// ReducedCall appends the data items that the Read list takes out of the stream: every chunk except the one
// at position 0, by ascending position, as xdr.Reader.ReduceCall expects.
func (h *Header) ReducedCall(dst []xdr.Reduced) []xdr.Reduced {
	for _, c := range h.ReadChunks() {
		if c.Position != 0 || h.Version == Version2 {
			dst = append(dst, xdr.Reduced{Position: c.Position, Length: clamp(c.Length)})
		}
	}
	return dst
}

// ReducedReply appends the chunks of the Write list of a reply in their order,
// as xdr.Reader.ReduceReply wants them. Unused chunks have length 0.
func (h *Header) ReducedReply(dst []xdr.Reduced) []xdr.Reduced {
	for _, c := range h.Writes {
		dst = append(dst, xdr.Reduced{Length: clamp(c.Length())})
	}
	return dst
}

func clamp(n uint64) uint32 {
	if n > math.MaxUint32 {
		return math.MaxUint32
	}
	return uint32(n)
}

func segmentAt(b []byte) Segment {
	_ = b[15]
	return Segment{
		Handle: binary.BigEndian.Uint32(b),
		Length: binary.BigEndian.Uint32(b[4:]),
		Offset: binary.BigEndian.Uint64(b[8:]),
	}
}

func appendSegment(b []byte, s Segment) []byte {
	b = xdr.AppendUint32(b, s.Handle)
	b = xdr.AppendUint32(b, s.Length)
	return xdr.AppendUint64(b, s.Offset)
}

// readList decodes a Read list at off and appends it to dst. It returns the
// offset behind the list.
func (h *Header) readList(dst *[]ReadSegment, b []byte, off, full int, field string) (int, error) {
	for {
		more, err := h.discriminator(b, off, full, field)
		if err != nil {
			return off, err
		}
		if !more {
			return off + 4, nil
		}
		if len(b)-off < readEntrySize {
			return off, h.fail(xdr.Short, off, full, len(b), field)
		}
		e := b[off+4 : off+readEntrySize]
		*dst = append(*dst, ReadSegment{Position: binary.BigEndian.Uint32(e), Segment: segmentAt(e[4:])})
		off += readEntrySize
	}
}

// writeList decodes the Write list at off.
func (h *Header) writeList(b []byte, off, full int) (int, error) {
	for {
		more, err := h.discriminator(b, off, full, "rdma_writes")
		if err != nil {
			return off, err
		}
		if !more {
			return off + 4, nil
		}
		var c WriteChunk
		c, off, err = h.writeChunk(b, off+4, full, "rdma_writes")
		if len(c) > 0 || err == nil {
			h.Writes = append(h.Writes, c)
		}
		if err != nil {
			return off, err
		}
	}
}

// replyChunk decodes the optional Reply chunk at off.
func (h *Header) replyChunk(b []byte, off, full int) (int, error) {
	more, err := h.discriminator(b, off, full, "rdma_reply")
	if err != nil {
		return off, err
	}
	off += 4
	if more {
		h.HasReply = true
		h.Reply, off, err = h.writeChunk(b, off, full, "rdma_reply")
	}
	return off, err
}

// writeChunk decodes a counted array of segments. If the capture cut it, the
// result holds the segments that are there.
func (h *Header) writeChunk(b []byte, off, full int, field string) (WriteChunk, int, error) {
	if len(b)-off < 4 {
		return nil, off, h.fail(xdr.Short, off, full, len(b), field)
	}
	n := binary.BigEndian.Uint32(b[off:])
	if uint64(n) > uint64(full-off-4)/segmentSize {
		return nil, off, h.fail(xdr.Range, off, full, len(b), field)
	}
	off += 4
	start := len(h.segments)
	for ; n > 0 && len(b)-off >= segmentSize; n-- {
		h.segments = append(h.segments, segmentAt(b[off:]))
		off += segmentSize
	}
	c := WriteChunk(h.segments[start:len(h.segments):len(h.segments)])
	if n > 0 {
		return c, off, h.fail(xdr.Short, off, full, len(b), field)
	}
	return c, off, nil
}

// discriminator reads the word that reports whether an optional item follows.
func (h *Header) discriminator(b []byte, off, full int, field string) (bool, error) {
	if len(b)-off < 4 {
		return false, h.fail(xdr.Short, off, full, len(b), field)
	}
	v := binary.BigEndian.Uint32(b[off:])
	if v > 1 {
		return false, h.fail(xdr.Value, off, full, len(b), field)
	}
	return v == 1, nil
}

func appendReadList(b []byte, list []ReadSegment) []byte {
	for i := range list {
		b = xdr.AppendUint32(b, 1)
		b = xdr.AppendUint32(b, list[i].Position)
		b = appendSegment(b, list[i].Segment)
	}
	return xdr.AppendUint32(b, 0)
}

func appendWriteChunk(b []byte, c WriteChunk) []byte {
	b = xdr.AppendUint32(b, uint32(len(c)))
	for i := range c {
		b = appendSegment(b, c[i])
	}
	return b
}

func appendWriteList(b []byte, list []WriteChunk) []byte {
	for _, c := range list {
		b = xdr.AppendUint32(b, 1)
		b = appendWriteChunk(b, c)
	}
	return xdr.AppendUint32(b, 0)
}

func (h *Header) appendReply(b []byte) []byte {
	if !h.HasReply {
		return xdr.AppendUint32(b, 0)
	}
	b = xdr.AppendUint32(b, 1)
	return appendWriteChunk(b, h.Reply)
}

func sizeReadList(list []ReadSegment) int { return 4 + readEntrySize*len(list) }

func sizeWriteList(list []WriteChunk) int {
	n := 4
	for _, c := range list {
		n += 8 + segmentSize*len(c)
	}
	return n
}

func (h *Header) sizeReply() int {
	if !h.HasReply {
		return 4
	}
	return 8 + segmentSize*len(h.Reply)
}
