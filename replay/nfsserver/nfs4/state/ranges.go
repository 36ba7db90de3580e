package state

import "math"

// Range is a byte range, both ends included. A length of all ones on the wire
// reaches to the end of every file: Last is then MaxUint64.
type Range struct {
	First, Last uint64
}

// MakeRange turns the offset and length of LOCK into a Range. It fails for a
// length of zero and for a range that ends beyond 2^64 (RFC 8881, section
// 18.10.3: NFS4ERR_INVAL).
func MakeRange(offset, length uint64) (Range, bool) {
	switch {
	case length == 0:
		return Range{}, false
	case length == math.MaxUint64:
		return Range{offset, math.MaxUint64}, true
	case length-1 > math.MaxUint64-offset:
		return Range{}, false
	}
	return Range{offset, offset + length - 1}, true
}

// Length is the length on the wire: all ones for a range to the end of the file.
func (r Range) Length() uint64 {
	if r.Last == math.MaxUint64 {
		return math.MaxUint64
	}
	return r.Last - r.First + 1
}

func (r Range) overlaps(o Range) bool { return r.First <= o.Last && o.First <= r.Last }

// held is a range that somebody holds on a file.
type held struct {
	Range
	write bool
	owner holder
}

// ranges are the byte-range locks of a file. Those of one owner neither overlap
// nor, with the same type, touch.
type ranges struct {
	held []held
}

// conflict returns a conflicting range of another owner, or nil.
func (l *ranges) conflict(owner holder, r Range, write bool) *held {
	for i := range l.held {
		h := &l.held[i]
		if h.owner != owner && (write || h.write) && h.overlaps(r) {
			return h
		}
	}
	return nil
}

// add gives r to owner, and replaces what it held there. The caller must have called conflict.
func (l *ranges) add(owner holder, r Range, write bool) {
	l.remove(owner, r)
	// Adjacent ranges of the same type are joined.
	kept := l.held[:0]
	for _, h := range l.held {
		if h.owner == owner && h.write == write {
			if r.First > 0 && h.Last == r.First-1 {
				r.First = h.First
				continue
			}
			if r.Last < math.MaxUint64 && h.First == r.Last+1 {
				r.Last = h.Last
				continue
			}
		}
		kept = append(kept, h)
	}
	l.held = append(kept, held{r, write, owner})
}

// remove takes r from owner. A range that reaches beyond r at both ends becomes
// two.
func (l *ranges) remove(owner holder, r Range) {
	n := len(l.held)
	for i := 0; i < n; {
		h := l.held[i]
		if h.owner != owner || !h.overlaps(r) {
			i++
			continue
		}
		left, right := h.First < r.First, h.Last > r.Last
		switch {
		case left && right:
			l.held[i].Last = r.First - 1
			h.First = r.Last + 1
			l.held = append(l.held, h)
			i++
		case left:
			l.held[i].Last = r.First - 1
			i++
		case right:
			l.held[i].First = r.Last + 1
			i++
		default:
			last := len(l.held) - 1
			l.held[i] = l.held[last]
			l.held[last] = held{}
			l.held = l.held[:last]
			// The range moved from the end may be a piece just split off; it does not overlap r.
			n = min(n, last)
		}
	}
}

// splits reports whether remove would split a range.
func (l *ranges) splits(owner holder, r Range) bool {
	for i := range l.held {
		if h := &l.held[i]; h.owner == owner && h.First < r.First && h.Last > r.Last {
			return true
		}
	}
	return false
}

// drop takes all ranges from owner and returns how many there were.
func (l *ranges) drop(owner holder) int {
	kept := l.held[:0]
	for _, h := range l.held {
		if h.owner != owner {
			kept = append(kept, h)
		}
	}
	n := len(l.held) - len(kept)
	clear(l.held[len(kept):])
	l.held = kept
	return n
}

// count returns how many ranges owner holds.
func (l *ranges) count(owner holder) int {
	n := 0
	for i := range l.held {
		if l.held[i].owner == owner {
			n++
		}
	}
	return n
}
