package html

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

//go:embed run.tmpl
var runText string

var runPage = parsed("run", runText)

// Run is a page about calls that a program has sent. All intervals are equally long.
type Run struct {
	Title, Subtitle string
	Cards           [][3]string // name, value, note
	Notes           []string
	Interval        time.Duration
	Intervals       []Interval
	Tables          []Table
}

// Interval is what was sent in a part of a run. The histogram is one of latencies.
type Interval struct {
	Calls, Wrong int
	Bytes        uint64
	P50, P99     time.Duration
	Histogram    []latency.Bin
}

// runView is what the template shows.
type runView struct {
	*Run
	Cards                      []card
	Heat, Rates, Volume, Wrong *plot.Chart
	Tables                     []shownTable
}

// Write writes the page.
func (r *Run) Write(w io.Writer) error {
	v := &runView{Run: r}
	for _, c := range r.Cards {
		v.Cards = append(v.Cards, card{c[0], c[1], c[2]})
	}
	for i := range r.Tables {
		v.Tables = append(v.Tables, r.Tables[i].shown())
	}
	v.heat()
	each := r.Interval.Seconds()
	v.Rates = v.bars("Calls per second", func(x *Interval) float64 { return float64(x.Calls) / each }, func(f float64) string { return units.Rounded(f, 1000) })
	v.Volume = v.bars("Bytes of data per second", func(x *Interval) float64 { return float64(x.Bytes) / each }, units.BytesUnit)
	v.Wrong = v.bars("Wrong replies per second", func(x *Interval) float64 { return float64(x.Wrong) / each }, func(f float64) string { return units.Rounded(f, 1000) })
	return runPage().Execute(printable.TextWriter(w), v)
}

// heat draws how many calls of each interval took how long, and the median and the 99th percentile above that.
func (v *runView) heat() {
	lo, hi, most := int64(math.MaxInt64), int64(0), uint64(0)
	for i := range v.Intervals {
		for _, b := range v.Intervals[i].Histogram {
			lo, hi, most = min(lo, b.To), max(hi, b.To), max(most, b.Count)
		}
	}
	if hi == 0 {
		return
	}
	p := newTimePlot(340, "Latency over time")
	s := newLogScale(lo, hi, p.Y1, p.Y0)
	s.decades(p.YTick)
	t := newTimes(p, len(v.Intervals), int64(v.Interval))
	var areas [heatShades]bars
	p50, p99 := make([]float64, len(v.Intervals)), make([]float64, len(v.Intervals))
	for i := range v.Intervals {
		x := &v.Intervals[i]
		if p50[i], p99[i] = float64(x.P50), float64(x.P99); len(x.Histogram) == 0 {
			p50[i], p99[i] = math.NaN(), math.NaN()
		}
		for _, b := range x.Histogram {
			shade := int(math.Log1p(float64(b.Count)) / math.Log1p(float64(most)) * (heatShades - 1))
			areas[min(max(shade, 0), heatShades-1)].add(t.x(i), s.at(b.To), max(t.w-0.3, 0.5), 3)
		}
	}
	t.heat(p, s, areas[:], p50, p99)
	p.Frame()
	p.XTitle("time since the start; latency is on a logarithmic scale")
	v.Heat = &p.Chart
}

// bars draws a rate over time.
func (v *runView) bars(name string, of func(*Interval) float64, show func(float64) string) *plot.Chart {
	most := 0.0
	for i := range v.Intervals {
		most = max(most, of(&v.Intervals[i]))
	}
	if most == 0 {
		return nil
	}
	p := newTimePlot(seriesHeight, name)
	y := p.Linear(most, false, show)
	t := newTimes(p, len(v.Intervals), int64(v.Interval))
	var b bars
	for i := range v.Intervals {
		if f := of(&v.Intervals[i]); f > 0 {
			b.add(t.x(i), y(f), max(t.w-0.4, 0.6), p.Y1-y(f))
		}
	}
	p.AddPath(b.String(), "bar")
	p.Frame()
	p.XTitle(fmt.Sprintf("time since the start, in intervals of %s", units.Round(v.Interval)))
	return &p.Chart
}
