// Package plot draws charts with axes as SVG: for the pages of reports, and as files of their own. A chart is
// lines, rectangles, paths and texts with names of CSS classes; the page that shows it decides what these
// look like.
package plot

import (
	"iter"
	"math"
	"strconv"
	"strings"
)

// Chart is a drawing: what the template "chart" writes as SVG. Coordinates are
// pixels of a picture that is width wide.
type Chart struct {
	Width, Height float64
	Label         string // for readers of screens
	Lines         []Line
	Rects         []Rect
	Paths         []Path
	Texts         []Text
	Field         *Field // nil: the drawing cannot be zoomed
}

// Field is the part of a chart over time that a page may zoom: all rectangles and
// paths of the chart lie in it.
type Field struct {
	X, Y, W, H float64
	Seconds    float64 // that it stands for
	N          int     // intervals
}

// Line is a straight line.
type Line struct {
	X1, Y1, X2, Y2 float64
	Class          string
}

// Rect is a rectangle; Title is shown when one points at it, Link is where a click
// leads within the page.
type Rect struct {
	X, Y, W, H float64
	Class      string
	Opacity    float64
	Title      string
	Link       string
}

// Path is any line, in the language of SVG.
type Path struct {
	D       string
	Class   string
	Opacity float64 // of its inside; 0 means 1
}

// Text is written at a point.
type Text struct {
	X, Y   float64
	Anchor string // start, middle, end
	Class  string
	Text   string
}

// AddLine adds a line.
func (c *Chart) AddLine(x1, y1, x2, y2 float64, class string) {
	c.Lines = append(c.Lines, Line{x1, y1, x2, y2, class})
}

// AddRect adds a rectangle; opacity 0 means 1.
func (c *Chart) AddRect(x, y, w, h float64, class string, opacity float64, title string) {
	c.Rects = append(c.Rects, Rect{X: x, Y: y, W: w, H: h, Class: class, Opacity: opacity, Title: title})
}

// AddHit adds an invisible rectangle that can be pointed at and leads to link.
func (c *Chart) AddHit(x, y, w, h float64, link, title string) {
	c.Rects = append(c.Rects, Rect{X: x, Y: y, W: w, H: h, Class: "hit", Title: title, Link: link})
}

// AddPath adds a path.
func (c *Chart) AddPath(d, class string) { c.Paths = append(c.Paths, Path{D: d, Class: class}) }

// AddArea adds a path whose inside has an opacity.
func (c *Chart) AddArea(d, class string, opacity float64) {
	c.Paths = append(c.Paths, Path{D: d, Class: class, Opacity: opacity})
}

// Box is a rectangle in the language of paths.
func Box(x, y, w, h float64) string {
	return "M" + number(x) + " " + number(y) + "h" + number(w) + "v" + number(h) + "h" + number(-w) + "z"
}

// AddText adds a text; anchor is start, middle or end.
func (c *Chart) AddText(x, y float64, anchor, class, text string) {
	c.Texts = append(c.Texts, Text{x, y, anchor, class, text})
}

// Sizes of a plot, in pixels.
const (
	Width  = 1000.0
	Left   = 84.0 // room for the numbers of the vertical axis
	Right  = 14.0
	Top    = 12.0
	Bottom = 40.0 // room for the horizontal axis
)

// Plot is a chart with axes.
type Plot struct {
	Chart
	X0, X1, Y0, Y1 float64 // the field, in pixels
}

// New makes a plot without axes. name is for readers of screens.
func New(height float64, name string) *Plot {
	return &Plot{
		Chart: Chart{Width: Width, Height: height, Label: name},
		X0:    Left, X1: Width - Right, Y0: Top, Y1: height - Bottom,
	}
}

// Frame draws the axes.
func (p *Plot) Frame() {
	p.Lines = append(p.Lines,
		Line{p.X0, p.Y1, p.X1, p.Y1, "axis"},
		Line{p.X0, p.Y0, p.X0, p.Y1, "axis"})
}

// YTick draws a line across with a number on the left.
func (p *Plot) YTick(y float64, text string) {
	p.Lines = append(p.Lines, Line{p.X0, y, p.X1, y, "grid"})
	p.Texts = append(p.Texts, Text{p.X0 - 8, y + 4, "end", "tick", text})
}

// XTick draws a mark below the axis with a text.
func (p *Plot) XTick(x float64, text string) {
	mark, class := "axis", "tick"
	if p.Field != nil {
		mark, class = "axis xt", "tick xt"
	}
	p.Lines = append(p.Lines, Line{x, p.Y1, x, p.Y1 + 4, mark})
	anchor := "middle"
	if x > p.X1-24 {
		anchor = "end"
	}
	p.Texts = append(p.Texts, Text{x, p.Y1 + 17, anchor, class, text})
}

// XTitle names the horizontal axis.
func (p *Plot) XTitle(text string) {
	p.Texts = append(p.Texts, Text{(p.X0 + p.X1) / 2, p.Y1 + 34, "middle", "title", text})
}

// SetField makes the inside of the axes a field that can be zoomed.
func (p *Plot) SetField(seconds float64, n int) {
	p.Field = &Field{p.X0, p.Y0 - 2, p.X1 - p.X0, p.Y1 - p.Y0 + 3, seconds, n}
}

// steps are the distance of the ticks from 0 to at least most, and the last of them.
func steps(most float64, whole bool) (step, top float64) {
	step = NiceStep(most, 4)
	if whole {
		step = max(step, 1)
	}
	return step, math.Max(math.Ceil(most/step-1e-9), 1) * step
}

// NiceStep is 1, 2 or 5 times a power of ten: at most n of them make up span.
func NiceStep(span float64, n int) float64 {
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

// Linear draws a vertical axis from 0 to at least most and returns the scale.
func (p *Plot) Linear(most float64, whole bool, format func(float64) string) func(float64) float64 {
	step, top := steps(most, whole)
	y := func(v float64) float64 { return p.Y1 - (p.Y1-p.Y0)*v/top }
	for v := 0.0; v <= top*(1+1e-9); v += step {
		p.YTick(y(v), format(v))
	}
	return y
}

// Log maps values to pixels from A to B, by their logarithm.
type Log struct {
	From, To float64 // decades
	A, B     float64
}

// NewLog makes a scale from lo to hi, which it widens to powers of ten.
func NewLog(lo, hi, a, b float64) Log {
	s := Log{math.Floor(math.Log10(lo)), math.Ceil(math.Log10(hi)), a, b}
	if s.To <= s.From {
		s.To = s.From + 1
	}
	return s
}

// At is the place of a value; one that lies outside is at the end.
func (s Log) At(v float64) float64 {
	return s.A + (s.B-s.A)*min(max((math.Log10(v)-s.From)/(s.To-s.From), 0), 1)
}

// Decades iterates over the powers of ten, with their places.
func (s Log) Decades() iter.Seq2[float64, float64] {
	return func(yield func(pos, v float64) bool) {
		for d := s.From; d <= s.To; d++ {
			if v := math.Pow(10, d); !yield(s.At(v), v) {
				return
			}
		}
	}
}

// Num is a coordinate.
func (Chart) Num(f float64) string { return number(f) }

// number has one digit after the point, unless that is 0.
func number(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "0"
	}
	s := strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// Opaque is an opacity.
func (r Rect) Opaque() string { return opaque(r.Opacity) }

// Opaque is an opacity.
func (p Path) Opaque() string { return opaque(p.Opacity) }

func opaque(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }
