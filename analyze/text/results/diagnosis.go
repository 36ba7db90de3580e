package results

import (
	"fmt"
	"io"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
)

// Diagnosis writes what slows the calls down, first what weighs most, in lines of width columns. With evidence, it names the packets
// that show it, and what to run next.
func Diagnosis(w io.Writer, rep *diagnosis.Report, width int, evidence bool) {
	write := func(prefix, s string) {
		for _, line := range wrap(s, width-len(prefix)) {
			fmt.Fprintf(w, "%s%s\n", prefix, line)
			prefix = strings.Repeat(" ", len(prefix))
		}
	}
	list := rep.Shown()
	if rep.Healthy() {
		write("", rep.Summary)
		if len(list) > 0 {
			fmt.Fprintln(w)
		}
	}
	for i, c := range list {
		if i > 0 && evidence {
			fmt.Fprintln(w)
		}
		write(fmt.Sprintf("%d. ", i+1), c.Text)
		if !evidence {
			continue
		}
		for _, e := range c.Evidence {
			fmt.Fprintf(w, "   %s\n", rep.Named(&e))
		}
		for _, n := range c.Next {
			fmt.Fprintf(w, "   > %s\n", n)
		}
	}
	for i, t := range rep.Adapters {
		if i == 0 {
			fmt.Fprintln(w)
		}
		write("- ", t.Text)
	}
	if rep.Point != "" {
		fmt.Fprintf(w, "\nCaptured %s.\n", rep.Point)
	}
}
