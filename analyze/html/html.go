// Package html makes a page for browsers of a report.
package html

import (
	"io"

	"github.com/rpcrdma/toolkit/analyze/latency"
)

// Write writes the page.
func Write(w io.Writer, rep *latency.Report) error { return nil }
