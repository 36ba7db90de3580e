package html

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/internal/units"
)

const seriesHeight = 190.0

// heat draws how many calls of each interval took how long, and the median and
// the 99th percentile above that.
func (v *view) heat(rep *latency.Report) {
	slots := rep.Series.Slots
	lo, hi := int64(math.MaxInt64), int64(0)
	for i := range slots {
		for ns := range slots[i].Latency().Buckets() {
			lo, hi = min(lo, ns), max(hi, ns)
		}
	}
	if hi == 0 {
		return
	}
	p := newTimePlot(340, "Latency over time")
	s := newLogScale(lo, hi, p.Y1, p.Y0)
	s.decades(func(y float64, text string) { p.YTick(y, text) })
	t := newTimes(p, len(slots), rep.Series.Interval)
	// Eight rows to a decade.
	rows := int((s.To - s.From) * 8)
	height := (p.Y1 - p.Y0) / float64(rows)
	v.Cells = &heatCells{Bottom: p.Y1, Height: height}
	for row := range rows {
		v.Cells.Rows = append(v.Cells.Rows, units.Duration(int64(math.Pow(10, s.From+float64(row)/8)))+" to "+units.Duration(int64(math.Pow(10, s.From+float64(row+1)/8))))
	}
	most := uint64(0)
	for i := range slots {
		cells := make(map[int]uint64)
		for ns, n := range slots[i].Latency().Buckets() {
			row := min(int((p.Y1-s.at(ns))/height), rows-1)
			cells[row] += n
			most = max(most, cells[row])
		}
		v.Cells.Slots = append(v.Cells.Slots, cells)
	}
	p50, p99 := make([]float64, len(slots)), make([]float64, len(slots))
	// A cell is one of a few shades: those of a shade are one path.
	var areas [heatShades]bars
	for i := range slots {
		for _, row := range slices.Sorted(maps.Keys(v.Cells.Slots[i])) {
			shade := int(math.Log1p(float64(v.Cells.Slots[i][row])) / math.Log1p(float64(most)) * (heatShades - 1))
			areas[min(max(shade, 0), heatShades-1)].add(t.x(i), p.Y1-float64(row+1)*height, max(t.w-0.3, 0.5), height-0.3)
		}
		p50[i], p99[i] = math.NaN(), math.NaN()
		if x := &slots[i]; x.Timed > 0 {
			p50[i], p99[i] = float64(x.P50), float64(x.P99)
		}
	}
	t.heat(p, s, areas[:], p50, p99)
	v.hits(p, t, slots, func(i int) string {
		x := &slots[i]
		if x.Timed == 0 {
			return units.Plural(x.Calls, "call")
		}
		return fmt.Sprintf("%s, p50 %s, p99 %s, max %s", units.Plural(x.Calls, "call"), units.Duration(x.P50), units.Duration(x.P99), units.Duration(x.Max))
	})
	p.Frame()
	p.XTitle("time since " + slots[0].Start.Format("15:04:05.000 UTC") + "; latency is on a logarithmic scale")
	v.Heat = &p.Chart
	v.HeatNote = fmt.Sprintf("The darkest field stands for %d calls; an interval is %s long. Calls stand where they began.", most, units.Round(time.Duration(rep.Series.Interval)))
}

// heatShades is how many shades the heat map has.
const heatShades = 12

// heatCells is how many calls the cells of the heat map stand for: what the script says when one points at them.
type heatCells struct {
	Bottom float64          `json:"bottom"`
	Height float64          `json:"height"` // of a row
	Rows   []string         `json:"rows"`   // from the bottom
	Slots  []map[int]uint64 `json:"slots"`  // by row
}

// newTimePlot is a plot over time; all have the same width, with room for a second axis.
func newTimePlot(height float64, name string) *plot.Plot {
	p := plot.New(height, name)
	p.X1 -= 30
	return p
}

// rates draws calls and bytes per second.
func (v *view) rates(rep *latency.Report) {
	slots := rep.Series.Slots
	seconds := float64(rep.Series.Interval) / 1e9
	draw := func(name string, of func(*latency.Slot) float64, unit float64, show func(float64) string) *plot.Chart {
		most := 0.0
		for i := range slots {
			most = max(most, of(&slots[i])/seconds)
		}
		if most == 0 {
			return nil
		}
		p := newTimePlot(seriesHeight, name)
		if unit == 1024 {
			// Ticks at multiples of powers of two.
			for most >= unit*unit && unit < 1<<50 {
				unit *= 1024
			}
		}
		scale := 1.0
		if unit >= 1024 && most >= unit {
			scale = unit
		}
		y := p.Linear(most/scale, false, func(f float64) string { return show(f * scale) })
		t := newTimes(p, len(slots), rep.Series.Interval)
		var b bars
		for i := range slots {
			if f := of(&slots[i]) / seconds; f > 0 {
				top := y(f / scale)
				b.add(t.x(i), top, max(t.w-0.4, 0.6), p.Y1-top)
			}
		}
		p.AddPath(b.String(), "bar")
		v.hits(p, t, slots, func(i int) string { return show(of(&slots[i]) / seconds) })
		p.Frame()
		p.XTitle("time since " + slots[0].Start.Format("15:04:05.000 UTC"))
		return &p.Chart
	}
	v.Rates = draw("Calls per second", func(s *latency.Slot) float64 { return float64(s.Calls) }, 1000, func(f float64) string { return units.Rounded(f, 1000) + "/s" })
	v.Volume = draw("Bytes of RPC messages per second", func(s *latency.Slot) float64 { return float64(s.Bytes) }, 1024, func(f float64) string { return units.BytesUnit(f) + "/s" })
}

// flight draws calls in flight, and on an axis of their own the credits granted.
func (v *view) flight(rep *latency.Report) {
	slots := rep.Series.Slots
	most, granted := 0.0, 0.0
	for i := range slots {
		most = max(most, float64(slots[i].MostFlight))
		granted = max(granted, float64(slots[i].Granted))
	}
	if most == 0 {
		return
	}
	v.Credits = granted > 0
	p := newTimePlot(seriesHeight+30, "Calls in flight and credits")
	whole := func(f float64) string { return units.Rounded(f, 1000) }
	y := p.Linear(max(most, granted), true, whole)
	t := newTimes(p, len(slots), rep.Series.Interval)
	credits := make([]float64, len(slots))
	mean := make([]float64, len(slots))
	var b bars
	for i := range slots {
		x := &slots[i]
		mean[i] = x.InFlight
		credits[i] = math.NaN()
		if x.Granted > 0 {
			credits[i] = float64(x.Granted)
		} else if i > 0 {
			credits[i] = credits[i-1] // a grant holds until the next
		}
		if x.MostFlight > 0 {
			top := y(float64(x.MostFlight))
			b.add(t.x(i), top, max(t.w-0.4, 0.6), p.Y1-top)
		}
	}
	p.AddPath(b.String(), "most")
	p.AddPath(t.steps(mean, y), "line-mean")
	if v.Credits {
		p.AddPath(t.steps(credits, y), "line-credits")
	}
	v.hits(p, t, slots, func(i int) string {
		x := &slots[i]
		s := fmt.Sprintf("at most %d in flight, %.2f on average", x.MostFlight, x.InFlight)
		if credits[i] > 0 {
			s += fmt.Sprintf("; at most %d on one connection, of %.0f credits", x.CreditsUsed, credits[i])
		}
		return s
	})
	p.Frame()
	p.XTitle("time since " + slots[0].Start.Format("15:04:05.000 UTC"))
	v.Flight = &p.Chart
}

// troubles draws events over time, one above the other.
func (v *view) troubles(rep *latency.Report) {
	slots := rep.Series.Slots
	total := make(map[string]uint64)
	most := uint64(0)
	for i := range slots {
		n := uint64(0)
		for k, c := range slots[i].Events {
			total[k] += c
			n += c
		}
		most = max(most, n)
	}
	if most == 0 {
		return
	}
	// The kinds of the table below, in its order and with its numbers, so that the legend and the table are the
	// same; what only the drawing has follows.
	var kinds []string
	for i := range rep.Troubles {
		kinds = append(kinds, rep.Troubles[i].Kind)
	}
	for _, k := range slices.Sorted(maps.Keys(total)) {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for i, k := range kinds {
		n := total[k]
		if i < len(rep.Troubles) {
			n = rep.Troubles[i].Events
		}
		note := fmt.Sprint(n)
		if n != total[k] {
			note += fmt.Sprintf(" (drawn: %d)", total[k])
		}
		v.Kinds = append(v.Kinds, legend{kindClass(i), k, note})
	}
	p := newTimePlot(seriesHeight, "Troubles over time")
	y := p.Linear(float64(most), true, func(f float64) string { return units.Rounded(f, 1000) })
	t := newTimes(p, len(slots), rep.Series.Interval)
	sums := make([]uint64, len(slots))
	for j, k := range kinds {
		var b bars
		for i := range slots {
			if n := slots[i].Events[k]; n > 0 {
				bottom := y(float64(sums[i]))
				sums[i] += n
				top := y(float64(sums[i]))
				b.add(t.x(i), top, max(t.w-0.4, 1.5), bottom-top)
			}
		}
		if b.Len() > 0 {
			p.AddPath(b.String(), kindClass(j))
		}
	}
	v.hits(p, t, slots, func(i int) string {
		var s []string
		for _, k := range kinds {
			if n := slots[i].Events[k]; n > 0 {
				s = append(s, fmt.Sprintf("%d %s", n, k))
			}
		}
		return strings.Join(s, ", ")
	})
	p.Frame()
	p.XTitle("time since " + slots[0].Start.Format("15:04:05.000 UTC"))
	v.Troubles = &p.Chart
}

// kindClass is the colour of a kind of trouble.
func kindClass(i int) string { return fmt.Sprintf("kind%d", i%12) }

// heat draws the cells of each shade, and the median and the 99th percentile of each interval above them.
func (t times) heat(p *plot.Plot, s logScale, areas []bars, p50, p99 []float64) {
	for shade := range areas {
		if d := areas[shade].String(); d != "" {
			p.AddArea(d, "heat", 0.15+0.85*float64(shade)/(heatShades-1))
		}
	}
	y := func(ns float64) float64 { return s.at(int64(ns)) }
	p.AddPath(t.steps(p50, y), "line-p50")
	p.AddPath(t.steps(p99, y), "line-p99")
}
