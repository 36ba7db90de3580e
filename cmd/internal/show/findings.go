// Package show writes results in the forms that commands have in common.
package show

import (
	"io"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// Findings writes findings of a check, and the summary of its rules, as text, ndjson or json.
type Findings struct {
	Format string
	Least  check.Severity // findings of lesser severity are counted only
	Text   results.Findings
	Shown  results.Shown
	// Write writes what was appended to a buffer.
	Write func(append func([]byte) []byte)

	json ndjson.Encoder
	any  bool // an object was written
}

// Begin writes what comes before the first finding.
func (s *Findings) Begin() {
	if s.Format == "json" {
		s.Write(func(b []byte) []byte { return append(b, '[') })
	}
}

// Object writes an object of JSON that is not a finding; without effect on text.
func (s *Findings) Object(v any) {
	if s.Format == "text" {
		return
	}
	s.Write(func(b []byte) []byte {
		return s.object(b, func(b []byte) []byte { return trim(printable.AppendValue(b, v)) })
	})
}

// trim removes the end of a line.
func trim(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return b[:n-1]
	}
	return b
}

// object appends an object with what is before and after it.
func (s *Findings) object(b []byte, value func([]byte) []byte) []byte {
	if s.Format == "json" {
		if s.any {
			b = append(b, ',')
		}
		b = append(b, '\n')
	}
	s.any = true
	b = value(b)
	if s.Format == "ndjson" {
		b = append(b, '\n')
	}
	return b
}

// Wanted reports whether the next finding of a rule with a severity is shown: see check.Options.
func (s *Findings) Wanted(r *check.Rule, severity check.Severity) bool {
	if severity < s.Least || s.Format != "text" {
		return severity >= s.Least
	}
	return !s.Shown.Quiet && (s.Shown.Max == 0 || s.Shown.Findings[r] < s.Shown.Max && (s.Shown.Known[r] == nil || s.Shown.Known[r].Times < mostKnown))
}

// mostKnown is how many known deviations of a rule are looked at: others of the rule may be among them.
const mostKnown = 1000

// Finding writes a finding, if it is to be shown. In text, known deviations are counted, for one line each.
func (s *Findings) Finding(f *check.Finding) {
	shown := s.Wanted(f.Rule, f.Severity)
	if shown && s.Format == "text" && f.Known != "" && s.Shown.Max != 0 {
		s.Shown.Add(f)
		return
	}
	s.count(f.Rule, f.Severity, 1)
	switch {
	case !shown:
	case s.Format == "text":
		s.Write(func(b []byte) []byte { return s.Text.Append(b, f) })
	default:
		s.Write(func(b []byte) []byte { return s.object(b, func(b []byte) []byte { return s.json.AppendFinding(b, f) }) })
	}
}

// count counts findings, whether they are shown or not.
func (s *Findings) count(r *check.Rule, severity check.Severity, n uint64) {
	switch {
	case n == 0:
	case severity < s.Least:
		s.Shown.Hidden += n
	default:
		s.Shown.Findings[r] += n
	}
}

// Saved writes the findings of saved states: their words are whatever their author wrote.
func (s *Findings) Saved(list []*check.Finding) {
	for _, f := range list {
		for _, word := range [...]*string{&f.Tap, &f.Capture, &f.Key, &f.Known, &f.Program, &f.Operation, &f.Expected, &f.Seen, &f.Reaction, &f.CallKey, &f.ReplyKey} {
			*word = printable.Line(*word)
		}
		s.Finding(f)
	}
}

// Summary writes what comes after the last finding; w is what Write writes to.
func (s *Findings) Summary(w io.Writer, c *check.Checker) {
	for _, r := range check.Rules() {
		for severity := check.Note; severity <= check.Error; severity++ {
			s.count(r, severity, c.Unread(r, severity))
		}
	}
	switch s.Format {
	case "text":
		results.CheckSummary(w, c, &s.Shown)
	case "ndjson":
		s.Write(func(b []byte) []byte { return append(ndjson.AppendCheckSummary(b, c), '\n') })
	case "json":
		s.Write(func(b []byte) []byte {
			return append(s.object(b, func(b []byte) []byte { return ndjson.AppendCheckSummary(b, c) }), "\n]\n"...)
		})
	}
}
