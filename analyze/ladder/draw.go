package ladder

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Drawer draws transactions. The zero value draws them for 100 columns.
type Drawer struct {
	Width   int  // columns; 0 means 100
	Color   bool // with escape sequences of ANSI terminals
	ASCII   bool // ASCII characters only
	Verbose bool // one line per packet and per segment
	// Clock, if set, writes the time of each packet instead of microseconds
	// since the first one.
	Clock *text.Clock

	segments segments
	time     Timeline
	rows     []row
	spare    []row
	called   bool // the call's chunk lists have been drawn
	replied  bool // the reply's chunk lists have been drawn
	b        []byte
	list     text.Lister
}

const (
	defaultWidth = 100
	frameWidth   = 11
	sinceWidth   = 10
	deltaWidth   = 9
	railsWidth   = 34 // including both rails
	leastText    = 24
)

// glyphs are the characters that lines are made of.
type glyphs struct {
	rail, dash, left, right, dots, bar, half, times, ellipsis, micro, fall string
}

var (
	unicodeGlyphs = glyphs{"│", "─", "◀", "▶", "┄", "█", "▏", "×", "…", "µs", "⋮"}
	asciiGlyphs   = glyphs{"|", "-", "<", ">", ".", "#", "|", "x", "...", "us", ":"}
)

func (d *Drawer) glyphs() *glyphs {
	if d.ASCII {
		return &asciiGlyphs
	}
	return &unicodeGlyphs
}

func (d *Drawer) paint(color, s string) string {
	if !d.Color || color == "" || s == "" {
		return s
	}
	return color + s + text.ColorOff
}

func (d *Drawer) width() int {
	if d.Width <= 0 {
		return defaultWidth
	}
	return max(d.Width, frameWidth+1+sinceWidth+1+deltaWidth+1+railsWidth+leastText)
}

// Append appends the drawing of a transaction.
func (d *Drawer) Append(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	d.segments.reset(tx)
	d.time.Reset(tx)
	d.makeRows(tx)
	d.called, d.replied = false, false
	start := len(b)
	b = d.title(b, v)
	b = d.ladder(b, v)
	b = d.waterfall(b, tx)
	b = d.summary(b, v)
	b = d.table(b)
	b = d.notes(b, tx)
	if d.ASCII {
		b = append(b[:start], toASCII(string(b[start:]))...)
	}
	return b
}

var asciiOf = strings.NewReplacer("µ", "u", "…", "...", "×", "x", "–", "-")

// toASCII replaces non-ASCII characters that other packages wrote.
func toASCII(s string) string {
	s = asciiOf.Replace(s)
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return strings.Map(func(r rune) rune {
				if r >= utf8.RuneSelf {
					return '?'
				}
				return r
			}, s)
		}
	}
	return s
}

// left is the side drawn on the left: the client of the connection.
func left(tx *transaction.Transaction) rdma.Side {
	if tx.Backward {
		return tx.From.Other()
	}
	return tx.From
}

func (d *Drawer) title(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	b = append(b, d.paint(text.ColorBold, fmt.Sprintf("XID 0x%08x", tx.XID))...)
	b = append(b, "  "...)
	what := append(text.Program(nil, v), ' ')
	if tx.Named {
		what = text.Operations(what, v)
	} else {
		what = append(what, '?')
	}
	b = append(b, d.paint(text.ColorBold, string(what))...)
	if s := text.Subject(nil, v); len(s) > 0 {
		b = append(append(b, "  "...), s...)
	}
	if tx.Backward {
		b = append(b, "  backward: the server calls the client"...)
	}
	b = fmt.Appendf(b, "\nconnection %d, %s, from ", tx.Connection.ID, tx.Connection.Fabric)
	b = append(b, time.Unix(0, tx.First().Time).UTC().Format("2006-01-02 15:04:05.000000000 UTC")...)
	b = append(b, "\n\n"...)
	return b
}

func endName(f rdma.Fabric, e rdma.End) string {
	s := link.AddrString(e.Addr)
	switch {
	case f == rdma.TCP || f == rdma.UDP || f == rdma.IWARP:
		return s + ":" + strconv.Itoa(int(e.Port))
	case e.QPN != 0:
		return s + " QP 0x" + strconv.FormatUint(uint64(e.QPN), 16)
	}
	return s
}

// columns counts the columns of a text without wide characters.
func columns(s string) int { return utf8.RuneCountInString(s) }

func padLeft(s string, n int) string {
	if k := n - columns(s); k > 0 {
		return strings.Repeat(" ", k) + s
	}
	return s
}

func padRight(s string, n int) string {
	if k := n - columns(s); k > 0 {
		return s + strings.Repeat(" ", k)
	}
	return s
}

const beforeRails = frameWidth + 1 + sinceWidth + 1 + deltaWidth + 1

func (d *Drawer) timeWidth() int {
	if d.Clock == nil {
		return sinceWidth
	}
	return max(sinceWidth, len(d.Clock.Append(nil, d.time.Start)))
}

// margin is the part of a line before the rails.
func (d *Drawer) margin(frame, at, delta string) string {
	return padLeft(frame, frameWidth) + " " + padLeft(at, d.timeWidth()) + " " + padLeft(delta, deltaWidth) + " "
}

func (d *Drawer) ladder(b []byte, v *rpc.View) []byte {
	tx := v.Tx
	g := d.glyphs()
	l := left(tx)
	c := tx.Connection
	head := "+" + g.micro
	if d.Clock != nil {
		head = "time"
	}
	names := "client " + endName(c.Fabric, c.Ends[l])
	server := "server " + endName(c.Fabric, c.Ends[l.Other()])
	b = append(b, d.paint(text.ColorDim, d.margin("frame", head, "delta "+g.micro))...)
	gap := max(railsWidth-columns(names), 2)
	b = append(b, names...)
	b = append(b, strings.Repeat(" ", gap)...)
	b = append(b, server...)
	b = append(b, '\n')
	phase := phases
	last := tx.First().Time
	for i := range d.rows {
		r := &d.rows[i]
		if d.time.Known && r.phase != phase {
			from := transaction.PhaseCall
			if phase != phases {
				from = phase + 1
			}
			for p := from; p <= r.phase; p++ {
				if p == r.phase || p == transaction.PhaseServer || d.time.Durations[p] > 0 && p != After {
					b = d.heading(b, tx, p)
				}
			}
			phase = r.phase
		}
		p := &tx.Packets[r.first]
		b = d.rowLine(b, v, r, p.Ref.Time-last)
		last = tx.Packets[r.last].Ref.Time
	}
	if tx.PacketsLost > 0 {
		b = append(b, strings.Repeat(" ", beforeRails)...)
		b = fmt.Appendf(b, "%s %d more packets are not listed\n", g.fall, tx.PacketsLost)
	}
	if len(d.rows) == 0 && tx.PacketsLost == 0 {
		b = append(b, "  no packets are listed\n"...)
	}
	return append(b, '\n')
}

// heading is the line where a phase begins.
func (d *Drawer) heading(b []byte, tx *transaction.Transaction, p transaction.Phase) []byte {
	g := d.glyphs()
	s := p.String() + " " + units.Duration(d.time.Durations[p])
	switch {
	case p == After && d.time.Durations[p] >= 0:
		s = After.String() + " " + units.Duration(d.time.Durations[p]) + " after the reply"
	case p == After:
		s = "after the reply"
	case p == transaction.PhasePull && d.time.PullWait > 0:
		s += ", of it " + transaction.PhaseWait.String() + " " + units.Duration(d.time.PullWait)
	}
	at := ""
	if p != After {
		at = d.stamp(tx, tx.First().Time+int64(d.time.Begins(p)))
	}
	b = append(b, d.paint(text.ColorDim, d.margin("", at, ""))...)
	line := strings.Repeat(g.dots, 2) + " " + s + " "
	if k := d.width() - beforeRails - columns(line) - (d.timeWidth() - sinceWidth); k > 0 {
		line += strings.Repeat(g.dots, k)
	}
	return append(append(b, d.paint(text.ColorCyan, line)...), '\n')
}

// stamp is the time of a packet, formatted for its column.
func (d *Drawer) stamp(tx *transaction.Transaction, at int64) string {
	if d.Clock != nil {
		return string(d.Clock.Append(nil, at))
	}
	return units.Micros(time.Duration(at - tx.First().Time))
}

func (d *Drawer) rowLine(b []byte, v *rpc.View, r *row, delta int64) []byte {
	tx := v.Tx
	g := d.glyphs()
	p, q := &tx.Packets[r.first], &tx.Packets[r.last]
	b = append(b, d.margin(span(p.Ref.Number, q.Ref.Number), d.stamp(tx, p.Ref.Time), units.Micros(time.Duration(delta)))...)
	if r.fold {
		b = append(b, g.rail...)
		b = append(b, padRight(" "+g.fall, railsWidth-2)...)
		b = append(b, g.rail...)
		b = append(b, ' ')
		return d.wrap(b, foldText(tx, r), text.ColorDim)
	}
	name := label(p)
	if r.packets > 1 {
		name = runLabel(p, q, r.packets, g.times)
	}
	color := ""
	switch {
	case p.Role == transaction.Nak:
		color = text.ColorRed
	case p.Again, p.Role == transaction.Congestion:
		color = text.ColorYellow
	case p.Role == transaction.Ack:
		color = text.ColorDim
	case p.Role == transaction.CallPart, p.Role == transaction.ReplyPart:
		color = text.ColorBold
	case p.Role == transaction.WriteData:
		color = text.ColorGreen
	case p.Role == transaction.ReadResponse, p.Role == transaction.ReadRequest:
		color = text.ColorBlue
	}
	b = append(b, g.rail...)
	b = append(b, d.paint(color, d.arrow(name, p.From == left(tx)))...)
	b = append(b, g.rail...)
	b = append(b, ' ')
	b = d.wrap(b, d.rowText(v, r), color)
	switch { // the chunk lists are drawn beside the first packet
	case p.Role == transaction.CallPart && !d.called:
		d.called = true
		b = d.lists(b, false)
	case p.Role == transaction.ReplyPart && !d.replied:
		d.replied = true
		b = d.lists(b, true)
	}
	return b
}

// arrow fills the space between the rails.
func (d *Drawer) arrow(name string, toRight bool) string {
	g := d.glyphs()
	const room = railsWidth - 2
	if columns(name) > room-4 {
		name = string([]rune(name)[:room-4])
	}
	rest := room - columns(name) - 4
	if toRight {
		return g.dash + " " + name + " " + strings.Repeat(g.dash, rest) + g.right
	}
	return g.left + strings.Repeat(g.dash, rest) + " " + name + " " + g.dash
}

// wrap writes the text of a row, with continuation lines below the first.
func (d *Drawer) wrap(b []byte, s, color string) []byte {
	room := d.width() - beforeRails - railsWidth - 1 - (d.timeWidth() - sinceWidth)
	room = max(room, leastText)
	if color == text.ColorBold || color == text.ColorGreen || color == text.ColorBlue {
		color = ""
	}
	for first := true; ; first = false {
		line := s
		if columns(line) > room {
			cut := strings.LastIndexByte(string([]rune(line)[:room+1]), ' ')
			if cut <= 0 {
				cut = len(string([]rune(line)[:room]))
			}
			line, s = s[:cut], strings.TrimLeft(s[cut:], " ")
		} else {
			s = ""
		}
		if !first {
			b = d.rails(b)
			b = append(b, ' ')
		}
		b = append(append(b, d.paint(color, strings.TrimRight(line, " "))...), '\n')
		if s == "" {
			return b
		}
	}
}

// rails writes the beginning of a line up to the right rail.
func (d *Drawer) rails(b []byte) []byte {
	g := d.glyphs()
	b = append(b, d.margin("", "", "")...)
	b = append(b, g.rail...)
	b = append(b, strings.Repeat(" ", railsWidth-2)...)
	return append(b, g.rail...)
}

func foldText(tx *transaction.Transaction, r *row) string {
	var parts []string
	if r.writePackets > 0 {
		parts = append(parts, units.Plural(r.writes, "Write"))
	}
	if r.requests > 0 {
		parts = append(parts, units.Plural(r.requests, "Read Request"))
	}
	if r.responses > 0 {
		parts = append(parts, units.Plural(r.responses, "Read Response"))
	}
	if r.acks > 0 {
		parts = append(parts, units.Plural(r.acks, "ACK"))
	}
	s := strings.Join(parts, ", ")
	if r.bytes > 0 {
		s += ", " + units.Size(r.bytes)
	}
	return s + " in " + took(tx, r)
}

func took(tx *transaction.Transaction, r *row) string {
	return units.Duration(tx.Packets[r.last].Ref.Time - tx.Packets[r.first].Ref.Time)
}
