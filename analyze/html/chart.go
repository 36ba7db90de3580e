package html

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// chart is a drawing: what the template "chart" writes as SVG. Coordinates are
// pixels of a picture that is width wide.
type chart struct {
	Width, Height float64
	Label         string // for readers of screens
	Lines         []line
	Rects         []rect
	Paths         []path
	Texts         []label
}

type line struct {
	X1, Y1, X2, Y2 float64
	Class          string
}

type rect struct {
	X, Y, W, H float64
	Class      string
	Opacity    float64
	Title      string
}

type path struct {
	D     string
	Class string
}

type label struct {
	X, Y   float64
	Anchor string // start, middle, end
	Class  string
	Text   string
}

const (
	chartWidth  = 1000.0
	chartLeft   = 84.0 // room for the numbers of the vertical axis
	chartRight  = 14.0
	chartTop    = 12.0
	chartBottom = 40.0 // room for the horizontal axis
)

// plot is a chart with axes.
type plot struct {
	chart
	x0, x1, y0, y1 float64 // the field, in pixels
}

func newPlot(height float64, name string) *plot {
	return &plot{
		chart: chart{Width: chartWidth, Height: height, Label: name},
		x0:    chartLeft, x1: chartWidth - chartRight, y0: chartTop, y1: height - chartBottom,
	}
}

// frame draws the axes.
func (p *plot) frame() {
	p.Lines = append(p.Lines,
		line{p.x0, p.y1, p.x1, p.y1, "axis"},
		line{p.x0, p.y0, p.x0, p.y1, "axis"})
}

// yTick draws a line across with a number on the left.
func (p *plot) yTick(y float64, text string) {
	p.Lines = append(p.Lines, line{p.x0, y, p.x1, y, "grid"})
	p.Texts = append(p.Texts, label{p.x0 - 8, y + 4, "end", "tick", text})
}

func (p *plot) xTick(x float64, text string) {
	p.Lines = append(p.Lines, line{x, p.y1, x, p.y1 + 4, "axis"})
	anchor := "middle"
	if x > p.x1-24 {
		anchor = "end"
	}
	p.Texts = append(p.Texts, label{x, p.y1 + 17, anchor, "tick", text})
}

func (p *plot) xTitle(text string) {
	p.Texts = append(p.Texts, label{(p.x0 + p.x1) / 2, p.y1 + 34, "middle", "title", text})
}

// niceStep is 1, 2 or 5 times a power of ten: at most n of them make up span.
func niceStep(span float64, n int) float64 {
	if span <= 0 || n < 1 {
		return 1
	}
	raw := span / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{1, 2, 5} {
		if f*unit >= raw*(1-1e-9) {
			return f * unit
		}
	}
	return 10 * unit
}

// linear draws a vertical axis from 0 to at least most and returns the scale.
func (p *plot) linear(most float64, whole bool, format func(float64) string) func(float64) float64 {
	step := niceStep(most, 4)
	if whole {
		step = max(step, 1)
	}
	top := math.Max(math.Ceil(most/step-1e-9), 1) * step
	y := func(v float64) float64 { return p.y1 - (p.y1-p.y0)*v/top }
	for v := 0.0; v <= top*(1+1e-9); v += step {
		p.yTick(y(v), format(v))
	}
	return y
}

// logScale maps durations from lo to hi, which it widens to powers of ten, to
// pixels from a to b.
type logScale struct {
	from, to float64 // decades
	a, b     float64
}

func newLogScale(lo, hi int64, a, b float64) logScale {
	lo, hi = max(lo, 1), max(hi, 1)
	s := logScale{math.Floor(math.Log10(float64(lo))), math.Ceil(math.Log10(float64(hi))), a, b}
	if s.to <= s.from {
		s.to = s.from + 1
	}
	return s
}

func (s logScale) at(ns int64) float64 {
	d := math.Log10(float64(max(ns, 1)))
	return s.a + (s.b-s.a)*min(max((d-s.from)/(s.to-s.from), 0), 1)
}

// decades calls f for each power of ten.
func (s logScale) decades(f func(pos float64, text string)) {
	for d := s.from; d <= s.to; d++ {
		v := math.Pow(10, d)
		f(s.at(int64(v)), round(time.Duration(v)))
	}
}

// round is a round duration in one unit: 100µs, 2s.
func round(d time.Duration) string {
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}, {time.Nanosecond, "ns"}} {
		if d >= u.d || u.d == 1 {
			return strconv.FormatFloat(float64(d)/float64(u.d), 'g', 6, 64) + " " + u.name
		}
	}
	return ""
}

// times maps the intervals of a series to pixels.
type times struct {
	x0, w    float64 // of the first interval; width of one
	interval int64
}

func (p *plot) times(n int, interval int64) times {
	t := times{x0: p.x0, w: (p.x1 - p.x0) / float64(max(n, 1)), interval: interval}
	span := float64(n) * float64(interval) / 1e9
	step := niceStep(span, 10)
	for v := 0.0; v <= span*(1+1e-9); v += step {
		p.xTick(p.x0+(p.x1-p.x0)*v/span, strconv.FormatFloat(v, 'g', 6, 64)+" s")
	}
	return t
}

func (t times) x(i int) float64 { return t.x0 + float64(i)*t.w }

// steps draws a value for each interval as a line with steps; NaN leaves a gap.
func (t times) steps(values []float64, y func(float64) float64) string {
	var b strings.Builder
	gap := true
	for i, v := range values {
		if math.IsNaN(v) {
			gap = true
			continue
		}
		command := "L"
		if gap {
			command = "M"
		}
		gap = false
		fmt.Fprintf(&b, "%s%.1f %.1fL%.1f %.1f", command, t.x(i), y(v), t.x(i+1), y(v))
	}
	return b.String()
}

// Num is a coordinate.
func (chart) Num(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "0"
	}
	return strconv.FormatFloat(f, 'f', 1, 64)
}

// Opaque is an opacity.
func (r rect) Opaque() string {
	if r.Opacity == 0 {
		return "1"
	}
	return strconv.FormatFloat(r.Opacity, 'f', 3, 64)
}
