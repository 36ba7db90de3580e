// Package html makes a page for browsers of a report: one file that loads
// nothing, with its drawings in it as SVG. It can be read without scripts; a
// script sorts tables.
package html

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/plot"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/internal/printable"
)

//go:embed style.tmpl
var styleText string

//go:embed page.tmpl
var pageText string

var page = template.Must(template.New("page").Parse(plot.Template + styleText + sessionsText + pageText))

// Write writes the page, with a section on sessions and connections unless
// sessions is nil. Names of files and whatever else comes from the
// capture is hostile: html/template escapes it for the place where it stands, and
// characters that are not to be shown as they are become \xNN (package printable).
func Write(w io.Writer, rep *latency.Report, sessions *session.Report) error {
	v := newView(rep)
	v.Sessions = newSessionsView(sessions)
	return page.Execute(printable.TextWriter(w), v)
}
