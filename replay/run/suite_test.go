package run_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store/mutant"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// plans are what each wrong server is tried with.
var plans = []struct {
	title, sample string
	payload       plan.PayloadMode
}{
	{"NFSv3, captured", "rocev2-nfs3-basic", plan.Captured},
	{"NFSv3, pattern", "rocev2-nfs3-basic", plan.Pattern},
	{"NFSv4.2, captured", "rocev2-nfs42-basic", plan.Captured},
	{"NFSv4.2, pattern", "rocev2-nfs42-basic", plan.Pattern},
}

// hidden are the kinds that cannot be seen, and why.
var hidden = map[string]string{}

func TestMutants(t *testing.T) {
	loads := map[string]*workload.Workload{}
	for _, p := range plans {
		loads[p.title] = extended(t, load(t, sample(t, p.sample), planner.Options{Payload: p.payload}))
	}
	type row struct {
		name, what string
		cells      []string
	}
	var rows []row
	try := func(name, what string, w wrong) {
		r := row{name: name, what: what}
		struck := false
		for _, p := range plans {
			rep, n := against(t, loads[p.title], w, func(o *run.Options) { o.Slots = 1 })
			var where []string
			seen := *rep
			if seen.ReadBack = nil; !seen.Explained() {
				where = append(where, "run")
			}
			if rep.ReadBack != nil && (len(rep.ReadBack.Wrong) > 0 || rep.ReadBack.Ended != "") {
				where = append(where, "read back")
			}
			struck = struck || n > 0
			switch {
			case n == 0:
				r.cells = append(r.cells, "–")
			case len(where) == 0:
				r.cells = append(r.cells, "not seen")
			default:
				r.cells = append(r.cells, strings.Join(where, ", "))
			}
			if n == 0 && len(where) > 0 {
				t.Errorf("%s, %s: seen in %v, and was not wrong", name, p.title, where)
			}
			if n > 0 && (len(where) == 0) != (hidden[name] != "") {
				t.Errorf("%s, %s: wrong %d times, seen in %v", name, p.title, n, where)
			}
		}
		if !struck {
			t.Errorf("%s: never wrong", name)
		}
		rows = append(rows, r)
	}
	for _, p := range plans {
		rep, _ := against(t, loads[p.title], wrong{}, func(o *run.Options) { o.Slots = 1 })
		if !rep.Explained() {
			for _, m := range rep.Mismatches {
				t.Errorf("%s, unspoilt: op %d %s: %s %q", p.title, m.Op, m.What, m.Verdict, m.Reasons)
			}
			for _, f := range rep.ReadBack.Wrong {
				t.Errorf("%s, unspoilt: %s: %s", p.title, f.Path, f.Reason)
			}
		}
	}
	if t.Failed() {
		return
	}
	for k := range mutant.Kinds {
		try(k.Name, k.What, wrong{store: k})
	}
	for i := range wireKinds {
		try(wireKinds[i].name, wireKinds[i].what, wrong{wire: &wireKinds[i]})
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, r.what, strings.Join(r.cells, " | "))
	}
	t.Logf("\n%s", b.String())
	_, _ = slices.Sort[[]string], os.Args
}
