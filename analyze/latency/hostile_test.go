package latency

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// spoiled is the state of a sample after change.
func spoiled(t *testing.T, change func(*State, *part)) (*Merger, error) {
	t.Helper()
	c := NewCollector(Options{Top: 2, Inline: []uint32{1024}})
	src := collect(t, filepath.Join(samples, "rocev2-nfs3-longcall.pcap"), c.Observer(), c.Add)
	s := c.State(src)
	change(s, s.tap.pieces[0].part)
	return FromUnits(state.Units{state.NewUnit(s.Section())})
}

// TestHostileState: what contradicts itself is refused, and what is only very large is shown as such.
func TestHostileState(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(*State, *part)
	}{
		{"sum too large for the count", func(_ *State, p *part) { p.groups[0].total.sumHigh = math.MaxUint64 }},
		{"least above longest", func(_ *State, p *part) { p.groups[0].total.least = p.groups[0].total.longest + 1 }},
		{"empty histogram", func(_ *State, p *part) {
			p.groups[0].total = dist{digits: 3}
		}},
		{"digits of another kind", func(_ *State, p *part) {
			d := dist{small: 1}
			d.add(5, &memory{limit: 1 << 20})
			d.begin(&memory{limit: 1 << 20})
			p.groups[0].total = d
		}},
		{"too many exact values", func(_ *State, p *part) {
			p.groups[0].total.exact = slices.Repeat([]int64{7}, exactValues)
		}},
		{"too many zeros", func(_ *State, p *part) { p.groups[0].total.zeros = math.MaxUint64 }},
		{"too many top", func(s *State, _ *part) { s.top = maxTop + 1 }},
		{"level below zero", func(_ *State, p *part) { p.conns[0].Forward.Levels[0].Time = -1 }},
		{"most", func(_ *State, p *part) { p.conns[0].Forward.Most = math.MaxInt }},
		{"interval number", func(_ *State, p *part) { p.series.first = math.MaxInt64 }},
		{"time goes back by less than nothing", func(s *State, _ *part) { s.tap.back.Most = -1 }},
		{"area", func(_ *State, p *part) { p.series.slots[0].area = math.Inf(1) }},
		{"label too long", func(_ *State, p *part) { p.groups[0].labels[0] = strings.Repeat("x", maxText+1) }},
		{"labels of other keys", func(_ *State, p *part) { p.groups[0].labels = append(p.groups[0].labels, "x") }},
	} {
		if _, err := spoiled(t, x.change); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if _, err := spoiled(t, func(*State, *part) {}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		u    *state.Unit
		want error
	}{
		{state.NewUnit(), state.ErrNoState},
		{state.NewUnit(state.Section{Kind: SectionKind, Version: SectionVersion + 1}), state.ErrVersion},
		{state.NewUnit(state.Section{Kind: SectionKind, Version: SectionVersion}), state.ErrDamaged},
	} {
		if _, err := FromUnits(state.Units{x.u}); !errors.Is(err, x.want) {
			t.Errorf("%v, want %v", err, x.want)
		}
	}
	if _, err := FromUnits(state.Units{}); !errors.Is(err, state.ErrNoState) {
		t.Error(err)
	}
}

// TestOverflow: sums that do not fit are the largest number, and a note says so.
func TestOverflow(t *testing.T) {
	var units state.Units
	for i := range 3 {
		c := NewCollector(Options{})
		src := collect(t, filepath.Join(samples, "rocev2-nfs3-longcall.pcap"), c.Observer(), c.Add)
		s := c.State(src)
		x := s.tap.pieces[0]
		x.seen.Ends[0].QPN += uint32(i) // other connections
		g := x.part.groups[0]
		g.CallBytes, g.Statuses = math.MaxUint64-5, map[string]uint64{"A": math.MaxUint64}
		x.part.series.slots[0].bytes = math.MaxUint64
		units = append(units, state.NewUnit(s.Section()))
	}
	rep := merged(t, units...)
	if rep.All.CallBytes != math.MaxUint64 || rep.All.Statuses["A"] != math.MaxUint64 {
		t.Errorf("%d bytes, %d errors", rep.All.CallBytes, rep.All.Statuses["A"])
	}
	if !strings.Contains(strings.Join(rep.Notes, "\n"), "64 bits") {
		t.Errorf("%q", rep.Notes)
	}
}

// TestTerms: states with different options are not merged, and the error says which ones.
func TestTerms(t *testing.T) {
	file := filepath.Join(samples, "rocev2-rping.pcap")
	base := unit(t, file, Options{Top: 3})
	most := unit(t, filepath.Join(samples, "rocev2-nfs3-longcall.pcap"), Options{Top: 3})
	for _, x := range []struct {
		opt  Options
		want string
	}{
		{Options{Top: 3, By: []Key{ByClient, ByStatus}}, "operation and by client,status"},
		{Options{Top: 3, By: []Key{}}, "operation and by none"},
		{Options{Top: 3, Interval: 5e9}, "0s and of 5s"},
		{Options{Top: 4}, "3 and 4 slow"},
		{Options{Top: 3, Inline: DefaultInline}, "inline"},
	} {
		_, err := FromUnits(state.Units{base, unit(t, file, x.opt), most})
		if !errors.Is(err, state.ErrOptions) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}

// TestLimits: with little memory most connections are not distinguished; nothing is lost.
func TestLimits(t *testing.T) {
	file := filepath.Join(samples, "rocev2-nfs3-meta.pcap.zst")
	opt := Options{Top: 3}
	c := NewCollector(opt)
	src := collect(t, file, c.Observer(), c.Add)
	want := reportJSON(t, c.State(src).Report())
	c = NewCollector(opt)
	c.limit = 2 * c.fixed()
	src = collect(t, file, c.Observer(), c.Add)
	s := c.State(src)
	if s.tap.beyond == 0 {
		t.Fatal("all connections were told apart")
	}
	if got := reportJSON(t, s.Report()); !bytes.Equal(got, want) {
		differ(t, "limited", got, want)
	}
}
