package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/internal/units"
)

// headWhy has the main cause of slow calls, in the latest interval and in all.
func (d *drawing) headWhy(s *monitor.Snapshot, width int, totals bool) (lines [][]span) {
	line := func(label string, rep *diagnosis.Report) {
		what, t := "no call has ended yet", dim
		if rep != nil && rep.Calls > 0 {
			what, t = rep.Summary, good
			if !rep.Healthy() {
				t = warn
			}
		}
		lines = append(lines, []span{{d.g.fit(label, 10, false), dim}, {" ", normal}, {d.g.fit(d.g.plain(what), max(width-11, 4), false), t}})
	}
	if !totals && s.HasNow {
		line("why now", s.WhyNow)
	}
	line("why so far", s.Why)
	return lines
}

// whyText has the full diagnoses. Headings do not begin with a space.
func (d *drawing) whyText(s *monitor.Snapshot, width int) (lines []string) {
	section := func(head string, rep *diagnosis.Report, left uint64, why string) {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, d.g.plain(head))
		if rep == nil {
			lines = append(lines, "  No call has ended.")
			return
		}
		var b strings.Builder
		results.Diagnosis(&b, rep, max(width-3, 20), true)
		if left > 0 {
			fmt.Fprintf(&b, "%s left out: %s\n", units.Plural(left, "call"), why)
		}
		for l := range strings.Lines(b.String()) {
			lines = append(lines, "  "+d.g.plain(strings.TrimRight(l, "\n")))
		}
	}
	if s.HasNow {
		from := time.Unix(0, s.Now.Start).UTC().Format("15:04:05.000")
		section(fmt.Sprintf("Why calls are slow: the latest interval, %s from %s", units.Duration(s.NowSpan), from), s.WhyNow, s.WhyLeft, "the first ones of an interval are looked at.")
	}
	section("Why calls are slow: all "+text.Within(s.First, s.Time), s.Why, s.WhyBeyond, "their connections or hosts are beyond the limit; see --limit-memory.")
	return lines
}

// whyLines draws the view of causes.
func (u *ui) whyLines(height int) []string {
	all := u.whyText(u.snap, u.width)
	u.whyTop = max(min(u.whyTop, len(all)-height), 0)
	if len(all) > height {
		u.cut = fmt.Sprintf("lines %d-%d of %d", u.whyTop+1, min(u.whyTop+height, len(all)), len(all))
	}
	var out []string
	for _, l := range all[u.whyTop:min(u.whyTop+height, len(all))] {
		t := normal
		if l != "" && l[0] != ' ' {
			t = bold
		}
		out = append(out, u.st.line(u.width, normal, span{" " + l, t}))
	}
	return out
}
