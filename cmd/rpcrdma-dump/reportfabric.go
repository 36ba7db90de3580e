package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/html"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// shownConns is how many connections are shown without -v.
const shownConns = 16

const reportFabricLong = `

With --view fabric the report is about RDMA itself, whatever the layer above:
operations by kind, service, size and connection; each loss with who noticed it
and how long the recovery took; congestion marks and CNPs. "rpcrdma-dump
operations" lists the operations one by one.`

// views are the values of --view.
var views = []string{"transactions", "fabric"}

// notInFabric are the flags of the report that are about transactions.
var notInFabric = []string{"by", "filter", "inline", "ftrace", "mountstats", "cpuprofile", "save-state"}

// runFabric makes the report of the fabric.
func (o *reportOptions) runFabric(cmd *cobra.Command, s *cli.Streams, args []string) error {
	for _, name := range notInFabric {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is about transactions: it does not go with --view fabric", name)
		}
	}
	services, err := o.services()
	if err != nil {
		return err
	}
	files, err := o.claim(s, args)
	if err != nil {
		return err
	}
	// A live capture makes the page as the user that it becomes.
	var page *cli.Output
	create := func() (err error) {
		if o.html != "" && o.html != "-" {
			page, err = cli.Create(files, o.html, nil)
		}
		return err
	}
	defer func() { page.Discard() }()
	if len(o.ifaces) == 0 {
		if err := create(); err != nil {
			return err
		}
	}
	o.need(o.html)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	if len(o.ifaces) > 0 {
		if err := create(); err != nil {
			return err
		}
	}
	r := fabric.New(fabric.Options{
		DecodeAs: services, Top: o.top, Interval: o.interval, Memory: o.memory.Scale(fabric.DefaultMemory),
	})
	opt := o.decoder()
	opt.Transactions.OnCompletion = true // nobody looks at them
	opt.Observe(r.Observer())
	opt.Transactions.Carries = fabric.Carries(services)
	j.d = decode.New(opt, func(*transaction.Transaction) {})
	_, tty := cli.Terminal(s.Err)
	err = j.run(tty)
	rep := r.Report(j.in.bases())
	out := newOutput(s, false, false)
	var outErr error
	if page != nil {
		if outErr = err; outErr == nil {
			outErr = j.whole(o.html)
		}
		if outErr == nil {
			outErr = writeFabricPage(page, rep)
		}
		if outErr == nil {
			outErr = page.Commit()
		}
	}
	switch {
	case outErr != nil:
	case o.html == "-":
		outErr = writeFabricPage(out, rep)
	case o.html != "" && !cmd.Flags().Changed("format"): // the page is what was asked for
	case o.format == "json":
		outErr = printable.Indented(out, rep)
	default:
		p := fabricPrinter{w: out, rep: rep, width: out.Columns(), verbose: o.verbose, series: cmd.Flags().Changed("interval")}
		outErr = p.print()
	}
	if outErr == nil {
		outErr = out.close()
	}
	return j.finish(err, outErr)
}

// writeFabricPage writes the page for browsers, with all tables that the text has.
func writeFabricPage(w io.Writer, rep *fabric.Report) error {
	p := fabricPrinter{w: io.Discard, rep: rep, verbose: true, collect: true}
	if err := p.print(); err != nil {
		return err
	}
	return html.WriteFabric(w, rep, p.tables, programVersion())
}

// fabricPrinter writes a report of the fabric as tables.
type fabricPrinter struct {
	w       io.Writer
	rep     *fabric.Report
	verbose bool
	series  bool
	width   int // columns of a line; 0: unlimited
	without results.Without
	collect bool // tables instead of printing them
	tables  []html.Table
	err     error
}

func (p *fabricPrinter) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// table writes a table, and below it what its columns mean.
func (p *fabricPrinter) table(title string, header []string, right []bool, rows [][]string, terms ...string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	if p.collect {
		p.tables = append(p.tables, html.Table{Title: title, Header: header, Right: right, Rows: rows, Lines: terms})
		return
	}
	if p.width > 0 {
		header, right, rows = p.without.Fit(header, right, rows, p.width)
	}
	p.printf("\n%s\n\n", title)
	p.err = table.Print(p.w, header, right, rows)
	for i, t := range terms {
		if i == 0 {
			p.printf("\n")
		}
		p.printf("%s\n", t)
	}
}

func (p *fabricPrinter) print() error {
	t := &p.rep.Totals
	p.printf("%s of RDMA, %s bytes, on %s\n", units.Plural(t.Packets, "packet"), units.Size(t.Bytes), units.Plural(len(p.rep.Connections), "connection"))
	p.recovery()
	p.episodes()
	p.congestion()
	p.pauses()
	p.curves()
	p.lost()
	p.connections()
	p.operations()
	p.overTime()
	if s := p.without.String(); s != "" {
		p.printf("\n%s\n", s)
	}
	if len(p.rep.Notes) > 0 {
		p.printf("\n")
	}
	for _, n := range p.rep.Notes {
		p.printf("note: %s\n", n)
	}
	return p.err
}

var latencyColumns = []string{"COUNT", "DONE", "BYTES", "AGAIN", "IN FLIGHT", "MEAN", "MIN", "P50", "P90", "P99", "P99.9", "MAX"}

// latencyRow are the cells of a group below latencyColumns.
func latencyRow(g *fabric.Group) []string {
	row := []string{fmt.Sprint(g.Count), fmt.Sprint(g.Completed), units.Size(g.Bytes), units.Number(g.Again), fmt.Sprint(g.InFlight)}
	d := g.Latency
	for _, v := range []int64{d.Mean, d.Min, d.P50, d.P90, d.P99, d.P999, d.Max} {
		if d.Count == 0 {
			row = append(row, "-")
		} else {
			row = append(row, units.Duration(v))
		}
	}
	return row
}

// rightFrom says that the columns from n on are numbers.
func rightFrom(n, columns int) []bool {
	right := make([]bool, columns)
	for i := n; i < columns; i++ {
		right[i] = true
	}
	return right
}

func serviceName(name, source string) string {
	if source == fabric.SourceGuess.String() {
		return name + "?"
	}
	return name
}

func (p *fabricPrinter) groups(title string, names []string, list []fabric.Group, key func(*fabric.Group) []string) {
	var rows [][]string
	for i := range list {
		rows = append(rows, append(key(&list[i]), latencyRow(&list[i])...))
	}
	header := append(append([]string{}, names...), latencyColumns...)
	p.table(title, header, rightFrom(len(names), len(header)), rows)
}

func (p *fabricPrinter) operations() {
	p.groups("Operations: first packet to acknowledgement; of a Read, request to last response", []string{"OPERATION"}, p.rep.Operations,
		func(g *fabric.Group) []string { return []string{g.Kind} })
	p.groups("By upper layer; ? marks a guess", []string{"SERVICE", "OPERATION"}, p.rep.Services,
		func(g *fabric.Group) []string { return []string{serviceName(g.Service, g.Source), g.Kind} })
	p.groups("By size: ≤1K stands for 513 to 1024 bytes", []string{"OPERATION", "SIZE"}, p.rep.Sizes,
		func(g *fabric.Group) []string { return []string{g.Kind, sizeText(g.Size)} })
}

// lost says what the latencies of operations were lost to.
func (p *fabricPrinter) lost() {
	var causes []rdma.Cause
	for c := rdma.CauseRest + 1; int(c) < rdma.NumCauses; c++ {
		for i := range p.rep.Operations {
			if p.rep.Operations[i].Lost[c.String()] > 0 {
				causes = append(causes, c)
				break
			}
		}
	}
	if len(causes) == 0 {
		return
	}
	header := []string{"SERVICE", "OPERATION", "TIME"}
	for _, c := range causes {
		header = append(header, strings.ToUpper(c.Short()), "%")
	}
	header = append(header, "REST")
	var rows [][]string
	for i := range p.rep.Services {
		g := &p.rep.Services[i]
		sum := int64(0)
		for _, n := range g.Lost {
			sum += n
		}
		if sum == 0 {
			continue
		}
		row := []string{serviceName(g.Service, g.Source), g.Kind, units.Duration(sum)}
		for _, c := range causes {
			n := g.Lost[c.String()]
			if n == 0 {
				row = append(row, "-", "-")
				continue
			}
			row = append(row, units.Duration(n), units.Percent(float64(n)/float64(sum)))
		}
		rows = append(rows, append(row, units.Duration(g.Lost[rdma.CauseRest.String()])))
	}
	p.table("What operations lost their time to; TIME is the sum of their latencies", header, rightFrom(2, len(header)), rows)
}

func sizeText(s string) string {
	n, _ := strconv.ParseUint(s, 10, 64)
	return "≤" + units.Size(n)
}

func (p *fabricPrinter) connections() {
	header := []string{"ID", "FABRIC", "SERVICE", "FROM", "PACKETS", "BYTES", "OPS", "P50", "P99", "AGAIN", "NAK", "RNR", "ECN", "CNP", "LOSSES", "RECOVERY"}
	var rows [][]string
	list := p.rep.Connections
	shown := len(list)
	if !p.verbose {
		shown = min(shown, shownConns)
	}
	for i := range list[:shown] {
		c := &list[i]
		var ops, losses uint64
		var spent int64
		var most *fabric.Group // the kind with most operations
		for k := range c.Ops {
			ops += c.Ops[k].Count
			if most == nil || c.Ops[k].Count > most.Count {
				most = &c.Ops[k]
			}
		}
		for k := range c.Recovery {
			losses += c.Recovery[k].Count
			spent += c.Recovery[k].Time
		}
		for side := range c.Ends {
			e := &c.Ends[side]
			row := []string{"", "", "", e.Address, fmt.Sprint(e.Packets), units.Size(e.Bytes), "", "", "",
				units.Number(e.Again), units.Number(e.NAKs), units.Number(e.RNRs), units.Number(e.Marked), units.Number(e.CNPs), "", ""}
			if side == 0 {
				row[0], row[1], row[2] = fmt.Sprint(c.ID), c.Fabric, serviceName(c.Service, c.Source)
				row[6], row[14] = fmt.Sprint(ops), units.Number(losses)
				row[15] = "-"
				if losses > 0 {
					row[15] = units.Duration(spent)
				}
				if most != nil && most.Latency.Count > 0 {
					row[7], row[8] = units.Duration(most.Latency.P50), units.Duration(most.Latency.P99)
				}
			}
			rows = append(rows, row)
		}
	}
	right := rightFrom(4, len(header))
	right[0] = true
	p.table("Connections", header, right, rows, "P50 and P99 are those of the most frequent operation; NAK, RNR and CNP count what this side sent")
	if more := len(list) - shown; more > 0 {
		p.printf("%s: -v shows them\n", units.Plural(more, "more connection"))
	}
}

func (p *fabricPrinter) recovery() {
	t := &p.rep.Totals
	p.printf("\nLosses and recovery: ")
	if t.Episodes == 0 {
		p.printf("none seen")
	} else {
		p.printf("%s, %s sent again (%s bytes), %d of them needlessly", units.Plural(t.Episodes, "episode"), units.Plural(t.Resent, "packet"), units.Size(t.ResentBytes), t.Needless)
	}
	for _, x := range []struct {
		n    uint64
		what string
	}{{t.NotRecovered, "not recovered from"}, {t.Copies, "copies made on the way"}, {t.Reordered, "packets overtaken"}, {t.Overtaken, "NAKs for packets that were only overtaken"}, {t.FatalNAKs, "fatal NAKs"}} {
		if x.n > 0 {
			p.printf("; %d %s", x.n, x.what)
		}
	}
	p.printf("\n")
	var rows [][]string
	for _, g := range p.rep.Recovery {
		mean := "-"
		if n := g.Count - g.NotRecovered; n > 0 {
			mean = units.Duration(g.Time / int64(n))
		}
		rows = append(rows, []string{g.Notice, fmt.Sprint(g.Count), units.Number(g.NotRecovered), units.Number(g.NAKs), units.Number(g.Timeouts), fmt.Sprint(g.Resent),
			units.Number(g.Needless), units.Number(g.GoBackN), units.Number(g.Selective), units.Number(g.Partly), units.Duration(g.Time), mean})
	}
	header := []string{"NOTICED BY", "EPISODES", "NOT ENDED", "NAKS", "TIMEOUTS", "RESENT", "NEEDLESS", "GO-BACK-N", "SELECTIVE", "PARTLY", "TIME", "MEAN"}
	p.table("How losses were noticed", header, rightFrom(1, len(header)), rows)
	for i := range p.rep.Blocked {
		p.blocked(&p.rep.Blocked[i])
	}
	for _, f := range p.rep.Fatal {
		p.printf("fatal: connection %d, %s from %s for PSN %d in frame %d\n", f.Connection, f.Code, f.From, f.PSN, f.Frame)
	}
}

// blocked says which packets of a direction did not get through.
func (p *fabricPrinter) blocked(b *fabric.Blocked) {
	size := fmt.Sprintf("%d bytes", b.Least)
	if b.Most > b.Least {
		size = fmt.Sprintf("%d to %d bytes", b.Least, b.Most)
	}
	what, end := "packets from %s to %s with %s of payload were sent %s on %s", "and never acknowledged"
	if b.Asked {
		what, end = "Read Responses from %s to %s with %s of payload were asked for %s on %s,", "and the requester never went on"
	}
	p.printf("blocked: "+what+" "+end, b.From, b.To, size,
		units.Plural(b.Attempts, "time"), units.Plural(b.Connections, "connection"))
	switch b.By {
	case fabric.BlockedBySize:
		p.printf("; all that got through have at most %d: a link on the way has a smaller MTU", b.Passed)
		if b.MTU > 0 {
			p.printf(" than the path MTU of %d in use", b.MTU)
		}
	case fabric.BlockedByPort:
		p.printf(" with UDP source port %s; %s with other ports went on: one of several paths (ECMP, LAG) is broken",
			strings.Trim(fmt.Sprint(b.Ports), "[]"), units.Plural(b.Others, "connection"))
	case fabric.BlockedByDirection:
		p.printf("; nothing else was acknowledged in this direction afterwards: the path, or the receiver, is down")
	}
	p.printf("\n")
}

func (p *fabricPrinter) episodes() {
	var rows [][]string
	for _, e := range p.rep.Episodes {
		ph := e.Episode.Phases()
		cell := func(d time.Duration) string {
			if d < 0 {
				return "-"
			}
			return units.Duration(int64(d))
		}
		lost := "?"
		if e.Overtaken {
			lost = "overtaken"
		}
		if len(e.Lost) > 0 {
			lost = strconv.FormatUint(e.Lost[0].Start, 10)
			if n := e.Lost[0].Count; n > 1 {
				lost += "+" + strconv.FormatUint(n, 10)
			}
			if n := len(e.Lost); n > 1 {
				lost += fmt.Sprintf(", %d more", n-1)
			}
			if !e.Exact {
				lost += " …"
			}
		}
		if e.Responses {
			lost = "resp " + lost
		}
		took := "not ended"
		if e.Duration != nil {
			took = units.Duration(*e.Duration)
		}
		waited := "-"
		if e.Waited > 0 {
			waited = units.Duration(e.Waited)
			if e.Announced > 0 {
				waited += " of " + units.Duration(e.Announced)
			}
		}
		rows = append(rows, []string{units.Clock(e.Start), fmt.Sprint(e.Connection), e.Requester, e.Notice, lost,
			cell(ph.Detection), cell(ph.NAK), cell(ph.Reaction), cell(ph.CatchUp), took, waited, fmt.Sprint(e.Resent), units.Number(uint64(e.Needless)), e.Repeat})
	}
	header := []string{"TIME", "ID", "REQUESTER", "NOTICED BY", "LOST", "DETECT", "NAK", "REACT", "CATCH UP", "TOTAL", "WAITED", "RESENT", "NEEDLESS", "REPEATED"}
	p.table("Longest episodes", header, rightFrom(5, len(header)), rows,
		"DETECT: from the lost packet to the next one behind it; NAK: to the NAK; REACT: to the first packet sent again; CATCH UP: to the acknowledgement of all of it",
		"LOST: PSNs (iWARP: bytes of the stream); … if there may be more")
}

func (p *fabricPrinter) congestion() {
	c := &p.rep.Congestion
	p.printf("\nCongestion: ")
	if c.Marked == 0 && c.CNPs == 0 {
		p.printf("no packet marked, no CNP\n")
		return
	}
	p.printf("%s marked (%s %%), %s, %d of them without a mark before\n", units.Plural(c.Marked, "packet"), units.Percent(c.Share), units.Plural(c.CNPs, "CNP"), c.WithoutMark)
	var rows [][]string
	for _, x := range []struct {
		name string
		d    *latency.Distribution
	}{
		{"first mark to CNP", c.MarkToCNP}, {"between CNPs to one side of a connection", c.PerConnection},
		{"between CNPs from one address to another", c.PerAddresses}, {"between CNPs from one address", c.PerSender},
	} {
		if d := x.d; d != nil {
			rows = append(rows, []string{x.name, fmt.Sprint(d.Count), units.Duration(d.Min), units.Duration(d.P50), units.Duration(d.P90), units.Duration(d.P99), units.Duration(d.Max)})
		}
	}
	header := []string{"", "COUNT", "MIN", "P50", "P90", "P99", "MAX"}
	p.table("Times between CNPs", header, rightFrom(1, len(header)), rows, "A receiver that limits its CNPs does so per connection or per address: MIN of that row is the limit")
	if c.Limited != "" {
		p.printf("\nThe receiver limits CNPs per %s\n", c.Limited)
	}
	p.reaction()
}

// reaction shows how fast senders sent after a CNP.
func (p *fabricPrinter) reaction() {
	list := p.rep.Congestion.Reaction
	most := 0.0
	for _, x := range list {
		most = max(most, x.Rate)
	}
	if most == 0 {
		return
	}
	var rows [][]string
	for _, x := range list {
		from := "before the first"
		if x.From >= 0 {
			from = units.Duration(x.From)
		}
		rows = append(rows, []string{from, units.Size(x.Bytes), units.Duration(x.Time), units.Rounded(x.Rate, 1024) + "B/s", strings.Repeat("#", int(x.Rate/most*40+0.5))})
	}
	header := []string{"SINCE CNP", "BYTES", "TIME", "RATE", " "}
	right := rightFrom(1, len(header))
	right[4] = false
	p.table("Send rate of the sides that received CNPs, by the time since the last CNP", header, right, rows)
}

// pauses shows Ethernet flow control.
func (p *fabricPrinter) pauses() {
	var rows [][]string
	for _, x := range p.rep.Congestion.Pauses {
		name := "all (PAUSE)"
		if x.Priority >= 0 {
			name = fmt.Sprint(x.Priority)
		}
		stopped := "-" // stops that ended by themselves: how soon depends on the speed of the link
		switch {
		case x.Held > 0:
			stopped = "≥" + units.Duration(x.Stopped+x.Held)
		case x.Resumes > 0:
			stopped = units.Duration(x.Stopped)
		}
		rows = append(rows, []string{name, fmt.Sprint(x.Stops), fmt.Sprint(x.Resumes), fmt.Sprint(x.Quanta), stopped, cmp.Or(strings.Join(x.Senders, " "), "-")})
	}
	header := []string{"PRIORITY", "STOPS", "RESUMES", "QUANTA", "STOPPED", "BY"}
	right := rightFrom(1, len(header))
	right[5] = false
	p.table("Ethernet flow control (PFC, PAUSE)", header, right, rows,
		"QUANTA: each is 512 bit times; STOPPED: from a stop to the next resume, or of stops that were repeated before they ended")
}

// curves draw the rate with marks and CNPs below each other, on one axis of time.
func (p *fabricPrinter) curves() {
	if c := &p.rep.Congestion; p.collect || c.Marked == 0 && c.CNPs == 0 && len(c.Pauses) == 0 {
		return
	}
	list := p.rep.Series.Intervals
	const width = 72
	per := (len(list) + width - 1) / width
	p.printf("\nOver time: %s a column\n\n", units.Duration(p.rep.Series.Length*int64(per)))
	for _, x := range []struct {
		name string
		of   func(*fabric.Interval) uint64
	}{
		{"bytes", func(v *fabric.Interval) uint64 { return v.Bytes }}, {"marked", func(v *fabric.Interval) uint64 { return v.Marked }},
		{"CNPs", func(v *fabric.Interval) uint64 { return v.CNPs }}, {"NAKs", func(v *fabric.Interval) uint64 { return v.NAKs }},
		{"again", func(v *fabric.Interval) uint64 { return v.Again }}, {"pauses", func(v *fabric.Interval) uint64 { return v.Pauses }},
	} {
		var sums []float64
		most := 0.0
		for i := range list {
			if i%per == 0 {
				sums = append(sums, 0)
			}
			sums[len(sums)-1] += float64(x.of(&list[i]))
			most = max(most, sums[len(sums)-1])
		}
		if most > 0 {
			p.printf("  %-8s%9s |%s|\n", x.name, units.Size(uint64(most)), results.Spark(sums))
		}
	}
	p.printf("\nthe number is the value of the highest bar\n")
}

func (p *fabricPrinter) overTime() {
	if !p.series {
		return
	}
	var rows [][]string
	for _, v := range p.rep.Series.Intervals {
		share := 0.0
		if v.Packets > 0 {
			share = float64(v.Marked) / float64(v.Packets)
		}
		rows = append(rows, []string{units.Duration(v.Start), fmt.Sprint(v.Packets), units.Size(v.Bytes), units.Number(v.Marked), units.Percent(share),
			units.Number(v.CNPs), units.Number(v.NAKs), units.Number(v.Again)})
	}
	header := []string{"FROM", "PACKETS", "BYTES", "MARKED", "%", "CNP", "NAK", "AGAIN"}
	p.table("Over time, in intervals of "+units.Duration(p.rep.Series.Length), header, rightFrom(0, len(header)), rows)
}
