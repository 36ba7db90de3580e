package ladder

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// waterfall draws the phases on a common scale.
func (d *Drawer) waterfall(b []byte, tx *transaction.Transaction) []byte {
	t := &d.time
	if !t.Known {
		return append(b, "phases: not known, "+missing(tx)+"\n\n"...)
	}
	g := d.glyphs()
	const name, number, share = 16, 9, 7
	scale := d.width() - name - number - share - 2
	b = append(b, d.paint(text.ColorDim, padRight("phase", name)+padLeft("time", number)+padLeft("share", share))...)
	b = append(b, "  "...)
	total := t.Total
	right := units.Duration(total)
	b = append(b, d.paint(text.ColorDim, "0"+padLeft(right, scale-1))...)
	b = append(b, '\n')
	column := func(at time.Duration) int {
		if total <= 0 {
			return 0
		}
		return int(float64(at) / float64(total) * float64(scale))
	}
	for p := range transaction.Parts() {
		dur := t.Durations[p]
		line := padRight(p.String(), name) + padLeft(units.Duration(dur), number)
		bar := ""
		if total > 0 {
			line += padLeft(fmt.Sprintf("%.1f%%", 100*float64(dur)/float64(total)), share)
			from, to := column(t.Begins(p)), column(t.Begins(p)+dur)
			from = min(from, scale-1)
			switch {
			case dur > 0 && to > from:
				bar = strings.Repeat(" ", from) + d.paint(phaseColor(p), strings.Repeat(g.bar, to-from))
			case dur > 0:
				bar = strings.Repeat(" ", from) + d.paint(phaseColor(p), g.half)
			}
		}
		b = append(b, strings.TrimRight(line+"  "+bar, " ")...)
		b = append(b, '\n')
		if p == transaction.PhasePull && t.PullWait > 0 {
			b = fmt.Appendf(b, "%s%s\n", padRight("  "+transaction.PhaseWait.String(), name), padLeft(units.Duration(t.PullWait), number))
		}
	}
	b = fmt.Appendf(b, "%s%s\n", padRight("total", name), padLeft(right, number))
	if ack := t.Durations[After]; ack >= 0 {
		b = fmt.Appendf(b, "%s%s  after the reply, frame %d\n", padRight(After.String(), name), padLeft(units.Duration(ack), number), tx.Times.Ack.Number)
	}
	return append(b, '\n')
}

func phaseColor(p transaction.Phase) string {
	return [phases]string{text.ColorBold, text.ColorBlue, text.ColorYellow, text.ColorGreen, text.ColorBold, text.ColorDim}[p]
}

func missing(tx *transaction.Transaction) string {
	switch {
	case !tx.Call.Seen():
		return "the call was not captured"
	case !tx.Reply.Seen():
		return "there is no reply"
	case tx.Lacks() != transaction.LackNothing:
		return text.Lack(tx.Lacks())
	}
	return "the reply is older than the call"
}

// summary is the transaction's line of the listing, with totals.
func (d *Drawer) summary(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	d.list.Width, d.list.Color = -80, d.Color // names are whole: long breaks the line
	d.b = d.list.Append(d.b[:0], v)
	b = d.long(b, d.b)
	start := len(b)
	b = fmt.Appendf(b, "%s, %s", tx.State, units.Plural(len(tx.Packets)+tx.PacketsLost, "packet"))
	if tx.Reads > 0 {
		b = fmt.Appendf(b, ", %s of %d bytes", units.Plural(tx.Reads, "RDMA Read"), tx.ReadBytes)
	}
	if tx.Writes > 0 {
		b = fmt.Appendf(b, ", %s of %d bytes", units.Plural(tx.Writes, "RDMA Write"), tx.WriteBytes)
	}
	if tx.Retransmits > 0 {
		b = append(b, ", "...)
		b = append(b, d.paint(text.ColorYellow, units.Plural(tx.Retransmits, "packet")+" seen again")...)
	}
	n, gaps := 0, 0
	for i := range tx.Troubles {
		switch x := &tx.Troubles[i]; x.Kind {
		case rdma.EventNAKSequence, rdma.EventNAKInvalid, rdma.EventNAKAccess, rdma.EventNAKOperation, rdma.EventNAKOther, rdma.EventRNR:
			n++
		case rdma.EventGap:
			gaps++
		}
	}
	if n > 0 {
		b = append(b, ", "...)
		b = append(b, d.paint(text.ColorRed, units.Plural(n, "NAK")+" on the connection meanwhile")...)
	}
	if gaps > 0 {
		b = append(b, ", "...)
		b = append(b, d.paint(text.ColorYellow, units.Plural(gaps, "gap")+" in the capture of it meanwhile")...)
	}
	d.b = append(d.b[:0], b[start:]...)
	return d.long(b[:start], d.b)
}

// long writes a line and breaks it if it is too wide.
func (d *Drawer) long(b, line []byte) []byte {
	for {
		n, last, escape := 0, -1, false
		for i, r := range string(line) {
			switch {
			case r == 0x1b:
				escape = true
			case escape:
				escape = r != 'm'
			default:
				n++
			}
			if n > d.width() {
				break
			}
			if r == ' ' && n > 1 && !escape {
				last = i
			}
		}
		if n <= d.width() || last < 8 {
			return append(append(b, line...), '\n')
		}
		b = append(b, bytes.TrimRight(line[:last], " ")...)
		b = append(b, '\n')
		line = append([]byte("    "), bytes.TrimLeft(line[last:], " ")...)
	}
}

// table shows what each segment offered and received.
func (d *Drawer) table(b []byte) []byte {
	if len(d.segments.all) == 0 {
		return append(b, '\n')
	}
	limit := 32
	if d.Verbose {
		limit = maxSegments
	}
	b = append(b, '\n')
	b = append(b, d.paint(text.ColorDim, fmt.Sprintf("%-8s %-10s  %-18s %9s %9s  %s", "segment", "handle", "offset", "offered", "moved", "served by"))...)
	b = append(b, '\n')
	for i := range d.segments.all {
		if i == limit {
			b = fmt.Appendf(b, "%s %d more segments (-v shows all)\n", d.glyphs().ellipsis, len(d.segments.all)-limit)
			break
		}
		x := &d.segments.all[i]
		by := "-"
		if x.ops > 0 {
			kind := "RDMA Write"
			if x.list == 'R' || x.list == 'Z' || x.list == 'S' {
				kind = "RDMA Read"
			}
			by = units.Plural(x.ops, kind) + ": #" + fmt.Sprint(x.first)
			if x.last != x.first {
				sep := "-"
				if x.last-x.first+1 != x.ops {
					sep = " ... #"
				}
				by += sep + fmt.Sprint(x.last)
			}
		}
		if x.hasUsed && x.used != x.moved {
			by += fmt.Sprintf(", reply says %d", x.used)
		}
		b = fmt.Appendf(b, "%-8s 0x%08x  0x%016x %9d %9d  %s\n", x.appendName(nil), x.Handle, x.Offset, x.Length, x.moved, by)
	}
	return append(b, '\n')
}

func (d *Drawer) notes(b []byte, tx *transaction.Transaction) []byte {
	if len(tx.Notes) == 0 {
		return b
	}
	for _, n := range tx.Notes {
		b = append(b, "note: "...)
		b, _ = text.Safe(b, []byte(n.String()))
		b = append(b, '\n')
	}
	return append(b, '\n')
}
