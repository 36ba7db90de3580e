package results

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

func sortedStatuses(m map[string]uint64) []string {
	names := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case m[a] > m[b]:
			return -1
		case m[a] < m[b]:
			return 1
		}
		return 0
	})
	return names
}

// sparks are eight heights of a bar.
var sparks = []rune("▁▂▃▄▅▆▇█")

// Spark draws values as bars of one line: a space for zero.
func Spark(values []float64) string {
	most := slices.Max(values)
	var b strings.Builder
	for _, v := range values {
		switch {
		case v <= 0 || most <= 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(sparks[min(int(v/most*float64(len(sparks))), len(sparks)-1)])
		}
	}
	return b.String()
}

// overTime shows the time series: as a table if that was asked for, else as a
// few lines of bars.
func (p *reportPrinter) overTime() {
	s := &p.rep.Series
	if len(s.Slots) == 0 {
		return
	}
	if p.opt.Series {
		p.seriesTable()
		return
	}
	width := min(72, p.width-24)
	per := (len(s.Slots) + width - 1) / width
	p.title("Over time: %s a column, from %s", time.Duration(s.Interval*int64(per)), s.Slots[0].Start.Format("15:04:05.000"))
	for _, line := range []struct {
		name string
		unit func(float64) string
		sum  bool // of several intervals the sum, not the largest
		of   func(*latency.Slot) float64
	}{
		{"calls/s", func(f float64) string { return units.Rounded(f*1e9/float64(s.Interval*int64(per)), 1000) }, true,
			func(x *latency.Slot) float64 { return float64(x.Calls) }},
		{"bytes/s", func(f float64) string { return units.Rounded(f*1e9/float64(s.Interval*int64(per)), 1024) }, true,
			func(x *latency.Slot) float64 { return float64(x.Bytes) }},
		{"p50", func(f float64) string { return units.Duration(int64(f)) }, false, func(x *latency.Slot) float64 { return float64(x.P50) }},
		{"p99", func(f float64) string { return units.Duration(int64(f)) }, false, func(x *latency.Slot) float64 { return float64(x.P99) }},
		{"in flight", func(f float64) string { return fmt.Sprint(int(f)) }, false, func(x *latency.Slot) float64 { return float64(x.MostFlight) }},
		{"troubles", func(f float64) string { return fmt.Sprint(int(f)) }, true, func(x *latency.Slot) float64 {
			n := uint64(0)
			for _, v := range x.Events {
				n += v
			}
			return float64(n)
		}},
	} {
		values := make([]float64, (len(s.Slots)+per-1)/per)
		for i := range s.Slots {
			v := line.of(&s.Slots[i])
			if line.sum {
				values[i/per] += v
			} else {
				values[i/per] = max(values[i/per], v)
			}
		}
		if most := slices.Max(values); most > 0 {
			p.printf("  %-9s %8s |%s|\n", line.name, line.unit(most), Spark(values))
		}
	}
	p.printf("\n%s\n", "the number is the value of the highest bar; --interval 1s gives a table")
}

func (p *reportPrinter) seriesTable() {
	s := &p.rep.Series
	p.title("Over time: intervals of %s; calls belong to the interval in which they began", time.Duration(s.Interval))
	var rows [][]string
	seconds := float64(s.Interval) / 1e9
	for i := range s.Slots {
		x := &s.Slots[i]
		var events []string
		for _, k := range slices.Sorted(maps.Keys(x.Events)) {
			events = append(events, fmt.Sprintf("%s=%d", k, x.Events[k]))
		}
		row := []string{
			x.Start.Format("15:04:05.000"), units.Number(x.Calls), "-", "-", units.Number(x.Errors), "-", "-", "-", "-", "-", "-", strings.Join(events, " "),
		}
		if x.Calls > 0 {
			row[2], row[3] = units.Rounded(float64(x.Calls)/seconds, 1000), units.Rounded(float64(x.Bytes)/seconds, 1024)
		}
		if x.MostFlight > 0 {
			row[9], row[10] = fmt.Sprintf("%.2f", x.InFlight), fmt.Sprint(x.MostFlight)
		}
		if x.Timed > 0 {
			row[5], row[6], row[7], row[8] = units.Duration(x.Mean), units.Duration(x.P50), units.Duration(x.P99), units.Duration(x.Max)
		}
		rows = append(rows, row)
	}
	p.table([]string{"START", "CALLS", "/S", "BYTES/S", "ERRORS", "MEAN", "P50", "P99", "MAX", "IN FLIGHT", "MOST", " TROUBLES"}, 1, rows)
}

func (p *reportPrinter) flight() {
	var rows [][]string
	left := uint64(0)
	for i := range p.rep.Connections {
		c := &p.rep.Connections[i]
		for _, way := range []struct {
			name string
			f    *latency.Flow
		}{{"", c.Forward}, {" backward", c.Backward}} {
			f := way.f
			if f == nil {
				continue
			}
			if !p.opt.Verbose && (len(rows) >= shownConns || !isRDMAName(c.Fabric) && f.Most < 2) {
				left++
				continue
			}
			row := []string{
				fmt.Sprintf("%d%s", c.Connection, way.name), c.Fabric, fmt.Sprint(f.Most), fmt.Sprintf("%.2f", f.Mean), units.Percent(f.Busy),
				"-", "-", "-", "-", "-", "-", "-",
			}
			if f.Requested.Max > 0 {
				row[5] = rangeText(f.Requested.Min, f.Requested.Max)
			}
			if f.Granted.Max > 0 {
				row[6] = rangeText(f.Granted.Min, f.Granted.Max)
				row[7] = units.Number(f.Granted.Changes)
			}
			if f.AtLimit > 0 {
				row[8] = units.Duration(f.AtLimit)
			}
			if r := c.Reads; r != nil && way.f == c.Forward {
				row[9] = fmt.Sprint(r.Most)
				if c.Depth >= 0 {
					row[9] += fmt.Sprintf("/%d", c.Depth)
				}
				row[10] = fmt.Sprintf("%.2f", r.Mean)
				if r.AtLimit > 0 {
					row[11] = units.Duration(r.AtLimit)
				}
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 && left == 0 {
		return
	}
	p.title("Calls in flight by connection, credits, and RDMA Reads in flight")
	p.table([]string{
		"CONNECTION", "FABRIC", "MOST", "MEAN", "BUSY %", "ASKED", "GRANTED", "CHANGES", "AT LIMIT", "READS/DEPTH", "MEAN", "AT DEPTH",
	}, 2, rows)
	if left > 0 {
		p.wrapped("", fmt.Sprintf("%s with one call at a time, or beyond the first %d; -v shows them", units.Plural(left, "more connection"), shownConns))
	}
	p.levels()
	p.buffers()
}

// nearlyFull is the share of a receive buffer from which a message nearly does not fit.
const nearlyFull = 0.9

// buffers shows how much of the receive buffers messages fill, and how many of the buffers calls in flight take. Without -v, only what is
// nearly full, or was not ready.
func (p *reportPrinter) buffers() {
	var rows [][]string
	for i := range p.rep.Connections {
		c := &p.rep.Connections[i]
		f := c.Forward
		if f == nil || f.Granted.Max == 0 {
			continue
		}
		for _, x := range []struct {
			name     string
			size     uint32
			largest  int
			promised uint32
			rnr      uint64
		}{{"server", c.InlineCall, f.LargestCall, f.Granted.Max, c.Server.RNRs}, {"client", c.InlineReply, f.LargestReply, f.Requested.Max, c.Client.RNRs}} {
			full := x.size > 0 && float64(x.largest) >= nearlyFull*float64(x.size)
			if !p.opt.Verbose && !full && x.rnr == 0 && f.Most < int(x.promised) {
				continue
			}
			row := []string{fmt.Sprint(c.Connection), x.name, "-", fmt.Sprint(x.largest), "-", fmt.Sprint(x.promised), fmt.Sprint(f.Most), units.Number(x.rnr)}
			if x.size > 0 {
				row[2], row[4] = fmt.Sprint(x.size), units.Percent(float64(x.largest)/float64(x.size))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return
	}
	p.title("Receive buffers: size, largest message in bytes, buffers promised by credits and most in use")
	p.table([]string{"CONNECTION", "RECEIVER", "SIZE", "LARGEST", "FULL %", "PROMISED", "IN USE", "RNR NAKS"}, 2, rows)
}

// levels shows how long which number of calls was in flight, of the connection
// with the most.
func (p *reportPrinter) levels() {
	var busiest *latency.Connection
	for i := range p.rep.Connections {
		c := &p.rep.Connections[i]
		if c.Forward != nil && (busiest == nil || c.Forward.Most > busiest.Forward.Most) {
			busiest = c
		}
	}
	if busiest == nil || busiest.Forward.Most < 2 {
		return
	}
	levels := busiest.Forward.Levels
	var all float64 // times of a damaged capture may be larger together than 64 bits
	for _, l := range levels {
		if l.N > 0 {
			all += float64(l.Time)
		}
	}
	if all == 0 {
		return
	}
	p.printf("\nConnection %d, share of its busy time by calls in flight:\n\n", busiest.Connection)
	step := (busiest.Forward.Most + 15) / 16
	for from := 1; from <= busiest.Forward.Most; from += step {
		var t float64
		for _, l := range levels {
			if l.N >= from && l.N < from+step {
				t += float64(l.Time)
			}
		}
		name := fmt.Sprint(from)
		if step > 1 {
			name = fmt.Sprintf("%d-%d", from, from+step-1)
		}
		line := fmt.Sprintf("  %7s %6.2f%% %s", name, 100*t/all, strings.Repeat("#", int(t/all*50+0.5)))
		p.printf("%s\n", strings.TrimRight(line, " "))
	}
}

func rangeText(a, b uint32) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d-%d", a, b)
}

func (p *reportPrinter) troubles() {
	if len(p.rep.Troubles) == 0 {
		return
	}
	p.title("Trouble: affected transactions, compared with unaffected ones of the same groups")
	var rows [][]string
	for _, t := range p.rep.Troubles {
		row := []string{t.Kind, units.Number(t.Events), units.Number(t.Transactions), units.Number(t.Unfinished), "-", "-", "-", ""}
		if t.Compared > 0 {
			row[4], row[5] = units.Duration(t.Mean), units.Duration(t.Others)
			if t.Others > 0 {
				row[6] = fmt.Sprintf("%+.0f%%", 100*(float64(t.Mean)/float64(t.Others)-1))
			}
		}
		var xids []string
		for _, x := range t.XIDs[:min(len(t.XIDs), shownXIDs, p.width/9-5)] {
			xids = append(xids, fmt.Sprintf("%08x", x.XID))
		}
		if t.Transactions > uint64(len(xids)) {
			xids = append(xids, "…")
		}
		row[7] = strings.Join(xids, " ")
		rows = append(rows, row)
	}
	p.table([]string{"KIND", "EVENTS", "TOUCHED", "NO TIME", "MEAN", "OTHERS", "SLOWER", " XID"}, 1, rows)
}

func (p *reportPrinter) slowest() {
	if len(p.rep.Slowest) == 0 {
		return
	}
	p.title("Slowest transactions (bar: c call, p pull, s server, w push, r reply)")
	list := p.rep.SlowestOfWork()
	for _, x := range list {
		var parts [transaction.NumParts]int64
		for ph := range transaction.Parts() {
			parts[ph] = x.Phases[ph.String()]
		}
		what := x.Operation
		if x.File != "" {
			what += " " + x.File
		}
		bar := min(barWidth, p.width/2-14)
		b := text.Shorten([]byte(what), p.width-bar-22)
		p.printf("%9s |%s| %08x %s\n", units.Duration(x.Total), waterfall(parts[:], x.Total, bar), x.XID, b)
		line := fmt.Sprintf("connection %d, frames %d-%d, %s, %s", x.Connection, x.CallFrame, x.ReplyFrame, x.Model, shortStatus(x))
		if x.Capture != "" {
			line = fmt.Sprintf("frame %d of %s, ", x.Packet, safe(path.Base(x.Capture))) + line
		}
		if x.Tap != "" {
			line = safe(x.Tap) + ": " + line
		}
		if x.Count > 0 {
			line += fmt.Sprintf(", %s at %s", units.Size(x.Count), units.Size(x.Offset))
		}
		if x.InFlight > 1 {
			line += fmt.Sprintf(", %d in flight", x.InFlight)
		}
		if len(x.Troubles) > 0 {
			line += ", " + strings.Join(x.Troubles, " ")
			if x.Retransmit > 0 {
				line += fmt.Sprintf(" (%s again)", units.Plural(x.Retransmit, "packet"))
			}
		}
		p.wrapped("          ", line)
		if x.Cause != "" {
			p.wrapped("          ", lostLine(x))
		}
		for _, n := range x.Notes {
			p.wrapped("          ", "note: "+safe(n))
		}
	}
	var setup []*latency.Slow // slower than the last one of the list
	if !list[0].Setup() {
		setup = slices.DeleteFunc(slices.Clone(p.rep.Slowest), func(x *latency.Slow) bool { return !x.Setup() })
	}
	if len(setup) > 0 {
		x := setup[0]
		p.wrapped("", fmt.Sprintf("Not listed: %s that set a mount up or end it; the slowest is %08x %s, %s", units.Plural(len(setup), "call"), x.XID, x.Operation, units.Duration(x.Total)))
	}
}

// lostLine says what a transaction lost its time to, most first.
func lostLine(x *latency.Slow) string {
	names := slices.Collect(maps.Keys(x.Lost))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(x.Lost[b], x.Lost[a]), cmp.Compare(a, b)) })
	for i, n := range names {
		names[i] = fmt.Sprintf("%s (%s %%) to %s", units.Duration(x.Lost[n]), units.Percent(float64(x.Lost[n])/float64(x.Total)), strings.ReplaceAll(n, "_", " "))
	}
	return "lost " + strings.Join(names, ", ")
}

func shortStatus(x *latency.Slow) string {
	if !x.Failed {
		return "ok"
	}
	return x.Status
}

// setup shows how connections were set up: those that were set up alike
// together.
func (p *reportPrinter) setup() {
	ids := make(map[string][]string)
	var order []string
	for i := range p.rep.Connections {
		c := &p.rep.Connections[i]
		if !isRDMAName(c.Fabric) && len(c.Remarks) == 0 {
			continue
		}
		s := p.setupText(c)
		if ids[s] == nil {
			order = append(order, s)
		}
		ids[s] = append(ids[s], fmt.Sprint(c.Connection))
	}
	if len(order) == 0 {
		return
	}
	p.title("Setup of the connections")
	for i, s := range order {
		if i >= shownConns && !p.opt.Verbose {
			p.printf("%s of setup; -v shows them\n", units.Plural(len(order)-shownConns, "more kind"))
			break
		}
		list := ids[s]
		if len(list) > 8 {
			list = append(append([]string{}, list[:7]...), fmt.Sprintf("… (%d in all)", len(ids[s])))
		}
		head, rest, _ := strings.Cut(s, "\n")
		for i, line := range wrap(strings.Join(list, ", ")+": "+head, p.width) {
			if i > 0 {
				line = "   " + line
			}
			p.printf("%s\n", line)
		}
		p.printf("%s", rest)
	}
}

// setupText describes the setup of a connection.
func (p *reportPrinter) setupText(c *latency.Connection) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s > %s", c.Fabric, c.Client.Address, c.Server.Address)
	if c.MTU > 0 {
		fmt.Fprintf(&b, ", %s %d", text.MTU(c.Fabric), c.MTU)
	}
	if c.Depth >= 0 {
		fmt.Fprintf(&b, ", Read depth %d", c.Depth)
	}
	if c.InlineCall > 0 {
		fmt.Fprintf(&b, ", inline %d/%d", c.InlineCall, c.InlineReply)
	}
	if s, o := c.Client.Setup, c.Server.Setup; s != nil && o != nil {
		if c.Fabric == "iwarp" {
			fmt.Fprintf(&b, ",\n   MPA revision %d, CRC %s, markers %s", min(s.MPARevision, o.MPARevision),
				onOff(s.CRC || o.CRC), onOff(s.Markers || o.Markers))
		} else {
			timeout := "none"
			if s.AckTimeout > 0 {
				timeout = units.Duration(s.AckTimeout)
			}
			fmt.Fprintf(&b, ",\n   retries %d, RNR retries %d/%d, ACK timeout %s", s.RetryCount, s.RNRRetryCount, o.RNRRetryCount, timeout)
		}
	}
	b.WriteByte('\n')
	for _, r := range c.Remarks {
		mark := "-"
		if r.Level == "warning" {
			mark = "!"
		}
		for i, line := range wrap(r.Text, p.width-6) {
			if i > 0 {
				mark = " "
			}
			fmt.Fprintf(&b, "  %s %s\n", mark, line)
		}
	}
	return b.String()
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func isRDMAName(fabric string) bool { return fabric != "tcp" && fabric != "udp" }

// wrap breaks a line between words.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func (p *reportPrinter) notes() {
	for i, n := range p.rep.Notes {
		if i == 0 {
			p.printf("\n")
		}
		p.line("note: " + n)
	}
}
