// Judge evaluates replays for test/vm/run:
//
//	judge sums TRUTH PLAN        the MD5 sums that files of a capture had, for md5sum -c;
//	                             but those of files of which the capture, and so the
//	                             plan, does not have all, whose names go to stderr
//	judge report REPORT [KNOWN]  one line about a replay: counts, and the share of
//	                             replies that were same or equivalent; status 1 if
//	                             that is below 99 %, or anything is unexplained.
//	                             Replies with KNOWN, a known fault of the server, in
//	                             a reason are counted by themselves
//	judge rest REPORT            the calls that were neither, one by one
//	judge why DIAGNOSIS CODES    one line about what rpcrdma-dump why says; status 1
//	                             if the first cause that is more than possible, or else
//	                             the first, is not among CODES, separated by commas
//	                             ("none": nothing is slow), or a cause that is not
//	                             among them is claimed to be certain
//
// TRUTH is NAME.truth.json of samples, or a file of md5sum.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
)

// enough is the percentage of replies that must be same or equivalent.
const enough = 99

var errBelow = errors.New("not as it should be")

func main() {
	if n := len(os.Args); n < 3 || n > 4 || n == 4 && os.Args[1] == "rest" || n == 3 && (os.Args[1] == "sums" || os.Args[1] == "why") {
		fmt.Fprintln(os.Stderr, "usage: judge report REPORT [KNOWN], judge rest REPORT, judge sums TRUTH PLAN, judge why DIAGNOSIS CODES")
		os.Exit(2)
	}
	if err := act(os.Stdout, os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func act(w io.Writer, what string, files ...string) error {
	file := files[0]
	b, err := os.ReadFile(file) // #nosec G304 -- the file that the caller named
	if err != nil {
		return err
	}
	switch what {
	case "sums":
		part, err := parts(files[1])
		if err != nil {
			return err
		}
		return sums(w, b, part)
	case "why":
		return why(w, b, strings.Split(files[1], ","))
	case "report", "rest":
		var r replayed
		if err := json.Unmarshal(b, &r); err != nil {
			return err
		}
		if r.Schema != report.Schema {
			return fmt.Errorf("%s is not a report of a replay", file)
		}
		if what == "report" {
			known := ""
			if len(files) > 1 {
				known = files[1]
			}
			return r.line(w, known)
		}
		return r.rest(w)
	}
	return fmt.Errorf("%q is not known", what)
}

// why compares the causes that were found with those that may be.
func why(w io.Writer, b []byte, codes []string) error {
	var r diagnosis.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	if r.Schema != diagnosis.Schema {
		return errors.New("this is no diagnosis")
	}
	fmt.Fprintln(w, r.Summary)
	sure := slices.DeleteFunc(slices.Clone(r.Causes), func(c *diagnosis.Cause) bool { return c.Certainty == diagnosis.Possible })
	first := "none"
	switch {
	case len(sure) > 0:
		first = string(sure[0].Code)
	case len(r.Causes) > 0 && !slices.Contains(codes, "none"):
		first = string(r.Causes[0].Code)
	}
	for _, c := range sure {
		if c.Certainty == diagnosis.Certain && !slices.Contains(codes, string(c.Code)) {
			return fmt.Errorf("%s is claimed to be certain", c.Code)
		}
	}
	if !slices.Contains(codes, first) {
		return fmt.Errorf("%s is said first, not %s", first, strings.Join(codes, " or "))
	}
	return nil
}

// parts are the paths of files from before a capture that were not read completely: the rest of
// their content is unknown.
func parts(name string) (map[string]bool, error) {
	r, err := plan.Open(name, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := map[string]bool{}
	for i := range r.Tables.Objects {
		o := &r.Tables.Objects[i]
		if o.Origin != plan.Before || o.Type != "file" {
			continue
		}
		content := slices.Clone(o.Content)
		slices.SortFunc(content, func(a, b plan.Extent) int { return cmp.Compare(a.Offset, b.Offset) })
		end := uint64(0)
		for _, x := range content {
			if x.Offset > end {
				break
			}
			end = max(end, x.Offset+x.Length)
		}
		if end < o.Size {
			out[o.Path] = true
		}
	}
	return out, nil
}

// sums writes lines for md5sum -c. Names are relative.
func sums(w io.Writer, b []byte, part map[string]bool) error {
	out := bufio.NewWriter(w)
	line := func(sum, path string) {
		if path = strings.TrimPrefix(path, "./"); part[path] {
			fmt.Fprintln(os.Stderr, path)
			return
		}
		fmt.Fprintf(out, "%s  ./%s\n", sum, path)
	}
	if !bytes.HasPrefix(b, []byte("{")) {
		for l := range strings.Lines(string(b)) {
			sum, path, ok := strings.Cut(strings.TrimSuffix(l, "\n"), "  ")
			if !ok || strings.HasPrefix(sum, "\\") {
				return fmt.Errorf("%q is no line of md5sum", l)
			}
			line(sum, path)
		}
		return out.Flush()
	}
	var t struct {
		Files []struct{ MD5, Path string } `json:"files"`
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	for _, f := range t.Files {
		if strings.ContainsAny(f.Path, "\n\\") {
			return fmt.Errorf("%q cannot be written as md5sum does", f.Path)
		}
		line(f.MD5, f.Path)
	}
	return out.Flush()
}

// replayed is the part of a report.Report that is used here.
type replayed struct {
	Schema     string         `json:"schema"`
	Stopped    string         `json:"stopped"`
	Planned    int            `json:"planned"`
	NotDone    int            `json:"not_done"`
	Retried    int            `json:"retried"`
	Extra      int            `json:"extra"`
	Totals     map[string]int `json:"verdicts"`
	Mismatches []struct {
		Op      int      `json:"op"`
		What    string   `json:"what"`
		Verdict string   `json:"verdict"`
		Reasons []string `json:"reasons"`
	} `json:"mismatches"`
	More    int `json:"more_mismatches"`
	Reasons []struct {
		Verdict string `json:"verdict"`
		Reason  string `json:"reason"`
		Count   int    `json:"count"`
	} `json:"reasons"`
	SelfCheck *report.SelfCheck `json:"self_check"`
}

// faults counts the replies whose reasons name a known fault, and those of them that are not fine.
func (r *replayed) faults(known string) (n, bad int) {
	if known == "" {
		return 0, 0
	}
	fine := map[string]bool{}
	for v := verdict.Same; v <= verdict.Lost; v++ {
		fine[v.String()] = v.Fine()
	}
	for _, m := range r.Mismatches {
		if slices.ContainsFunc(m.Reasons, func(s string) bool { return strings.Contains(s, known) }) {
			n++
			if !fine[m.Verdict] {
				bad++
			}
		}
	}
	return n, bad
}

// line writes the counts in one line.
func (r *replayed) line(w io.Writer, known string) error {
	good := r.Totals[verdict.Same.String()] + r.Totals[verdict.Equivalent.String()]
	share := 0.0
	if r.Planned > 0 {
		share = 100 * float64(good) / float64(r.Planned)
	}
	fault, worse := r.faults(known)
	bad, all := r.NotDone-worse, 0
	var parts []string
	for v := verdict.Same; v <= verdict.Lost; v++ {
		n := r.Totals[v.String()]
		all += n
		if n == 0 && v > verdict.Equivalent {
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, v))
		if !v.Fine() {
			bad += n
		}
	}
	fmt.Fprintf(w, "%d operations: %s; %.1f %% same or equivalent", r.Planned, strings.Join(parts, ", "), share)
	if fault > 0 {
		fmt.Fprintf(w, "; %d because of a known fault of the server (%s)", fault, known)
	}
	if s := r.SelfCheck; s != nil {
		fmt.Fprintf(w, "; self-check %d of %d", s.Same, s.Calls)
	}
	fmt.Fprintln(w)
	switch {
	case r.Planned == 0:
		return fmt.Errorf("%w: nothing was replayed", errBelow)
	case r.Stopped != "":
		return fmt.Errorf("%w: %s", errBelow, r.Stopped)
	case bad > 0 || all != r.Planned:
		return fmt.Errorf("%w: %d operations without an explanation, %d outcomes of %d", errBelow, bad, all, r.Planned)
	case (good+fault)*100 < enough*r.Planned:
		return fmt.Errorf("%w: less than %d %% are same or equivalent", errBelow, enough)
	case r.SelfCheck == nil || r.SelfCheck.Same != r.SelfCheck.Calls || !r.SelfCheck.OK():
		return fmt.Errorf("%w: the dissector did not find in the packets what was sent", errBelow)
	}
	return nil
}

// rest writes the calls that were neither same nor equivalent, and the reasons of the equivalent
// ones.
func (r *replayed) rest(w io.Writer) error {
	counts := map[string]int{}
	for _, x := range r.Reasons {
		if x.Verdict == verdict.Equivalent.String() || x.Verdict == verdict.Omitted.String() {
			counts[x.Verdict+": "+x.Reason] += x.Count
		}
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%4d %s\n", counts[k], k)
	}
	for _, m := range r.Mismatches {
		fmt.Fprintf(w, "%s: operation %d, %s: %s\n", m.Verdict, m.Op, m.What, strings.Join(m.Reasons, "; "))
	}
	if r.More > 0 {
		fmt.Fprintf(w, "%d more\n", r.More)
	}
	return nil
}
