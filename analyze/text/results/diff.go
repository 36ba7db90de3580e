package results

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

type diffPrinter struct {
	reportPrinter
	d       *latency.Diff
	collect bool // tables instead of printing them
	tables  []Table
}

// Table is a table of a comparison, with the lines that follow it.
type Table struct {
	Title  string
	Header []string
	Right  []bool // columns that are numbers
	Rows   [][]string
	Lines  []string
}

func (p *diffPrinter) title(format string, args ...any) {
	if !p.collect {
		p.reportPrinter.title(format, args...)
		return
	}
	p.tables = append(p.tables, Table{Title: fmt.Sprintf(format, args...)})
}

func (p *diffPrinter) table(header []string, left int, rows [][]string) {
	if !p.collect {
		p.reportPrinter.table(header, left, rows)
		return
	}
	t := &p.tables[len(p.tables)-1]
	t.Header, t.Right, t.Rows = columns(header, left, rows)
}

func (p *diffPrinter) printf(format string, args ...any) {
	if !p.collect {
		p.reportPrinter.printf(format, args...)
		return
	}
	t := &p.tables[len(p.tables)-1]
	t.Lines = append(t.Lines, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// DiffTables returns the tables that Diff writes.
func DiffTables(d *latency.Diff) []Table {
	p := newDiffPrinter(nil, d, 0)
	p.collect = true
	p.all()
	return p.tables
}

func newDiffPrinter(w io.Writer, d *latency.Diff, width int) *diffPrinter {
	return &diffPrinter{reportPrinter: reportPrinter{w: w, rep: &latency.Report{By: d.By}, opt: ReportOptions{Width: width}, width: cmp.Or(width, reportWidth)}, d: d}
}

// Diff writes a comparison of two reports as tables of at most width columns; 0 means 100.
func Diff(w io.Writer, d *latency.Diff, width int) error {
	p := newDiffPrinter(w, d, width)
	for _, side := range []struct {
		name string
		s    *latency.DiffSide
		n, e float64
	}{{"A", &d.A, d.All.Count.A, d.All.Errors.A}, {"B", &d.B, d.All.Count.B, d.All.Errors.B}} {
		p.printf("%s: %s: %.0f transactions, %.0f failed, %s\n", side.name, inputNames(side.s.Inputs), side.n, side.e, side.s.When())
	}
	if d.Filter != "" {
		p.printf("transactions for which %s holds\n", safe(d.Filter))
	}
	p.all()
	p.dropped()
	for i, n := range d.Notes {
		if i == 0 {
			p.printf("\n")
		}
		p.printf("note: %s\n", n)
	}
	return p.err
}

// all writes all tables.
func (p *diffPrinter) all() {
	p.latency()
	p.time()
	p.phases()
	p.lost()
	p.others()
	p.statuses()
	p.only("b", "Only in B")
	p.only("a", "Only in A")
}

func (p *diffPrinter) latency() {
	p.title("Latency")
	header := append(p.keyHeader(), "COUNT A", "B", "P50 A", "B", "CHANGE", "P99 A", "B", "P99 CHANGE", "VERDICT")
	p.table(header, len(p.keyHeader()), p.rows(func(g *latency.DiffGroup) []string {
		a, b := g.Timed.A > 0, g.Timed.B > 0
		cells := []string{
			fmt.Sprintf("%.0f", g.Count.A), fmt.Sprintf("%.0f", g.Count.B),
			timeOr(g.P50.A, a), timeOr(g.P50.B, b), "-", timeOr(g.P99.A, a), timeOr(g.P99.B, b), "-", g.Verdict,
		}
		if a && b && g.Verdict != latency.Mix {
			cells[4], cells[7] = mark(g.P50), mark(g.P99)
		}
		return cells
	}))
	p.printf("\n~: the 95 %% intervals of A and B overlap, or there are too few values for an interval;\nfew: less than ten values on one side\n")
	if p.d.All.Verdict == latency.Mix {
		p.printf("mix: each group is as fast as before, but there are more of some and fewer of others\n")
	}
	if len(p.d.Groups) > 1 {
		p.printf("Order: slower, faster, few, noise; the largest change of the sum first.\n")
		if c := p.d.Adjusted; c != nil {
			p.printf("With as many of each group as A has, the mean is %s in A and %s in B: %s.\n", units.Duration(int64(c.A)), units.Duration(int64(c.B)), changeWords(*c))
		}
	}
}

func timeOr(v float64, ok bool) string {
	if !ok {
		return "-"
	}
	return units.Duration(int64(v))
}

func mark(q latency.Quantile) string {
	s := changeText(q.Change)
	if !q.Apart && s != "-" {
		return "~" + s
	}
	return s
}

func (p *diffPrinter) time() {
	p.title("Time: mean, and sum over all transactions of a group")
	header := append(p.keyHeader(), "MEAN A", "B", "BY", "CHANGE", "SUM A", "B", "SUM BY", "SUM CHANGE")
	p.table(header, len(p.keyHeader()), p.rows(func(g *latency.DiffGroup) []string {
		if g.Timed.A == 0 || g.Timed.B == 0 {
			return nil
		}
		return []string{
			units.Duration(int64(g.Mean.A)), units.Duration(int64(g.Mean.B)), signed(g.Mean.Delta), changeText(g.Mean),
			units.Duration(int64(g.Sum.A)), units.Duration(int64(g.Sum.B)), signed(g.Sum.Delta), changeText(g.Sum),
		}
	}))
}

func (p *diffPrinter) phases() {
	p.title("Change of the mean of each phase")
	header := p.keyHeader()
	for ph := range transaction.Parts() {
		header = append(header, strings.ToUpper(ph.Short()))
	}
	header = append(header, "WAIT", "ACK", "TOTAL")
	p.table(header, len(p.keyHeader()), p.rows(func(g *latency.DiffGroup) []string {
		if g.Timed.A == 0 || g.Timed.B == 0 {
			return nil
		}
		var cells []string
		for ph := range transaction.Parts() {
			cells = append(cells, signed(g.Phases[ph.String()].Mean.Delta))
		}
		return append(cells, signed(g.Phases[transaction.PhaseWait.String()].Mean.Delta),
			signed(g.Phases[transaction.PhaseAck.String()].Mean.Delta), signed(g.Mean.Delta))
	}))
}

// lost says how much of the change of the time was lost to what.
func (p *diffPrinter) lost() {
	all := p.d.All
	if all.Lost == nil {
		return
	}
	var rows [][]string
	for i := 1; i <= rdma.NumCauses; i++ { // the rest last
		c := rdma.Cause(i % rdma.NumCauses)
		x := all.Lost[c.String()]
		if x.A == 0 && x.B == 0 {
			continue
		}
		rows = append(rows, []string{strings.ReplaceAll(c.String(), "_", " "), units.Duration(int64(x.A)), units.Duration(int64(x.B)), signed(x.Delta), changeText(x)})
	}
	if len(rows) < 2 {
		return
	}
	p.title("What the time was lost to, over all transactions with RDMA")
	p.table([]string{"CAUSE", "A", "B", "BY", "CHANGE"}, 1, rows)
	rest := all.Lost[rdma.CauseRest.String()].Delta
	switch e := all.Explained; {
	case e == nil:
	case *e < 0: // what was lost and the rest have changed in opposite directions: a share would be no part of anything
		p.printf("\nthe change is not explained: what was lost changed in the other direction than the rest, which changed by %s\n", signed(rest))
	case *e > 1:
		p.printf("\nthe change is explained, and would have been greater: the rest changed in the other direction, by %s\n", signed(rest))
	default:
		p.printf("\n%s %% of the change are explained: they are not in the rest\n", units.Percent(*e))
	}
}

// rows are the groups that both have, and all groups together.
func (p *diffPrinter) rows(f func(g *latency.DiffGroup) []string) [][]string {
	var out [][]string
	for _, g := range p.d.Groups {
		if g.In != "both" {
			continue
		}
		if cells := f(g); cells != nil {
			out = append(out, append(p.cells(g), cells...))
		}
	}
	if cells := f(p.d.All); cells != nil && len(p.d.By) > 0 && len(out) != 1 {
		key := make([]string, len(p.d.By))
		key[0] = "all"
		out = append(out, slices.Concat(key, cells))
	}
	return out
}

// signed is a change of a duration with its sign.
func signed(ns float64) string {
	if ns == 0 {
		return "-"
	}
	s := units.Duration(int64(ns))
	if ns > 0 {
		s = "+" + s
	}
	return s
}

// others shows the counters that differ.
func (p *diffPrinter) others() {
	var rows [][]string
	number := func(f float64) string { return fmt.Sprintf("%.0f", f) }
	size := func(f float64) string { return units.Rounded(f, 1024) }
	rate := func(f float64) string { return units.Rounded(f, 1000) }
	groups := slices.DeleteFunc(slices.Clone(p.d.Groups), func(g *latency.DiffGroup) bool { return g.In != "both" })
	for _, g := range append(groups, p.d.All) {
		key := strings.Join(p.cells(g), " ")
		for _, m := range []struct {
			name string
			c    latency.Change
			show func(float64) string
		}{
			{"calls/s", g.Rate, rate}, {"bytes/s", g.ByteRate, size},
			{"errors", g.Errors, number}, {"no reply", g.NoReply, number}, {"no call", g.NoCall, number}, {"incomplete", g.Incomplete, number},
			{"retransmits", g.Retransmits, number}, {"call bytes", g.CallBytes, size}, {"reply bytes", g.ReplyBytes, size},
			{"RDMA read", g.ReadBytes, size}, {"RDMA write", g.WriteBytes, size},
		} {
			// The captures may differ in length: to say so once is enough.
			if m.c.Delta == 0 || g != p.d.All && strings.HasSuffix(m.name, "/s") {
				continue
			}
			sign := "+"
			if m.c.Delta < 0 {
				sign = "-"
			}
			rows = append(rows, []string{key, m.name, m.show(m.c.A), m.show(m.c.B), sign + m.show(math.Abs(m.c.Delta)), changeText(m.c)})
			key = ""
		}
	}
	if len(rows) == 0 {
		return
	}
	p.title("What else changed")
	p.table([]string{"GROUP", "WHAT", "A", "B", "BY", "CHANGE"}, 2, rows)
}

// changeWords is a change in percent, in a sentence.
func changeWords(c latency.Change) string {
	if t := changeText(c); t != "-" {
		return t
	}
	return "no change"
}

// changeText is a change in percent; "-" for none, "new" from zero.
func changeText(c latency.Change) string {
	switch {
	case c.Delta == 0:
		return "-"
	case c.Percent == nil:
		return "new"
	case math.Abs(*c.Percent) >= 1000:
		return fmt.Sprintf("x%.3g", c.B/c.A)
	case math.Abs(*c.Percent) < 9.95:
		return fmt.Sprintf("%+.1f%%", *c.Percent)
	}
	return fmt.Sprintf("%+.0f%%", *c.Percent)
}

func (p *diffPrinter) statuses() {
	first := true
	for _, g := range p.d.Groups {
		names := make([]string, 0, len(g.Statuses))
		for s := range g.Statuses {
			names = append(names, s)
		}
		slices.Sort(names)
		for _, s := range names {
			c := g.Statuses[s]
			if first {
				p.title("Errors")
				first = false
			}
			p.printf("  %s: %s: %.0f in A, %.0f in B\n", strings.Join(p.cells(g), " "), s, c.A, c.B)
		}
	}
}

func (p *diffPrinter) only(in, title string) {
	first := true
	for _, g := range p.d.Groups {
		if g.In != in {
			continue
		}
		if first {
			p.title("%s", title)
			first = false
		}
		pick := func(c latency.Change) float64 {
			if in == "a" {
				return c.A
			}
			return c.B
		}
		line := fmt.Sprintf("  %s: %.0f", strings.Join(p.cells(g), " "), pick(g.Count))
		if pick(g.Timed) > 0 {
			line += fmt.Sprintf(", mean %s, p99 %s, %s in all", units.Duration(int64(pick(g.Mean))), units.Duration(int64(pick(g.P99.Change))), units.Duration(int64(pick(g.Sum))))
		}
		if n := pick(g.Errors); n > 0 {
			line += fmt.Sprintf(", %.0f failed", n)
		}
		p.printf("%s\n", line)
	}
}

func (p *diffPrinter) cells(g *latency.DiffGroup) []string {
	return p.keyCells(&latency.Group{Key: g.Key})
}
