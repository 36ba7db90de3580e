package screen

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Lines of the head that stand above each list of taps.
func head(f *live.Fleet, now time.Time) []string {
	t := f.Totals(now)
	lines := []string{
		fmt.Sprintf("%s  %s", now.UTC().Format("15:04:05"), taps(&t)),
		fmt.Sprintf("%s tx/s, %s errors/s, %s/s of RPC; P50 %s, P99 %s, max %s; %d open, %d stuck; %s retransmissions/s",
			rate(t.Transactions), rate(t.Errors), units.SizeCell(uint64(t.Bytes)), upTo(t.P50), upTo(t.P99), units.DurationCell(t.Max), t.Open, t.Stuck, rate(t.Retransmits)),
	}
	var missing []string
	if t.PacketsLost > 0 {
		missing = append(missing, units.Plural(t.PacketsLost, "packet")+" lost by taps in the latest intervals")
	}
	if t.Missing > 0 {
		missing = append(missing, units.Plural(t.Missing, "summary")+" missing")
	}
	if f.Refused > 0 {
		missing = append(missing, fmt.Sprintf("%s refused, the latest: %s", units.Plural(f.Refused, "message"), text.SafeString(f.Wrong)))
	}
	if f.TooMany > 0 {
		missing = append(missing, units.Plural(f.TooMany, "message")+" of taps beyond the first 10,000 left out")
	}
	if len(missing) > 0 {
		lines = append(lines, "INCOMPLETE: "+strings.Join(missing, "; "))
	}
	return lines
}

func taps(t *live.Totals) string {
	s := units.Plural(t.Taps, "tap")
	if t.Quiet > 0 {
		s += fmt.Sprintf(", %d without packets", t.Quiet)
	}
	if t.Silent > 0 {
		s += fmt.Sprintf(", %d silent", t.Silent)
	}
	if t.Ended > 0 {
		s += fmt.Sprintf(", %d ended", t.Ended)
	}
	if t.Alarms > 0 {
		s += fmt.Sprintf(", ALARM at %d", t.Alarms)
	}
	return s
}

var (
	tapHeader = []string{"TAP", "AGE", "TX/s", "ERR/s", "B/s", "P50", "P99", "MAX", "OPEN", "STUCK", "RESENT", "LOST", "MISSING", "STATE"}
	tapRight  = []bool{false, true, true, true, true, true, true, true, true, true, true, true, true, false}
)

func tapRow(t *live.Tap, now time.Time) []string {
	s := t.Last
	per := 1e9 / float64(s.Span)
	state := strings.Join(s.Over, ",")
	if state != "" {
		state = "ALARM " + state
	}
	switch {
	case s.End:
		state = "ended"
	case t.Silent(now):
		state = "SILENT"
	case !t.Quiet.IsZero():
		state = strings.TrimSpace(state + " no packets for " + age(now.Sub(t.Quiet)))
	}
	if t.Agents > 1 {
		state = strings.TrimSpace(fmt.Sprintf("%s %d agents", state, t.Agents))
	}
	return []string{
		text.SafeString(t.Name), age(now.Sub(t.Came)), rate(float64(s.Transactions) * per), rate(float64(s.Errors) * per), units.SizeCell(uint64(float64(s.Bytes) * per)),
		units.DurationCell(s.P50), units.DurationCell(s.P99), units.DurationCell(s.Max), units.Number(s.Open.Calls), units.Number(s.Open.Stuck),
		units.Number(s.RDMA.Retransmits), units.Number(s.Lost), units.Number(t.Missing), state,
	}
}

// section is a table with a title.
type section struct {
	title  string
	header []string
	right  []bool
	rows   [][]string
	rest   int
}

// sections are what is known of one tap.
func sections(t *live.Tap) []section {
	s := t.Last
	per := 1e9 / float64(s.Span)
	numbers := []bool{false, true, true, true, true, true, true}
	var list []section
	ops := section{title: "Operations", header: []string{"OPERATION", "TX/s", "ERR/s", "B/s", "P50", "P99", "MAX"}, right: numbers, rest: s.Rest.Operations}
	for i := range s.Ops {
		o := &s.Ops[i]
		ops.rows = append(ops.rows, []string{text.SafeString(o.Name), rate(float64(o.Transactions) * per), rate(float64(o.Errors) * per), units.SizeCell(uint64(float64(o.Bytes) * per)), units.DurationCell(o.P50), units.DurationCell(o.P99), units.DurationCell(o.Max)})
	}
	slow := section{title: "Slowest transactions, and stuck calls", header: []string{"LATENCY", "XID", "CLIENT", "SERVER", "OPERATION", "FILE AND RANGE", "CHUNKS", "STATUS"}, right: []bool{true}}
	for i := range s.Slow {
		x := &s.Slow[i]
		status := x.Status
		if x.Open {
			status = "open"
		}
		slow.rows = append(slow.rows, []string{units.DurationCell(x.Latency), fmt.Sprintf("%08x", x.XID), text.SafeString(x.Client), text.SafeString(x.Server), text.SafeString(x.Operation), text.SafeString(x.Subject), text.SafeString(x.Chunks), text.SafeString(status)})
	}
	conn := section{title: "Connections with the most bytes", header: []string{"FABRIC", "CLIENT", "SERVER", "STATE", "TX/s", "B/s", "STUCK"}, right: []bool{false, false, false, false, true, true, true}, rest: s.Rest.Connections}
	for i := range s.Conn {
		c := &s.Conn[i]
		conn.rows = append(conn.rows, []string{text.SafeString(c.Fabric), text.SafeString(c.Client), text.SafeString(c.Server), text.SafeString(c.State), rate(float64(c.Transactions) * per), units.SizeCell(uint64(float64(c.Bytes) * per)), units.Number(c.Stuck)})
	}
	list = append(list, ops, slow, conn)
	for _, u := range []struct {
		title, head string
		list        []live.Usage
		rest        int
	}{{"Clients with the most time", "CLIENT", s.Clients, s.Rest.Clients}, {"Files with the most time", "FILE", s.Files, s.Rest.Files}} {
		x := section{title: u.title, header: []string{u.head, "TX/s", "ERR/s", "B/s", "CALLS"}, right: numbers, rest: u.rest}
		for i := range u.list {
			n := &u.list[i]
			x.rows = append(x.rows, []string{text.SafeString(n.Name), rate(float64(n.Transactions) * per), rate(float64(n.Errors) * per), units.SizeCell(uint64(float64(n.Bytes) * per)), fmt.Sprintf("%.2f", float64(n.Time)/float64(s.Span))})
		}
		list = append(list, x)
	}
	f := &s.RDMA
	wire := section{title: "RDMA", header: []string{"PACKETS/s", "RESENT", "NAK", "RNR", "CNP", "ECN", "MISSING", "BAD CRC", "STALLED"}, right: []bool{true, true, true, true, true, true, true, true, true}}
	wire.rows = [][]string{{rate(float64(s.Packets) * per), units.Number(f.Retransmits), units.Number(f.NAKs), units.Number(f.RNRs), units.Number(f.CNPs), units.Number(f.Marked), units.Number(f.Missing), units.Number(f.BadCRC), units.DurationCell(f.Stalled)}}
	return append(list, wire)
}

func (x *section) lines() []string {
	title := x.title
	if x.rest > 0 {
		title += fmt.Sprintf(" (%d more)", x.rest)
	}
	var b bytes.Buffer
	_ = (&table.Table{Header: x.header, Right: x.right, Rows: x.rows}).Write(&b) // to memory
	return append([]string{"", title}, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
}

// Print prints the fleet, and one tap in detail if it is named.
func Print(w io.Writer, f *live.Fleet, by live.Order, detail string, now time.Time) error {
	lines := head(f, now)
	list := section{header: tapHeader, right: tapRight}
	for _, t := range f.Taps(by, now) {
		if detail == "" || t.Name == detail {
			list.rows = append(list.rows, tapRow(t, now))
		}
	}
	if len(list.rows) > 0 {
		lines = append(lines, list.lines()[2:]...)
	}
	if t := f.Tap(detail); t != nil {
		for _, x := range sections(t) {
			if len(x.rows) > 0 {
				lines = append(lines, x.lines()...)
			}
		}
	} else if detail != "" {
		lines = append(lines, "There is no tap "+text.SafeString(detail)+".")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// rate is a number a second, with three digits that count.
func rate(f float64) string {
	switch {
	case f == 0:
		return "-"
	case f < 9.995:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case f < 99.95:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}

// upTo is the upper end of a band in which a percentile of all taps lies.
func upTo(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return "≤" + units.DurationCell(ns)
}

// age is in whole seconds.
func age(d time.Duration) string { return max(d, 0).Truncate(time.Second).String() }
