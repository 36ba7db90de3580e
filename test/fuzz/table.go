package main

import (
	"fmt"
	"io"
)

func printHeader(w io.Writer, cover bool) {
	fmt.Fprintf(w, "%-44s %9s %11s %9s %12s", "target", "per CPU-s", "executions", "new", "corpus")
	if cover {
		fmt.Fprintf(w, " %9s %11s", "package", "statements")
	}
	fmt.Fprintln(w)
}

func (r *result) print(w io.Writer, t target, o *options) {
	mark := ""
	switch {
	case len(r.findings) > 0:
		mark = "  FAILED"
	case r.unfuzzed():
		mark = "  TOO FEW"
	}
	fmt.Fprintf(w, "%-44s %9.0f %11d %9d %12d", t, r.rate(), r.total, r.fresh, r.corpus)
	if o.cover {
		fmt.Fprintf(w, " %8.1f%% %11d", r.coverage.own(), r.coverage.all)
	}
	fmt.Fprintln(w, mark)
}
