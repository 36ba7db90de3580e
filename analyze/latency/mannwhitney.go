package latency

import (
	"math"
	"math/bits"
)

// Test is a two-sided Mann-Whitney rank test: whether latencies of B tend to be greater or smaller than those
// of A. It makes no assumption about the shape of the distributions, and a few extreme values do not sway it.
// It does assume that transactions are independent, which queued transactions are not: with many of them, P
// is too small rather than too large.
type Test struct {
	// Above is how often a latency of B is above one of A, a tie counting half:
	// 0.5 means no difference.
	Above float64 `json:"above"`
	Z     float64 `json:"z"`
	P     float64 `json:"p"` // probability of so large a difference by chance
}

const (
	fewValues    = 10   // with fewer values on either side the test is meaningless
	significance = 0.01 // a P below this is not noise
)

func (t *Test) verdict(n, m uint64) string {
	switch {
	case n < fewValues || m < fewValues:
		return Few
	case t.P >= significance:
		return Noise
	case t.Above > 0.5:
		return Slower
	}
	return Faster
}

// mannWhitney compares two distributions. Values that one of them cannot distinguish are ties.
func mannWhitney(a, b *Distribution) *Test {
	magnitude := 62
	for _, d := range []*Distribution{a, b} {
		if d.Precision > 0 {
			magnitude = min(magnitude, int(math.Round(-math.Log2(d.Precision))))
		}
	}
	var u, ties, below float64 // below: number of values of A that are smaller
	x, y := a.buckets, b.buckets
	for len(x) > 0 || len(y) > 0 {
		var v int64
		switch {
		case len(y) == 0, len(x) > 0 && x[0].value <= y[0].value:
			v = lowest(x[0].value, magnitude)
		default:
			v = lowest(y[0].value, magnitude)
		}
		var n, m float64
		for ; len(x) > 0 && lowest(x[0].value, magnitude) == v; x = x[1:] {
			n += float64(x[0].count)
		}
		for ; len(y) > 0 && lowest(y[0].value, magnitude) == v; y = y[1:] {
			m += float64(y[0].count)
		}
		u += m * (below + n/2)
		t := n + m
		ties += t*t*t - t
		below += n
	}
	n, m := float64(a.Count), float64(b.Count)
	t := &Test{Above: u / (n * m), P: 1}
	all := n + m
	variance := n * m / 12 * (all + 1 - ties/(all*max(all-1, 1)))
	if variance > 0 {
		d := u - n*m/2
		d = math.Copysign(max(math.Abs(d)-0.5, 0), d) // continuity correction
		t.Z = d / math.Sqrt(variance)
		t.P = math.Erfc(math.Abs(t.Z) / math.Sqrt2)
	}
	return t
}

// lowest is the lowest value of a histogram's bucket: see highest.
func lowest(v int64, magnitude int) int64 {
	return v &^ (int64(1)<<max(bits.Len64(uint64(v))-magnitude-1, 0) - 1)
}

// confidence is the 95 % confidence interval of a percentile, from the binomial distribution of ranks. An end
// is nil if there are too few values for it.
func (d *Distribution) confidence(p float64) (low, high *int64) {
	n, q := float64(d.Count), p/100
	half := 1.96 * math.Sqrt(n*q*(1-q))
	return d.atRank(math.Floor(n*q - half)), d.atRank(math.Ceil(n*q+half) + 1)
}

// atRank is the value of a rank; nil beyond the ends.
func (d *Distribution) atRank(rank float64) *int64 {
	if rank < 1 || rank > float64(d.Count) {
		return nil
	}
	var seen uint64
	for _, b := range d.buckets {
		if seen += b.count; float64(seen) >= rank {
			return &b.value
		}
	}
	return nil
}
