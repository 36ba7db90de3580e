package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
)

// told is all that a Checker says.
func told(c *Checker, findings []*Finding) string {
	var b []byte
	for i := range rules {
		b = fmt.Appendf(b, "%s %+v\n", rules[i].ID, *c.Count(&rules[i]))
	}
	for _, f := range findings {
		x := *f
		b = fmt.Appendf(b, "%s ", x.Rule.ID)
		x.Rule = nil
		b = fmt.Appendf(b, "%+v\n", x)
	}
	return string(fmt.Appendf(b, "%v", c.Totals()))
}

func saveRun(t *testing.T, opt Options, name string) *state.Unit {
	t.Helper()
	opt.Apart = true
	return state.NewUnit(run(opt, load(t, filepath.Join(samples, name))).check.Section("f"))
}

// TestState: what a saved state says is what was found in the capture, whether or not connections were distinguished.
func TestState(t *testing.T) {
	for _, file := range sampled.Captures(t, "*") {
		packets := load(t, file)
		want := run(Options{Rules: All()}, packets)
		apart := run(Options{Rules: All(), Apart: true}, packets)
		u := state.NewUnit(apart.check.Section(""))
		apart.check.Sum()
		if a, b := told(apart.check, apart.findings), told(want.check, want.findings); a != b {
			t.Errorf("%s: apart\n%s\nwant\n%s", file, a, b)
		}
		got, err := FromUnits(state.Units{u})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := told(got.Checker, got.Findings), told(want.check, want.findings); a != b {
			t.Errorf("%s: read\n%s\nwant\n%s", file, a, b)
		}
	}
}

// TestMergeStates: whatever is merged first, and however often, the result is the same.
func TestMergeStates(t *testing.T) {
	opt := Options{Rules: All()}
	var units []*state.Unit
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs3-longcall.pcap", "rocev2-rping.pcap"} {
		units = append(units, saveRun(t, opt, name))
	}
	random := rand.New(rand.NewPCG(1, 2))
	want := ""
	for range 100 {
		var files [3]state.File
		for _, u := range units {
			files[random.IntN(3)].Add(u)
			files[random.IntN(3)].Add(u)
		}
		random.Shuffle(3, func(i, j int) { files[i], files[j] = files[j], files[i] })
		files[0].Merge(&files[1], &files[2])
		res, err := FromUnits(&files[0])
		if err != nil {
			t.Fatal(err)
		}
		got := told(res.Checker, res.Findings) + fmt.Sprint(res.Notes)
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
		if !slices.IsSortedFunc(res.Findings, func(a, b *Finding) int { return int(a.Ref.Time/1000 - b.Ref.Time/1000) }) {
			t.Fatal("findings are not in the order of time")
		}
	}
	for _, x := range []struct {
		u    *state.Unit
		want error
	}{
		{state.NewUnit(), state.ErrNoState},
		{state.NewUnit(state.Section{Kind: SectionKind, Version: 9}), state.ErrVersion},
		{state.NewUnit(state.Section{Kind: SectionKind, Version: SectionVersion, Body: []byte{1}}), state.ErrDamaged},
		{saveRun(t, Options{Rules: All(), Profile: Linux}, "rocev2-rping.pcap"), state.ErrOptions},
		{saveRun(t, Options{}, "rocev2-rping.pcap"), state.ErrOptions},
	} {
		if _, err := FromUnits(state.Units{units[0], x.u}); !errors.Is(err, x.want) {
			t.Errorf("%v, want %v", err, x.want)
		}
	}
}

// FuzzState reads any bytes as a state.
func FuzzState(f *testing.F) {
	for _, name := range []string{"rocev2-nfs41-recall.pcap", "rocev2-rping.pcap"} {
		r, err := filepath.Abs(filepath.Join(samples, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(run(Options{Rules: All(), Apart: true}, load(f, r)).check.Section("").Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		u := state.NewUnit(state.Section{Kind: SectionKind, Version: SectionVersion, Body: body})
		res, err := FromUnits(state.Units{u})
		if err != nil {
			return
		}
		if told(res.Checker, res.Findings) == "" {
			t.Fatal("nothing is told")
		}
	})
}
