package plan

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rpcrdma/toolkit/internal/printable"
)

// dotColors tell the kinds of edges apart.
var dotColors = map[DepKind]string{
	DepCreate: "black", DepName: "brown", DepRange: "red", DepSize: "orange", DepCommit: "purple", DepState: "blue",
	DepSeqid: "navy", DepSlot: "gray70", DepCookie: "darkgreen", DepClient: "gray40", DepProgram: "gray85",
}

// Dot writes the dependency graph of the ops from first to last in the
// language of Graphviz. Ops before that others depend on are only numbers.
func Dot(w io.Writer, r *Reader, first, last int) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "digraph plan {\n  rankdir=LR; node [shape=box, fontsize=10]; edge [fontsize=8];")
	outside := map[int]bool{}
	for {
		o, _, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if o == nil || o.ID < first {
			continue
		}
		if last > 0 && o.ID > last {
			break
		}
		fmt.Fprintf(b, "  %d [label=%s];\n", o.ID, dotString(fmt.Sprintf("%d %s", o.ID, o.What)))
		for _, d := range o.Deps {
			if d.Op < first && !outside[d.Op] {
				outside[d.Op] = true
				fmt.Fprintf(b, "  %d [shape=plaintext];\n", d.Op)
			}
			color := dotColors[d.Kind]
			if color == "" {
				color = "black"
			}
			fmt.Fprintf(b, "  %d -> %d [label=%s, color=%s];\n", d.Op, o.ID, dotString(string(d.Kind)), color)
		}
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

// dotString quotes a string for DOT. Bytes that must not be shown become \xNN.
func dotString(s string) string {
	s = string(printable.Backslash(nil, []byte(s)))
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
