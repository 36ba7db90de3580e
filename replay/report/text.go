package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Text writes a report for people.
func (r *Report) Text(w io.Writer) error {
	p := &printer{w: w}
	p.f("replay of %s", strings.Join(r.Sources, ", "))
	if r.Setup.Server != "" {
		p.f(" against %s", r.Setup.Server)
	}
	p.f(":\n")
	p.f("  directory %s, timing %s, %s, %s, layout %s\n", r.Setup.Directory, r.Setup.Timing,
		units.Plural(r.Setup.Clones, "clone"), units.Plural(r.Setup.Connections, "connection"), r.Setup.Layout)
	if r.Setup.Rounds > 0 {
		p.f("  %s, each in separate directories\n", units.Plural(r.Setup.Rounds, "round"))
	}
	if pr := r.Setup.Prepared; pr != (Prepared{}) {
		p.f("  prepared %s, %s, %s, %s of data", units.Plural(pr.Directories, "directory"), units.Plural(pr.Files, "file"), units.Plural(pr.Others, "other object"), units.BytesText(pr.Bytes))
		if pr.Sparse > 0 {
			p.f(", %d of them sparse", pr.Sparse)
		}
		if pr.Failed > 0 {
			p.f("; %d could not be made", pr.Failed)
		}
		p.f("\n")
	}
	if r.Stopped != "" {
		p.f("  STOPPED after %s: %s; %d of %d calls were not over\n", units.Short(r.Took), r.Stopped, r.NotDone, r.Planned)
	}
	if r.Planned == 0 {
		if r.Empty {
			p.f("\n%s\n", nothing)
		}
		return p.err
	}
	p.f("\n%d calls in %s", r.Sent, units.Short(r.Took))
	if r.Took > 0 {
		p.f(" (%.0f/s)", float64(r.Sent)/r.Took.Seconds())
	}
	p.f(", %s of data", units.BytesText(r.Bytes))
	if r.Retried > 0 {
		p.f("; %d sent again because the server asked for it", r.Retried)
	}
	if r.Extra > 0 {
		p.f("; %d that are not in the plan", r.Extra)
	}
	p.f("\n")
	p.verdicts(r)
	p.impossible(r.Impossible)
	p.steps(r)
	p.operations(r)
	p.causes(r)
	p.reasons(r)
	p.mismatches(r)
	p.written(r)
	p.times(r)
	p.seconds(r)
	p.overlay(r)
	p.diff(r)
	if s := r.SelfCheck; s != nil {
		p.f("\nSelf-check: %d calls answered; the dissector found %d transactions in the packets: %d the same, %d different, %d missing, %d incomplete\n",
			s.Calls, s.Transactions, s.Same, s.Different, s.Missing, s.Incomplete)
		for _, d := range s.Details {
			p.f("  %s\n", d)
		}
	}
	p.recoveries(r)
	for _, n := range r.Notes {
		p.f("note: %s\n", n)
	}
	return p.err
}

// recoveries tells what was done after restarts of the server.
func (p *printer) recoveries(r *Report) {
	if len(r.Recoveries) == 0 {
		return
	}
	p.f("\nClients that the server had forgotten\n")
	for i := range r.Recoveries {
		x := &r.Recoveries[i]
		p.f("  after %s", units.Short(x.At))
		if r.Setup.Clones > 1 {
			p.f(", clone %d", x.Clone+1)
		}
		p.f(": client %d (%s): ", x.Client, x.Why)
		if x.Failed != "" {
			p.f("not made anew: %s\n", x.Failed)
			continue
		}
		p.f("%s, %s and %s reclaimed", units.Plural(x.Sessions, "new session"), units.Plural(x.Opens, "open"), units.Plural(x.Locks, "lock"))
		if x.Reopened > 0 {
			p.f(", %d opened again without a reclaim", x.Reopened)
		}
		if x.Lost > 0 {
			p.f(", %d lost", x.Lost)
		}
		p.f(", in %s\n", units.Short(x.Took))
		for _, d := range x.Details {
			p.f("    lost: %s\n", d)
		}
	}
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// table writes columns. The first left columns are flush left, the others flush right.
func (p *printer) table(left int, rows [][]string) {
	if p.err != nil || len(rows) == 0 {
		return
	}
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	gap, total := "  ", 0
	for _, n := range width {
		total += n + len(gap)
	}
	if total > 80 {
		gap = " "
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-len([]rune(c)))
			if i > 0 {
				b.WriteString(gap)
			}
			if i < left {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
		}
		p.f("  %s\n", strings.TrimRight(b.String(), " "))
	}
}

func (p *printer) verdicts(r *Report) {
	all := counts(r.Totals)
	if r.NotDone > 0 {
		all = strings.TrimPrefix(fmt.Sprintf("%s, %d not done", all, r.NotDone), ", ")
	}
	p.f("replies: %s", all)
	if r.Accepted > 0 {
		p.f("; %d are as in the baseline", r.Accepted)
	}
	p.f("\n")
}

func (p *printer) impossible(list []plan.Reason) {
	if len(list) == 0 {
		return
	}
	n := 0
	for _, x := range list {
		n += x.Count
	}
	p.f("not in the plan, because they cannot be replayed: %s\n", units.Plural(n, "call"))
	for _, x := range list {
		p.f("  %6d  %s\n", x.Count, x.Reason)
	}
}

var verdictColumns = [verdict.Count]string{"SAME", "EQUIV", "OMITTED", "BETTER", "EXPL", "WORSE", "DIFF", "UNSENT", "LOST"}

// operations lists the kinds of operations.
func (p *printer) operations(r *Report) {
	head, rows := r.operations()
	p.f("\n")
	p.table(1, append([][]string{head}, rows...))
}

// causes lists the calls that others depend on.
func (p *printer) causes(r *Report) {
	if len(r.Causes) == 0 {
		return
	}
	p.f("\nCauses\n")
	for i := range r.Causes {
		c := &r.Causes[i]
		if i == maxCausesShown {
			p.f("  … and %d more\n", len(r.Causes)-i)
			return
		}
		p.f("  op %d, XID %08x: %s", c.Op, c.XID, clipText(c.What, 100))
		if c.Why != "" {
			p.f(": %s", clipText(c.Why, 160))
		}
		if c.NotSent > 0 {
			p.f("; %s depend on it and were not sent", units.Plural(c.NotSent, "call"))
		}
		if c.Explained > 0 {
			p.f("; it explains %s", units.Plural(c.Explained, "call"))
		}
		p.f("\n")
	}
}

// maxCausesShown is how many causes the text has.
const maxCausesShown = 10

func (p *printer) reasons(r *Report) {
	listed := slices.DeleteFunc(slices.Clone(r.Reasons), func(x ReasonReport) bool {
		return len(r.Causes) > 0 && (x.Code == verdict.Follows || x.Code == verdict.Unhappened) // they are above
	})
	if len(listed) == 0 {
		return
	}
	p.f("\nReasons\n")
	rows := [][]string{}
	for i, x := range listed {
		if i == 40 {
			p.table(1, rows)
			p.f("  … and %d more\n", len(listed)-i)
			return
		}
		rows = append(rows, []string{x.Verdict.String(), fmt.Sprint(x.Count), x.Reason})
	}
	tw := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', 0)
	for _, x := range rows {
		_, _ = fmt.Fprintf(tw, "  %s\t%6s\t%s\n", x[0], x[1], x[2])
	}
	if err := tw.Flush(); p.err == nil {
		p.err = err
	}
}

func (p *printer) mismatches(r *Report) {
	if len(r.Mismatches) == r.Accepted {
		return
	}
	p.f("\nCalls whose replies were neither same nor equivalent\n")
	for i := range r.Mismatches {
		m := &r.Mismatches[i]
		if m.Accepted {
			continue
		}
		p.f("  %-9s op %d, XID %08x", m.Verdict, m.Op, m.XID)
		if m.LiveXID != 0 {
			p.f(" (%08x)", m.LiveXID)
		}
		if r.Setup.Clones > 1 {
			p.f(", clone %d", m.Clone+1)
		}
		p.f(": %s\n", clipText(m.What, 100))
		for _, reason := range m.Reasons {
			p.f("              %s\n", clipText(reason, 160))
		}
	}
	if r.More > 0 {
		p.f("  … and %d more\n", r.More)
	}
}

// clipText replaces control characters and cuts text to n characters.
func clipText(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '�'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

func (p *printer) times(r *Report) {
	p.f("\nTimes\n")
	row := func(name string, s Spread) []string {
		return []string{name, fmt.Sprint(s.Count), units.Short(s.Mean), units.Short(s.P50), units.Short(s.P90), units.Short(s.P99), units.Short(s.Max)}
	}
	p.table(1, [][]string{{"", "COUNT", "MEAN", "P50", "P90", "P99", "MAX"}, row("schedule slip", r.Slip), row("wait to be sent", r.CreditWait)})
}

// steps lists the rates that were tried.
func (p *printer) steps(r *Report) {
	if len(r.Steps) == 0 {
		return
	}
	best := 0.0
	rows := [][]string{{"RATE", "REACHED", "P50", "P99", "MAX", "HOLDS"}}
	for _, s := range r.Steps {
		holds := "no"
		if s.Holds {
			holds, best = "yes", max(best, s.Rate)
		}
		rows = append(rows, []string{fmt.Sprintf("%.0f", s.Rate), fmt.Sprintf("%.0f", s.Reached), units.Short(s.Latency.P50), units.Short(s.Latency.P99), units.Short(s.Latency.Max), holds})
	}
	if p.f("\nCalls a second\n"); best == 0 {
		p.f("  no rate holds; what follows is about the last one\n")
	} else {
		p.f("  %.0f is the highest rate that holds; what follows is about it\n", best)
	}
	p.table(0, rows)
}

// seconds lists what the rounds did over time.
func (p *printer) seconds(r *Report) {
	if r.Setup.Rounds == 0 || len(r.Seconds) < 2 {
		return
	}
	p.f("\nOver time\n")
	rows := [][]string{{"FROM", "CALLS/s", "WRONG", "BYTES/s", "P50", "P99", "MAX"}}
	for i, s := range r.Seconds {
		if i == maxSecondsShown {
			break
		}
		each := s.Took.Seconds()
		rows = append(rows, []string{units.Short(s.From), fmt.Sprintf("%.0f", float64(s.Calls)/each), fmt.Sprint(s.Wrong), units.BytesText(uint64(float64(s.Bytes) / each)),
			units.Short(s.Latency.P50), units.Short(s.Latency.P99), units.Short(s.Latency.Max)})
	}
	p.table(0, rows)
	if n := len(r.Seconds) - maxSecondsShown; n > 0 {
		p.f("  … and %d more, which the report in JSON has\n", n)
	}
}

// maxSecondsShown is how many seconds the text has.
const maxSecondsShown = 60

func (p *printer) overlay(r *Report) {
	peak := 0.0
	for _, b := range r.Overlay {
		peak = max(peak, b.Original, b.Replay)
	}
	if peak == 0 || !r.Setup.Paced {
		return // times of different clocks cannot be compared
	}
	p.f("\nCalls in flight: original (o) and replay (x), mean of each interval, up to %.3g\n", peak)
	const width = 50
	for _, b := range r.Overlay {
		line := []rune(strings.Repeat(" ", width+1))
		o, x := int(b.Original/peak*width+.5), int(b.Replay/peak*width+.5)
		line[o] = 'o'
		if line[x] == 'o' {
			line[x] = '*'
		} else {
			line[x] = 'x'
		}
		p.f("  %10s |%s\n", units.Short(b.From), strings.TrimRight(string(line), " "))
	}
}

// diff shows the phases of latency of original and replay, if both were captured.
func (p *printer) diff(r *Report) {
	if r.Diff == nil {
		return
	}
	p.f("\nLatency on the wire: original (A) and replay (B)\n")
	rows := [][]string{{"OPERATION", "COUNT A", "B", "P50 A", "B", "MEAN A", "B", "SERVER A", "B", "PULL A", "B", "PUSH A", "B"}}
	ns := func(v float64) string { return units.Short(time.Duration(v)) }
	for _, g := range r.Diff.Groups {
		if g.In != "both" || g.Timed.A == 0 || g.Timed.B == 0 {
			continue
		}
		row := []string{strings.Join(g.Key, " "), fmt.Sprintf("%.0f", g.Count.A), fmt.Sprintf("%.0f", g.Count.B), ns(g.P50.A), ns(g.P50.B), ns(g.Mean.A), ns(g.Mean.B)}
		for _, ph := range []string{"server", "argument_pull", "result_push"} {
			d := g.Phases[ph]
			row = append(row, ns(d.Mean.A), ns(d.Mean.B))
		}
		rows = append(rows, row)
	}
	p.table(1, rows)
	p.f("  rpcrdma-dump diff ORIGINAL CAPTURE shows all of it\n")
}
