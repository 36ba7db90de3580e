package table

import (
	"errors"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	for name, c := range map[string]struct {
		table Table
		want  string
	}{
		"aligned": {Table{
			Header: []string{"NAME", "BYTES", "NOTE"}, Right: []bool{false, true}, Gap: "  ",
			Rows: [][]string{{"a", "1", ""}, {"longer name", "12345678", "µs, of two"}},
		}, "NAME            BYTES  NOTE\na                   1\nlonger name  12345678  µs, of two\n"},
		"one blank": {Table{Header: []string{"A", "B"}, Rows: [][]string{{"1", "2"}}}, "A B\n1 2\n"},
		"no rows":   {Table{Header: []string{"A", "B"}}, "A B\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := c.table.Write(&b); err != nil {
				t.Fatal(err)
			}
			if b.String() != c.want {
				t.Errorf("got\n%q, want\n%q", b.String(), c.want)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteFails(t *testing.T) {
	x := Table{Header: []string{"A"}, Rows: [][]string{{"1"}}}
	if err := x.Write(full{}); err == nil {
		t.Error("the error of the writer is lost")
	}
}
