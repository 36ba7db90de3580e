package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// batchWidth is the width of tables without a terminal.
const batchWidth = 120

// batchPrinter prints the tables of the screens without a terminal.
type batchPrinter struct {
	drawing
	layout arrangements
	w      io.Writer
	width  int
	want   int  // intervals; 0 none
	whole  bool // lists are not cut
	forced bool // there is no terminal: for each interval, without end
	done   int
	enough bool // all that was wanted is printed
	err    error
}

func newBatchPrinter(w io.Writer, o *options, columns int, color bool) *batchPrinter {
	p := &batchPrinter{w: w, width: columns, want: o.batch, forced: !o.batching, whole: o.verbose, layout: o.layout}
	if p.width < 40 {
		p.width = batchWidth
	}
	p.g = glyphsFor(o.ascii || !cli.UTF8())
	p.st = newStyles(w, color, o.look)
	p.st.dots = p.g.dots
	if o.resolve {
		p.hosts = newHosts(len(o.interfaces) > 0, true)
	}
	return p
}

// each reports whether tables are printed for each interval.
func (p *batchPrinter) each() bool { return p.want > 0 || p.forced }

// interval handles the snapshot of a complete interval, and reports whether another one is wanted.
func (p *batchPrinter) interval(s *monitor.Snapshot) bool {
	if s.Ended || p.enough {
		return true // what is left of the input; end prints it
	}
	p.print(s, false)
	p.done++
	p.enough = p.want > 0 && p.done >= p.want
	return !p.enough && p.err == nil
}

// end takes the last snapshot.
func (p *batchPrinter) end(s *monitor.Snapshot) {
	if p.enough || p.err != nil {
		return
	}
	p.print(s, true)
}

func (p *batchPrinter) print(s *monitor.Snapshot, totals bool) {
	var b strings.Builder
	line := func(spans ...span) {
		b.WriteString(strings.TrimRight(p.st.line(p.width, normal, spans...), " "))
		b.WriteByte('\n')
	}
	if p.done > 0 {
		b.WriteByte('\n')
	}
	what := fmt.Sprintf("interval of %s", s.NowSpan)
	if totals {
		what = "totals of " + text.Within(s.First, s.Time)
	}
	head := fmt.Sprintf("%s  %s  %s packets", clockText(s.Time), what, number(s.Decoder.Packets))
	if !totals {
		head = fmt.Sprintf("%s  %s  %s packets", clockText(s.Time), what, number(s.Packets))
	}
	if s.Filter != "" {
		head += "  filter: " + p.g.name(s.Filter, 200)
	}
	alarm := ""
	if names := alarmText(s); names != "" {
		alarm = "  ALARM " + names
	}
	line(span{p.g.plain(head), bold}, span{alarm, bad})
	for _, l := range p.head(s, p.width, totals) {
		line(l...)
	}
	section := func(name string, t *table, most int) {
		if len(t.rows) == 0 {
			return
		}
		b.WriteByte('\n')
		shown := min(len(t.rows), most)
		if p.whole {
			shown = len(t.rows)
		}
		cut := t.of(0, shown)
		if cut != "" {
			name += ", " + cut
		}
		t.rows = t.rows[:shown]
		at, widths := t.layout(p.g, p.width-1, 0)
		line(span{name, bold})
		line(t.header(p.g, at, widths, 0)...)
		for i := range t.rows {
			line(t.line(p.g, &t.rows[i], at, widths)...)
		}
	}
	view := func(v view, usual int) *table {
		t := p.layout.apply(v, p.tableOf(s, v, totals))
		by, turn := p.layout.by(v, usual)
		t.order(by, turn)
		return t
	}
	section("Operations", view(overview, byTime), 1000)
	switch {
	case p.layout[transactions].sorted:
		section("Transactions that are held by "+p.by(transactions), view(transactions, -1), 20)
	case totals:
		section("Transactions: the slowest of those that are held", view(transactions, 0), 20)
	default:
		section("Transactions: in flight, then failed, slow and latest ones", view(transactions, -1), 20)
	}
	section("Connections", view(connections, -1), 20)
	section("Fabric: what RDMA suffered", view(wire, -1), 20)
	section("Sessions, and clients without", view(sessions, -1), 20)
	section("What their connections carried", p.carriedTable(s.Sessions), 20)
	section("Files by "+p.by(files), view(files, byTime), 10)
	section("Clients by "+p.by(clients), view(clients, byTime), 10)
	if totals && len(s.History) > 1 {
		b.WriteByte('\n')
		line(span{"Latency over time", bold})
		for _, l := range p.heatLines(s, p.width-1, 16) {
			line(l...)
		}
	}
	if _, err := io.WriteString(p.w, b.String()); err != nil && p.err == nil {
		if p.err = err; errors.Is(err, syscall.EPIPE) {
			p.err = cli.ErrClosed
		}
	}
}

// by says what the rows of a view are sorted by.
func (p *batchPrinter) by(v view) string {
	x := &p.layout[v]
	switch {
	case !x.sorted:
		return "time"
	case x.sort < 0:
		return "order"
	}
	return emptyTable(v).columns[x.sort].called()
}

func clockText(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000 UTC")
}
