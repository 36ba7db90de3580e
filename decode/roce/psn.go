package roce

// PSNs are 24 bits wide and wrap. Two of them are compared by their distance, which is meaningful up to half
// the space (IBTA volume 1, section 9.7.1).
const (
	psnMask = 1<<24 - 1
	psnHalf = 1 << 23
)

// psnDiff is a − b, between −2^23 and 2^23 − 1.
func psnDiff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

func psnAdd(p, n uint32) uint32 { return (p + n) & psnMask }

// psnRange is count consecutive PSNs.
type psnRange struct{ start, count uint32 }

// end is the PSN behind the range.
func (r psnRange) end() uint32 { return psnAdd(r.start, r.count) }

const (
	// maxMissing bounds the gaps that are remembered for one PSN space. Beyond it the oldest is dropped; its
	// packets, should they arrive, are taken for copies.
	maxMissing = 64
	// maxSpread is how far apart two PSNs of a set may be. It must be well below half the space for their
	// order to be defined.
	maxSpread = 1 << 20
)

// psnSet is the set of PSNs below the highest one seen that have not been seen, in ascending order. On a
// clean capture it is empty and costs nothing per packet.
type psnSet struct{ r []psnRange }

// add records that count PSNs from start are missing, at most maxSpread of them. It returns how many older
// ones were dropped for that.
func (s *psnSet) add(start, count uint32) (forgotten uint32) {
	if count == 0 {
		return 0
	}
	count = min(count, maxSpread)
	start &= psnMask
	for len(s.r) > 0 {
		if d := psnDiff(start, s.r[0].start); d <= maxSpread && d >= -maxSpread {
			break
		}
		forgotten += s.drop()
	}
	i := len(s.r)
	for i > 0 && psnDiff(s.r[i-1].start, start) > 0 {
		i--
	}
	if i > 0 && psnDiff(start, s.r[i-1].end()) <= 0 {
		// It continues or overlaps the previous range.
		i--
		if more := psnDiff(psnAdd(start, count), s.r[i].end()); more > 0 {
			s.r[i].count += uint32(more)
		}
	} else {
		if len(s.r) == maxMissing {
			forgotten += s.drop()
			if i--; i < 0 {
				return forgotten + count // the oldest is the new one
			}
		}
		s.r = append(s.r, psnRange{})
		copy(s.r[i+1:], s.r[i:])
		s.r[i] = psnRange{start, count}
	}
	for i+1 < len(s.r) {
		d := psnDiff(s.r[i].end(), s.r[i+1].start)
		if d < 0 {
			break
		}
		if more := int32(s.r[i+1].count) - d; more > 0 {
			s.r[i].count += uint32(more)
		}
		s.r = append(s.r[:i+1], s.r[i+2:]...)
	}
	return forgotten
}

// drop forgets the oldest range.
func (s *psnSet) drop() uint32 {
	n := s.r[0].count
	s.r = append(s.r[:0], s.r[1:]...)
	return n
}

// take removes p and reports whether it was missing.
func (s *psnSet) take(p uint32) bool {
	if len(s.r) == 0 || !s.has(p, 1) {
		return false
	}
	s.remove(p, 1)
	return true
}

// remove removes count PSNs from start.
func (s *psnSet) remove(start, count uint32) {
	if count == 0 {
		return
	}
	for i := 0; i < len(s.r); i++ {
		g := s.r[i]
		from := psnDiff(start, g.start)           // of the removed part, within g
		to := from + int32(min(count, psnHalf-1)) // after it
		if from >= int32(g.count) || to <= 0 {
			continue
		}
		before, after := max(from, 0), int32(g.count)-to
		switch {
		case before > 0 && after > 0:
			s.r[i].count = uint32(before)
			s.r = append(s.r, psnRange{})
			copy(s.r[i+2:], s.r[i+1:])
			s.r[i+1] = psnRange{psnAdd(g.start, uint32(to)), uint32(after)}
			if len(s.r) > maxMissing {
				s.drop()
			}
			return
		case before > 0:
			s.r[i].count = uint32(before)
		case after > 0:
			s.r[i] = psnRange{psnAdd(g.start, uint32(to)), uint32(after)}
		default:
			s.r = append(s.r[:i], s.r[i+1:]...)
			i--
		}
	}
}

// has reports whether any of count PSNs from start is missing.
func (s *psnSet) has(start, count uint32) bool {
	for _, g := range s.r {
		d := psnDiff(g.start, start)
		if d >= 0 && uint32(d) < count || d < 0 && uint32(-d) < g.count {
			return true
		}
	}
	return false
}

// before removes all up to and including p and returns how many there were.
func (s *psnSet) before(p uint32) (n uint32) {
	for len(s.r) > 0 {
		g := &s.r[0]
		d := psnDiff(p, g.start)
		if d < 0 {
			return n
		}
		if uint32(d)+1 >= g.count {
			n += s.drop()
			continue
		}
		n += uint32(d) + 1
		g.start, g.count = psnAdd(p, 1), g.count-uint32(d)-1
		return n
	}
	return n
}

// size is how many PSNs are missing.
func (s *psnSet) size() (n uint64) {
	for _, g := range s.r {
		n += uint64(g.count)
	}
	return n
}

func (s *psnSet) reset() { s.r = s.r[:0] }
