package html

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

//go:embed diff.tmpl
var diffText string

var diffPage = parsed("diff", diffText)

// diffView is what the template shows.
type diffView struct {
	A, B     string
	Sides    []side
	Filter   string
	Cards    []card
	Notes    []string
	Ranges   *plot.Chart
	MoreBars int
	Tables   []shownTable
	Tool     string
}

type side struct {
	card
	Class string
}

// WriteDiff writes a page of a comparison: a drawing of it, and the tables that are given.
func WriteDiff(w io.Writer, d *latency.Diff, tables []Table, tool string) error {
	v := &diffView{Tool: tool, A: strings.Join(d.A.Inputs, ", "), B: strings.Join(d.B.Inputs, ", "), Filter: d.Filter, Notes: d.Notes}
	for _, s := range []struct {
		name, class string
		of          *latency.DiffSide
		n, failed   float64
	}{{"A", "side-a", &d.A, d.All.Count.A, d.All.Errors.A}, {"B", "side-b", &d.B, d.All.Count.B, d.All.Errors.B}} {
		v.Sides = append(v.Sides, side{card{s.name, strings.Join(s.of.Inputs, ", "), fmt.Sprintf("%.0f transactions, %.0f failed, %s", s.n, s.failed, s.of.When())}, s.class})
	}
	if d.All.Timed.A > 0 && d.All.Timed.B > 0 {
		type figure struct {
			name string
			c    latency.Change
		}
		list := []figure{{"mean latency", d.All.Mean}, {"median", d.All.P50.Change}, {"p99", d.All.P99.Change}, {"longest", d.All.Max}}
		if d.Adjusted != nil && len(d.Groups) > 1 {
			list = slices.Insert(list, 0, figure{"mean latency in A's mix", *d.Adjusted})
		}
		for i, x := range list {
			c := card{x.name, units.Duration(int64(x.c.B)), "A: " + units.Duration(int64(x.c.A))}
			if x.c.Percent != nil && (i == 0 || d.All.Verdict != latency.Mix) {
				c.Note += fmt.Sprintf(", %+.1f %%", *x.c.Percent)
			}
			v.Cards = append(v.Cards, c)
		}
	}
	v.ranges(d)
	for i := range tables {
		v.Tables = append(v.Tables, tables[i].shown())
	}
	return diffPage().Execute(printable.TextWriter(w), v)
}

// ranges draws percentiles of both captures, group by group, on one logarithmic scale.
func (v *diffView) ranges(d *latency.Diff) {
	var groups []*latency.DiffGroup
	for _, g := range d.Groups {
		switch {
		case g.Timed.A == 0 && g.Timed.B == 0:
		case len(groups) == maxBars:
			v.MoreBars++
		default:
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return
	}
	const height = 30.0
	p := plot.New(plot.Top+plot.Bottom+float64(len(groups))*height, "Latency of A and B by "+strings.Join(d.By, ", "))
	p.X0 = nameWidth
	lo, hi := math.Inf(1), 1.0
	each := func(g *latency.DiffGroup, f func(row int, p50, p99, most, timed float64)) {
		if g.Timed.A > 0 {
			f(0, g.P50.A, g.P99.A, g.Max.A, g.Timed.A)
		}
		if g.Timed.B > 0 {
			f(1, g.P50.B, g.P99.B, g.Max.B, g.Timed.B)
		}
	}
	for _, g := range groups {
		each(g, func(_ int, p50, _, most, _ float64) { lo, hi = min(lo, p50), max(hi, most) })
	}
	s := newLogScale(int64(lo), int64(hi), p.X0, p.X1-8)
	p.AddLine(p.X0, p.Y1, p.X1, p.Y1, "axis")
	s.decades(func(x float64, text string) {
		p.AddLine(x, p.Y0, x, p.Y1, "grid")
		p.XTick(x, text)
	})
	p.XTitle("latency, first packet of the call to last of the reply (logarithmic)")
	for i, g := range groups {
		middle := p.Y0 + (float64(i)+0.5)*height
		label := name(&latency.Group{Key: g.Key})
		p.AddText(p.X0-8, middle+4, "end", "name", label)
		each(g, func(row int, p50, p99, most, timed float64) {
			y := middle + 11*float64(row) - 10
			a, b, m := s.at(int64(p50)), s.at(int64(p99)), s.at(int64(most))
			p.AddLine(b, y+4.5, m, y+4.5, "whisker")
			p.AddRect(a, y, max(b-a, 1), 9, [...]string{"side-a", "side-b"}[row], 0, fmt.Sprintf("%s, %s: %.0f timed, p50 %s, p99 %s, max %s", label,
				[...]string{"A", "B"}[row], timed, units.Duration(int64(p50)), units.Duration(int64(p99)), units.Duration(int64(most))))
			p.AddLine(a, y-1, a, y+10, "median")
		})
	}
	v.Ranges = &p.Chart
}
