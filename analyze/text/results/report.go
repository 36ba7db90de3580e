package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// ReportOptions say how much of a report is printed.
type ReportOptions struct {
	Verbose bool // phases and histograms of all groups, all connections
	Series  bool // a table over time, not a few lines of bars
	Width   int  // columns of a line, of tables as well; 0: lines of 100, and tables as wide as they are
	// Diagnosis, if there is one, comes before all tables. It says what the time was lost to.
	Diagnosis *diagnosis.Report
	// Sessions, if there are any, come last.
	Sessions *session.Report
}

const (
	reportWidth   = 100 // by default
	shownGroups   = 50  // groups that are shown without -v
	shownPhases   = 6   // groups whose phases are shown without -v
	shownConns    = 16  // connections that are shown without -v
	shownXIDs     = 4
	histogramBars = 40
	barWidth      = 36 // of the slowest transactions
)

// Report writes a latency report as tables.
func Report(w io.Writer, rep *latency.Report, opt ReportOptions) error {
	p := &reportPrinter{w: w, rep: rep, opt: opt, width: cmp.Or(opt.Width, reportWidth)}
	p.head()
	p.why()
	if rep.All.Count > 0 {
		p.latency()
		p.shares()
		p.phases()
		p.histogram()
		p.bytes()
		p.chunks()
		p.inline()
		p.overTime()
		p.flight()
		p.troubles()
		p.slowest()
	}
	p.setup()
	p.notes()
	p.dropped()
	if opt.Sessions != nil && p.err == nil {
		p.printf("\nSessions and connections (rpcrdma-dump sessions)\n\n")
		p.err = Sessions(w, opt.Sessions, false, !opt.Verbose)
	}
	return p.err
}

type reportPrinter struct {
	w   io.Writer
	rep *latency.Report
	opt ReportOptions
	err error

	width   int
	without Without
}

func (p *reportPrinter) head() {
	r := p.rep
	if r.Packets == 0 && r.All.Count == 0 { // there is no first one that has a time
		p.printf("%s: no packets\n", inputNames(r.Inputs))
		return
	}
	p.line(fmt.Sprintf("%s: %s, %s bytes in %s from %s", inputNames(r.Inputs), units.Plural(r.Packets, "packet"), units.Bytes(r.Bytes),
		r.Span, r.Start))
	if r.Account != nil {
		p.line(r.Account.Line)
	}
	a := r.All
	p.printf("%s", units.Plural(a.Count, "transaction"))
	if r.Filter != "" {
		p.printf(" for which %s holds", safe(r.Filter))
	}
	sep := ": "
	for _, x := range []struct {
		n    uint64
		name string
	}{
		{a.Complete, "complete"}, {a.Incomplete, "incomplete"}, {a.NoReply, "without reply"}, {a.NoCall, "without call"},
		{a.Errors, "failed"}, {a.Backward, "of servers (backward)"},
	} {
		if x.n > 0 {
			p.printf("%s%d %s", sep, x.n, x.name)
			sep = ", "
		}
	}
	p.printf("\n")
}

// why says what slows the calls down.
func (p *reportPrinter) why() {
	if p.opt.Diagnosis == nil || p.rep.All.Count == 0 && p.rep.Filter == "" {
		return
	}
	p.printf("\n")
	if p.rep.Filter != "" {
		p.printf("Of all calls, whatever the filter:\n")
	}
	Diagnosis(p.w, p.opt.Diagnosis, p.width, false)
	if len(p.opt.Diagnosis.Shown()) > 0 {
		p.printf("rpcrdma-dump why shows the evidence.\n")
	}
}

func (p *reportPrinter) latency() {
	p.title("Latency%s, most time in all first: first packet of the call to last packet of the reply", byText(p.rep.By))
	header := append(p.keyHeader(), "COUNT", "TIME", "/S", "ERRORS", "TIMED", "MEAN", "MIN", "P50", "P90", "P99", "P99.9", "MAX")
	p.table(header, len(p.keyHeader()), p.rows(func(g *latency.Group) []string {
		d := g.Latency
		cells := []string{fmt.Sprint(g.Count), "-", g.Rate.Rounded(1000), units.Number(g.Errors), "-", "-", "-", "-", "-", "-", "-", "-"}
		if d.Count != g.Count {
			cells[4] = fmt.Sprint(d.Count)
		}
		if d.Count > 0 {
			cells[1] = units.Duration(d.Sum)
			for i, v := range []int64{d.Mean, d.Min, d.P50, d.P90, d.P99, d.P999, d.Max} {
				cells[5+i] = units.Duration(v)
			}
		}
		return cells
	}))
	if n := len(p.rep.Groups) - shownGroups; n > 0 && !p.opt.Verbose {
		p.printf("\n%s than are shown; -v shows them\n", units.Plural(n, "more group"))
	}
	first := true
	for _, g := range p.rep.Groups {
		for _, s := range sortedStatuses(g.Statuses) {
			if first {
				p.title("Errors")
				first = false
			}
			p.printf("  %s: %d %s\n", strings.Join(p.keyCells(g), " "), g.Statuses[s], s)
		}
	}
}

func byText(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return " by " + strings.Join(by, " and ")
}

func (p *reportPrinter) shares() {
	if p.rep.All.Latency.Sum == 0 {
		return
	}
	p.title("Where the time went: %% of each group's time, by phase")
	header := append(p.keyHeader(), "% OF ALL")
	for ph := range transaction.Parts() {
		header = append(header, strings.ToUpper(ph.Short()))
	}
	header = append(header, "PATH", "WAIT")
	undivided := p.rep.All.Undivided > 0
	if undivided {
		header = append(header, "?")
	}
	lost := p.lostColumns()
	for _, c := range lost {
		header = append(header, strings.ToUpper(c.Short()))
	}
	header = append(header, " BAR")
	p.table(header, len(p.keyHeader()), p.rows(func(g *latency.Group) []string {
		if g.Latency.Count == 0 {
			return nil
		}
		cells := []string{units.Percent(float64(g.Latency.Sum) / float64(p.rep.All.Latency.Sum))}
		parts := g.Parts()
		for _, t := range parts[:latency.PathPart+1] {
			cells = append(cells, units.Percent(float64(t)/float64(g.Latency.Sum)))
		}
		cells = append(cells, units.Percent(g.Phase(transaction.PhaseWait).Share))
		if undivided {
			cells = append(cells, units.Percent(float64(g.UndividedTime)/float64(g.Latency.Sum)))
		}
		for _, c := range lost {
			cells = append(cells, units.Percent(float64(g.Lost.To(c).Time)/float64(g.Latency.Sum)))
		}
		return append(cells, bar(g, 20))
	}))
	legend := "bar: c call, p pull, s server, w push, r reply, - path; wait is a part of pull, with its path"
	switch a := p.rep.All; {
	case a.PathKnown == 0 && isRDMA(p.rep):
		legend += "; the path is not known, and is a part of pull, server and push"
	case a.PathKnown > 0:
		legend += "; path: packets between the capture point and the server, there and back, by the transport's acknowledgements"
		if a.PathKnown < a.Latency.Count {
			legend += fmt.Sprintf(", of %d of %s: of the others it is a part of pull, server and push", a.PathKnown, units.Plural(a.Latency.Count, "call"))
		} else {
			legend += ", and not a part of pull, server and push"
		}
	}
	if undivided {
		legend += "; ? not known"
	}
	p.printf("\n")
	p.wrapped("", legend)
	if len(lost) > 0 {
		p.wrapped("", lostLegend)
	}
	switch {
	case p.opt.Diagnosis == nil || p.opt.Verbose:
		p.lost()
	case p.rep.All.Lost != nil: // the diagnosis says the rest
		p.waits(p.rep.All.Lost)
	}
}

const lostLegend = "columns behind wait: the part of all phases together that was lost to recovery from losses, to a receiver that was not ready (rnr), " +
	"to pacing after CNPs or to a TCP window that a loss has reduced (congested), to the depth of RDMA Reads"

// lostColumns are the causes that something was lost to; the recovery is always shown
// if anything was.
func (p *reportPrinter) lostColumns() (list []rdma.Cause) {
	if !p.rep.All.Lost.Some() {
		return nil
	}
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		if p.rep.All.Lost.To(c).Time > 0 || c == rdma.CauseRecovery {
			list = append(list, c)
		}
	}
	return list
}

// lost says what was lost to what, and in which phase.
func (p *reportPrinter) lost() {
	l := p.rep.All.Lost
	if !l.Some() {
		if l.Looked() {
			p.printf("nothing was lost to recovery, receivers that were not ready, congestion or the depth of Reads")
			if p.rep.All.Undivided > 0 {
				p.printf(" by the %s whose phases are known", units.Plural(l.Transactions, "transaction"))
			}
			p.printf("\n")
		}
		if l != nil {
			p.waits(l)
		}
		return
	}
	p.title("What the time was lost to, of %s with RDMA and %s", units.Plural(l.Transactions, "transaction"), units.Duration(l.Time))
	header := []string{"CAUSE", "TOUCHED", "TIME", "%"}
	for ph := range transaction.Parts() {
		header = append(header, strings.ToUpper(ph.Short()))
	}
	var rows [][]string
	for i := 1; i <= rdma.NumCauses; i++ { // the rest last
		c := rdma.Cause(i % rdma.NumCauses)
		x := l.To(c)
		if x.Time == 0 {
			continue
		}
		row := []string{strings.ReplaceAll(c.String(), "_", " "), fmt.Sprint(x.Transactions), units.Duration(x.Time), units.Percent(x.Share)}
		for ph := range transaction.Parts() {
			if d := x.Phases[ph.String()]; d > 0 {
				row = append(row, units.Duration(d))
			} else {
				row = append(row, "-")
			}
		}
		rows = append(rows, row)
	}
	p.table(header, 1, rows)
	p.waits(l)
}

// waits says what calls may have waited for before they began.
func (p *reportPrinter) waits(l *latency.Lost) {
	if l.CreditWaits > 0 {
		p.printf("\n")
		p.wrapped("", fmt.Sprintf("%s may have waited for a credit, %s in sum: all were in use until a reply freed one just before the call", units.Plural(l.CreditWaits, "call"), units.Duration(l.CreditWait)))
	}
	if l.SlotWaits > 0 {
		p.printf("\n")
		p.wrapped("", fmt.Sprintf("%s may have waited for a slot of the session, %s in sum: all were in use until a reply freed one just before the call", units.Plural(l.SlotWaits, "call"), units.Duration(l.SlotWait)))
	}
}

// bar draws the shares of the phases of a group as letters.
func bar(g *latency.Group, width int) string {
	parts := g.Parts()
	return waterfall(parts[:], g.Latency.Sum, width)
}

// barLetters has a letter for each of latency.Group.Parts.
const barLetters = "cpswr-?"

// isRDMA reports whether a report has connections of RDMA.
func isRDMA(rep *latency.Report) bool {
	return slices.ContainsFunc(rep.Connections, func(c latency.Connection) bool { return isRDMAName(c.Fabric) })
}

// waterfall draws durations one after the other on a line.
func waterfall(parts []int64, total int64, width int) string {
	if total <= 0 {
		return strings.Repeat(" ", width)
	}
	var b strings.Builder
	var sum int64
	drawn := 0
	for i, v := range parts {
		sum += v
		end := int(float64(sum)/float64(total)*float64(width) + 0.5)
		if v > 0 && end == drawn && drawn < width && v*int64(width)*4 > total {
			end++
		}
		for ; drawn < min(end, width); drawn++ {
			b.WriteByte(barLetters[i])
		}
	}
	for ; drawn < width; drawn++ {
		b.WriteByte(' ')
	}
	return b.String()
}

func (p *reportPrinter) phases() {
	if p.rep.All.Latency.Sum == 0 {
		return
	}
	groups := p.rep.Groups
	if len(groups) > 1 {
		groups = append([]*latency.Group{p.rep.All}, groups...)
	}
	left := 0
	if !p.opt.Verbose && len(groups) > shownPhases {
		left = len(groups) - shownPhases
		groups = groups[:shownPhases]
	}
	what := ""
	if p.rep.All.PathKnown > 0 {
		what = "; the path is a part of pull, server and push here"
	}
	p.title("Phases that took place%s", what)
	var rows [][]string
	for _, g := range groups {
		key := strings.Join(p.keyCells(g), " ")
		for ph := range transaction.AllPhases() {
			d := g.Phase(ph)
			if d.Count == d.Zeros {
				continue
			}
			x := d.WithoutZeros()
			rows = append(rows, []string{
				key, ph.Short(), fmt.Sprint(x.Count), units.Percent(d.Share), units.Duration(x.Mean),
				units.Duration(x.P50), units.Duration(x.P90), units.Duration(x.P99), units.Duration(x.P999), units.Duration(x.Max),
			})
			key = ""
		}
	}
	p.table([]string{"GROUP", "PHASE", "COUNT", "SHARE", "MEAN", "P50", "P90", "P99", "P99.9", "MAX"}, 2, rows)
	if left > 0 {
		p.printf("\n%s; -v shows them\n", units.Plural(left, "more group"))
	}
}

func (p *reportPrinter) histogram() {
	groups := []*latency.Group{p.rep.All}
	if p.opt.Verbose && len(p.rep.Groups) > 1 {
		groups = append(groups, p.rep.Groups...)
	}
	for _, g := range groups {
		bins := g.Histogram
		if len(bins) == 0 {
			continue
		}
		p.title("Histogram of the latency: %s", strings.Join(p.keyCells(g), " "))
		most := uint64(0)
		for _, b := range bins {
			most = max(most, b.Count)
		}
		sum := uint64(0)
		for _, b := range bins {
			sum += b.Count
			n := int(b.Count * histogramBars / most)
			if n == 0 && b.Count > 0 {
				n = 1
			}
			line := fmt.Sprintf("  up to %7s %9d %6.2f%% %s", time.Duration(b.To), b.Count, 100*float64(sum)/float64(g.Latency.Count), strings.Repeat("#", n))
			p.printf("%s\n", strings.TrimRight(line, " "))
		}
	}
}

func (p *reportPrinter) bytes() {
	p.title("Bytes of RPC messages, and how many of them RDMA moved")
	header := append(p.keyHeader(), "CALLS", "REPLIES", "RDMA READ", "RDMA WRITE", "BYTES/S", "AGAIN")
	p.table(header, len(p.keyHeader()), p.rows(func(g *latency.Group) []string {
		return []string{
			units.Bytes(g.CallBytes), units.Bytes(g.ReplyBytes), units.Bytes(g.ReadBytes), units.Bytes(g.WriteBytes),
			g.ByteRate.Rounded(1024), units.Number(g.Retransmits),
		}
	}))
}

func (p *reportPrinter) keyHeader() []string {
	if len(p.rep.By) == 0 {
		return []string{"GROUP"}
	}
	var out []string
	for _, k := range p.rep.By {
		out = append(out, strings.ToUpper(k))
	}
	return out
}

// rows are the groups, and all of them together if there are several.
func (p *reportPrinter) rows(f func(g *latency.Group) []string) [][]string {
	var out [][]string
	for i, g := range p.rep.Groups {
		if i >= shownGroups && !p.opt.Verbose {
			break
		}
		if cells := f(g); cells != nil {
			out = append(out, append(p.keyCells(g), cells...))
		}
	}
	if len(out) > 1 && len(p.rep.By) > 0 {
		if cells := f(p.rep.All); cells != nil {
			key := make([]string, len(p.rep.By))
			key[0] = "all"
			out = append(out, slices.Concat(key, cells))
		}
	}
	return out
}

func (p *reportPrinter) chunks() {
	if p.rep.All.Chunks.Transactions == 0 {
		return
	}
	a := &p.rep.All.Chunks
	p.title("Chunks: of %d whole RDMA transactions %d calls, %d replies inline; %d Reads, %d Writes",
		a.Transactions, a.InlineCalls, a.InlineReplies, a.Reads, a.Writes)
	var rows [][]string
	groups := p.rep.Groups
	if len(groups) > shownGroups && !p.opt.Verbose {
		groups = groups[:shownGroups]
	}
	if len(groups) > 1 {
		groups = append(append([]*latency.Group{}, groups...), p.rep.All)
	}
	for _, g := range groups {
		key := strings.Join(p.keyCells(g), " ")
		for _, k := range []struct {
			name string
			c    *latency.ChunkUse
		}{{"read", &g.Chunks.Read}, {"position-zero", &g.Chunks.PositionZero}, {"write", &g.Chunks.Write}, {"reply", &g.Chunks.Reply}} {
			if k.c.Messages == 0 {
				continue
			}
			unused := "-"
			if k.c.Offered > 0 {
				unused = units.Percent(float64(k.c.Wasted) / float64(k.c.Offered))
			}
			rows = append(rows, []string{
				key, k.name, fmt.Sprint(k.c.Messages), fmt.Sprint(k.c.Chunks), fmt.Sprint(k.c.Segments),
				units.Bytes(k.c.Offered), units.Bytes(k.c.Used), units.Bytes(k.c.Wasted), unused,
			})
			key = ""
		}
	}
	if len(rows) > 0 {
		p.table([]string{"GROUP", "CHUNK", "CALLS", "CHUNKS", "SEGMENTS", "OFFERED", "USED", "UNUSED", "%"}, 2, rows)
	}
}

// keyCells are the names of a group, safe for a terminal and not too long.
func (p *reportPrinter) keyCells(g *latency.Group) []string {
	if len(g.Key) == 0 {
		return []string{"all"}
	}
	out := make([]string, len(g.Key))
	limit := max(40/len(g.Key), 18)
	for i, k := range g.Key {
		out[i] = string(text.Shorten([]byte(k), limit))
	}
	return out
}

func (p *reportPrinter) inline() {
	if len(p.rep.All.Inline) == 0 || p.rep.All.Chunks.Transactions == 0 {
		return
	}
	p.title("Effect of another inline threshold, if the requester knew the size of each reply")
	var rows [][]string
	for _, x := range p.rep.All.Inline {
		rows = append(rows, []string{
			fmt.Sprint(x.Threshold), fmt.Sprint(x.Calls), fmt.Sprint(x.Replies), fmt.Sprint(x.Both),
			units.Number(x.FreedCalls), units.Number(x.FreedReplies), units.Bytes(x.Copied), units.Number(x.Saved), units.Number(x.NewCalls), units.Number(x.NewReplies),
		})
	}
	p.table([]string{
		"THRESHOLD", "CALLS FIT", "REPLIES FIT", "BOTH", "CALLS FREED", "REPLIES FREED", "COPIED", "OPS SAVED", "NEW CALLS", "NEW REPLIES",
	}, 0, rows)
	p.printf("\n")
	p.wrapped("", "FREED: messages with chunks that would fit inline; COPIED bytes would be copied, and OPS SAVED RDMA operations would not be needed. NEW: inline messages that would need a chunk.")
	p.smallest()
	p.models()
}

// smallest shows what a minimum chunk size would change.
func (p *reportPrinter) smallest() {
	var rows [][]string
	for _, x := range p.rep.All.Inline {
		if x.SmallItems > 0 {
			rows = append(rows, []string{fmt.Sprint(x.Threshold), fmt.Sprint(x.SmallItems), units.Bytes(x.SmallBytes), units.Number(x.SmallSaved)})
		}
	}
	if len(rows) > 0 {
		p.title("Effect of a minimum chunk size: shorter data in chunks would be copied")
		p.table([]string{"MINIMUM", "ITEMS", "COPIED", "OPS SAVED"}, 0, rows)
	}
}

// models says what other transfer models would cost.
func (p *reportPrinter) models() {
	a := &p.rep.All.Chunks
	var lines []string
	if n := a.ReadReplies; n > 0 {
		lines = append(lines, fmt.Sprintf("The client read the data of %s, and sent RDMA_DONE for each. If the server wrote it, as in RFC 8166, %s would not be sent.",
			units.Plural(n, "reply"), units.Plural(n, "message")))
	} else if n := a.Transactions - min(a.InlineReplies, a.Transactions); n > 0 {
		lines = append(lines, fmt.Sprintf("The server wrote the data of %s. If the client read it, as in the Read-Read model, it would send %s as well.",
			units.Plural(n, "reply"), units.Plural(n, "RDMA_DONE message")))
	}
	if n := a.Transactions - min(a.InlineCalls, a.Transactions); n > 0 {
		s := fmt.Sprintf("The server pulled the data of %s, which takes a round trip more than data that comes with the call.", units.Plural(n, "call"))
		if t := p.rep.All.PathPull; t > 0 {
			s += fmt.Sprintf(" The network took %s of that, %s %% of all time.", units.Duration(int64(t)), units.Percent(float64(t)/float64(max(p.rep.All.Latency.Sum, 1))))
		}
		lines = append(lines, s)
	}
	if n := a.Reply.Messages; n > 0 { // draft-cel-nfsv4-rpcrdma-reliable-reply
		lines = append(lines, fmt.Sprintf("%s offered a Reply chunk in advance, %s in all, of which %s was used. With reliable replies, an expired draft, the client would offer none.",
			units.Plural(n, "call"), units.Bytes(a.Reply.Offered), units.Bytes(a.Reply.Used)))
	}
	if len(lines) > 0 {
		p.title("Effect of another transfer model")
		for _, l := range lines {
			p.wrapped("", l)
		}
	}
}

// dropped says which columns were left out.
func (p *reportPrinter) dropped() {
	if s := p.without.String(); s != "" {
		p.wrapped("", s)
	}
}

func (p *reportPrinter) title(format string, args ...any) {
	p.printf("\n")
	p.wrapped("", fmt.Sprintf(format, args...))
	p.printf("\n")
}

// line writes a line that scripts look for: it is wrapped if a width was asked for.
func (p *reportPrinter) line(s string) {
	if p.opt.Width == 0 {
		p.printf("%s\n", s)
		return
	}
	p.wrapped("", s)
}

// wrapped writes a sentence in lines that fit, with a prefix before the first.
func (p *reportPrinter) wrapped(prefix, s string) {
	for _, line := range wrap(s, p.width-len(prefix)) {
		p.printf("%s%s\n", prefix, line)
		prefix = strings.Repeat(" ", len(prefix))
	}
}

func (p *reportPrinter) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// table writes rows, without columns that say nothing: those that are "-" or
// empty in each row. The first columns, and those whose header begins with a
// space, are text; the others are numbers.
func (p *reportPrinter) table(header []string, left int, rows [][]string) {
	h, right, cut := columns(header, left, rows)
	if p.opt.Width > 0 {
		h, right, cut = p.without.Fit(h, right, cut, p.width)
	}
	if err := table.Print(p.w, h, right, cut); err != nil && p.err == nil {
		p.err = err
	}
}

// dispensable are columns that are left out first if a table is wider than a line.
var dispensable = []string{"P99.9", "MIN", "MEAN", "NEW REPLIES", "NEW CALLS", "OPS SAVED", "COPIED", "P90", "UNUSED", "SEGMENTS", "/S", "BYTES/S", "BAR", "OTHERS", "NO TIME", "CALL", "WAIT", "P99 CHANGE", "SUM BY", "SUM CHANGE", "CHANGE"}

// Without are columns for which there was no room.
type Without []string

// String says which, in a line for the end of a report. It is empty if there was room for all.
func (x Without) String() string {
	if len(x) == 0 {
		return ""
	}
	return "no room for the columns " + strings.Join(x, ", ") + ": --width shows them"
}

// Fit leaves dispensable columns out until a table fits, and notes which.
func (x *Without) Fit(h []string, right []bool, rows [][]string, columns int) (fh []string, fr []bool, cut [][]string) {
	cut = rows
	for _, name := range dispensable {
		width := -1
		for c := range h {
			w := utf8.RuneCountInString(h[c])
			for _, r := range cut {
				w = max(w, utf8.RuneCountInString(r[c]))
			}
			width += w + 1
		}
		if width <= columns {
			break
		}
		c := slices.Index(h, name)
		if c < 0 {
			continue
		}
		h, right = slices.Delete(slices.Clone(h), c, c+1), slices.Delete(slices.Clone(right), c, c+1)
		less := make([][]string, len(cut))
		for i, r := range cut {
			less[i] = slices.Delete(slices.Clone(r), c, c+1)
		}
		cut = less
		if !slices.Contains(*x, name) {
			*x = append(*x, name)
		}
	}
	return h, right, cut
}

// columns leaves out the columns that say nothing, and says which are numbers.
func columns(header []string, left int, rows [][]string) (h []string, right []bool, cut [][]string) {
	keep := make([]int, 0, len(header))
	for c := range header {
		for _, r := range rows {
			if r[c] != "-" && r[c] != "" || c < left {
				keep = append(keep, c)
				break
			}
		}
	}
	for _, c := range keep {
		h = append(h, strings.TrimSpace(header[c]))
		right = append(right, c >= left && !strings.HasPrefix(header[c], " "))
	}
	cut = make([][]string, len(rows))
	for i, r := range rows {
		for _, c := range keep {
			cut[i] = append(cut[i], r[c])
		}
	}
	return h, right, cut
}

// inputNames lists inputs, of which a fleet has thousands: the first ones.
func inputNames(inputs []string) string {
	const most = 8
	if len(inputs) <= most {
		return safe(strings.Join(inputs, ", "))
	}
	return safe(strings.Join(inputs[:most], ", ")) + fmt.Sprintf(" and %d more", len(inputs)-most)
}
