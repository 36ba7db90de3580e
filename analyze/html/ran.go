package html

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Bounds of what is said of an interval.
const (
	maxTitled  = latency.AutoIntervals // with more intervals, only the script says what one points at
	maxRan     = 4                     // groups named for an interval
	maxRunning = 3                     // slow transactions linked from an interval
)

// ranRow is what ran in an interval.
type ranRow struct {
	ID      string
	Cells   []string
	Groups  string
	Slowest string
	Running []reference
	More    int // slow ones that are not linked
}

// reference is a link to a drawing.
type reference struct{ Link, XID string }

// busy reports whether anything is to be said of an interval.
func (*view) busy(s *latency.Slot) bool { return s.Calls > 0 || s.MostFlight > 0 || len(s.Events) > 0 }

// ran says what ran in each interval, and which of the slowest transactions were under way.
func (v *view) ran(rep *latency.Report) {
	end := time.Duration(rep.Series.Interval)
	for i := range rep.Series.Slots {
		s := &rep.Series.Slots[i]
		if !v.busy(s) {
			continue
		}
		r := ranRow{ID: "t" + strconv.Itoa(i), Cells: []string{fmt.Sprint(s.Calls), fmt.Sprint(s.Errors), "–", "–", "–", fmt.Sprint(s.MostFlight)}}
		if s.Timed > 0 {
			r.Cells[2], r.Cells[3], r.Cells[4] = units.Duration(s.P50), units.Duration(s.P99), units.Duration(s.Max)
		}
		r.Cells = append([]string{s.Start.Format("15:04:05.000")}, r.Cells...)
		groups, slowest := s.Ran()
		named, names := uint64(0), []string{}
		for j := range groups {
			if j == maxRan {
				break
			}
			g := &groups[j]
			named += g.Count
			key := name(&latency.Group{Key: g.Key})
			names = append(names, fmt.Sprintf("%d × %s", g.Count, key))
		}
		if rest := s.Calls - min(named, s.Calls); rest > 0 && len(groups) > 0 {
			names = append(names, fmt.Sprintf("%d others", rest))
		}
		r.Groups = strings.Join(names, ", ")
		if slowest.Total > 0 {
			r.Slowest = fmt.Sprintf("slowest %s %08x %s, connection %d, frames %d–%d", units.Duration(slowest.Total), slowest.XID, clipped(slowest.Operation),
				slowest.Connection, slowest.CallFrame, slowest.ReplyFrame)
		}
		for j, x := range rep.SlowestOfWork() {
			if j >= len(v.Slow) || v.Slow[j].Drawing == "" {
				continue
			}
			if x.Time.Before(s.Start.Add(end)) && !x.Time.Add(time.Duration(x.Total)).Before(s.Start) {
				if len(r.Running) == maxRunning {
					r.More++
					continue
				}
				r.Running = append(r.Running, reference{"#" + v.Slow[j].ID, v.Slow[j].XID})
			}
		}
		v.Ran = append(v.Ran, r)
	}
}

// clipped is a name of operations, of which a COMPOUND has many.
func clipped(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
