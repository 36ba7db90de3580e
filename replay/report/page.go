package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/html"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// HTML writes the report as a page.
func (r *Report) HTML(w io.Writer) error {
	p := html.Run{
		Title: "Replay of " + strings.Join(r.Sources, ", "), Subtitle: "against " + r.Setup.Server + ", " + r.Start.UTC().Format("2006-01-02 15:04:05 UTC"),
		Cards: [][3]string{
			{"replies", fmt.Sprint(r.Sent), counts(r.Totals)}, {"took", units.Short(r.Took), ""}, {"data", units.BytesText(r.Bytes), ""},
			{"p50", units.Short(r.Latency.P50), ""}, {"p99", units.Short(r.Latency.P99), "longest " + units.Short(r.Latency.Max)},
		},
		Notes: r.Notes,
	}
	if r.Stopped != "" {
		p.Notes = slices.Concat([]string{"Stopped: " + r.Stopped}, r.Notes)
	}
	p.Interval, p.Intervals = intervals(r.Seconds)
	head, rows := r.operations()
	right := make([]bool, len(head))
	for i := 1; i < len(right); i++ {
		right[i] = true
	}
	p.Tables = append(p.Tables, html.Table{Title: "Operations", Header: head, Right: right, Rows: rows})
	reasons := html.Table{Title: "Reasons", Header: []string{"VERDICT", "COUNT", "REASON"}, Right: []bool{false, true, false}}
	for _, x := range r.Reasons {
		reasons.Rows = append(reasons.Rows, []string{x.Verdict.String(), fmt.Sprint(x.Count), x.Reason})
	}
	differ := html.Table{Title: "Calls whose replies were neither same nor equivalent", Header: []string{"VERDICT", "OP", "XID", "CALL", "WHY"}, Right: make([]bool, 5)}
	for i := range r.Mismatches {
		m := &r.Mismatches[i]
		differ.Rows = append(differ.Rows, []string{m.Verdict.String(), fmt.Sprint(m.Op), fmt.Sprintf("%08x", m.XID), m.What, strings.Join(m.Reasons, "; ")})
	}
	for _, t := range []html.Table{reasons, differ} {
		if len(t.Rows) > 0 {
			p.Tables = append(p.Tables, t)
		}
	}
	return p.Write(w)
}

// maxIntervals is how many intervals a page draws.
const maxIntervals = 600

// intervals joins the seconds of a run into equally long intervals.
func intervals(list []Second) (each time.Duration, joined []html.Interval) {
	if len(list) == 0 {
		return time.Second, nil
	}
	last := &list[len(list)-1]
	each = last.Took
	for end := last.From + last.Took; end/each >= maxIntervals; {
		each *= 2
	}
	joined = make([]html.Interval, last.From/each+1)
	bins := make([]map[int64]uint64, len(joined))
	for i := range list {
		s, at := &list[i], list[i].From/each
		x := &joined[at]
		x.Calls += s.Calls
		x.Wrong += s.Wrong
		x.Bytes += s.Bytes
		if bins[at] == nil {
			bins[at] = map[int64]uint64{}
		}
		for _, b := range s.Histogram {
			bins[at][b.To] += b.Count
		}
	}
	for i := range joined {
		joined[i].Histogram = sortedBins(bins[i])
		joined[i].P50, joined[i].P99 = rank(joined[i].Histogram, .5), rank(joined[i].Histogram, .99)
	}
	return each, joined
}

// rank is the value of the nearest rank.
func rank(bins []latency.Bin, q float64) time.Duration {
	n := uint64(0)
	for _, b := range bins {
		n += b.Count
	}
	at := uint64(math.Ceil(q * float64(n)))
	for _, b := range bins {
		if b.Count >= at {
			return time.Duration(b.To)
		}
		at -= b.Count
	}
	return 0
}

// secondRow is a row of the table of seconds.
type secondRow struct {
	Start     time.Time     `parquet:"start,timestamp(nanosecond)"`
	FromNS    int64         `parquet:"from_ns"`
	TookNS    int64         `parquet:"took_ns"`
	Calls     int64         `parquet:"calls"`
	Wrong     int64         `parquet:"wrong"`
	Bytes     int64         `parquet:"bytes"`
	MinNS     int64         `parquet:"min_ns"`
	MeanNS    int64         `parquet:"mean_ns"`
	P50NS     int64         `parquet:"p50_ns"`
	P90NS     int64         `parquet:"p90_ns"`
	P99NS     int64         `parquet:"p99_ns"`
	MaxNS     int64         `parquet:"max_ns"`
	Histogram []latency.Bin `parquet:"histogram,list"`
}

// Parquet writes what the run did in each second, a row for each.
func (r *Report) Parquet(w io.Writer) error {
	p := parquet.NewGenericWriter[secondRow](w, parquet.Compression(&parquet.Zstd))
	for i := range r.Seconds {
		s := &r.Seconds[i]
		l := &s.Latency
		if _, err := p.Write([]secondRow{{
			r.Start.Add(s.From), int64(s.From), int64(s.Took), int64(s.Calls), int64(s.Wrong), int64(s.Bytes),
			int64(l.Min), int64(l.Mean), int64(l.P50), int64(l.P90), int64(l.P99), int64(l.Max), s.Histogram,
		}}); err != nil {
			return err
		}
	}
	return p.Close()
}

// operations is the table of the kinds of operations, with a column for each verdict that occurred.
func (r *Report) operations() (head []string, rows [][]string) {
	head = []string{"OPERATION", "COUNT"}
	for v := range verdict.Count {
		if r.Totals[verdict.Verdict(v).String()] > 0 {
			head = append(head, verdictColumns[v])
		}
	}
	head = append(head, "CAPT. P50", "LIVE P50", "CAPT. P99", "LIVE P99")
	for i := range r.Ops {
		o := &r.Ops[i]
		row := []string{o.Operation, fmt.Sprint(o.Count)}
		for v := range verdict.Count {
			switch n := o.Verdicts[v]; {
			case r.Totals[verdict.Verdict(v).String()] == 0:
			case n == 0:
				row = append(row, "-")
			default:
				row = append(row, fmt.Sprint(n))
			}
		}
		if o.Live.Count > 0 {
			row = append(row, units.Short(o.Captured.P50), units.Short(o.Live.P50), units.Short(o.Captured.P99), units.Short(o.Live.P99))
		} else {
			row = append(row, "-", "-", "-", "-")
		}
		rows = append(rows, row)
	}
	return head, rows
}
