package latency

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestSample wants exact percentiles of few values, a clean start after Reset,
// and a distribution that does not change with the sample.
func TestSample(t *testing.T) {
	var s Sample
	for i := range int64(200) {
		s.Add(i + 1)
	}
	s.Add(-5) // a clock that went backwards
	d := s.Distribution()
	if s.Count() != 201 || d.P50 != 100 || d.P99 != 198 || d.Max != 200 || d.Min != 0 || d.Zeros != 1 || d.Precision != 0 {
		t.Errorf("%+v", d)
	}
	for range 100_000 {
		s.Add(1e6)
	}
	if x := s.Distribution(); x.Count != 100_201 || x.P50 < 1e6 || x.P50 > 1e6+1000 || d.Count != 201 || d.P99 != 198 {
		t.Errorf("%+v, %+v", x, d)
	}
	if n := testing.AllocsPerRun(10_000, func() { s.Add(1e6) }); n != 0 {
		t.Errorf("%v allocations for a value", n)
	}
	s.Reset()
	if s.Count() != 0 || s.Distribution().P99 != 0 {
		t.Error("something is left after Reset")
	}
	s.Add(7)
	if d := s.Distribution(); d.P50 != 7 || d.Precision != 0 {
		t.Errorf("%+v", d)
	}
}

// TestMerge adds groups up.
func TestMerge(t *testing.T) {
	var a, b Sample
	a.Add(1)
	b.Add(3)
	g := Merge(&Group{Counts: Counts{Count: 1, Errors: 1, Statuses: map[string]uint64{"NFS3ERR_IO": 1}}, Latency: a.Distribution()},
		&Group{Counts: Counts{Count: 2}, Latency: b.Distribution()})
	if g.Count != 3 || g.Errors != 1 || g.Latency.Count != 2 || g.Latency.Max != 3 || g.Latency.P50 != 1 || g.Statuses["NFS3ERR_IO"] != 1 {
		t.Errorf("%+v", g)
	}
	if g := Merge(); g.Count != 0 || g.Latency.P99 != 0 || g.Phase(transaction.PhaseServer).Sum != 0 {
		t.Errorf("%+v", g)
	}
}
