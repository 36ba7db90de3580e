package latency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// values of several shapes; most of them look like latencies.
func shapes(n int, r *rand.Rand) map[string][]int64 {
	out := make(map[string][]int64)
	for range n {
		out["uniform"] = append(out["uniform"], r.Int64N(1e6))
		out["logarithmic"] = append(out["logarithmic"], int64(1)<<r.IntN(42)|r.Int64N(1<<20))
		out["latency"] = append(out["latency"], int64(200e3*(1+r.ExpFloat64())))
		out["rising"] = append(out["rising"], int64(len(out["rising"])*1000))
		v := int64(0)
		if r.IntN(10) == 0 {
			v = r.Int64N(5000)
		}
		out["mostly zero"] = append(out["mostly zero"], v)
		out["equal"] = append(out["equal"], 77777777)
		out["huge"] = append(out["huge"], 1<<62+r.Int64N(1<<61))
	}
	return out
}

func TestDist(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 7, 100, 255, 256, 257, 5000, 50000} {
		for name, values := range shapes(n, r) {
			var d dist
			var m memory
			for _, v := range values {
				d.add(v, &m)
			}
			if name == "huge" {
				x := d.distribution()
				if x.Count != uint64(n) || x.Max != slices.Max(values) || x.Min != slices.Min(values) || x.P99 > x.Max || x.P50 < x.Min {
					t.Errorf("%d huge values: %+v", n, x)
				}
				continue
			}
			check(t, name, d.distribution(), slices.Clone(values))
		}
	}
}

// Merging gives what adding gives, whatever form the two have.
func TestDistMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, small := range []uint8{0, 1} {
		for _, n := range []int{0, 1, 40, 300, 20000} {
			for _, k := range []int{0, 1, 40, 300, 20000} {
				a, b := shapes(n, r), shapes(k, r)
				for name := range shapes(1, r) {
					if name == "huge" {
						continue
					}
					x, y, m := dist{small: small}, dist{small: small}, memory{}
					for _, v := range a[name] {
						x.add(v, &m)
					}
					for _, v := range b[name] {
						y.add(v, &m)
					}
					p, q := x.distribution(), y.distribution()
					x.merge(&y, &m)
					all := append(slices.Clone(a[name]), b[name]...)
					check(t, name+" merged while recording", x.distribution(), all)
					p.merge(q)
					check(t, name+" merged", p, slices.Clone(all))
					if y.count != 0 || y.memory != 0 {
						t.Errorf("what was merged is not empty: %+v", y)
					}
				}
			}
		}
	}
}

// When memory is short, histograms lose digits, and say so.
func TestDistScarce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	values := shapes(30000, r)["logarithmic"]
	m := memory{used: 1001, limit: 1000}
	var d dist
	for _, v := range values {
		d.add(v, &m)
	}
	if !m.scarce || d.digits != 1 {
		t.Errorf("scarce %v, %d digits", m.scarce, d.digits)
	}
	if d.memory > 16<<10 {
		t.Errorf("%d bytes", d.memory)
	}
	check(t, "scarce", d.distribution(), slices.Clone(values))
	if n := testing.AllocsPerRun(10_000, func() { d.add(values[0], &m) }); n != 0 {
		t.Errorf("%v allocations for a value: arrays are made that there is no room for", n)
	}
}

func TestNearestRank(t *testing.T) {
	for _, c := range []struct {
		p    float64
		n    uint64
		want uint64
	}{
		{50, 0, 0}, {50, 1, 1}, {50, 2, 1}, {50, 3, 2}, {50, 10, 5}, {90, 10, 9}, {99, 100, 99}, {99, 101, 100},
		{99.9, 1000, 999}, {99.9, 1001, 1000}, {99.9, 10, 10}, {0, 10, 1}, {100, 10, 10}, {99.9, 1e15, 999e12},
	} {
		if got := nearestRank(c.p, c.n); got != c.want {
			t.Errorf("%v %% of %d: rank %d, want %d", c.p, c.n, got, c.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var d dist
	var m memory
	for _, v := range []int64{0, 0, 1, 2, 3, 10, 11, 900, 1000, 1001, 1e15} {
		d.add(v, &m)
	}
	var sum uint64
	bins := d.distribution().Histogram()
	for i, b := range bins {
		sum += b.Count
		if i > 0 && b.To <= bins[i-1].To {
			t.Errorf("bins are not in order: %v", bins)
		}
	}
	if sum != 11 || bins[0] != (Bin{0, 2}) || bins[1] != (Bin{1, 1}) || bins[2] != (Bin{2, 1}) || bins[3] != (Bin{5, 1}) || bins[4] != (Bin{10, 1}) {
		t.Errorf("%v", bins)
	}
}
