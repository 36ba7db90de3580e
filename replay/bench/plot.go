package bench

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/plot"
)

// SVG draws throughput, and the processor time of both sides per byte, over the size
// of calls, and the processors that both sides keep busy over throughput. There is one line for each combination of the other
// settings.
func SVG(w io.Writer, list []*Result) error {
	lines := plotLines(list)
	if len(lines) == 0 {
		return errors.New("nothing to plot: no result moves data")
	}
	rates := newPanel("Throughput, MB/s", lines)
	most := 0.0
	for _, l := range lines {
		for _, r := range l.points {
			most = math.Max(most, megabytes(r))
		}
	}
	rates.draw(lines, rates.Linear(most, false, number), rates.bySize, megabytes)

	costs := newPanel("Processor time of client and server, ns for each byte", lines)
	lo, hi := math.Inf(1), 0.0
	for _, l := range lines {
		for _, r := range l.points {
			lo, hi = math.Min(lo, cost(r)), math.Max(hi, cost(r))
		}
	}
	scale := plot.NewLog(lo, hi, costs.Y1, costs.Y0)
	for y, v := range scale.Decades() {
		costs.YTick(y, number(v))
	}
	costs.draw(lines, scale.At, costs.bySize, cost)
	busy := busyPanel(lines, most)
	return plot.WriteSVG(w, "Throughput and processor time over the size of calls, and processors over throughput", &rates.Chart, &costs.Chart, &busy.Chart, legend(lines))
}

// plotLine holds the results that differ only in size, smallest first.
type plotLine struct {
	name   string
	class  string
	points []*Result
}

func plotLines(list []*Result) []plotLine {
	show := differs(list)
	lines := map[string][]*Result{}
	for _, r := range list {
		if r.Err != "" || r.Bytes == 0 || r.Size == 0 {
			continue
		}
		var parts []string
		for i, c := range columns {
			if show[i] && c.name != "SIZE" {
				v := strings.TrimSpace(c.of(r))
				if v == "" {
					continue
				}
				if c.name == "IN FLIGHT" {
					v += " in flight"
				}
				parts = append(parts, v)
			}
		}
		name := strings.Join(parts, " ")
		lines[name] = append(lines[name], r)
	}
	var out []plotLine
	for name, points := range lines {
		slices.SortStableFunc(points, func(a, b *Result) int { return a.Size - b.Size })
		out = append(out, plotLine{name: name, points: points})
	}
	slices.SortFunc(out, func(a, b plotLine) int { return strings.Compare(a.name, b.name) })
	for i := range out {
		out[i].class = fmt.Sprintf("s%d d%d", i%plot.Colours, i/plot.Colours%plot.Dashes)
	}
	return out
}

// busyPanel draws the processors in use over throughput.
func busyPanel(lines []plotLine, most float64) *panel {
	const title = "Processors that client and server keep busy"
	p := &panel{Plot: plot.New(panelHeight, title)}
	p.Y0 += panelHead
	p.AddText(p.X0, panelHead-8, "start", "head", title)
	top := 0.0
	for _, l := range lines {
		for _, r := range l.points {
			top = math.Max(top, processors(r))
		}
	}
	y := p.Linear(top, false, number)
	step := plot.NiceStep(most, 8)
	end := math.Max(math.Ceil(most/step)*step, step)
	x := func(r *Result) float64 { return p.X0 + (p.X1-p.X0)*megabytes(r)/end }
	for v := 0.0; v <= end; v += step {
		at := p.X0 + (p.X1-p.X0)*v/end
		p.AddLine(at, p.Y0, at, p.Y1, "grid")
		p.XTick(at, number(v))
	}
	p.XTitle("MB/s")
	p.Frame()
	p.draw(lines, y, x, processors)
	return p
}

// processors returns how many processors both sides, as far as they are known, kept busy.
func processors(r *Result) float64 {
	return float64(max(r.ClientCPU, 0)+max(r.ServerCPU, 0)) / float64(max(r.Elapsed, 1))
}

func megabytes(r *Result) float64 { return r.Rate() / 1e6 }

// leastCost replaces costs that are too small to measure: the logarithm of zero does
// not exist.
const leastCost = 1e-6

// cost returns the processor time of both sides, as far as it is known, in nanoseconds
// per byte.
func cost(r *Result) float64 {
	return math.Max(math.Max(r.CPUPerByte(false), 0)+math.Max(r.CPUPerByte(true), 0), leastCost)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

const (
	panelHeight = 420
	panelHead   = 32 // room for the heading
)

// panel is one of the plots, with sizes on a logarithmic axis.
type panel struct {
	*plot.Plot
	lo, hi float64 // powers of two
}

func newPanel(title string, lines []plotLine) *panel {
	p := &panel{plot.New(panelHeight, title), math.Inf(1), math.Inf(-1)}
	p.Y0 += panelHead
	p.AddText(p.X0, panelHead-8, "start", "head", title)
	for _, l := range lines {
		p.lo = math.Min(p.lo, math.Log2(float64(l.points[0].Size)))
		p.hi = math.Max(p.hi, math.Log2(float64(l.points[len(l.points)-1].Size)))
	}
	p.lo, p.hi = math.Floor(p.lo), math.Ceil(p.hi)
	if p.hi == p.lo {
		p.lo, p.hi = p.lo-1, p.hi+1
	}
	for v := max(p.lo, 0); v <= p.hi; v++ {
		n := 1 << int(v)
		p.AddLine(p.x(n), p.Y0, p.x(n), p.Y1, "grid")
		p.XTick(p.x(n), size(n))
	}
	p.XTitle("bytes of a call")
	p.Frame()
	return p
}

// x returns the coordinate of a size.
func (p *panel) x(n int) float64 {
	return p.X0 + (p.X1-p.X0)*(math.Log2(float64(n))-p.lo)/(p.hi-p.lo)
}

// radius is the radius of points.
const radius = 3.5

func (p *panel) bySize(r *Result) float64 { return p.x(r.Size) }

func (p *panel) draw(lines []plotLine, y func(float64) float64, across, of func(*Result) float64) {
	for _, l := range lines {
		var path strings.Builder
		command := "M"
		for _, r := range l.points {
			x, y := across(r), y(of(r))
			fmt.Fprintf(&path, "%s%.1f %.1f", command, x, y)
			command = "L"
			p.AddPath(circle(x, y), "point "+l.class)
		}
		p.AddPath(path.String(), l.class)
	}
}

func circle(x, y float64) string {
	return fmt.Sprintf("M%.1f %.1fa%g %g 0 1 0 %g 0a%g %g 0 1 0 %g 0z", x-radius, y, radius, radius, 2*radius, radius, radius, -2*radius)
}

// legend names the lines, in as many columns as fit.
func legend(lines []plotLine) *plot.Chart {
	const (
		row     = 20.0
		mark    = 34.0
		letter  = 7.5 // of 12 pixels, about
		between = 24.0
	)
	longest := 0
	for _, l := range lines {
		longest = max(longest, len([]rune(l.name)))
	}
	room := plot.Width - plot.Left - plot.Right
	columns := max(1, int((room+between)/(mark+float64(longest)*letter+between)))
	rows := (len(lines) + columns - 1) / columns
	c := &plot.Chart{Width: plot.Width, Height: float64(rows)*row + 16, Label: "Legend"}
	for i, l := range lines {
		x := plot.Left + float64(i/rows)*room/float64(columns)
		y := float64(i%rows)*row + row/2
		c.AddPath(fmt.Sprintf("M%.1f %.1fh26", x, y), l.class)
		c.AddPath(circle(x+13, y), "point "+l.class)
		c.AddText(x+mark, y+4, "start", "name", l.name)
	}
	return c
}
