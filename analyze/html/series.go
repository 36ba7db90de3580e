package html

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/analyze/text"
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
	p := plot.New(340, "Latency over time")
	s := newLogScale(lo, hi, p.Y1, p.Y0)
	s.decades(func(y float64, text string) { p.YTick(y, text) })
	t := newTimes(p, len(slots), rep.Series.Interval)
	// Eight rows to a decade.
	rows := int((s.To - s.From) * 8)
	height := (p.Y1 - p.Y0) / float64(rows)
	cells := make([]map[int]uint64, len(slots))
	most := uint64(0)
	for i := range slots {
		cells[i] = make(map[int]uint64)
		for ns, n := range slots[i].Latency().Buckets() {
			row := min(int((p.Y1-s.at(ns))/height), rows-1)
			cells[i][row] += n
			most = max(most, cells[i][row])
		}
	}
	p50, p99 := make([]float64, len(slots)), make([]float64, len(slots))
	for i := range slots {
		x := &slots[i]
		for _, row := range slices.Sorted(maps.Keys(cells[i])) {
			n := cells[i][row]
			from := math.Pow(10, s.From+float64(row)/8)
			to := math.Pow(10, s.From+float64(row+1)/8)
			opacity := 0.15 + 0.85*math.Log1p(float64(n))/math.Log1p(float64(most))
			p.AddRect(t.x(i), p.Y1-float64(row+1)*height, max(t.w-0.3, 0.5), height-0.3, "heat", opacity,
				fmt.Sprintf("%s: %d calls of %s to %s", x.Start.Format("15:04:05.000"), n,
					duration(int64(from)), duration(int64(to))))
		}
		p50[i], p99[i] = math.NaN(), math.NaN()
		if x.Timed > 0 {
			p50[i], p99[i] = float64(x.P50), float64(x.P99)
		}
	}
	y := func(ns float64) float64 { return s.at(int64(ns)) }
	p.AddPath(t.steps(p50, y), "line-p50")
	p.AddPath(t.steps(p99, y), "line-p99")
	p.Frame()
	p.XTitle("seconds since " + slots[0].Start.Format("15:04:05.000 UTC") + "; latency is on a logarithmic scale")
	v.Heat = &p.Chart
	v.HeatNote = fmt.Sprintf("The darkest field stands for %d calls; an interval is %s long. Calls stand where they began.", most, round(time.Duration(rep.Series.Interval)))
}

// rates draws calls and bytes per second.
func (v *view) rates(rep *latency.Report) {
	slots := rep.Series.Slots
	seconds := float64(rep.Series.Interval) / 1e9
	draw := func(name string, of func(*latency.Slot) float64, unit float64, suffix string) *plot.Chart {
		most := 0.0
		for i := range slots {
			most = max(most, of(&slots[i])/seconds)
		}
		if most == 0 {
			return nil
		}
		p := plot.New(seriesHeight, name)
		if unit == 1024 {
			// Ticks at multiples of powers of two.
			for most >= unit*unit && unit < 1<<50 {
				unit *= 1024
			}
		}
		format := func(f float64) string { return text.Rounded(f, 1000) + suffix }
		scale := 1.0
		if unit >= 1024 {
			scale = unit
			if most < unit {
				scale = 1
			}
			format = func(f float64) string { return text.Rounded(f*scale, 1024) + suffix }
		}
		y := p.Linear(most/scale, false, format)
		t := newTimes(p, len(slots), rep.Series.Interval)
		for i := range slots {
			f := of(&slots[i]) / seconds
			if f == 0 {
				continue
			}
			top := y(f / scale)
			p.AddRect(t.x(i), top, max(t.w-0.4, 0.6), p.Y1-top, "bar", 0,
				fmt.Sprintf("%s: %s%s", slots[i].Start.Format("15:04:05.000"), text.Rounded(f, min(unit, 1024)), suffix))
		}
		p.Frame()
		p.XTitle("seconds since " + slots[0].Start.Format("15:04:05.000 UTC"))
		return &p.Chart
	}
	v.Rates = draw("Calls per second", func(s *latency.Slot) float64 { return float64(s.Calls) }, 1000, "/s")
	v.Volume = draw("Bytes of RPC messages per second", func(s *latency.Slot) float64 { return float64(s.Bytes) }, 1024, "B/s")
}

// flight draws calls in flight, and the credits granted where they fit into the
// picture.
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
	switch {
	case granted == 0:
	case granted > 4*most:
		v.Beyond = fmt.Sprintf("Credits granted: %.0f, far above what was in flight.", granted)
	default:
		v.Credits = true
	}
	if !v.Credits {
		granted = 0
	}
	p := plot.New(seriesHeight+30, "Calls in flight and credits")
	y := p.Linear(max(most, granted), true, func(f float64) string { return fmt.Sprintf("%.0f", f) })
	t := newTimes(p, len(slots), rep.Series.Interval)
	credits := make([]float64, len(slots))
	mean := make([]float64, len(slots))
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
			p.AddRect(t.x(i), top, max(t.w-0.4, 0.6), p.Y1-top, "most", 0,
				fmt.Sprintf("%s: at most %d in flight, %.2f on average; at most %d on one connection, of %d credits", x.Start.Format("15:04:05.000"),
					x.MostFlight, x.InFlight, x.CreditsUsed, x.Granted))
		}
	}
	p.AddPath(t.steps(mean, y), "line-mean")
	if v.Credits {
		p.AddPath(t.steps(credits, y), "line-credits")
	}
	p.Frame()
	p.XTitle("seconds since " + slots[0].Start.Format("15:04:05.000 UTC"))
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
	kinds := slices.Sorted(maps.Keys(total))
	slices.SortStableFunc(kinds, func(a, b string) int { return int(min(total[b], 1<<30)) - int(min(total[a], 1<<30)) })
	class := make(map[string]string)
	for i, k := range kinds {
		class[k] = fmt.Sprintf("kind%d", min(i, 5))
		v.Kinds = append(v.Kinds, legend{class[k], k, fmt.Sprint(total[k])})
	}
	p := plot.New(seriesHeight, "Troubles over time")
	y := p.Linear(float64(most), true, func(f float64) string { return text.Rounded(f, 1000) })
	t := newTimes(p, len(slots), rep.Series.Interval)
	for i := range slots {
		sum := uint64(0)
		for _, k := range kinds {
			n := slots[i].Events[k]
			if n == 0 {
				continue
			}
			bottom := y(float64(sum))
			sum += n
			top := y(float64(sum))
			p.AddRect(t.x(i), top, max(t.w-0.4, 1.5), bottom-top, class[k], 0,
				fmt.Sprintf("%s: %d %s", slots[i].Start.Format("15:04:05.000"), n, k))
		}
	}
	p.Frame()
	p.XTitle("seconds since " + slots[0].Start.Format("15:04:05.000 UTC"))
	v.Troubles = &p.Chart
}
