package roce

// PSNs are 24 bits wide and wrap; two of them are compared by their distance,
// which is meaningful up to half the space (IBTA volume 1, section 9.7.1).
const (
	psnMask = 1<<24 - 1
	psnHalf = 1 << 23
)

// psnDiff is a − b, between −2^23 and 2^23 − 1.
func psnDiff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

func psnAdd(p, n uint32) uint32 { return (p + n) & psnMask }

// psnRange is count consecutive PSNs.
type psnRange struct{ start, count uint32 }

// maxMissing bounds the gaps that are remembered for one PSN space. The
// oldest is forgotten; its packets, should they come later, pass for copies.
const maxMissing = 64

// psnSet is the PSNs below the highest one seen that have not been seen. On a
// clean capture it is empty, so that nothing is done per packet.
type psnSet struct{ r []psnRange }

// add notes that count PSNs from start are missing. They lie after all that
// the set holds.
func (s *psnSet) add(start, count uint32) {
	if count == 0 {
		return
	}
	if n := len(s.r); n > 0 && psnAdd(s.r[n-1].start, s.r[n-1].count) == start {
		s.r[n-1].count += count
		return
	}
	if len(s.r) == maxMissing {
		copy(s.r, s.r[1:])
		s.r = s.r[:maxMissing-1]
	}
	s.r = append(s.r, psnRange{start & psnMask, count})
}

// take removes p and reports whether it was missing.
func (s *psnSet) take(p uint32) bool {
	if len(s.r) == 0 || !s.has(p, 1) {
		return false
	}
	s.remove(p, 1)
	return true
}

// remove takes count PSNs from start out of the set.
func (s *psnSet) remove(start, count uint32) {
	for i := 0; i < len(s.r); i++ {
		g := s.r[i]
		from := psnDiff(start, g.start)           // of the removed part, within g
		to := from + int32(min(count, psnHalf-1)) // behind it
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
				copy(s.r, s.r[1:])
				s.r = s.r[:maxMissing]
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
		if psnDiff(g.start, start) < int32(count) && psnDiff(start, g.start) < int32(g.count) {
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
			n += g.count
			s.r = append(s.r[:0], s.r[1:]...)
			continue
		}
		n += uint32(d) + 1
		g.start, g.count = psnAdd(p, 1), g.count-uint32(d)-1
		return n
	}
	return n
}

func (s *psnSet) reset() { s.r = s.r[:0] }
