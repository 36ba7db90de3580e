package report

import (
	"slices"
	"time"
)

// samples collects durations: all of them up to maxSamples, and every k-th beyond that.
type samples struct {
	values []int64
	every  int
	skip   int
	n      int
	sum    int64
	max    int64
	min    int64
	sorted bool
}

// maxSamples is how many values are kept.
const maxSamples = 1 << 16

func (s *samples) add(d time.Duration) {
	v := int64(d)
	if s.n == 0 || v < s.min {
		s.min = v
	}
	s.n++
	s.sum += v
	s.max = max(s.max, v)
	if s.every == 0 {
		s.every = 1
	}
	if s.skip++; s.skip < s.every {
		return
	}
	s.skip = 0
	s.sorted = false
	if s.values = append(s.values, v); len(s.values) >= maxSamples {
		half := s.values[:0]
		for i := 0; i < len(s.values); i += 2 {
			half = append(half, s.values[i])
		}
		s.values = half
		s.every *= 2
	}
}

// quantile uses the nearest rank.
func (s *samples) quantile(q float64) time.Duration {
	if len(s.values) == 0 {
		return 0
	}
	if !s.sorted {
		slices.Sort(s.values)
		s.sorted = true
	}
	i := int(q*float64(len(s.values))+0.9999999) - 1
	return time.Duration(s.values[max(0, min(i, len(s.values)-1))])
}

func (s *samples) spread() Spread {
	if s.n == 0 {
		return Spread{}
	}
	return Spread{s.n, time.Duration(s.min), time.Duration(s.sum / int64(s.n)), s.quantile(.5), s.quantile(.9), s.quantile(.99), time.Duration(s.max)}
}
