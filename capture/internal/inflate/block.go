package inflate

import (
	"encoding/binary"
)

// step is what comes next in a member.
type step uint8

const (
	stepBlock  step = iota // the header of a block
	stepStored             // bytes of a stored block
	stepCodes              // codes of a compressed block
	stepEnd                // the last block has ended
)

// verdict is why decoding stops.
type verdict uint8

const (
	wantsInput verdict = iota
	isFull             // the output
	hasEnded           // the block, or the member
	isCorrupt
)

// stream is the state of the decompressor within a member.
type stream struct {
	in       []byte // input that has been read; its first pos bytes have moved to acc
	pos      int
	acc      uint64 // bit accumulator: the lowest n bits come next; the bits above are copies of in[pos:], or 0
	n        uint
	out      []byte // output, filled up to at
	at       int
	first    int // start of the member's output: no match may refer to anything before it
	step     step
	last     bool // the current block has BFINAL set
	left     int  // bytes left of a stored block
	lit      [litEntries]entry
	dist     [dstEntries]entry
	lengths  [maxLits + maxDists]uint8
	order    [1 << 7]entry // table of the code length code
	isFixed  bool          // lit and dist are the tables of the fixed Huffman codes
	consumed int64         // bytes of the input before in
}

// slack is the room in out that the fast loop needs: three literals, the longest match, and the 16 bytes that its last copy may write
// beyond the end.
const (
	longest = 258
	slack   = longest + 3 + 16
)

// bit fills acc to at least n bits. It returns false if the input ends first.
func (s *stream) bit(n uint) bool {
	for s.n < n {
		if s.pos >= len(s.in) {
			return false
		}
		s.acc |= uint64(s.in[s.pos]) << s.n
		s.pos++
		s.n += 8
	}
	return true
}

// take removes n bits from acc and returns them. acc must hold that many.
func (s *stream) take(n uint) uint64 {
	v := s.acc & (1<<n - 1)
	s.acc >>= n
	s.n -= n
	return v
}

// mark is a position in the input, to return to if a header or a symbol turns out to be incomplete.
type mark struct {
	pos int
	acc uint64
	n   uint
}

func (s *stream) mark() mark    { return mark{s.pos, s.acc, s.n} }
func (s *stream) back(m mark)   { s.pos, s.acc, s.n = m.pos, m.acc, m.n }
func (s *stream) offset() int64 { return s.consumed + int64(s.pos) - int64(s.n/8) }

// unread drops the rest of a partly used byte, and returns the whole bytes in acc to the input.
func (s *stream) unread() {
	s.take(s.n & 7)
	s.pos -= int(s.n / 8)
	s.acc, s.n = 0, 0
}

// header reads the header of a block (RFC 1951 section 3.2.3).
func (s *stream) header() verdict {
	m := s.mark()
	v := s.readHeader()
	if v == wantsInput {
		s.back(m)
	}
	return v
}

func (s *stream) readHeader() verdict {
	if !s.bit(3) {
		return wantsInput
	}
	s.last = s.take(1) == 1
	switch s.take(2) {
	case 0:
		s.take(s.n & 7)
		if !s.bit(32) {
			return wantsInput
		}
		n, not := s.take(16), s.take(16)
		if n != ^not&0xffff {
			return isCorrupt
		}
		s.unread()
		s.left, s.step = int(n), stepStored
	case 1:
		if !s.isFixed {
			s.fixed()
		}
		s.step = stepCodes
	case 2:
		if v := s.dynamic(); v != hasEnded {
			return v
		}
		s.step = stepCodes
	default:
		return isCorrupt
	}
	return hasEnded
}

// fixed makes the tables of fixed codes (section 3.2.6).
func (s *stream) fixed() {
	l := s.lengths[:maxLits]
	for i := range l {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		default:
			l[i] = 8
		}
	}
	build(s.lit[:], litBits, l, litSymbols[:])
	l = s.lengths[:maxDists]
	for i := range l {
		l[i] = 5
	}
	build(s.dist[:], distBits, l, distSymbols[:])
	s.isFixed = true
}

// lengthOrder is in which order the lengths of the code for lengths come.
var lengthOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block and makes their tables (section 3.2.7).
func (s *stream) dynamic() verdict {
	if !s.bit(14) {
		return wantsInput
	}
	lits, dists, codes := int(s.take(5))+257, int(s.take(5))+1, int(s.take(4))+4
	if lits > 286 || dists > 30 {
		return isCorrupt
	}
	var order [19]uint8
	for _, i := range lengthOrder[:codes] {
		if !s.bit(3) {
			return wantsInput
		}
		order[i] = uint8(s.take(3))
	}
	if !build(s.order[:], 7, order[:], orderSymbols[:]) {
		return isCorrupt
	}
	all := s.lengths[:lits+dists]
	for i := 0; i < len(all); {
		s.bit(7 + 7) // or what is left
		e := s.order[s.acc&(1<<7-1)]
		n := uint(e & takes)
		switch {
		case e&kind == special && s.n >= 7:
			return isCorrupt
		case e&kind == special || n > s.n:
			return wantsInput
		}
		symbol := uint8(e >> 16)
		more := [3]uint{2, 3, 7}
		if symbol < 16 {
			s.take(n)
			all[i] = symbol
			i++
			continue
		}
		extra := more[symbol-16]
		if s.n < n+extra {
			return wantsInput
		}
		s.take(n)
		value, repeat := uint8(0), 3
		switch symbol {
		case 16:
			if i == 0 {
				return isCorrupt
			}
			value = all[i-1]
		case 18:
			repeat = 11
		}
		repeat += int(s.take(extra))
		if repeat > len(all)-i {
			return isCorrupt
		}
		for range repeat {
			all[i] = value
			i++
		}
	}
	s.isFixed = false
	if !build(s.lit[:], litBits, all[:lits], litSymbols[:]) || !build(s.dist[:], distBits, all[lits:], distSymbols[:]) {
		return isCorrupt
	}
	return hasEnded
}

// stored copies bytes of a stored block.
func (s *stream) stored() verdict {
	n := copy(s.out[s.at:], s.in[s.pos:min(len(s.in), s.pos+s.left)])
	s.at, s.pos, s.left = s.at+n, s.pos+n, s.left-n
	switch {
	case s.left == 0:
		return hasEnded
	case s.pos == len(s.in):
		return wantsInput
	}
	return isFull
}

// codes decodes a compressed block (section 3.2.3).
func (s *stream) codes() verdict {
	for {
		if v := s.fast(); v != wantsInput {
			return v
		}
		// Near the end of the input, or of the room, one symbol after the other.
		for range 64 {
			if s.at+longest > len(s.out) {
				return isFull
			}
			m := s.mark()
			v := s.symbol()
			switch v {
			case wantsInput:
				s.back(m)
				return v
			case isCorrupt, hasEnded:
				return v
			}
		}
	}
}

// find looks up the next code. The entry is valid if the verdict is isFull.
func (s *stream) find(table []entry, index uint) (e entry, v verdict) {
	s.bit(maxCode + 13)
	e = table[s.acc&(1<<index-1)]
	if e&kind == special|second {
		if s.n < index {
			return e, wantsInput
		}
		s.take(index)
		e = table[int(e>>16&0x3fff)+int(s.acc&(1<<(e>>8&codeBits)-1))]
	}
	switch {
	case e&kind == special && s.n >= maxCode:
		return e, isCorrupt
	case e&kind == special || uint(e&takes) > s.n:
		return e, wantsInput
	}
	return e, isFull
}

// symbol decodes one literal, match or end of block. It returns isFull if it has written one.
func (s *stream) symbol() verdict {
	e, v := s.find(s.lit[:], litBits)
	if v != isFull {
		return v
	}
	x := s.take(uint(e & takes))
	if e&literal != 0 {
		s.out[s.at] = byte(e >> 16)
		s.at++
		return isFull
	}
	if e&special != 0 {
		return hasEnded
	}
	length := int(e>>16) + int(x>>(e>>8&codeBits))
	if e, v = s.find(s.dist[:], distBits); v != isFull {
		return v
	}
	x = s.take(uint(e & takes))
	back := int(e>>16) + int(x>>(e>>8&codeBits))
	if back > s.at-s.first {
		return isCorrupt
	}
	for range length {
		s.out[s.at] = s.out[s.at-back]
		s.at++
	}
	return isFull
}

// fast decodes symbols while 16 bytes of input and slack bytes of room are left. It returns wantsInput when they are not.
func (s *stream) fast() (v verdict) {
	in, out := s.in, s.out
	pos, at := s.pos, s.at
	acc, n := s.acc, s.n
	first := s.first
	lit, dist := &s.lit, &s.dist
	for pos+16 <= len(in) && at+slack <= len(out) {
		acc |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
		pos += int((63 - n) >> 3)
		n |= 56
		e := lit[acc&(1<<litBits-1)]
		if e&literal != 0 {
			acc >>= e & takes
			n -= uint(e & takes)
			out[at] = byte(e >> 16)
			at++
			e = lit[acc&(1<<litBits-1)]
			if e&literal != 0 {
				acc >>= e & takes
				n -= uint(e & takes)
				out[at] = byte(e >> 16)
				at++
				e = lit[acc&(1<<litBits-1)]
				if e&literal != 0 {
					acc >>= e & takes
					n -= uint(e & takes)
					out[at] = byte(e >> 16)
					at++
					continue
				}
			}
			// What is left may be too little for a match.
			acc |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
			pos += int((63 - n) >> 3)
			n |= 56
		}
		if e&special != 0 {
			if e&second != 0 {
				acc >>= litBits
				n -= litBits
				e = lit[(uint64(e>>16)+acc&(1<<(e>>8&codeBits)-1))&(litEntries-1)]
				if e&literal != 0 {
					acc >>= e & takes
					n -= uint(e & takes)
					out[at] = byte(e >> 16)
					at++
					continue
				}
			}
			if e&special != 0 {
				v = isCorrupt
				if e&end != 0 {
					v = hasEnded
				}
				acc >>= e & takes
				n -= uint(e & takes)
				break
			}
		}
		length := int(e>>16) + int(acc&(1<<(e&takes)-1)>>(e>>8&codeBits))
		acc >>= e & takes
		n -= uint(e & takes)
		e = dist[acc&(1<<distBits-1)]
		if e&special != 0 {
			if e&second == 0 {
				v = isCorrupt
				break
			}
			acc >>= distBits
			n -= distBits
			e = dist[(uint64(e>>16)+acc&(1<<(e>>8&codeBits)-1))&(dstEntries-1)]
			if e&special != 0 {
				v = isCorrupt
				break
			}
		}
		back := int(e>>16) + int(acc&(1<<(e&takes)-1)>>(e>>8&codeBits))
		acc >>= e & takes
		n -= uint(e & takes)
		from := at - back
		if from < first {
			v = isCorrupt
			break
		}
		to := at + length
		switch {
		case back < 16:
			overlap(out, at, back, to)
		case length > 64 && back >= length:
			copy(out[at:to], out[from:])
		default:
			for at < to {
				*(*[16]byte)(out[at:]) = *(*[16]byte)(out[from:])
				at += 16
				from += 16
			}
		}
		at = to
	}
	s.pos, s.at, s.acc, s.n = pos, at, acc, n
	return v
}

// overlap copies a match whose distance is below 16: it repeats the last back bytes up to the offset to, and may write up to 15 bytes
// beyond it.
func overlap(out []byte, at, back, to int) {
	switch {
	case back >= 8:
		for at < to {
			binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(out[at-back:]))
			at += 8
		}
	case back == 1:
		x := uint64(out[at-1]) * 0x0101010101010101
		for at < to {
			binary.LittleEndian.PutUint64(out[at:], x)
			at += 8
		}
	default:
		for at < to {
			out[at] = out[at-back]
			at++
		}
	}
}
