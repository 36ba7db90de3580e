package html

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

//go:embed fabric.tmpl
var fabricText string

var fabricPage = parsed("fabric", fabricText)

// Table is a table of the page. Right says which columns are numbers.
type Table struct {
	Title  string
	Header []string
	Right  []bool
	Rows   [][]string
	Lines  []string // below it
}

// fabricView is what the template shows.
type fabricView struct {
	Title    string
	Cards    []card
	Notes    []string
	Over     *plot.Chart
	OverNote string
	Legend   []legend
	Reaction *plot.Chart
	Tables   []shownTable
	Tool     string
}

type shownTable struct {
	Title  string
	Header []sideCell
	Rows   [][]sideCell
	Lines  []string
	More   int
}

type sideCell struct {
	Text, Sort string
	Left       bool
}

// WriteFabric writes a page of what RDMA itself did: drawings of the report, and the
// tables that are given. tool is the program that made it, with its version.
func WriteFabric(w io.Writer, rep *fabric.Report, tables []Table, tool string) error {
	t := &rep.Totals
	v := &fabricView{
		Tool: tool, Title: strings.Join(rep.Inputs, ", "), Notes: rep.Notes,
		Cards: []card{
			{"packets", units.Rounded(float64(t.Packets), 1000), units.BytesUnit(float64(t.Bytes))},
			{"connections", fmt.Sprint(len(rep.Connections)), ""},
			{"losses", fmt.Sprint(t.Episodes), fmt.Sprintf("%s sent again, %d needlessly", units.Plural(t.Resent, "packet"), t.Needless)},
			{"marked", units.Rounded(float64(t.Marked), 1000), fmt.Sprintf("%.2f %% of the packets", 100*rep.Congestion.Share)},
			{"CNPs", units.Rounded(float64(t.CNPs), 1000), ""},
			{"fatal NAKs", fmt.Sprint(t.FatalNAKs), ""},
		},
	}
	for i := range tables {
		v.Tables = append(v.Tables, tables[i].shown())
	}
	v.over(rep)
	v.reaction(rep)
	return fabricPage().Execute(printable.TextWriter(w), v)
}

func (t *Table) shown() (x shownTable) {
	x.Title = t.Title
	for _, l := range t.Lines {
		x.Lines = append(x.Lines, strings.ReplaceAll(l, "\n", " ")) // they are wrapped for a terminal
	}
	for i, h := range t.Header {
		x.Header = append(x.Header, sideCell{Text: heading(h), Left: !t.Right[i]})
	}
	for i, row := range t.Rows {
		if i == maxRows {
			x.More = len(t.Rows) - i
			break
		}
		cells := make([]sideCell, len(row))
		for j, c := range row {
			cells[j] = sideCell{Text: c, Left: !t.Right[j]}
			if t.Right[j] {
				cells[j].Sort = sortable(c)
			}
		}
		x.Rows = append(x.Rows, cells)
	}
	return x
}

// heading is the heading of a column in small letters, but for the names A and B of two captures.
func heading(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		if len(w) > 1 {
			words[i] = strings.ToLower(w)
		}
	}
	return strings.Join(words, " ")
}

// sortable is the number that a cell is sorted by: a duration, a change in percent or as a factor, with marks
// in front; empty for others.
func sortable(s string) string {
	if d, err := time.ParseDuration(s); err == nil {
		return fmt.Sprint(int64(d))
	}
	s = strings.TrimPrefix(s, "~")
	if f, ok := strings.CutPrefix(s, "x"); ok {
		if n, err := strconv.ParseFloat(f, 64); err == nil {
			return fmt.Sprint(100 * (n - 1))
		}
	}
	if n, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
		return fmt.Sprint(n)
	}
	return ""
}

// over draws the rate, and below each other on the same axis what went wrong.
func (v *fabricView) over(rep *fabric.Report) {
	list := rep.Series.Intervals
	if len(list) == 0 {
		return
	}
	seconds := float64(rep.Series.Length) / 1e9
	most, marks := 0.0, [5]uint64{}
	of := func(x *fabric.Interval) [5]uint64 { return [5]uint64{x.Marked, x.CNPs, x.NAKs, x.Again, x.Pauses} }
	for i := range list {
		most = max(most, float64(list[i].Bytes)/seconds)
		for j, n := range of(&list[i]) {
			marks[j] = max(marks[j], n)
		}
	}
	const band = 22.0 // of each kind of event
	rows := 0
	for _, n := range marks {
		if n > 0 {
			rows++
		}
	}
	p := plot.New(230+band*float64(rows), "Rate, marks and CNPs over time")
	bottom := p.Y1
	p.Y1 -= band * float64(rows)
	unit := 1.0
	for most >= unit*1024 && unit < 1<<50 {
		unit *= 1024
	}
	y := p.Linear(most/unit, false, func(f float64) string { return units.BytesUnit(f*unit) + "/s" })
	field := p.Y1
	p.Y1 = bottom
	t := newTimes(p, len(list), rep.Series.Length)
	p.Y1 = field
	for i := range list {
		if f := float64(list[i].Bytes) / seconds; f > 0 {
			top := y(f / unit)
			p.AddRect(t.x(i), top, max(t.w-0.4, 0.6), p.Y1-top, "bar", 0, fmt.Sprintf("%s: %s/s", units.Duration(list[i].Start), units.BytesUnit(f)))
		}
	}
	p.AddLine(p.X0, p.Y1, p.X1, p.Y1, "axis")
	at := p.Y1
	for j, name := range [...]string{"marked", "CNPs", "NAKs", "again", "pauses"} {
		if marks[j] == 0 {
			continue
		}
		at += band
		class := [...]string{"kind2", "kind0", "kind4", "kind1", "kind5"}[j]
		v.Legend = append(v.Legend, legend{class, name, ""})
		p.AddText(p.X0-8, at-4, "end", "tick", name)
		for i := range list {
			if n := of(&list[i])[j]; n > 0 {
				h := 3 + (band-7)*float64(n)/float64(marks[j])
				p.AddRect(t.x(i), at-h, max(t.w-0.4, 1), h, class, 0, fmt.Sprintf("%s: %d %s", units.Duration(list[i].Start), n, name))
			}
		}
	}
	p.Y1 = bottom
	p.Frame()
	p.XTitle("seconds since the first packet")
	v.Over = &p.Chart
	v.OverNote = fmt.Sprintf("An interval is %s long.", units.Duration(rep.Series.Length))
}

// reaction draws the rate behind CNPs.
func (v *fabricView) reaction(rep *fabric.Report) {
	list := rep.Congestion.Reaction
	if len(list) == 0 {
		return
	}
	most := 0.0
	for _, x := range list {
		most = max(most, x.Rate)
	}
	if most == 0 {
		return
	}
	p := plot.New(220, "Rate of the senders after a CNP")
	unit := 1.0
	for most >= unit*1024 && unit < 1<<50 {
		unit *= 1024
	}
	y := p.Linear(most/unit, false, func(f float64) string { return units.BytesUnit(f*unit) + "/s" })
	w := (p.X1 - p.X0) / float64(len(list))
	for i, x := range list {
		left := p.X0 + float64(i)*w
		name := "before"
		if x.From >= 0 {
			name = units.Duration(x.From)
		}
		top := y(x.Rate / unit)
		p.AddRect(left+2, top, w-4, p.Y1-top, "bar", 0, fmt.Sprintf("%s: %s/s", name, units.BytesUnit(x.Rate)))
		p.XTick(left+w/2, name)
	}
	p.Frame()
	p.XTitle("time since the last CNP, from … on")
	v.Reaction = &p.Chart
}
