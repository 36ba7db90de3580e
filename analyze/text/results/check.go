package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/internal/table"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Shown tells which findings were printed above a summary, so that it can name
// what was left out.
type Shown struct {
	Findings map[*check.Rule]uint64 // of the severities asked for
	Known    map[*check.Rule]*Known // known deviations, which are not among Findings: each rule gets a line
	Max      uint64                 // how many findings of a rule were printed at most; 0: all
	Hidden   uint64                 // of lesser severity
	Quiet    bool                   // none was printed
}

// Known are the known deviations from a rule.
type Known struct {
	Times uint64
	Worst check.Severity
	By    []string // different ones
}

// Add takes a finding that is a known deviation.
func (s *Shown) Add(f *check.Finding) {
	k := s.Known[f.Rule]
	if k == nil {
		if k = new(Known); s.Known == nil {
			s.Known = make(map[*check.Rule]*Known)
		}
		s.Known[f.Rule] = k
	}
	k.Times++
	k.Worst = max(k.Worst, f.Severity)
	if !slices.Contains(k.By, f.Known) && len(k.By) < maxBy {
		k.By = append(k.By, f.Known)
	}
}

// maxBy is how many known deviations from a rule are named.
const maxBy = 8

var checkHeader = []string{"RULE", "", "SEVERITY", "FOUND", "BY", "FIRST FRAME", "JUDGED", "NOT JUDGED"}
var checkRight = []bool{false, false, false, true, false, true, true, false}

// CheckSummary writes the table of the rules that were broken or could not be
// judged, and how many findings were left out.
func CheckSummary(w io.Writer, c *check.Checker, shown *Shown) {
	var list []*check.Rule
	var clean, idle, judged uint64
	for _, rule := range check.Rules() {
		if !c.Enabled(rule) {
			continue
		}
		n := c.Count(rule)
		judged += n.Judged
		if n.Found == 0 && n.Skipped() == 0 {
			if n.Judged > 0 {
				clean++
			} else {
				idle++
			}
			continue
		}
		list = append(list, rule)
	}
	if !shown.Quiet {
		left(w, c, shown)
	}
	slices.SortStableFunc(list, func(a, b *check.Rule) int { return cmp.Compare(worst(c.Count(b)), worst(c.Count(a))) })
	rows := make([][]string, len(list))
	for i, rule := range list {
		rows[i] = checkRow(rule, c.Count(rule))
	}
	if len(rows) > 0 {
		_ = table.Print(w, checkHeader, checkRight, rows)
		fmt.Fprintln(w)
	}
	if judged == 0 {
		fmt.Fprintf(w, "nothing could be judged: no rule found anything that it applies to\n")
		return
	}
	t := c.Totals()
	fmt.Fprintf(w, "%s, %s, %s", units.Plural(t[check.Error], "error"), units.Plural(t[check.Warning], "warning"), units.Plural(t[check.Note], "note"))
	if shown.Hidden > 0 {
		fmt.Fprintf(w, " (%d not shown: --severity note)", shown.Hidden)
	}
	fmt.Fprintf(w, "; %s without a finding, %d had nothing to judge\n", units.Plural(clean, "rule"), idle)
}

// worst is the severity of what was found of a rule; −1 without.
func worst(n *check.Count) int {
	if n.Found == 0 {
		return -1
	}
	return int(n.Worst)
}

// left says what was not printed one by one: known deviations, and what is beyond the most of a rule.
func left(w io.Writer, c *check.Checker, shown *Shown) {
	lines := len(shown.Findings)
	for _, rule := range check.Rules() {
		n := shown.Findings[rule]
		if known := shown.Known[rule]; known != nil {
			all := c.Count(rule)
			n -= min(n, all.Known-min(all.Known, known.Times))
			fmt.Fprintf(w, "%-7s %s  %s, known, %s: %s\n", known.Worst, rule.ID, rule.Number, units.Times(all.Known), strings.Join(known.By, "; "))
			lines++
		}
		if shown.Max > 0 && n > shown.Max {
			fmt.Fprintf(w, "%s: %s more not shown (--max)\n", rule.ID, units.Plural(n-shown.Max, "finding"))
		}
	}
	if lines > 0 {
		fmt.Fprintln(w)
	}
}

func checkRow(rule *check.Rule, n *check.Count) []string {
	row := []string{rule.Number, rule.ID, "-", "-", "-", "-", fmt.Sprint(n.Judged), "-"}
	if n.Found > 0 {
		row[2] = n.Worst.String()
		row[3] = fmt.Sprint(n.Found)
		row[4] = parties(n)
		row[5] = fmt.Sprint(n.First.Number)
		if n.Known == n.Found {
			row[2] += " (known)"
		} else if n.Known > 0 {
			row[2] += fmt.Sprintf(" (%d known)", n.Known)
		}
	}
	var why []string
	for reason, k := range n.NotJudged {
		if k > 0 {
			why = append(why, fmt.Sprintf("%d %s", k, check.Reason(reason)))
		}
	}
	if len(why) > 0 {
		row[7] = strings.Join(why, ", ")
	}
	return row
}

func parties(n *check.Count) string {
	var out []string
	for _, p := range [...]check.Party{check.Requester, check.Responder, check.Unknown} {
		switch k := n.By[p]; {
		case k == n.Found:
			return p.String()
		case k > 0:
			out = append(out, fmt.Sprintf("%d %s", k, p))
		}
	}
	return strings.Join(out, ", ")
}

// Rules writes a table of rules, with their severity in a profile.
func Rules(w io.Writer, list []*check.Rule, profile check.Profile) error {
	rows := make([][]string, 0, len(list))
	for _, r := range list {
		known := ""
		if r.Known != "" {
			known = "known"
		}
		rows = append(rows, []string{r.Number, r.ID, r.Severity[profile].String(), known, r.Title})
	}
	return table.Print(w, []string{"NUMBER", "ID", "SEVERITY", "", "RULE"}, make([]bool, 5), rows)
}
