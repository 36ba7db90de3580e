//go:build hostile

package hostile_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/hostile"
)

var (
	tableTo = flag.String("table", "", "append what each command costs with each kind of capture at 1, 2, 4 and 8 times a size to this `file`")
	percent = flag.Int("percent", 10, "with -table: the largest of these sizes, as a percentage of the documented one")
	only    = flag.String("only", "", "with -table: only commands that contain this `text`")
)

// sizes are the sizes that TestTable measures, as multiples of the smallest.
var sizes = [...]int{1, 2, 4, 8}

// TestTable writes a table of what every command costs with every kind: memory and CPU time at four sizes. Unlike TestLimits it
// judges memory alone; it runs with -table, in any number of pieces.
func TestTable(t *testing.T) {
	if *tableTo == "" {
		return
	}
	out, err := os.OpenFile(*tableTo, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	files := &captures{dir: t.TempDir()}
	for _, k := range hostile.Kinds() {
		var names []string
		n := max(1, k.Table**percent/100/sizes[len(sizes)-1])
		for _, times := range sizes {
			names = append(names, files.of(t, k.Name, n*times))
		}
		for _, r := range rows {
			if command := r.name + " " + r.args; strings.Contains(command, *only) {
				line, ok := tableRow(t, &r, names)
				fmt.Fprintf(out, "%-5s %-16s %8d %s %s\n", map[bool]string{true: "ok", false: "BAD"}[ok], k.Name, n, line, strings.TrimPrefix(command, "rpcrdma-"))
			}
		}
		files.forget()
	}
}

// tableRow measures a command with captures of four sizes. ok is false if the command exceeds its memory or ends with the wrong status.
func tableRow(t *testing.T, r *row, names []string) (line string, ok bool) {
	t.Helper()
	var memory, took []string
	ok = true
	for _, name := range names {
		c := r.once(t, name)
		if c.Memory >= memoryGoal || !r.expected(c) {
			t.Errorf("%s %s, %s: %d MiB resident, exit status %d: %s", r.name, r.args, filepath.Base(name), c.Memory>>20, c.Status, c.Stderr)
			ok = false
		}
		memory = append(memory, fmt.Sprintf("%4d", c.Memory>>20))
		took = append(took, fmt.Sprintf("%6.2f", c.CPU.Seconds()))
	}
	return "MiB " + strings.Join(memory, "") + "  s " + strings.Join(took, ""), ok
}

// TestSummary says of each command in a table of TestTable where it took most memory, and where its time grew most from the third
// size to the fourth, among those that took long enough to be compared.
func TestSummary(t *testing.T) {
	if *tableTo == "" {
		return
	}
	b, err := os.ReadFile(*tableTo)
	if err != nil {
		t.Fatal(err)
	}
	type worst struct {
		memory, factor         float64
		memoryKind, factorKind string
	}
	of := map[string]*worst{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // ok kind n MiB 4 numbers s 4 numbers command
		if len(f) < 14 {
			t.Fatalf("%s: not a line of a table: %s", *tableTo, line)
		}
		var m, before, after float64
		if _, err := fmt.Sscan(f[7]+" "+f[11]+" "+f[12], &m, &before, &after); err != nil {
			t.Fatal(err)
		}
		name := strings.Join(f[13:], " ")
		w := of[name]
		if w == nil {
			w = &worst{}
			of[name] = w
		}
		if m > w.memory {
			w.memory, w.memoryKind = m, f[1]
		}
		if x := after / before; after >= least.Seconds() && x > w.factor {
			w.factor, w.factorKind = x, f[1]
		}
	}
	var names []string
	for name := range of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(a, b) })
	for _, name := range names {
		w := of[name]
		t.Logf("%4.0f MiB %-16s x%.1f %-16s %s", w.memory, w.memoryKind, w.factor, w.factorKind, name)
	}
}
