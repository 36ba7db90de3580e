package transaction

// coverage counts which bytes of a segment have been moved.
type coverage struct {
	bytes uint64
	spans []span
}

type span struct{ from, to uint64 }

// maxSpans bounds the pieces that are distinguished. Bytes that would make
// another one are not counted: too few is known to be too few, too many would
// pass for the truth.
const maxSpans = 64

// add covers [from, to) and returns how many bytes of it are new.
func (c *coverage) add(from, to uint64) uint64 {
	if from >= to {
		return 0
	}
	n := len(c.spans)
	if n > 0 {
		if last := &c.spans[n-1]; from == last.to {
			last.to = to
			c.bytes += to - from
			return to - from
		}
	}
	// Find the spans [i, j) that touch the range.
	i := 0
	for i < n && c.spans[i].to < from {
		i++
	}
	j := i
	fresh := to - from
	lo, hi := from, to
	for j < n && c.spans[j].from <= to {
		a, b := max(from, c.spans[j].from), min(to, c.spans[j].to)
		if b > a {
			fresh -= b - a
		}
		lo, hi = min(lo, c.spans[j].from), max(hi, c.spans[j].to)
		j++
	}
	switch {
	case j > i:
		c.spans[i] = span{lo, hi}
		c.spans = append(c.spans[:i+1], c.spans[j:]...)
	case n < maxSpans:
		c.spans = append(c.spans, span{})
		copy(c.spans[i+1:], c.spans[i:])
		c.spans[i] = span{from, to}
	default:
		return 0
	}
	c.bytes += fresh
	return fresh
}

// touches reports whether any of [from, to) has been moved.
func (c *coverage) touches(from, to uint64) bool {
	for i := len(c.spans) - 1; i >= 0; i-- {
		if s := &c.spans[i]; from < s.to && s.from < to {
			return true
		}
	}
	return false
}

// prefix is how far the segment is covered from its start.
func (c *coverage) prefix() uint64 {
	if len(c.spans) == 0 || c.spans[0].from != 0 {
		return 0
	}
	return c.spans[0].to
}

func (c *coverage) reset() { c.bytes, c.spans = 0, c.spans[:0] }
