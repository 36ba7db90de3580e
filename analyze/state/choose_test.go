package state

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestChoose(t *testing.T) {
	const minute = int64(60e9)
	a, b, c := connection(700, 0, minute, 1, 2, 3), connection(700, 9, minute, 2, 3), connection(700, 5, minute, 3)
	other := connection(701, 0, minute, 1)
	again := connection(700, minute, 2*minute, 3, 7) // the client connected again, and sent a call again
	for _, x := range []struct {
		name  string
		views []View
		want  []bool
	}{
		{"one tap", []View{{a, "x", 5, 3}, {again, "x", 9, 2}, {other, "x", 1, 1}}, []bool{true, true, true}},
		{"nearer", []View{{a, "x", 50, 3}, {b, "y", 40, 2}}, []bool{false, true}},
		{"nearer, and hardly anything", []View{{a, "x", 50, 300}, {b, "y", 40, 149}}, []bool{true, false}},
		{"nearer, and half of it", []View{{a, "x", 50, 300}, {b, "y", 40, 150}}, []bool{false, true}},
		{"as near", []View{{a, "x", 40, 3}, {b, "y", 40, 2}}, []bool{true, false}},
		{"no difference", []View{{a, "x", 40, 3}, {b, "y", 40, 3}}, []bool{true, false}},
		{"nothing timed", []View{{a, "x", 0, 0}, {b, "y", 40, 1}}, []bool{false, true}},
		{"three", []View{{a, "x", 40, 3}, {b, "y", 30, 2}, {c, "z", 35, 3}, {other, "x", 90, 1}}, []bool{false, true, false, true}},
		{"again", []View{{a, "x", 40, 3}, {again, "x", 40, 2}, {b, "y", 50, 3}}, []bool{true, true, false}},
	} {
		for range 10 {
			order := rand.Perm(len(x.views))
			mixed := make([]View, len(order))
			for i, n := range order {
				mixed[i] = x.views[n]
			}
			got := make([]bool, len(order))
			for i, counts := range Choose(mixed) {
				got[order[i]] = counts
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("%s: %v, want %v", x.name, got, x.want)
			}
		}
	}
	if Choose(nil) == nil {
		t.Error("nil")
	}
}

// TestDoubtful: connections that look like those of another tap, were their times not so far apart.
func TestDoubtful(t *testing.T) {
	const minute, hour = int64(60e9), int64(3600e9)
	a, b := connection(700, 0, minute, 1, 2, 3), connection(700, 3*hour, 3*hour+minute, 1, 2, 3)
	again := connection(700, hour, hour+minute, 3, 7) // the client connected again, and sent a call again
	other := connection(701, 3*hour, 3*hour+minute, 1, 2, 3)
	for _, x := range []struct {
		name  string
		views []View
		want  int
	}{
		{"clocks differ", []View{{a, "x", 5, 3}, {b, "y", 9, 3}}, 2},
		{"the same tap", []View{{a, "x", 5, 3}, {b, "x", 9, 3}}, 0},
		{"other ends", []View{{a, "x", 5, 3}, {other, "y", 9, 3}}, 0},
		{"both taps saw both", []View{{a, "x", 5, 3}, {again, "x", 5, 2}, {a, "y", 9, 3}, {again, "y", 9, 2}}, 0},
		{"each saw one", []View{{a, "x", 5, 3}, {again, "y", 9, 2}}, 2},
	} {
		var c Chooser
		for i, v := range x.views {
			if err := c.Add(i, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Choose(); err != nil || c.Doubtful() != x.want || (DoubtfulNote(c.Doubtful()) == "") != (x.want == 0) {
			t.Errorf("%s: %d, %v, want %d", x.name, c.Doubtful(), err, x.want)
		}
	}
}

func TestMedian(t *testing.T) {
	var m, half Median
	if v, n := m.Value(); v != 0 || n != 0 {
		t.Error(v, n)
	}
	var all []int64
	for i := range 1001 {
		v := rand.Int64N(1 << (1 + i%50))
		all = append(all, v)
		if i%2 == 0 {
			m.Add(v)
		} else {
			half.Add(v)
		}
	}
	m.Add(-1)
	m.Merge(&half)
	slices.Sort(all)
	want := all[500]
	if v, n := m.Value(); n != 1001 || v > want || float64(v) < float64(want)*31/32 {
		t.Errorf("%d of %d, want %d", v, n, want)
	}
}
