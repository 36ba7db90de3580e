package kernel

import (
	"cmp"
	"math"
	"slices"
)

// Spread is the distribution of values in nanoseconds. All fields are zero if there are none.
type Spread struct {
	Count  int   `json:"count"`
	Min    int64 `json:"min"`
	Median int64 `json:"median"`
	Mean   int64 `json:"mean"`
	P95    int64 `json:"p95"`
	Max    int64 `json:"max"`
}

// spread sorts the values.
func spread(v []int64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	slices.Sort(v)
	var sum float64
	for _, x := range v {
		sum += float64(x)
	}
	n := len(v)
	return Spread{
		Count: n, Min: v[0], Max: v[n-1], Mean: int64(math.Round(sum / float64(n))),
		Median: v[(n-1)/2], P95: v[(95*n+99)/100-1],
	}
}

// ordering collects pairs for an Order.
type ordering struct {
	a, b []int64
	out  Order
}

func (o *ordering) add(a, b int64, violates bool, v Violation) {
	o.a, o.b = append(o.a, a), append(o.b, b)
	if !violates {
		return
	}
	o.out.Violations++
	if len(o.out.List) < maxListed {
		o.out.List = append(o.out.List, v)
	}
}

func (o *ordering) order() *Order {
	o.out.Pairs = len(o.a)
	if len(o.a) >= 3 {
		if r := correlation(ranks(o.a), ranks(o.b)); !math.IsNaN(r) {
			r = rounded(r)
			o.out.Correlation = &r
		}
	}
	if o.out.List == nil {
		o.out.List = []Violation{}
	}
	return &o.out
}

// ranks gives each value its place in the order; equal ones share the middle
// of theirs.
func ranks(v []int64) []float64 {
	at := make([]int, len(v))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	out := make([]float64, len(v))
	for i := 0; i < len(at); {
		k := i
		for k < len(at) && v[at[k]] == v[at[i]] {
			k++
		}
		for _, x := range at[i:k] {
			out[x] = float64(i+k-1) / 2
		}
		i = k
	}
	return out
}

// correlation is Pearson's of two lists of ranks; NaN if all of one are the
// same.
func correlation(a, b []float64) float64 {
	mean := float64(len(a)-1) / 2 // of any ranks
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - mean) * (b[i] - mean)
		aa += (a[i] - mean) * (a[i] - mean)
		bb += (b[i] - mean) * (b[i] - mean)
	}
	return ab / math.Sqrt(aa*bb)
}

// rounded leaves six decimals: more would differ from one processor to the
// other.
func rounded(f float64) float64 { return math.Round(f*1e6) / 1e6 }
