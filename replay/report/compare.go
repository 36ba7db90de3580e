package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// sameWorkload returns an error if two runs cannot be of one plan.
func sameWorkload(a, b *Saved) error {
	each := func(s *Saved) int { return s.Planned / max(1, s.Setup.Clones) }
	if each(a) != each(b) {
		return fmt.Errorf("the reports are not of the same workload: %s has %d calls, %s has %d", a.from(), each(a), b.from(), each(b))
	}
	calls := map[int]string{}
	for i := range a.Mismatches {
		calls[a.Mismatches[i].Op] = a.Mismatches[i].What
	}
	for i := range b.Mismatches {
		if m := &b.Mismatches[i]; calls[m.Op] != "" && calls[m.Op] != m.What {
			return fmt.Errorf("the reports are not of the same workload: call %d is %s in one and %s in the other", m.Op, clipText(calls[m.Op], 100), clipText(m.What, 100))
		}
	}
	return nil
}

// CompareText writes two runs of one plan side by side: the verdicts and latencies of each operation, and the calls whose verdicts differ. It
// returns how many of these are not fine in the second run.
func CompareText(w io.Writer, a, b *Saved) (worse int, err error) {
	if err := sameWorkload(a, b); err != nil {
		return 0, err
	}
	p := &printer{w: w}
	for i, s := range []*Saved{a, b} {
		p.f("%c: replay of %s against %s: %d calls in %s", 'A'+i, s.from(), clipText(s.Setup.Server, 100), s.Sent, units.Short(s.Took))
		if s.Took > 0 {
			p.f(" (%.0f/s)", float64(s.Sent)/s.Took.Seconds())
		}
		p.f("; %s\n", counts(s.Totals))
	}
	p.sideBySide(a, b)
	worse = p.changed(a, b)
	for i, s := range []*Saved{a, b} {
		if s.More > 0 {
			p.f("note: report %c lists %d calls that differ from the capture, and %d more are not compared: run --show lists more\n", 'A'+i, len(s.Mismatches), s.More)
		}
	}
	return worse, p.err
}

// sideBySide lists the operations of two runs.
func (p *printer) sideBySide(a, b *Saved) {
	type pair struct{ a, b SavedOperation }
	ops := map[string]*pair{}
	at := func(name string) *pair {
		if ops[name] == nil {
			ops[name] = &pair{}
		}
		return ops[name]
	}
	for _, o := range a.Ops {
		at(o.Operation).a = o
	}
	for _, o := range b.Ops {
		at(o.Operation).b = o
	}
	names := slices.SortedFunc(maps.Keys(ops), func(x, y string) int {
		return cmp.Or(cmp.Compare(ops[y].a.Count+ops[y].b.Count, ops[x].a.Count+ops[x].b.Count), cmp.Compare(x, y))
	})
	rows := [][]string{{"OPERATION", "COUNT A", "B", "WRONG A", "B", "P50 A", "B", "P99 A", "B", "P99 B/A"}}
	for _, name := range names {
		x := ops[name]
		row := []string{clipText(name, 60), fmt.Sprint(x.a.Count), fmt.Sprint(x.b.Count), fmt.Sprint(wrongs(x.a.Outcomes)), fmt.Sprint(wrongs(x.b.Outcomes))}
		if x.a.Live.Count == 0 || x.b.Live.Count == 0 || x.a.Live.P99 <= 0 {
			rows = append(rows, append(row, "-", "-", "-", "-", "-"))
			continue
		}
		rows = append(rows, append(row, units.Short(x.a.Live.P50), units.Short(x.b.Live.P50), units.Short(x.a.Live.P99), units.Short(x.b.Live.P99),
			fmt.Sprintf("%.2f", float64(x.b.Live.P99)/float64(x.a.Live.P99))))
	}
	p.f("\n")
	p.table(1, rows)
}

// changed lists the calls whose verdicts differ, and returns how many of them are not fine in the second run.
func (p *printer) changed(a, b *Saved) (worse int) {
	type place struct{ op, clone int }
	type pair struct{ a, b *SavedMismatch }
	calls := map[place]*pair{}
	for i, s := range []*Saved{a, b} {
		for k := range s.Mismatches {
			m := &s.Mismatches[k]
			x := calls[place{m.Op, m.Clone}]
			if x == nil {
				x = &pair{}
				calls[place{m.Op, m.Clone}] = x
			}
			if i == 0 {
				x.a = m
			} else {
				x.b = m
			}
		}
	}
	head := false
	for _, at := range slices.SortedFunc(maps.Keys(calls), func(x, y place) int { return cmp.Or(cmp.Compare(x.op, y.op), cmp.Compare(x.clone, y.clone)) }) {
		x := calls[at]
		if x.a.verdict() == x.b.verdict() {
			continue
		}
		if !head {
			p.f("\nCalls whose verdicts differ\n")
			head = true
		}
		if x.b != nil && wrong(x.b.Verdict) {
			worse++
		}
		what := cmp.Or(x.a, x.b).What
		p.f("  op %d: %s: %s in A, %s in B\n", at.op, clipText(what, 100), clipText(x.a.verdict(), 20), clipText(x.b.verdict(), 20))
		for i, m := range []*SavedMismatch{x.a, x.b} {
			if m != nil {
				for _, reason := range m.Reasons {
					p.f("      %c: %s\n", 'A'+i, clipText(reason, 160))
				}
			}
		}
	}
	return worse
}

// from is the captures that a run replayed.
func (s *Saved) from() string { return clipText(strings.Join(s.Sources, ", "), 100) }

// verdict is the verdict of a call; one that is not listed was as captured.
func (m *SavedMismatch) verdict() string {
	if m == nil {
		return "as captured"
	}
	return m.Verdict
}

// wrong reports whether a verdict is not fine.
func wrong(name string) bool {
	for v := range verdict.Verdict(verdict.Count) {
		if v.String() == name {
			return !v.Fine()
		}
	}
	return false
}

// wrongs is how many calls have a verdict that is not fine.
func wrongs(totals map[string]int) (n int) {
	for name, calls := range totals {
		if wrong(name) {
			n += calls
		}
	}
	return n
}

// counts is the number of calls of each verdict.
func counts(totals map[string]int) string {
	var parts []string
	for v := range verdict.Count {
		if n := totals[verdict.Verdict(v).String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict.Verdict(v)))
		}
	}
	return strings.Join(parts, ", ")
}
