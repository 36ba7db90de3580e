package report

import "time"

// curve is how many calls are in flight in the course of time: the first maxSpans as they are,
// and beyond that in intervals, whose width doubles as the time grows.
type curve struct {
	spans []span
	end   time.Duration // of the last call

	width time.Duration // of an interval; 0 as long as all are in spans
	// busy is the time that calls spent in each interval, except for those that filled it: whole
	// has the differences of their number to that of the interval before.
	busy  []float64
	whole []int64
}

const (
	maxSpans = 1 << 16
	maxBins  = 1 << 12
)

func (c *curve) add(s span) {
	s.from = max(s.from, 0)
	s.to = max(s.to, s.from)
	c.end = max(c.end, s.to)
	if c.width == 0 {
		if len(c.spans) < maxSpans {
			c.spans = append(c.spans, s)
			return
		}
		c.width = max(c.end/maxBins, 1)
		c.busy, c.whole = make([]float64, maxBins), make([]int64, maxBins+1)
		all := c.spans
		c.spans = nil
		for _, x := range all {
			c.put(x)
		}
	}
	c.put(s)
}

func (c *curve) put(s span) {
	for s.to/c.width >= maxBins {
		c.widen()
	}
	first, last := int(s.from/c.width), int(s.to/c.width)
	if first == last {
		c.busy[first] += float64(s.to - s.from)
		return
	}
	c.busy[first] += float64(time.Duration(first+1)*c.width - s.from)
	c.busy[last] += float64(s.to - time.Duration(last)*c.width)
	c.whole[first+1]++
	c.whole[last]--
}

// widen joins each two intervals.
func (c *curve) widen() {
	c.settle()
	for i := range maxBins / 2 {
		c.busy[i] = c.busy[2*i] + c.busy[2*i+1]
	}
	clear(c.busy[maxBins/2:])
	c.width *= 2
}

// settle counts the calls that filled intervals with the others.
func (c *curve) settle() {
	n := int64(0)
	for i := range c.busy {
		n += c.whole[i]
		c.busy[i] += float64(n) * float64(c.width)
	}
	clear(c.whole)
}

// each calls f for spans that together are the curve, with the number of calls in each.
func (c *curve) each(f func(s span, calls float64)) {
	for _, s := range c.spans {
		f(s, 1)
	}
	if c.width == 0 {
		return
	}
	c.settle()
	for i, busy := range c.busy {
		if busy > 0 {
			f(span{time.Duration(i) * c.width, time.Duration(i+1) * c.width}, busy/float64(c.width))
		}
	}
}
