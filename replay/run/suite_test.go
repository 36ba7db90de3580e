package run_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/mutantstore"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// mutantPlans are the plans that each wrong server is tried with: samples with the calls that
// extended adds.
var mutantPlans = []struct {
	title, sample string
	payload       plan.PayloadMode
}{
	{"NFSv3, captured", "rocev2-nfs3-basic", plan.Captured},
	{"NFSv3, pattern", "rocev2-nfs3-basic", plan.Pattern},
	{"NFSv4.2, captured", "rocev2-nfs42-basic", plan.Captured},
	{"NFSv4.2, pattern", "rocev2-nfs42-basic", plan.Pattern},
}

// half are the plans for kinds that do not concern the bytes of files.
var half = []int{0, 3}

// invisible are the kinds that no client can see, or only with one version, and why.
var invisible = map[string]string{
	"wrong-used":             "how much space a file takes is up to the server",
	"still-change/NFSv3":     "NFSv3 has no change attribute",
	"still-dir-change/NFSv3": "NFSv3 has no change attribute",
	"backward-ctime/NFSv4.2": "clients compare times for being equal, since clocks are set",
	"backward-change":        "a change attribute has to be another one, not a larger one (RFC 8881, section 5.8.1.4)",
	"lost-commit":            "lost data shows only after a crash of the server",
	"lost-attributes":        "NFSv3 leaves it to the server whether it sends them (RFC 1813, section 2.6)",
	"smaller-limits":         "limits are up to the server",
}

// mutantRow is a row of the table.
type mutantRow struct {
	name, what string
	cells      []string // by plan; empty if it was not tried
}

// TestMutants tries every kind of wrong server. Wherever it does something wrong, that must be
// seen during the run or when the files are read back. The table is in testdata/mutants.md; -update
// rewrites it.
func TestMutants(t *testing.T) {
	const file = "testdata/mutants.md"
	doc, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	known := readRows(string(doc))
	loads := make([]*workload.Workload, len(mutantPlans))
	serial := func(o *run.Options) { o.Slots = 1 } // the table must not depend on the order of calls
	for i, p := range mutantPlans {
		loads[i] = extended(t, load(t, sample(t, p.sample), planner.Options{Payload: p.payload}))
		rep, _ := against(t, loads[i], wrong{}, serial)
		for _, m := range rep.Mismatches {
			if !m.Verdict.Fine() {
				t.Errorf("%s, unspoilt: op %d %s: %s %q", p.title, m.Op, m.What, m.Verdict, m.Reasons)
			}
		}
		for _, f := range rep.ReadBack.Wrong {
			t.Errorf("%s, unspoilt: %s: %s", p.title, f.Path, f.Reason)
		}
	}
	if t.Failed() {
		return
	}
	var rows []mutantRow
	kinds := 0
	try := func(name, what string, bytes bool, w wrong) {
		if kinds++; testing.Short() && kinds%8 != 0 {
			return // the race detector has nothing to find in the others
		}
		r := mutantRow{name: name, what: what, cells: make([]string, len(mutantPlans))}
		was := known[name]
		tried := half
		if bytes {
			tried = []int{0, 1, 2, 3}
		}
		if testing.Short() {
			tried = []int{oneOf(was, kinds)}
		}
		for _, i := range tried {
			p := &mutantPlans[i]
			rep, n := against(t, loads[i], w, serial)
			r.cells[i] = seen(rep)
			version, _, _ := strings.Cut(p.title, ",")
			why := invisible[name] + invisible[name+"/"+version]
			if w.wire != nil && w.wire.reason != verdict.None && n > 0 && !slices.ContainsFunc(rep.Mismatches, func(m report.Mismatch) bool { return slices.Contains(m.Codes, w.wire.reason) }) {
				t.Errorf("%s, %s: wrong %d times, and no reason is %s", name, p.title, n, w.wire.reason)
			}
			switch found := r.cells[i] != "not seen"; {
			case n == 0 && found:
				t.Errorf("%s, %s: %s, and was not wrong", name, p.title, r.cells[i])
			case n == 0:
				r.cells[i] = "–"
			case found == (why != ""):
				t.Errorf("%s, %s: wrong %d times: %s", name, p.title, n, r.cells[i])
			}
			if !*update && (was == nil || was[i] != r.cells[i]) {
				t.Errorf("%s, %s: %s, and the table says %q", name, p.title, r.cells[i], was)
			}
		}
		if !slices.ContainsFunc(r.cells, func(s string) bool { return s != "" && s != "–" }) {
			t.Errorf("%s: never wrong", name)
		}
		rows = append(rows, r)
	}
	for k := range mutantstore.Kinds() {
		try(k.Name, k.What, k.Bytes(), wrong{store: k})
	}
	for i := range wireKinds {
		try(wireKinds[i].name, wireKinds[i].what, false, wrong{wire: &wireKinds[i]})
	}
	if kinds < 60 {
		t.Errorf("%d kinds", kinds)
	}
	switch {
	case *update && testing.Short():
		t.Error("-update needs all kinds: leave out -short")
	case *update:
		if err := os.WriteFile(file, []byte(mutantTable(rows)), 0o644); err != nil {
			t.Fatal(err)
		}
	case len(known) != kinds:
		t.Errorf("the table has %d kinds, and there are %d: -update writes it anew", len(known), kinds)
	}
}

// seen reports where a run has found something wrong.
func seen(r *report.Report) string {
	var where []string
	during := *r
	if during.ReadBack = nil; !during.Explained() {
		where = append(where, "run")
	}
	if r.ReadBack != nil && (len(r.ReadBack.Wrong) > 0 || r.ReadBack.Ended != "") {
		where = append(where, "read back")
	}
	if len(where) == 0 {
		return "not seen"
	}
	return strings.Join(where, ", ")
}

// oneOf is a plan in which a kind does something wrong, another one for each row.
func oneOf(cells []string, row int) int {
	var list []int
	for i, c := range cells {
		if c != "" && c != "–" {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return half[row%2]
	}
	return list[row%len(list)]
}

// readRows reads the cells of the table.
func readRows(doc string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(doc) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4+len(mutantPlans) || !strings.HasPrefix(f[1], " `") {
			continue
		}
		name := strings.Trim(f[1], " `")
		for _, c := range f[3 : 3+len(mutantPlans)] {
			rows[name] = append(rows[name], strings.TrimSpace(c))
		}
	}
	return rows
}

// mutantTable is the document.
func mutantTable(rows []mutantRow) string {
	var b strings.Builder
	b.WriteString(mutantIntro)
	head, line := "| kind | what the server does |", "|---|---|"
	for _, p := range mutantPlans {
		head, line = head+" "+p.title+" |", line+"---|"
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, line)
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s |", r.name, r.what)
		for _, c := range r.cells {
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n## What cannot be seen\n\n| kind | why |\n|---|---|\n")
	var names []string
	for n := range invisible {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		name, version, of := strings.Cut(n, "/")
		if of {
			version = " (" + version + ")"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s |\n", name, version, invisible[n])
	}
	return b.String()
}

const mutantIntro = `# Servers that are wrong

Which faults of a server ` + "`rpcrdma-replay run`" + ` detects. Each row is a server that is wrong in one
way: in its store, or in its replies on the way to the client. Each column is a plan, made from a
sample in ` + "`samples/`" + ` with additional calls, with captured or made-up file data (` + "`--payload pattern`" + `).

- *run*: replies were worse or different, and nothing explained it
- *read back*: ` + "`--verify-files`" + ` found it at the end
- *not seen*: neither; [the reasons](#what-cannot-be-seen) are below
- *–*: this plan has no call that triggers the fault
- empty: not tried, since the fault does not concern the bytes of files

With the unmodified server, nothing is found in any of the plans. ` + "`go test ./replay/run -run TestMutants`" + `
makes the table again and compares it with this one; ` + "`-update`" + ` writes it.

`
