package edges

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of tables.md instead of comparing with them")

const document = "tables.md"

// table is one of tables.md: rows between two comments, by the name of the
// capture.
type table struct {
	begin, end string
	lines      []string
	rows       map[string]string
}

func readTable(t *testing.T, name string) *table {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	x := &table{begin: "<!-- " + name + " -->\n", end: "<!-- end of " + name + " -->\n", rows: map[string]string{}}
	_, rest, ok1 := strings.Cut(string(b), x.begin)
	rest, _, ok2 := strings.Cut(rest, x.end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no table %q", document, name)
	}
	for _, line := range strings.Split(strings.TrimSpace(rest), "\n") {
		if key, ok := rowName(line); ok {
			x.rows[key] = line
		} else {
			x.lines = append(x.lines, line)
		}
	}
	return x
}

// rowName is the name in the first column, in backquotes.
func rowName(line string) (string, bool) {
	_, rest, ok := strings.Cut(line, "| `")
	name, _, ok2 := strings.Cut(rest, "`")
	return name, ok && ok2
}

// check compares a row with the table, or adds it.
func (x *table) check(t *testing.T, f file, cells ...any) {
	t.Helper()
	line := fmt.Sprintf("| `%s` |", f.name)
	for _, c := range cells {
		line += fmt.Sprintf(" %v |", c)
	}
	switch old, ok := x.rows[f.name]; {
	case *update:
		x.rows[f.name] = line
	case !ok && strings.HasPrefix(f.path, "../../samples"):
		t.Errorf("%s does not have %s: run with -update", document, f.name)
	case ok && old != line:
		t.Errorf("%s says otherwise (-update writes it):\n got %s\nwant %s", document, line, old)
	}
}

// write writes the table to the file, with -update.
func (x *table) write(t *testing.T) {
	t.Helper()
	if !*update {
		return
	}
	names := make([]string, 0, len(x.rows))
	for n := range x.rows {
		names = append(names, n)
	}
	slices.Sort(names)
	out := x.begin + strings.Join(x.lines, "\n") + "\n"
	for _, n := range names {
		out += x.rows[n] + "\n"
	}
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), x.begin)
	_, after, _ := strings.Cut(rest, x.end)
	if err := os.WriteFile(document, []byte(before+out+x.end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
