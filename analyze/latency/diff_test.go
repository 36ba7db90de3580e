package latency

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

func distOf(values ...int64) *Distribution {
	var d dist
	var m memory
	for _, v := range values {
		d.add(v, &m)
	}
	return d.distribution()
}

// Against values of U and Z computed by hand, pair by pair.
func TestMannWhitney(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		n, m := 1+r.IntN(40), 1+r.IntN(40)
		a, b := make([]int64, n), make([]int64, m)
		for i := range a {
			a[i] = r.Int64N(30)
		}
		for i := range b {
			b[i] = r.Int64N(33)
		}
		u := 0.0
		counts := map[int64]float64{}
		for _, y := range b {
			counts[y]++
			for _, x := range a {
				switch {
				case y > x:
					u++
				case y == x:
					u += 0.5
				}
			}
		}
		for _, x := range a {
			counts[x]++
		}
		ties := 0.0
		for _, c := range counts {
			ties += c*c*c - c
		}
		all := float64(n + m)
		sigma := math.Sqrt(float64(n*m) / 12 * (all + 1 - ties/(all*(all-1))))
		z := u - float64(n*m)/2
		z = math.Copysign(max(math.Abs(z)-0.5, 0), z)
		if sigma > 0 {
			z /= sigma
		}
		got := mannWhitney(distOf(a...), distOf(b...))
		if math.Abs(got.Above-u/float64(n*m)) > 1e-12 || math.Abs(got.Z-z) > 1e-9 {
			t.Fatalf("%v %v: above %v, z %v, want %v, %v", a, b, got.Above, got.Z, u/float64(n*m), z)
		}
	}
}

// Two samples of one population are noise in all but one of a hundred cases;
// a shift is found; the precision of the two does not matter.
func TestVerdict(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	sample := func(n int, scale float64) *Distribution {
		var v []int64
		for range n {
			v = append(v, int64(scale*(100e3+50e3*r.ExpFloat64())))
		}
		return distOf(v...)
	}
	noise, slower := 0, 0
	for range 400 {
		a := sample(200, 1)
		b := sample(1000, 1)
		if a.Precision != 0 || b.Precision == 0 {
			t.Fatal("the two are to differ in precision")
		}
		if x := mannWhitney(a, b); x.verdict(a.Count, b.Count) == Noise {
			noise++
		}
		c := sample(1000, 1.1)
		if x := mannWhitney(a, c); x.verdict(a.Count, c.Count) == Slower {
			slower++
		}
	}
	if noise < 388 {
		t.Errorf("equal samples: noise in %d of 400 cases", noise)
	}
	if slower < 390 {
		t.Errorf("slower by a tenth: found in %d of 400 cases", slower)
	}
	if v := mannWhitney(sample(5, 1), sample(500, 9)).verdict(5, 500); v != Few {
		t.Errorf("five values: %s", v)
	}
	// Equal values, one side exact and one in a histogram.
	x, y := make([]int64, 100), make([]int64, 1000)
	for i := range x {
		x[i] = 77777777
	}
	for i := range y {
		y[i] = 77777777
	}
	if v := mannWhitney(distOf(x...), distOf(y...)); v.Above != 0.5 || v.P != 1 {
		t.Errorf("equal values: %+v", v)
	}
}

// A 95 % interval holds the true percentile in about 95 of 100 cases.
func TestConfidence(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, p := range []float64{50, 99} {
		truth := int64(-math.Log(1-p/100) * 1e6)
		in := 0
		for range 1000 {
			var v []int64
			for range 1000 {
				v = append(v, int64(r.ExpFloat64()*1e6))
			}
			low, high := distOf(v...).confidence(p)
			if (low == nil || *low <= truth) && (high == nil || truth <= *high) {
				in++
			}
		}
		if in < 925 || in > 985 {
			t.Errorf("p%v: in %d of 1000 intervals", p, in)
		}
	}
}

func TestCompare(t *testing.T) {
	load := func(name string, by ...Key) *Report {
		return record(t, filepath.Join(samples, name), Options{By: by}, nil)
	}
	a, b := load("rocev2-nfs3-basic.pcap.zst"), load("rocev2-nfs3-meta.pcap.zst")
	d := Compare(a, b)
	count := func(g *DiffGroup, x, y *Group) {
		if x != nil && (g.Count.A != float64(x.Count) || g.Mean.A != float64(x.Latency.Mean) || g.P99.A != float64(x.Latency.P99)) ||
			y != nil && (g.Count.B != float64(y.Count) || g.Mean.B != float64(y.Latency.Mean) || g.P99.B != float64(y.Latency.P99)) {
			t.Errorf("%v: %+v", g.Key, g)
		}
	}
	find := func(r *Report, key string) *Group {
		for _, g := range r.Groups {
			if g.Key[0] == key {
				return g
			}
		}
		return nil
	}
	seen := map[string]bool{}
	for _, g := range d.Groups {
		x, y := find(a, g.Key[0]), find(b, g.Key[0])
		if want := map[[2]bool]string{{true, true}: "both", {true, false}: "a", {false, true}: "b"}[[2]bool{x != nil, y != nil}]; g.In != want {
			t.Errorf("%v is in %s, not %s", g.Key, want, g.In)
		}
		seen[g.In] = true
		count(g, x, y)
	}
	if !seen["both"] || !seen["a"] {
		t.Errorf("groups in %v", seen)
	}
	count(d.All, a.All, b.All)
	// With itself nothing changes.
	for _, g := range Compare(a, load("rocev2-nfs3-basic.pcap.zst")).Groups {
		if g.In != "both" || g.Count.Delta != 0 || g.Sum.Delta != 0 || g.P99.Delta != 0 || g.P50.Apart || g.Verdict == Slower || g.Verdict == Faster {
			t.Errorf("with itself: %+v", g)
		}
	}
}

// TestMix: if only the shares of groups change, nothing is slower; a group that is slower comes first, and all together are slower.
func TestMix(t *testing.T) {
	report := func(quick, slow int, longer int64) *Report {
		lists := [2][]int64{}
		for i := range quick + slow {
			n := int64(1_000_000 + 1000*(i%50))
			if i < quick {
				lists[0] = append(lists[0], n)
			} else {
				lists[1] = append(lists[1], 10*n*longer)
			}
		}
		r := &Report{All: &Group{Latency: distOf(slices.Concat(lists[0], lists[1])...)}}
		for i, op := range []string{"GETATTR", "WRITE"} {
			r.Groups = append(r.Groups, &Group{Key: []string{op}, Latency: distOf(lists[i]...)})
		}
		return r
	}
	for _, x := range []struct {
		name       string
		b          *Report
		want, head string
	}{
		{"mix", report(100, 400, 1), Mix, "WRITE"},
		{"slower", report(100, 400, 2), Slower, "WRITE"},
		{"the same", report(400, 100, 1), Noise, "GETATTR"},
	} {
		d := Compare(report(400, 100, 1), x.b)
		if d.All.Verdict != x.want || d.Groups[0].Key[0] != x.head {
			t.Errorf("%s: all are %s, first comes %s", x.name, d.All.Verdict, d.Groups[0].Key[0])
		}
		if c := d.Adjusted; c == nil || (math.Abs(c.Delta) > 0.01*c.A) != (x.want == Slower) {
			t.Errorf("%s: with the mix of A, the mean changes by %+v", x.name, c)
		}
	}
}
