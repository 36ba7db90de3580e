package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The form of JUnit's results that CI systems read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as a test suite: a test case for each operation, one for the run as a whole, and one for the files that were read
// back. Differences that were accepted are no failures.
func (r *Report) JUnit(w io.Writer) error {
	class := strings.Join(r.Sources, " ")
	s := junitSuite{Name: "rpcrdma-replay " + class, Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
	add := func(name string, seconds float64, failure string, lines []string) {
		c := junitCase{Class: class, Name: name, Time: fmt.Sprintf("%.3f", seconds)}
		if failure != "" {
			c.Failure = &junitFailure{failure, strings.Join(lines, "\n")}
			s.Failures++
		}
		s.Cases = append(s.Cases, c)
		s.Tests++
	}
	stopped := r.Stopped
	if stopped == "" && r.NotDone > 0 {
		stopped = fmt.Sprintf("%d of %d calls were not over", r.NotDone, r.Planned)
	}
	add("run", r.Took.Seconds(), stopped, nil)
	for i := range r.Ops {
		o := &r.Ops[i]
		n, lines := wrongs(o.Outcomes), []string(nil)
		for k := range r.Mismatches {
			switch m := &r.Mismatches[k]; {
			case m.Operation != o.Operation || m.Verdict.Fine():
			case m.Accepted:
				n--
			default:
				lines = append(lines, fmt.Sprintf("%s: op %d: %s: %s", m.Verdict, m.Op, m.What, strings.Join(m.Reasons, "; ")))
			}
		}
		failure := ""
		if n > 0 {
			failure = fmt.Sprintf("%d of %d calls are not as captured", n, o.Count)
		}
		add(o.Operation, o.Live.Mean.Seconds()*float64(o.Live.Count), failure, lines)
	}
	if b := r.ReadBack; b != nil {
		failure, lines := b.Ended, []string(nil)
		for i := range b.Wrong {
			if f := &b.Wrong[i]; !f.Accepted {
				lines = append(lines, f.Path+": "+f.Reason)
			}
		}
		if failure == "" && len(lines)+b.More > 0 {
			failure = fmt.Sprintf("%d things are not as the run has left them", len(lines)+b.More)
		}
		add("read back", 0, failure, lines)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(&s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
