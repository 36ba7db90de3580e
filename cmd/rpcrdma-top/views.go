package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/adapter"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// view is one of the screens.
type view int

const (
	overview view = iota
	transactions
	connections
	files
	clients
	heatmap
	wire
	sessions
	causes
	views
)

var viewNames = [views]string{"Overview", "Transactions", "Connections", "Files", "Clients", "Latency", "Fabric", "Sessions", "Why"}

// shortNames are the names for narrow windows: all of them fit into 80 columns.
var shortNames = [views]string{"Overview", "Trans", "Conns", "Files", "Clients", "Latency", "Fabric", "Sess", "Why"}

// partTones has the tone of each of latency.Group.Parts.
var partTones = [...]tone{part0, part1, part2, part3, part4, latency.PathPart: accent, latency.UndividedPart: dim}

const partLetters = "cpswr-?"

// phaseSums are the times of the phases of a group, of the path, and what is undivided.
func phaseSums(x *latency.Group) []int64 {
	parts := x.Parts()
	return parts[:]
}

// phaseTimes is phaseSums for an interval, with the sum of its latencies.
func phaseTimes(parts *monitor.Times, time int64) []int64 {
	return append(parts[:], max(time-sum(parts[:]), 0))
}

// stack draws the shares of the phases as one bar. Without colors it consists of their letters, which work
// everywhere.
func (d *drawing) stack(parts []int64, width int) []span {
	var out []span
	used := 0
	for i, n := range shares(parts, width) {
		if n == 0 {
			continue
		}
		s := strings.Repeat(partLetters[i:i+1], n)
		if d.st.color {
			s = strings.Repeat(d.g.full, n)
		}
		out = append(out, span{s, partTones[i]})
		used += n
	}
	return append(out, span{strings.Repeat(" ", max(width-used, 0)), normal})
}

// drawing is what all views need.
type drawing struct {
	g     *glyphs
	st    *styles
	hosts *hosts // nil: addresses are shown as such
}

// operationsTable lists operations: the latest interval, or totals.
func (d *drawing) operationsTable(s *monitor.Snapshot, totals bool) *table {
	t := &table{
		columns: []column{
			{title: "OPERATION", width: 9, want: 20, most: 30, head: true},
			{title: "OPS/S", width: 6, right: true, rank: 1},
			{title: "B/S", width: 6, right: true, rank: 2},
			{title: "P50", width: 7, right: true, rank: 1},
			{title: "P99", width: 7, right: true, rank: 1},
			{title: "MAX", width: 7, right: true, rank: 6},
			{title: "%TIME", width: 6, right: true, rank: 2},
			{title: "ERR", width: 4, right: true, rank: 3},
			{title: "COUNT", width: 6, right: true, rank: 3},
			{title: "RATE", width: 7, most: 60, share: 2, rank: 4},
			{title: "P99 OVER TIME", width: 8, most: 60, share: 2, rank: 7},
			{title: "PHASES", width: 7, most: 30, share: 1, rank: 5},
		},
		empty: "no transactions yet",
	}
	seconds := float64(s.Time-s.Since) / 1e9
	spent := func(o *monitor.Operation) float64 {
		if !totals {
			return float64(o.Time)
		}
		if o.Total == nil {
			return 0
		}
		return float64(o.Total.Latency.Sum)
	}
	allTime := 0.0
	for i := range s.Ops {
		allTime += spent(&s.Ops[i])
	}
	for i := range s.Ops {
		o := &s.Ops[i]
		var ops, bytes float64
		var p50, p99, most int64
		var errors uint64
		parts := phaseTimes(&o.Parts, o.Time)
		total := uint64(0)
		if o.Total != nil {
			total = o.Total.Count
		}
		if totals {
			if o.Total == nil {
				continue
			}
			x := o.Total
			if seconds > 0 {
				ops, bytes = float64(x.Count)/seconds, float64(x.CallBytes+x.ReplyBytes)/seconds
			}
			p50, p99, most, errors = x.Latency.P50, x.Latency.P99, x.Latency.Max, x.Errors
			parts = phaseSums(x)
		} else {
			ops, bytes = s.Rate(o.Now.Count), s.Rate(o.Now.Bytes)
			p50, p99, most, errors = o.Now.P50, o.Now.P99, o.Max, o.Errors
		}
		rates, slow := make([]float64, len(o.Points)), make([]float64, len(o.Points))
		for j, p := range o.Points {
			rates[j], slow[j] = float64(p.Count), float64(p.P99)
		}
		share, shareKey := "-", spent(o)
		if shareKey > 0 {
			share = strconv.FormatFloat(100*shareKey/allTime, 'f', 1, 64)
		}
		if o.Total != nil {
			shareKey += float64(o.Total.Latency.Sum) * 1e-12 // a quiet interval keeps the order
		}
		r := row{id: o.Name, cells: []cell{
			{text: o.Name},
			{text: units.Rate(ops), key: ops},
			{text: units.Bytes(bytes), key: bytes},
			{text: units.Latency(p50), key: float64(p50)},
			{text: units.Latency(p99), key: float64(p99)},
			{text: units.Latency(most), key: float64(most)},
			{text: share, key: shareKey},
			{text: units.CountCell(errors), key: float64(errors), tone: toneIf(errors > 0, bad)},
			{text: units.CountCell(total), key: float64(total)},
			{key: ops, draw: func(w int) []span { return []span{{d.g.sparkline(rates, w), accent}} }},
			{key: float64(p99), draw: func(w int) []span { return []span{{d.g.sparkline(slow, w), warn}} }},
			{key: float64(sum(parts)), draw: func(w int) []span { return d.stack(parts, w) }},
		}}
		if !totals && o.Now.Count == 0 {
			r.tone = dim
		}
		t.rows = append(t.rows, r)
	}
	return t
}

func toneIf(on bool, t tone) tone {
	if on {
		return t
	}
	return normal
}

func sum(v []int64) (n int64) {
	for _, x := range v {
		n += x
	}
	return n
}

// head is the part above the table of operations: why calls are slow, rates and percentiles, calls in flight, transport
// troubles, what is malformed, what was given up, phases.
func (d *drawing) head(s *monitor.Snapshot, width int, totals bool) [][]span {
	lines := d.headWhy(s, width, totals)
	lines = append(lines, d.headRates(s, (width-2)/2, totals)...)
	lines = append(lines, d.headFlight(s, totals), headWire(s))
	for _, line := range [...][]span{headMalformed(s), headGivenUp(s)} {
		if line != nil {
			lines = append(lines, line)
		}
	}
	return append(lines, d.headPhases(s, width, totals))
}

// current is a value of the last interval; "-" before the first has ended.
func (d *drawing) current(s *monitor.Snapshot, v string) string {
	if !s.HasNow {
		return "-"
	}
	return d.g.plain(v)
}

// headRates are two lines with two values each, and their history.
func (d *drawing) headRates(s *monitor.Snapshot, half int, totals bool) [][]span {
	ops, bytes, p50, p99 := s.Rate(s.Now.Count), s.Rate(s.Now.Bytes), s.Now.P50, s.Now.P99
	if x := s.Total; totals && x != nil {
		ops, bytes = rates(s, 0, 0, x.Count, x.CallBytes+x.ReplyBytes, true, s.Since)
		p50, p99 = x.Latency.P50, x.Latency.P99
	}
	pair := func(label, value string, t tone, history func(*monitor.Slot) float64) []span {
		line := make([]float64, len(s.History))
		for i := range s.History {
			line[i] = history(&s.History[i])
		}
		return []span{
			{d.g.fit(label, 10, false), dim}, {" ", normal}, {d.g.fit(d.current(s, value), 8, true), bold}, {" ", normal},
			{d.g.sparkline(line, max(half-11-9, 0)), t},
		}
	}
	join := func(a, b []span) []span { return append(append(a, span{"  ", normal}), b...) }
	return [][]span{
		join(
			pair("ops/s", units.Rate(ops), accent, func(x *monitor.Slot) float64 { return float64(x.Count) }),
			pair("bytes/s", units.Bytes(bytes), accent, func(x *monitor.Slot) float64 { return float64(x.Bytes) })),
		join(
			pair("p50", units.Latency(p50), warn, func(x *monitor.Slot) float64 { return float64(x.P50) }),
			pair("p99", units.Latency(p99), warn, func(x *monitor.Slot) float64 { return float64(x.P99) })),
	}
}

// headFlight is the line with the calls in flight, and with the connection that
// has the fewest credits left.
func (d *drawing) headFlight(s *monitor.Snapshot, totals bool) []span {
	mean := s.InFlight()
	if x := s.Total; totals && x != nil && s.Time > s.Since {
		mean = float64(x.Latency.Sum) / float64(s.Time-s.Since)
	}
	line := []span{
		{"in flight  ", dim}, {strconv.Itoa(s.Open), bold},
		{fmt.Sprintf(" now, %s mean", d.current(s, fmt.Sprintf("%.2f", mean))), normal},
	}
	if s.Stuck > 0 {
		line = append(line, span{fmt.Sprintf(", %d stuck", s.Stuck), bad})
	}
	if s.Stuck > 0 || s.Open > 0 {
		line = append(line, span{", oldest " + d.g.plain(units.Elapsed(s.Oldest)), normal})
	}
	if used, granted, at := credits(s); granted > 0 {
		line = append(line, span{"  credits ", dim}, span{fmt.Sprintf("%d/%d", used, granted), toneIf(used >= int(granted), bad)},
			span{fmt.Sprintf(" on connection %d", at), normal})
	}
	return line
}

// headWire is the line with the transport troubles, and with the packets that the system failed to deliver.
func headWire(s *monitor.Snapshot) []span {
	drops := span{"-", normal}
	if s.HasDrops {
		drops = span{units.Count(s.Drops), toneIf(s.Drops > 0, bad)}
	}
	h := &s.Health
	line := []span{
		{"wire       ", dim}, {"retransmits ", normal}, {units.CountCell(h.Retransmits), toneIf(h.Retransmits > 0, warn)}, {"  drops ", normal}, drops,
	}
	for _, x := range []struct {
		name string
		n    uint64
		t    tone
	}{
		{"NAK", h.NAKs, bad}, {"RNR", h.RNRs, bad}, {"CNP", h.CNPs, warn}, {"ECN", h.ECN, warn}, {"gaps", h.Gaps, warn}, {"CRC", h.BadCRC, bad},
	} {
		line = append(line, span{"  ", normal}, span{x.name + " ", normal}, span{units.CountCell(x.n), toneIf(x.n > 0, x.t)})
	}
	if s.Alarms > 0 {
		line = append(line, span{"  alarms ", normal}, span{strconv.Itoa(s.Alarms), bad})
	}
	return line
}

// headMalformed counts what could not be decoded although it was captured; nil if there is nothing of the kind.
func headMalformed(s *monitor.Snapshot) []span {
	st, m := &s.Decoder, &s.Orphans.Malformed
	var line []span
	for _, x := range []struct {
		n    uint64
		what string
	}{
		{m.Total(), "RPC-over-RDMA header"}, {st.Undecodable - st.CutShort, "packet"},
		{st.OddFragments, "IP fragment"}, {st.Misframed.Count, "FPDU"}, {st.Differing.Count, "differing packet"}, {st.Displaced.Count, "disordered TCP stream"},
		{st.Mismarked.Count, "RPC record"},
	} {
		if x.n == 0 {
			continue
		}
		sep := span{"malformed  ", dim}
		if line != nil {
			sep = span{", ", normal}
		}
		line = append(line, sep, span{units.Plural(x.n, x.what), bad})
		if f := &m.First; x.n == m.Total() && f.Ref.Seen() && len(line) == 2 {
			line = append(line, span{fmt.Sprintf(" (first: packet %d, byte %d)", f.Ref.Number, f.Offset), normal})
		}
	}
	return line
}

// headGivenUp counts what was given up for lack of memory. It returns nil if nothing was.
func headGivenUp(s *monitor.Snapshot) (line []span) {
	for _, x := range []struct {
		n    uint64
		what string
	}{{s.Decoder.EvictedConnections, "connection"}, {s.Orphans.Evicted, "open call"}, {s.Decoder.EvictedDatagrams, "IP datagram"}} {
		if x.n == 0 {
			continue
		}
		sep := span{"given up   ", dim}
		if line != nil {
			sep = span{", ", normal}
		}
		line = append(line, sep, span{units.Plural(x.n, x.what), bad})
	}
	if line != nil {
		line = append(line, span{" for lack of memory: --limit-memory", normal})
	}
	return line
}

// headPhases is a bar with the shares of the phases, and its legend.
func (d *drawing) headPhases(s *monitor.Snapshot, width int, totals bool) []span {
	parts := phaseTimes(&s.Now.Parts, s.Now.Time)
	if x := s.Total; totals && x != nil {
		parts = phaseSums(x)
	}
	all := sum(parts)
	var legend []span
	room := 0
	say := func(part int, name string) {
		share := "-"
		if n := parts[part]; all > 0 && n > 0 {
			share = strconv.FormatFloat(100*float64(n)/float64(all), 'f', 0, 64) + "%"
			if share == "0%" {
				share = "<1%"
			}
		}
		piece := []span{{"  ", normal}, {name, partTones[part]}, {" " + share, normal}}
		for _, x := range piece {
			room += len(x.text)
		}
		legend = append(legend, piece...)
	}
	for p := range transaction.Parts() {
		say(int(p), p.Short())
	}
	if parts[latency.PathPart] > 0 {
		say(latency.PathPart, "path")
	}
	if parts[latency.UndividedPart] > 0 {
		say(latency.UndividedPart, "?")
	}
	line := []span{{"phases     ", dim}}
	line = append(line, d.stack(parts, max(width-11-room, 4))...)
	return append(line, legend...)
}

// credits finds the connection with the largest part of its credits in use.
func credits(s *monitor.Snapshot) (used int, granted uint32, id int) {
	best := -1.0
	for i := range s.Connections {
		c := &s.Connections[i]
		if c.Granted == 0 || c.State != "open" {
			continue
		}
		if f := float64(c.Used) / float64(c.Granted); f > best {
			best, used, granted, id = f, c.Used, c.Granted, c.ID
		}
	}
	return used, granted, id
}

// transactionsTable lists transactions, open ones first.
func (d *drawing) transactionsTable(s *monitor.Snapshot) *table {
	t := &table{
		columns: []column{
			{title: "AGE", width: 7, right: true},
			{title: "XID", width: 8},
			{title: "OPERATION", width: 9, want: 18, most: 26, head: true, rank: 1},
			{title: "FILE", width: 8, want: 22, most: 120, share: 4, short: distinct, rank: 2},
			{title: "CHUNKS", width: 8, want: 9, most: 40, rank: 3, name: true},
			{title: "MOVED", width: 5, most: 20, share: 1, rank: 5},
			{title: "IO", width: 3, rank: 4},
			{title: "STATE", width: 6, want: 8, most: 16, rank: 1, name: true},
			{title: "CONN", width: 4, right: true, rank: 7},
			{title: "CLIENT", width: 9, want: addressWidth, most: 40, rank: 8, short: distinct, apart: true},
			{title: "SERVER", width: 9, want: addressWidth, most: 40, rank: 9, short: distinct, apart: true},
			{title: "BYTES", width: 6, right: true, rank: 10},
			{title: "AGAIN", width: 5, right: true, rank: 6},
		},
		empty: "no transactions",
	}
	t.more, t.first = uint64(s.Beyond), s.PageFrom
	if all, listed := endedInAll(s), uint64(listedEnded(s)); all > listed {
		t.more += all - listed
	}
	for i := range s.Rows {
		x := &s.Rows[i]
		chunks := x.Chunks
		if x.Ended == 0 {
			chunks = x.ChunkList()
		}
		state, stateTone := x.Phase.Short(), phaseTone(x.Phase)
		if x.Ended != 0 {
			state = x.Status
			switch {
			case x.Failed, x.Status == "no reply":
				stateTone = bad
			case x.State != transaction.Complete:
				stateTone = warn
				if state == "" || state == "ok" {
					state = x.State.String()
				}
			case state == "":
				state = "done"
			}
		} else if x.Stuck {
			stateTone = bad
		}
		io := ""
		if x.Reads > 0 {
			io = strconv.Itoa(x.Reads) + "r"
		}
		if x.Writes > 0 {
			io += strconv.Itoa(x.Writes) + "w"
		}
		moved, offered := x.Moved, x.Offered
		operation := x.Operation
		if x.Backward {
			operation = "<" + operation
		}
		r := row{id: strconv.FormatUint(x.Serial, 10), cells: []cell{
			{text: units.Elapsed(x.Age), key: float64(x.Age)},
			{text: fmt.Sprintf("%08x", x.XID), key: float64(x.XID)},
			{text: operation, tone: toneIf(x.Open, bold)},
			{text: x.Subject},
			{text: chunks, key: float64(offered)},
			{key: float64(moved), draw: func(w int) []span { return d.moved(moved, offered, w) }},
			{text: io, key: float64(x.Reads + x.Writes)},
			{text: state, tone: stateTone},
			{text: strconv.Itoa(x.Connection), key: float64(x.Connection)},
			{text: d.hosts.name(x.Client)},
			{text: d.hosts.name(x.Server)},
			{text: units.Bytes(moved), key: float64(moved)},
			{text: units.CountCell(uint64(x.Retransmit)), key: float64(x.Retransmit), tone: toneIf(x.Retransmit > 0, warn)},
		}}
		switch {
		case x.Stuck:
			r.mark = "!"
		case x.Ended != 0:
			r.tone = dim
		}
		t.rows = append(t.rows, r)
	}
	return t
}

func phaseTone(p transaction.Phase) tone {
	switch p {
	case transaction.PhaseWait, transaction.PhasePull:
		return part1
	case transaction.PhaseServer:
		return part2
	case transaction.PhasePush:
		return part3
	case transaction.PhaseAck:
		return part4
	}
	return normal
}

// moved draws how much of what was offered has been moved.
func (d *drawing) moved(part, whole uint64, width int) []span {
	if whole == 0 {
		return []span{{d.g.fit("-", width, false), normal}}
	}
	if width < 9 {
		return []span{{d.g.fit(strconv.Itoa(int(100*float64(part)/float64(whole)))+"%", width, true), normal}}
	}
	return []span{{d.g.bar(part, whole, width-5), part3}, {d.g.fit(strconv.Itoa(int(100*float64(part)/float64(whole)))+"%", 5, true), normal}}
}

// fabricTable lists connections of RDMA by what they suffer.
func (d *drawing) fabricTable(s *monitor.Snapshot, totals bool) *table {
	if len(s.Adapters) > 0 && len(s.Fabric) == 0 {
		return adaptersTable(s, totals)
	}
	t := &table{
		columns: []column{
			{title: "ID", width: 2, right: true},
			{title: "ONE END", width: 9, want: addressWidth, most: 40, rank: 1, short: distinct, apart: true},
			{title: "OTHER", width: 9, want: addressWidth, most: 40, rank: 1, short: distinct, apart: true},
			{title: "SERVICE", width: 7, want: 8, most: 20, rank: 3, head: true},
			{title: "STALLED", width: 7, right: true, rank: 1},
			{title: "LOSSES", width: 6, right: true, rank: 2},
			{title: "AGAIN", width: 5, right: true, rank: 1},
			{title: "%", id: "%again", width: 4, right: true, rank: 3},
			{title: "RNR", width: 3, right: true, rank: 2},
			{title: "CNP", width: 3, right: true, rank: 2},
			{title: "MARK%", width: 5, right: true, rank: 2},
			{title: "ALARMS", width: 6, want: 13, most: 40, rank: 1, head: true},
			{title: "B/S", width: 6, right: true, rank: 4},
			{title: "RECOVERY", width: 8, right: true, rank: 5},
			{title: "NOT READY", width: 9, right: true, rank: 6},
			{title: "CONGESTED", width: 9, right: true, rank: 6},
			{title: "DEPTH", width: 7, right: true, rank: 7},
			{title: "FABRIC", width: 6, rank: 8},
		},
		empty: "no connection of RDMA yet",
		more:  uint64(s.FabricRest),
	}
	share := func(part, whole uint64) string {
		if part == 0 || whole == 0 {
			return "-"
		}
		return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64)
	}
	spent := func(ns int64) cell {
		if ns == 0 {
			return cell{text: "-"}
		}
		return cell{text: units.Elapsed(ns), key: float64(ns), tone: warn}
	}
	for i := range s.Fabric {
		x := &s.Fabric[i]
		w, seconds := &x.Now, s.NowSpan.Seconds()
		if totals {
			w, seconds = &x.Total, float64(s.Time-s.First)/1e9
		}
		service := x.Service
		if x.Guess {
			service += "?"
		}
		var alarms []string
		for _, a := range x.Alarms {
			alarms = append(alarms, a.String())
		}
		if x.Recovering > 0 {
			alarms = append(alarms, "lost for "+units.Elapsed(x.Recovering))
		}
		bytes := 0.0
		if seconds > 0 {
			bytes = float64(w.Bytes) / seconds
		}
		r := row{id: strconv.Itoa(x.ID), cells: []cell{
			{text: strconv.Itoa(x.ID), key: -float64(x.ID)},
			{text: d.hosts.name(x.Ends[0])},
			{text: d.hosts.name(x.Ends[1])},
			{text: service},
			spent(w.Stalled()),
			{text: units.CountCell(w.Episodes), key: float64(w.Episodes), tone: toneIf(w.Episodes > 0, warn)},
			{text: units.CountCell(w.Again), key: float64(w.Again), tone: toneIf(w.Again > 0, warn)},
			{text: share(w.Again, w.Packets), key: float64(w.Again) / float64(max(w.Packets, 1))},
			{text: units.CountCell(w.RNRs), key: float64(w.RNRs), tone: toneIf(w.RNRs > 0, bad)},
			{text: units.CountCell(w.CNPs), key: float64(w.CNPs), tone: toneIf(w.CNPs > 0, warn)},
			{text: share(w.Marked, w.Packets), key: float64(w.Marked) / float64(max(w.Packets, 1)), tone: toneIf(w.Marked > 0, warn)},
			{text: strings.Join(alarms, " "), key: float64(len(alarms)), tone: bad},
			{text: units.Bytes(bytes), key: bytes},
			spent(w.Lost[rdma.CauseRecovery]),
			spent(w.Lost[rdma.CauseNotReady]),
			spent(w.Lost[rdma.CauseCongestion]),
			spent(w.Lost[rdma.CauseReadSlot]),
			{text: x.Fabric},
		}}
		switch {
		case len(x.Alarms) > 0:
			r.mark = "!"
		case x.Ended:
			r.tone = dim
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// adaptersTable lists the counters of adapters where no packets tell what RDMA does.
func adaptersTable(s *monitor.Snapshot, totals bool) *table {
	t := &table{columns: []column{
		{title: "PORT", width: 6, want: 10, most: 20, rank: 1, head: true},
		{title: "COUNTER", width: 12, want: 28, most: 34, rank: 1, head: true},
		{title: "PER S", width: 7, right: true, rank: 1},
		{title: "TOTAL", width: 7, right: true, rank: 2},
		{title: "MEANING", width: 7, want: 40, most: 44, rank: 3, head: true},
	}}
	for _, x := range s.Adapters {
		n, seconds := x.Now, s.NowSpan.Seconds()
		if totals {
			n, seconds = x.All, float64(s.Time-s.First)/1e9
		}
		rate := 0.0
		if seconds > 0 {
			rate = float64(n) / seconds
		}
		what := adapter.Meaning(x.Counter)
		t.rows = append(t.rows, row{id: x.Port + " " + x.Counter, cells: []cell{
			{text: x.Port},
			{text: x.Counter},
			{text: units.CountCell(uint64(rate + 0.5)), key: rate, tone: toneIf(what != "" && n > 0, warn)},
			{text: units.CountCell(x.All), key: float64(x.All)},
			{text: what},
		}})
	}
	return t
}

// alike reports whether connections have the same two addresses: ports or queue pairs tell them apart.
func alike(list []monitor.Connection) bool {
	seen := make(map[[2]string]bool, len(list))
	for i := range list {
		ends := [2]string{list[i].Client.Address, list[i].Server.Address}
		if seen[ends] {
			return true
		}
		seen[ends] = true
	}
	return false
}

// connectionsTable lists connections.
func (d *drawing) connectionsTable(s *monitor.Snapshot, totals bool) *table {
	endRank := 5
	if alike(s.Connections) {
		endRank = 1
	}
	t := &table{
		columns: []column{
			{title: "ID", width: 2, right: true},
			{title: "CLIENT", width: 9, want: addressWidth, most: 40, rank: 1, short: distinct, apart: true},
			{title: "", id: "client-end", width: 0, most: 12, rank: endRank},
			{title: "SERVER", width: 9, want: addressWidth, most: 40, rank: 1, short: distinct, apart: true},
			{title: "", id: "server-end", width: 0, most: 12, rank: 5},
			{title: "FABRIC", width: 6, rank: 3},
			{title: "OPS/S", width: 5, right: true, rank: 2},
			{title: "B/S", width: 6, right: true, rank: 3},
			{title: "CREDITS", width: 7, rank: 2},
			{title: "ERRORS", width: 6, most: 30, rank: 4},
			{title: "MODEL", width: 6, want: 20, most: 44, rank: 6, name: true, share: 1},
			{title: "STATE", width: 5, want: 12, most: 40, rank: 4, head: true},
			{title: "MTU", width: 4, right: true, rank: 7},
			{title: "COUNT", width: 5, right: true, rank: 8},
			{title: "INLINE", width: 6, rank: 9},
			{title: "MEAN", width: 7, right: true, rank: 10},
		},
		empty: "no connection carries RPC yet",
		more:  uint64(s.ConnsRest),
	}
	for i := range s.Connections {
		c := &s.Connections[i]
		creditText, creditTone := "-", normal
		if c.Granted > 0 || c.Asked > 0 {
			creditText = fmt.Sprintf("%d/%d/%d", c.Used, c.Granted, c.Asked)
			if c.Granted > 0 && c.Used >= int(c.Granted) {
				creditTone = bad
			}
		}
		state := c.State
		if c.Ending != "" {
			state = c.Ending
		}
		var model []string
		for _, m := range c.Models {
			model = append(model, fmt.Sprintf("%s %s", m.Model, units.PartCell(m.Count, c.Count)))
		}
		faults, n := faultsOf(c)
		inline := "-"
		if c.InlineCall > 0 {
			inline = units.Size(c.InlineCall) + "/" + units.Size(c.InlineReply)
		}
		ops, bytes := rates(s, c.Now.Count, c.Now.Bytes, c.Count, c.Bytes, totals, s.First)
		mean := int64(0)
		if c.Count > 0 {
			mean = c.Time / int64(min(c.Count, 1<<62))
		}
		r := row{id: strconv.Itoa(c.ID), cells: []cell{
			{text: strconv.Itoa(c.ID), key: -float64(c.ID)},
			{text: d.hosts.name(c.Client.Address)},
			{text: c.Client.Endpoint},
			{text: d.hosts.name(c.Server.Address)},
			{text: c.Server.Endpoint},
			{text: c.Fabric},
			{text: units.Rate(ops), key: ops},
			{text: units.Bytes(bytes), key: bytes},
			{text: creditText, key: float64(c.Used), tone: creditTone},
			{text: faults, key: float64(n), tone: toneIf(n > 0, warn)},
			{text: strings.Join(model, ", ")},
			{text: state, tone: toneIf(c.State != "open", warn)},
			{text: units.CountCell(uint64(c.MTU)), key: float64(c.MTU)},
			{text: units.CountCell(c.Count), key: float64(c.Count)},
			{text: inline, key: float64(c.InlineCall)},
			{text: units.Latency(mean), key: float64(mean)},
		}}
		if c.Stuck > 0 {
			r.mark = "!"
		}
		if c.State != "open" {
			r.tone = dim
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// usageTable lists files or clients; all is the time of all of them, and rest how many are not in the list.
func (d *drawing) usageTable(s *monitor.Snapshot, list []monitor.Usage, all int64, rest int, what string, totals bool) *table {
	t := &table{
		more: uint64(rest),
		columns: []column{
			{title: what, width: 16, want: 40, most: 200, share: 3, short: distinct},
			{title: "OPS/S", width: 6, right: true, rank: 1},
			{title: "B/S", width: 6, right: true, rank: 1},
			{title: "MEAN", width: 7, right: true, rank: 1},
			{title: "COUNT", width: 6, right: true, rank: 1},
			{title: "BYTES", width: 6, right: true, rank: 2},
			{title: "TIME", width: 7, right: true, rank: 1},
			{title: "%TIME", width: 6, right: true, rank: 3},
			{title: "ERR", width: 4, right: true, rank: 2},
			{title: "IDLE", width: 7, right: true, rank: 4},
			{title: "", id: "bar", width: 10, most: 40, share: 1, rank: 5},
		},
		empty: "nothing yet",
	}
	var most int64
	for i := range list {
		most = max(most, list[i].Time)
	}
	for i := range list {
		x := &list[i]
		mean := int64(0)
		if x.Count > 0 {
			mean = x.Time / int64(min(x.Count, 1<<62))
		}
		share := 0.0
		if all > 0 {
			share = 100 * float64(x.Time) / float64(all)
		}
		spent := x.Time
		ops, bytes := rates(s, x.Now.Count, x.Now.Bytes, x.Count, x.Bytes, totals, s.Since)
		id, name := x.Name, x.Name
		if what == "CLIENT" {
			name = d.hosts.name(name)
		}
		if x.Shared {
			id = inNetwork(x)
			name += " in " + text.NetworkName(x.Tunnel)
		}
		r := row{id: id, cells: []cell{
			{text: name},
			{text: units.Rate(ops), key: ops},
			{text: units.Bytes(bytes), key: bytes},
			{text: units.Latency(mean), key: float64(mean)},
			{text: units.CountCell(x.Count), key: float64(x.Count)},
			{text: units.Bytes(x.Bytes), key: float64(x.Bytes)},
			{text: units.Latency(x.Time), key: float64(x.Time)},
			{text: strconv.FormatFloat(share, 'f', 1, 64), key: share},
			{text: units.CountCell(x.Errors), key: float64(x.Errors), tone: toneIf(x.Errors > 0, bad)},
			{text: units.Elapsed(max(s.Time-x.Last, 0)), key: float64(s.Time - x.Last)},
			{key: share, draw: func(w int) []span {
				return []span{{d.g.fit(strings.Repeat(d.g.full, int(float64(w)*float64(spent)/float64(max(most, 1))+0.5)), w, false), accent}}
			}},
		}}
		t.rows = append(t.rows, r)
	}
	return t
}

// inNetwork is a client as the end of a filter for its transactions: its address, and its tunnel.
func inNetwork(x *monitor.Usage) string {
	t := x.Tunnel
	if t == nil {
		return x.Name + " && !tunnel.type"
	}
	s := x.Name + " && tunnel.type == " + strconv.Quote(t.Type)
	if t.HasID {
		s += " && tunnel.id == " + strconv.FormatUint(uint64(t.ID), 10)
	}
	return s
}

// heatLines draws latencies over time: a column for each interval, the latest
// on the right.
func (d *drawing) heatLines(s *monitor.Snapshot, width, height int) [][]span {
	const label = 9
	cols := width - label
	rows := height - 2
	if cols < 4 || rows < 2 {
		return [][]span{{{"too small a window", dim}}}
	}
	hist := s.History
	if len(hist) > cols {
		hist = hist[len(hist)-cols:]
	}
	lo, hi := monitor.HeatBands, -1
	for i := range hist {
		for b, n := range hist[i].Heat {
			if n > 0 {
				lo, hi = min(lo, b), max(hi, b)
			}
		}
	}
	if hi < 0 {
		return [][]span{{{"no latencies yet", dim}}}
	}
	per := 1 // bands in a line
	for (hi-lo)/per+1 > rows {
		per++
	}
	lines := (hi-lo)/per + 1
	at := func(slot *monitor.Slot, line int) (n uint64) {
		for b := lo + line*per; b < min(lo+(line+1)*per, monitor.HeatBands); b++ {
			n += uint64(slot.Heat[b])
		}
		return n
	}
	top := uint64(0)
	for i := range hist {
		for l := range lines {
			top = max(top, at(&hist[i], l))
		}
	}
	var out [][]span
	for l := lines - 1; l >= 0; l-- {
		line := []span{{d.g.fit(d.g.plain(units.Edge(monitor.HeatFrom(lo+l*per))), label-1, true) + " ", dim}}
		line = append(line, span{strings.Repeat(" ", cols-len(hist)), normal})
		for i := range hist {
			step := heatStep(at(&hist[i], l), top)
			if step == 0 {
				line = append(line, span{" ", normal})
				continue
			}
			line = append(line, span{d.g.heat[step], heat0 + tone(step)})
		}
		out = append(out, line)
	}
	axis := []span{{strings.Repeat(" ", label), normal}}
	left := "-" + (time.Duration(cols) * s.Interval).String()
	pad := cols - len(left) - 3
	axis = append(axis, span{left + strings.Repeat(" ", max(pad, 1)) + "now", dim})
	legend := []span{{strings.Repeat(" ", label) + "transactions in an interval of " + s.Interval.String() + ":", dim}}
	for step := 1; step < len(d.g.heat); step++ {
		legend = append(legend, span{" ", normal}, span{d.g.heat[step], heat0 + tone(step)}, span{" " + units.CountCell(heatFrom(step, top)) + "+", dim})
	}
	return append(out, axis, legend)
}

// heatStep is the shade of a count: logarithmic, so that one slow call among thousands is visible.
func heatStep(n, top uint64) int {
	for step := 4; step > 1; step-- {
		if n >= heatFrom(step, top) {
			return step
		}
	}
	if n > 0 {
		return 1
	}
	return 0
}

// heatFrom is the least count of a shade.
func heatFrom(step int, top uint64) uint64 {
	n := uint64(1)
	switch step {
	case 2:
		n = root(root(top))
	case 3:
		n = root(top)
	case 4:
		n = root(top) * root(root(top))
	}
	return max(n, uint64(step))
}

// root is the square root, rounded up.
func root(n uint64) uint64 {
	r := uint64(0)
	for bit := uint64(1) << 31; bit > 0; bit >>= 1 {
		if x := r | bit; x*x <= n {
			r = x
		}
	}
	if r*r < n {
		r++
	}
	return r
}

// faultsOf lists the transport troubles of a connection, both ends together.
func faultsOf(c *monitor.Connection) (s string, total uint64) {
	a, b := &c.Client, &c.Server
	var parts []string
	for _, x := range []struct {
		name string
		n    uint64
	}{
		{"again", a.Retransmits + b.Retransmits}, {"nak", a.NAKs + b.NAKs}, {"rnr", a.RNRs + b.RNRs}, {"crc", a.BadCRC + b.BadCRC},
		{"gap", a.Gaps + b.Gaps}, {"ecn", a.ECN + b.ECN}, {"cnp", a.CNPs + b.CNPs}, {"failed", c.Errors},
	} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", x.name, units.Count(x.n)))
			total += x.n
		}
	}
	if total == 0 {
		return "-", 0
	}
	return strings.Join(parts, " "), total
}

// rates are counts per second: of the latest interval, or since the beginning.
func rates(s *monitor.Snapshot, nowCount, nowBytes, count, bytes uint64, totals bool, since int64) (ops, rate float64) {
	if !totals {
		return s.Rate(nowCount), s.Rate(nowBytes)
	}
	d := float64(s.Time-since) / 1e9
	if d <= 0 {
		return 0, 0
	}
	return float64(count) / d, float64(bytes) / d
}
