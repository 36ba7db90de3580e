package tcp

import (
	"bytes"
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// A retransmitted segment has the same bytes as before. If not, either a third party sent one of the two, or
// the sequence numbers belong to another connection whose SYN the capture lacks.

// maxPrints is how many delivered segments of a stream are remembered.
const maxPrints = 32

// print is what is remembered of a segment: its position, its first bytes, and a hash of some later ones.
// captured is how much of it was available.
type print struct {
	offset   uint64
	head     uint64
	sum      uint64
	n        int32
	captured int32
}

// differing is how many consecutive segments, each continuing the previous one but with other bytes than
// before, make a new stream.
const differing = 2

func headOf(p []byte) uint64 {
	if len(p) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(p)
}

// sumOf covers words in the middle and at the end: covering the whole segment would cost as much as all other
// work on it.
func sumOf(p []byte) uint64 {
	const a, b, c = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xa0761d6478bd642f
	if len(p) < 16 {
		h := uint64(len(p))
		for _, c := range p {
			h = (h ^ uint64(c)) * a
		}
		return h
	}
	n := len(p) - 8
	return binary.LittleEndian.Uint64(p[n/4:])*a ^ binary.LittleEndian.Uint64(p[n/2:])*b ^ binary.LittleEndian.Uint64(p[n:])*c
}

// remember keeps the print of a segment that has been delivered.
func (s *Stream) remember(offset uint64, p []byte, n int) {
	if s.prints == nil {
		s.prints = make([]print, maxPrints)
	}
	s.prints[s.printed%maxPrints] = print{offset, headOf(p), sumOf(p), int32(min(n, 1<<30)), int32(min(len(p), 1<<30))}
	s.printed++
}

// differs reports whether a segment that has been delivered had other bytes.
func (s *Stream) differs(offset uint64, p []byte, n int) bool {
	for i := range s.prints[:min(s.printed, uint64(len(s.prints)))] {
		x := &s.prints[i]
		if x.offset != offset {
			continue
		}
		if int(x.n) == n && int(x.captured) == len(p) {
			return x.head != headOf(p) || x.sum != sumOf(p)
		}
		return len(p) >= 8 && x.captured >= 8 && x.head != headOf(p)
	}
	return false
}

// repeated examines a segment without new data. It reports true if the segment was taken as the second of
// another stream.
func (s *Stream) repeated(seq uint32, offset uint64, p []byte, n int, ref rdma.Ref) bool {
	if !s.differs(offset, p, n) && !(s.odd > 0 && seq == s.oddNext && !s.same(offset, p, n)) {
		s.odd = 0
		return false
	}
	s.consumer.Differs(offset, n, ref)
	s.stats.Differing++
	if s.odd == 0 || seq != s.oddNext {
		s.odd, s.oddFirst = 0, append(s.oddFirst[:0], p[:min(len(p), maxOdd)]...)
		s.oddSeq, s.oddLen, s.oddRef = seq, n, ref
	}
	s.odd++
	s.oddNext = seq + uint32(n)
	if s.odd < differing {
		return false
	}
	first, at, length, from := s.oddFirst, s.oddSeq, s.oddLen, s.oddRef
	s.restart(ref)
	s.base, s.state = at, running
	s.deliver(first, length, from, from)
	s.deliver(p, n, ref, ref)
	return true
}

// maxOdd is how much of a segment is kept that may start another stream.
const maxOdd = 64 << 10

// same reports whether a segment is known to have been delivered with these
// bytes.
func (s *Stream) same(offset uint64, p []byte, n int) bool {
	for i := range s.prints[:min(s.printed, uint64(len(s.prints)))] {
		if x := &s.prints[i]; x.offset == offset && int(x.n) == n && int(x.captured) == len(p) {
			return x.head == headOf(p) && x.sum == sumOf(p)
		}
	}
	return false
}

// differsWaiting compares bytes with a piece that waits after a gap.
func (w *waiting) differs(at uint64, p []byte) bool {
	have := w.data
	if at < w.start || at-w.start >= uint64(len(have)) {
		return false
	}
	have = have[at-w.start:]
	n := min(len(have), len(p))
	return !bytes.Equal(have[:n], p[:n])
}
