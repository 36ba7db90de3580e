package rocev2

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/rpcrdma/toolkit/decode/roce"
)

const (
	maxSegments = 64    // of one call with segmentation offload (UDP_MAX_SEGMENTS)
	batchLimit  = 128   // packets of a batch
	maxDatagram = 65000 // bytes of one call; the limit is 65507
	arenaSize   = batchLimit * 48
)

// kind is the kind of a packet in a batch, needed if the packet cannot be sent.
type kind uint8

const (
	kindRequest     kind = iota
	kindReadRequest      // index is the first packet asked for, count how many
	kindResponse         // of a Read
	kindAck
)

// segment is one packet.
type segment struct {
	part, parts int32 // header, payload, trailer in batch.parts
	size        int32 // BTH through ICRC
	header      int32
	kind        kind
	ref         uint32 // place in the send queue, or among the Reads answered
	index       uint32 // which packet of it
	count       uint32
}

// message is one entry of a system call: one packet, or several that the kernel splits.
type message struct {
	segment, segments int
	size              int // of all packets but the last
	bytes             int
	closed            bool
}

// batch gathers packets for one destination. Payload is not copied.
type batch struct {
	icrc     *icrc
	offload  bool
	parts    [][]byte
	segments []segment
	messages []message
	used     int
	open     segment // being built
	arena    [arenaSize]byte
	sys      batchSys
}

var batches = sync.Pool{New: func() any {
	b := new(batch)
	b.sys.init(b)
	return b
}}

func newBatch(c *icrc, offload bool) *batch {
	b := batches.Get().(*batch)
	b.icrc, b.offload = c, offload
	return b
}

func (b *batch) free() {
	b.reset()
	b.icrc = nil
	batches.Put(b)
}

func (b *batch) reset() {
	clear(b.parts) // no payload is kept alive
	b.parts, b.segments, b.messages = b.parts[:0], b.segments[:0], b.messages[:0]
	b.used = 0
}

func (b *batch) empty() bool { return len(b.segments) == 0 }
func (b *batch) full() bool  { return len(b.segments) >= batchLimit }

// header starts a packet and returns its header, zeroed, to be filled in before
// finish.
func (b *batch) header(size int) []byte {
	h := b.arena[b.used : b.used+size : b.used+size]
	clear(h)
	b.used += size
	b.open = segment{part: int32(len(b.parts)), parts: 1, size: int32(size), header: int32(size)}
	b.parts = append(b.parts, h)
	return h
}

func (b *batch) payload(p []byte) {
	if len(p) > 0 {
		b.parts = append(b.parts, p)
		b.open.parts++
		b.open.size += int32(len(p))
	}
}

// finish ends the packet with pad and ICRC, and puts it into a message.
func (b *batch) finish(k kind, ref, index, count uint32) {
	s := &b.open
	pad := -int(s.size) & 3
	t := b.arena[b.used : b.used+pad+roce.ICRCSize : b.used+pad+roce.ICRCSize]
	clear(t[:pad])
	b.used += len(t)
	b.parts = append(b.parts, t)
	s.parts++
	s.size += int32(len(t))
	s.kind, s.ref, s.index, s.count = k, ref, index, count
	size := int(s.size)
	var m *message
	if n := len(b.messages); n > 0 && b.offload {
		m = &b.messages[n-1]
		if m.closed || m.segments == maxSegments || size > m.size || m.bytes+size > maxDatagram {
			m = nil
		}
	}
	if m == nil {
		b.messages = append(b.messages, message{segment: len(b.segments), size: size})
		m = &b.messages[len(b.messages)-1]
	}
	b.seal(s, uint16(m.segments))
	m.segments++
	m.bytes += size
	m.closed = size < m.size
	b.segments = append(b.segments, *s)
}

// seal writes the ICRC of a packet.
func (b *batch) seal(s *segment, id uint16) {
	parts := b.parts[s.part : s.part+s.parts]
	c := b.icrc
	n := c.start(int(s.size), id, parts[0])
	data := parts[1 : len(parts)-1]
	var rest []byte
	if len(data) > 0 {
		k := beside(n, len(data[0]))
		snapshot(c.b[:n], data[0][:k])
		rest, data = data[0][k:], data[1:]
		n += k
	}
	sum := crc32.Update(0, crc32.IEEETable, c.b[:n])
	if len(rest) > 0 {
		sum = checksum(sum, rest)
	}
	for _, p := range data {
		sum = checksum(sum, p)
	}
	t := parts[len(parts)-1]
	end := len(t) - roce.ICRCSize
	if end > 0 {
		sum = crc32.Update(sum, crc32.IEEETable, t[:end])
	}
	binary.LittleEndian.PutUint32(t[end:], sum)
}

// split makes each packet a message of its own, from message first on, because the kernel
// cannot split them.
func (b *batch) split(first int) {
	at := b.messages[first].segment
	b.messages = b.messages[:first]
	for i := at; i < len(b.segments); i++ {
		s := &b.segments[i]
		b.seal(s, 0)
		b.messages = append(b.messages, message{segment: i, segments: 1, size: int(s.size), bytes: int(s.size)})
	}
	b.offload = false
}

// flatten appends a packet to dst.
func (b *batch) flatten(dst []byte, s *segment) []byte {
	for _, p := range b.parts[s.part : s.part+s.parts] {
		dst = snapshot(dst, p)
	}
	return dst
}
