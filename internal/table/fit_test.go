package table

import (
	"bytes"
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"short":         {"a b\n", "a b\n"},
		"exact":         {"0123456789 0123456\n", "0123456789 0123456\n"},
		"wrapped":       {"one two three four five\n", "one two three four\n    five\n"},
		"indented":      {"  one two three four five six\n", "  one two three\n      four five\n      six\n"},
		"gaps stay":     {"a   b   c   d   e   f\n", "a   b   c   d   e\n    f\n"},
		"long word":     {"see /a/path/that/is/too/long for it\n", "see\n    /a/path/that/is/too/long\n    for it\n"},
		"not bytes":     {"µµµµµµ µµµµµ µµµµµ\n", "µµµµµµ µµµµµ µµµµµ\n"},
		"colors":        {"\x1b[1mone\x1b[0m two three four\n", "\x1b[1mone\x1b[0m two three four\n"},
		"blanks at end": {"one two three four      \n", "one two three four      \n"},
		"no end":        {"one two three four five", "one two three four\n    five"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, step := range []int{1, 5, 1000} {
				var b bytes.Buffer
				f := NewFit(&b, 18)
				for s := c.text; s != ""; {
					n := min(step, len(s))
					if _, err := f.Write([]byte(s[:n])); err != nil {
						t.Fatal(err)
					}
					s = s[n:]
				}
				if err := f.Flush(); err != nil {
					t.Fatal(err)
				}
				if b.String() != c.want {
					t.Errorf("%d at once:\n%q, want\n%q", step, b.String(), c.want)
				}
			}
		})
	}
}

// A table that is wider than its lines continues each row, in columns.
func TestFolded(t *testing.T) {
	var b strings.Builder
	x := Table{Header: []string{"ID", "NAME", "FIRST", "SECOND"}, Right: []bool{true, false, true, true}, Rows: [][]string{{"1", "a", "10", "2"}, {"200", "longer", "3", "4000"}}}
	if err := x.Write(narrow{&b}); err != nil {
		t.Fatal(err)
	}
	if want := " ID NAME   FIRST\n    SECOND\n  1 a         10\n         2\n200 longer     3\n      4000\n"; b.String() != want {
		t.Errorf("got\n%q, want\n%q", b.String(), want)
	}
}

// A continuation line without text is left out, also by a Stream.
func TestFoldedEmpty(t *testing.T) {
	const want = " ID NAME   FIRST\n    SECOND\n  1 a\n200 longer     3\n      4000\n"
	x := Table{Header: []string{"ID", "NAME", "FIRST", "SECOND"}, Right: []bool{true, false, true, true}, Rows: [][]string{{"1", "a", "", ""}, {"200", "longer", "3", "4000"}}}
	checkBoth(t, x, want)
}

// checkBoth compares what a Table and a Stream of its rows print on 18 columns.
func checkBoth(t *testing.T, x Table, want string) {
	t.Helper()
	var b strings.Builder
	if err := x.Write(narrow{&b}); err != nil || b.String() != want {
		t.Errorf("got\n%q, %v, want\n%q", b.String(), err, want)
	}
	b.Reset()
	s := NewStream(x.Header, x.Right)
	for _, row := range x.Rows {
		s.Measure(row)
	}
	for _, row := range append([][]string{x.Header}, x.Rows...) {
		s.Print(narrow{&b}, row)
	}
	if b.String() != want {
		t.Errorf("stream: got\n%q, want\n%q", b.String(), want)
	}
}

type narrow struct{ *strings.Builder }

func (narrow) Columns() int { return 18 }

// A table that is too wide loses the columns that say nothing, before it continues rows.
func TestFoldedWithout(t *testing.T) {
	const want = " ID NAME   SECOND\n  1 a           2\n200 longer   4000\n"
	x := Table{Header: []string{"ID", "NAME", "FIRST", "SECOND"}, Right: []bool{true, false, true, true}, Rows: [][]string{{"1", "a", "-", "2"}, {"200", "longer", "", "4000"}}}
	checkBoth(t, x, want)
}
