package iwarp

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Finding FPDUs in the middle of a stream. Nothing in an FPDU says "here I
// start", so the search weighs evidence, counted in bits: how many bits of
// random data would have to be right by chance. A candidate gets them from a
// valid control word, the queue number, and the same again at the place where
// its length says that the next FPDU starts. Senders put FPDUs into TCP segments
// of their own if they can (RFC 5044 5.1), so a start at the start of a segment
// and an end at its end count, too; the end of another segment counts less,
// because there are many.
//
// Where the setup was not captured, no markers are expected: the receiver would
// have to ask for them, and hardly any does.
const (
	bitsEnough   = 36
	bitsBoundary = 14
	bitsFar      = 8   // an end at the end of another segment …
	farLen       = 512 // … of at least this many bytes
	bitsNext     = 64  // the next segment continues the message: same STag, right offset

	maxCandidates = 64
	maxPieces     = 4096

	searchKnown   = 128 << 10 // bytes kept while searching a connection that is iWARP
	searchUnknown = 8 << 10   // or that may be
	giveUp        = 64 << 10  // bytes searched in vain until a connection counts as not iWARP
	giveUpPort    = 1 << 20   // the same on an expected port

	// searchEffort bounds the work per byte that arrives: bytes are examined again if an earlier find turns
	// out to be wrong.
	searchEffort = 8
)

// piece is the payload of one TCP segment in the search buffer.
type piece struct {
	start uint64
	ref   rdma.Ref
}

// candidate is a place where an FPDU may start.
type candidate struct {
	start  uint64
	last   uint64 // where the last FPDU examined starts
	next   uint64 // and the one after it
	bits   int
	tagged bool
	stag   uint32
	to     uint64 // expected for the next segment of the message
	atEnd  bool   // it has been checked whether next is the end of a segment
}

// search is the state of a half in modeSearch.
type search struct {
	refused    uint64 // markers that point before this offset lead to what was given up
	buf        []byte
	start      uint64 // offset of buf[0]
	pieces     []piece
	cursor     int // index in buf of the next place to examine
	candidates []candidate
	credit     int
}

// lose changes to modeSearch at the current position.
func (h *half) lose() {
	h.mode, h.searched, h.more = modeSearch, true, false
	if h.askMarkers {
		// The first FPDU is lost, but where it started is known.
		h.askMarkers = false
		h.marked = h.conn.wantsMarkers(h)
	}
	h.out.interrupted()
	if h.search == nil {
		h.search = new(search)
	}
	h.search.reset(h.pos)
}

func (s *search) reset(at uint64) {
	s.buf = s.buf[:0]
	s.start = at
	s.pieces = s.pieces[:0]
	s.cursor = 0
	s.candidates = s.candidates[:0]
	s.credit = 0
}

// surrender passes the collected bytes and the following bytes p to the search. examined means that no FPDU
// starts at the first of them.
func (h *half) surrender(p []byte, ref rdma.Ref, examined bool) {
	old, first := h.buf, h.from.first
	at := h.pos
	h.buf = nil
	pieces := h.framing.pieces
	if len(old) != h.have {
		old = old[:0]
	} else if h.have > 0 {
		at = h.start
	}
	h.drop()
	h.pos = at
	h.lose()
	s := h.search
	s.refused = 0
	if examined {
		s.cursor, s.refused = 1, at+1
	}
	if len(old) > 0 {
		s.addPieces(h.conn.t, old, at, pieces, first, h.limit())
		h.pos += uint64(len(old))
	}
	h.conn.t.release(old)
	h.seek(p, ref)
}

// limit is how many bytes the search may keep.
func (h *half) limit() int {
	if h.conn.verdict == Yes || h.conn.expected {
		return searchKnown
	}
	return searchUnknown
}

// add appends the next bytes, the payload of one segment.
func (s *search) add(t *Tracker, p []byte, ref rdma.Ref, limit int) {
	if s.buf == nil {
		s.buf = t.buffer()
	}
	if len(p) > limit {
		// More than is kept: its start is no better than any other part.
		s.discard(len(s.buf))
		s.start += uint64(len(p) - limit)
		p = p[len(p)-limit:]
	} else if len(s.buf)+len(p) > limit || len(s.pieces) >= maxPieces {
		s.discard(max(len(s.buf)/2, len(s.buf)+len(p)-limit))
	}
	// Earlier bytes of the same segment may have been taken for the start of something else.
	if n := len(s.pieces); n == 0 || s.pieces[n-1].ref.Number != ref.Number {
		s.pieces = append(s.pieces, piece{s.start + uint64(len(s.buf)), ref})
	}
	s.buf = append(s.buf, p...)
	s.credit += searchEffort * len(p)
}

// addPieces appends bytes at offset at that came in several segments; first is the packet of the first.
func (s *search) addPieces(t *Tracker, p []byte, at uint64, pieces []piece, first rdma.Ref, limit int) {
	if len(pieces) == 0 {
		s.add(t, p, first, limit)
		return
	}
	if n := pieces[0].start - at; n > 0 {
		s.add(t, p[:n], first, limit)
	}
	for i := range pieces {
		end := at + uint64(len(p))
		if i+1 < len(pieces) {
			end = pieces[i+1].start
		}
		s.add(t, p[pieces[i].start-at:end-at], pieces[i].ref, limit)
	}
}

// discard forgets the first n bytes.
func (s *search) discard(n int) {
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	s.start += uint64(n)
	s.cursor = max(0, s.cursor-n)
	i := 0
	for i+1 < len(s.pieces) && s.pieces[i+1].start <= s.start {
		i++
	}
	if len(s.pieces) > 0 {
		s.pieces = s.pieces[:copy(s.pieces, s.pieces[i:])]
	}
	if len(s.buf) == 0 {
		s.pieces = s.pieces[:0]
	}
}

// ending is the evidence of an FPDU from offset from to offset to, if the data received so far ends at offset
// end.
func (s *search) ending(from, to, end uint64) int {
	i := s.pieceAt(from)
	if i >= 0 && s.pieceEnd(i, end) == to {
		return bitsBoundary
	}
	i = s.pieceAt(to - 1)
	if i >= 0 && s.pieceEnd(i, end) == to && to-s.pieces[i].start >= farLen {
		return bitsFar
	}
	return 0
}

// pieceEnd is where the i-th segment ends.
func (s *search) pieceEnd(i int, end uint64) uint64 {
	if i+1 < len(s.pieces) {
		return s.pieces[i+1].start
	}
	return end
}

// pieceAt is the index of the segment that holds offset at, or -1.
func (s *search) pieceAt(at uint64) int {
	lo, hi := 0, len(s.pieces)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if s.pieces[mid].start <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// span is the set of packets of n bytes from offset at.
func (s *search) span(at uint64, n int) span {
	var r span
	for i := max(0, s.pieceAt(at)); i < len(s.pieces) && s.pieces[i].start < at+uint64(n); i++ {
		r.add(s.pieces[i].ref)
	}
	return r
}

// seek takes the next bytes in modeSearch.
func (h *half) seek(p []byte, ref rdma.Ref) {
	s := h.search
	if len(p) > 0 {
		s.add(h.conn.t, p, ref, h.limit())
		h.pos += uint64(len(p))
	}
	h.resume()
	if h.mode == modeSearch {
		h.conn.searched(len(p))
	}
}

// seekSkip records n bytes that were not captured. If they are the rest of a segment, its end may confirm a
// candidate.
func (h *half) seekSkip(n uint64) {
	s := h.search
	defer h.regained(h.pos)
	for i := range s.candidates {
		c := &s.candidates[i]
		if end := h.pos + n; c.next == end && c.bits+s.ending(c.last, end, end) >= bitsEnough && c.start >= s.start {
			h.accept(c.start)
			break
		}
	}
	if h.mode == modeFraming {
		h.skip(n)
		return
	}
	h.pos += n
	s.reset(h.pos)
}

// resume continues the search in the data received so far.
func (h *half) resume() {
	for h.mode == modeSearch {
		at, ok := h.examine()
		if !ok {
			return
		}
		h.accept(at)
	}
}

// examine searches for an FPDU in bytes that have not been examined yet.
func (h *half) examine() (at uint64, ok bool) {
	s := h.search
	if h.marked {
		return h.examineMarkers()
	}
	for i := 0; i < len(s.candidates); {
		c := &s.candidates[i]
		switch s.advance(c) {
		case verdictYes:
			return s.usable(c), true
		case verdictNo:
			last := len(s.candidates) - 1
			s.candidates[i] = s.candidates[last]
			s.candidates = s.candidates[:last]
		default:
			i++
		}
	}
	i := s.cursor
	next := max(0, s.pieceAt(s.start+uint64(i)))
	for ; i+headLen <= len(s.buf); i++ {
		at := s.start + uint64(i)
		for next < len(s.pieces) && s.pieces[next].start < at {
			next++
		}
		// One comparison rejects most places: reserved bits and versions.
		if binary.BigEndian.Uint16(s.buf[i+2:])&0x3fb0 != 0x0100 {
			continue
		}
		length := int(binary.BigEndian.Uint16(s.buf[i:]))
		bits := plausible(s.buf[i+FPDUHeaderLen:], length)
		if bits < 0 {
			continue
		}
		c := candidate{start: at, next: at, bits: 0}
		if next < len(s.pieces) && s.pieces[next].start == at {
			c.bits += bitsBoundary
		}
		verdict := s.advance(&c)
		if verdict == verdictYes {
			s.spend(i + 1)
			return s.usable(&c), true
		}
		if verdict == verdictWait {
			if len(s.candidates) < maxCandidates {
				s.candidates = append(s.candidates, c)
			} else if c.bits > s.candidates[0].bits {
				s.candidates[0] = c
			}
		}
	}
	if s.spend(i) {
		return 0, false
	}
	// Too much work for what arrived: only new data is examined.
	s.reset(s.start + uint64(len(s.buf)))
	return 0, false
}

// spend moves the cursor and reports whether there is credit left.
func (s *search) spend(cursor int) bool {
	s.credit -= cursor - s.cursor
	s.cursor = cursor
	return s.credit >= 0
}

const (
	verdictWait = iota
	verdictYes
	verdictNo
)

// usable is the start of the first FPDU of an accepted chain that is still in
// the buffer.
func (s *search) usable(c *candidate) uint64 {
	if c.start >= s.start {
		return c.start
	}
	return c.next
}

// advance follows the chain of a candidate as far as the data goes.
func (s *search) advance(c *candidate) int {
	end := s.start + uint64(len(s.buf))
	for {
		if c.next != c.start && !c.atEnd && c.next <= end && c.next >= s.start {
			c.bits += s.ending(c.last, c.next, end)
			c.atEnd = true
		}
		if c.bits >= bitsEnough {
			return verdictYes
		}
		if c.next < s.start {
			return verdictNo // went by uncaptured
		}
		if c.next+headLen > end {
			return verdictWait
		}
		p := s.buf[c.next-s.start:]
		length := int(binary.BigEndian.Uint16(p))
		u := p[FPDUHeaderLen:]
		bits := plausible(u, length)
		if bits < 0 {
			return verdictNo
		}
		tagged := ULPDU(u).Control().Tagged()
		if tagged {
			stag, to := Tagged(u).STag(), Tagged(u).TO()
			if c.tagged && stag == c.stag && to == c.to {
				c.bits += bitsNext
			}
			c.stag, c.to = stag, to+uint64(length-TaggedLen)
		}
		c.tagged = tagged
		c.bits += bits
		if c.bits >= bitsEnough {
			// next stays: it is a good start itself.
			return verdictYes
		}
		c.last = c.next
		c.next += uint64(FPDULen(length))
		c.atEnd = false
	}
}

// examineMarkers searches for a marker that points to an FPDU in the buffer. The positions of the markers are
// known from the first FPDU.
func (h *half) examineMarkers() (at uint64, ok bool) {
	s := h.search
	for {
		rel := s.start + uint64(s.cursor) - h.base
		i := s.cursor + int(-rel%MarkerInterval)
		if i+MarkerLen > len(s.buf) {
			s.spend(min(i, len(s.buf)))
			return 0, false
		}
		m := s.start + uint64(i)
		distance := uint64(binary.BigEndian.Uint16(s.buf[i+2:]))
		if binary.BigEndian.Uint16(s.buf[i:]) == 0 && distance%4 == 0 && distance <= m-h.base && m-distance >= s.start {
			at = m - distance
			if distance > 0 && (at-h.base)%MarkerInterval == MarkerLen && at-MarkerLen >= s.start {
				at -= MarkerLen // its own marker stands before it
			}
			if at >= s.refused {
				head := s.buf[at-s.start:]
				if len(head) < headLen+2*MarkerLen {
					s.spend(i)
					return 0, false // wait for the header
				}
				if h.plausibleHead(head, at) {
					s.spend(i + MarkerLen)
					return at, true
				}
			}
		}
		s.spend(i + MarkerLen)
		if s.credit < 0 {
			s.reset(s.start + uint64(len(s.buf)))
			return 0, false
		}
	}
}

// accept treats offset at as the start of an FPDU and decodes the buffer. The mode changes to modeFraming
// unless that fails.
func (h *half) accept(at uint64) {
	s := h.search
	h.conn.recognise()
	h.regained(at)
	h.unproven = true
	i := int(at - s.start)
	for {
		rest := s.buf[i:]
		size := h.size(rest, at)
		good := true
		if len(rest) >= headLen {
			good = h.plausibleHead(rest, at) && size >= headLen
		}
		if good && size > 0 && size <= len(rest) {
			from := s.span(at, size)
			h.collectFound(at, size)
			if h.fpdu(rest[:size:size], size, at, &from) {
				i += size
				at += uint64(size)
				continue
			}
			good = false
		}
		if !good {
			// Continue after the place that was taken for a start. The search pays for moving the cursor back
			// when it comes by again. With markers it must not go back: a later marker has led here.
			if h.marked {
				s.cursor = max(s.cursor, i+1)
			} else {
				s.cursor = i + 1
			}
			s.candidates = s.candidates[:0]
			return
		}
		// The rest is the start of an FPDU.
		h.mode = modeFraming
		h.drop()
		if len(rest) > 0 {
			h.buf = append(h.conn.t.buffer(), rest...)
			h.start = at
			h.have = len(rest)
			if len(rest) >= headLen {
				h.need = size
			}
			h.from = s.span(at, len(rest))
			for j := max(0, s.pieceAt(at)); j < len(s.pieces); j++ {
				h.framing.note(max(at, s.pieces[j].start), s.pieces[j].ref)
			}
			h.collectFound(at, len(rest))
		}
		h.conn.t.release(s.buf)
		s.buf = nil
		if cap(s.pieces) > 64 {
			s.pieces = nil
		}
		return
	}
}
