// Package report says what a run was: it collects outcomes (recorder.go), makes the
// sentences for verdicts and their reasons (sentence.go), and writes a Report as text
// or, with encoding/json, as JSON (text.go, report.go).
package report
