package html

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/internal/units"
)

// logScale maps durations to pixels.
type logScale struct{ plot.Log }

func newLogScale(lo, hi int64, a, b float64) logScale {
	return logScale{plot.NewLog(float64(max(lo, 1)), float64(max(hi, 1)), a, b)}
}

func (s logScale) at(ns int64) float64 { return s.At(float64(max(ns, 1))) }

// decades calls f for each power of ten.
func (s logScale) decades(f func(pos float64, text string)) {
	for pos, v := range s.Decades() {
		f(pos, units.Round(time.Duration(v)))
	}
}

// times maps the intervals of a series to pixels.
type times struct {
	x0, w    float64 // of the first interval; width of one
	interval int64
}

// newTimes draws the axis of time. The inside of the axes becomes a field that can be zoomed, so that they must
// have their place by now.
func newTimes(p *plot.Plot, n int, interval int64) times {
	p.SetField(float64(n)*float64(interval)/1e9, n)
	t := times{x0: p.X0, w: (p.X1 - p.X0) / float64(max(n, 1)), interval: interval}
	span := float64(n) * float64(interval) / 1e9
	step := plot.NiceStep(span, 10)
	for v := 0.0; v <= span*(1+1e-9); v += step {
		p.XTick(p.X0+(p.X1-p.X0)*v/span, strconv.FormatFloat(v, 'g', 6, 64)+" s")
	}
	return t
}

func (t times) x(i int) float64 { return t.x0 + float64(i)*t.w }

// bars collects rectangles of one class as one path: a page holds thousands.
type bars struct{ strings.Builder }

func (b *bars) add(x, y, w, h float64) { b.WriteString(plot.Box(x, y, w, h)) }

// hits makes the intervals of a plot links to the lines of the table that says what ran in them.
func (v *view) hits(p *plot.Plot, t times, slots []latency.Slot, title func(i int) string) {
	for i := range slots {
		if !v.busy(&slots[i]) {
			continue
		}
		s := ""
		if len(slots) <= maxTitled {
			s = slots[i].Start.Format("15:04:05.000")
			if what := title(i); what != "" {
				s += ": " + what
			}
		}
		p.AddHit(t.x(i), p.Y0, t.w, p.Y1-p.Y0, "#t"+strconv.Itoa(i), s)
	}
}

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
