package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// batchWidth is the width of tables without a terminal.
const batchWidth = 120

// batchPrinter prints the tables of the screens without a terminal.
type batchPrinter struct {
	drawing
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
	p := &batchPrinter{w: w, width: columns, want: o.batch, forced: !o.batching, whole: o.verbose}
	if p.width < 40 {
		p.width = batchWidth
	}
	p.g = glyphsFor(o.ascii || !cli.UTF8())
	p.st = newStyles(w, color)
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
		what = "totals of " + duration(max(s.Time-s.First, 0))
	}
	head := fmt.Sprintf("%s  %s  %s packets", clockText(s.Time), what, number(s.Decoder.Packets))
	if !totals {
		head = fmt.Sprintf("%s  %s  %s packets", clockText(s.Time), what, number(s.Packets))
	}
	if s.Filter != "" {
		head += "  filter: " + p.g.name(s.Filter, 200)
	}
	line(span{p.g.plain(head), bold})
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
		at, widths := t.layout(p.width-1, 0)
		line(span{name, bold})
		line(t.header(p.g, at, widths, 0, -1, false)...)
		for i := range t.rows {
			line(t.line(p.g, &t.rows[i], at, widths)...)
		}
	}
	ops := p.operationsTable(s, totals)
	ops.order(byTime, false)
	section("Operations", ops, 1000)
	tx := p.transactionsTable(s)
	if totals {
		tx.order(0, false)
		section("Transactions: the slowest of those that are held", tx, 20)
	} else {
		section("Transactions: in flight, then failed, slow and latest ones", tx, 20)
	}
	section("Connections", p.connectionsTable(s, totals), 20)
	section("Fabric: what RDMA suffered", p.fabricTable(s, totals), 20)
	section("Sessions, and clients without", p.sessionsTable(s, totals), 20)
	section("What their connections carried", p.carriedTable(s.Sessions), 20)
	f := p.usageTable(s, s.Files, s.FilesRest, "FILE", totals)
	f.order(byTime, false)
	section("Files by time", f, 10)
	c := p.usageTable(s, s.Clients, s.ClientsRest, "CLIENT", totals)
	c.order(byTime, false)
	section("Clients by time", c, 10)
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

func clockText(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000 UTC")
}
