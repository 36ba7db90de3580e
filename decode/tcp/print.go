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

// print is what is remembered of a segment: where it was, and some of its bytes.
// captured is how much of it was there.
type print struct {
	offset   uint64
	words    [4]uint64 // see wordsOf
	n        int32
	captured int32
}

// differing is how many consecutive segments, each continuing the previous one but with other bytes than
// before, make a new stream.
const differing = 2

// wordsOf takes the words at the places of wordsAt: all of a segment would cost as
// much as the rest of the work on it. Of less than two words it makes one, and a
// hash.
func wordsOf(p []byte) (w [4]uint64) {
	if n := len(p); n >= 16 {
		return [4]uint64{
			binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[n/4:]),
			binary.LittleEndian.Uint64(p[n/2:]), binary.LittleEndian.Uint64(p[n-8:]),
		}
	}
	if len(p) >= 8 {
		w[0] = binary.LittleEndian.Uint64(p)
	}
	w[1] = uint64(len(p))
	for _, c := range p {
		w[1] = (w[1] ^ uint64(c)) * 0x9e3779b97f4a7c15
	}
	return w
}

// wordsAt is where the words of a segment are, as far as they can be compared with
// those of one that begins elsewhere.
func (x *print) wordsAt() (at [4]uint64, count int) {
	n := uint64(x.captured)
	switch {
	case n < 8:
		return at, 0
	case n < 16:
		return at, 1
	}
	return [4]uint64{0, n / 4, n / 2, n - 8}, 4
}

// remember keeps the print of a segment that has been delivered.
func (s *Stream) remember(offset uint64, p []byte, n int) {
	if s.prints == nil {
		s.prints = make([]print, maxPrints)
	}
	x := &s.prints[s.printed%maxPrints]
	s.printed++
	x.offset, x.n, x.captured = offset, int32(min(n, 1<<30)), int32(min(len(p), 1<<30))
	if k := len(p); k >= 16 { // as wordsOf, where it is written: half the time
		x.words[0] = binary.LittleEndian.Uint64(p)
		x.words[1] = binary.LittleEndian.Uint64(p[k/4:])
		x.words[2] = binary.LittleEndian.Uint64(p[k/2:])
		x.words[3] = binary.LittleEndian.Uint64(p[k-8:])
		return
	}
	x.words = wordsOf(p)
}

// differs reports whether other bytes have been delivered than those of a segment,
// which may be cut in another way.
func (s *Stream) differs(offset uint64, p []byte, n int) bool {
	for i := range s.prints[:min(s.printed, uint64(len(s.prints)))] {
		x := &s.prints[i]
		if x.offset == offset && int(x.n) == n && int(x.captured) == len(p) {
			return x.words != wordsOf(p)
		}
		if x.offset >= offset+uint64(len(p)) || offset >= x.offset+uint64(x.captured) {
			continue
		}
		at, count := x.wordsAt()
		for j, w := range x.words[:count] {
			d := x.offset + at[j] - offset // wraps if it lies before
			if d < uint64(len(p)) && uint64(len(p))-d >= 8 && binary.LittleEndian.Uint64(p[d:]) != w {
				return true
			}
		}
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
	if s.belongs {
		s.odd = 0
		return false
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
			return x.words == wordsOf(p)
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
