package table

import (
	"strings"
	"testing"
)

// FuzzTable compares tables that are written at once with those that a tablewriter lays out.
func FuzzTable(f *testing.F) {
	f.Add("NAME|BYTES|NOTE", "a|1|\nlonger name|12345678|µs, of two\n||", uint8(2), "  ")
	f.Add("A", "", uint8(0), "")
	f.Add("A|B", "1\n1|2|3\n\x1b[1mx|é", uint8(1), " ")
	f.Add("|", "|\n|", uint8(3), " ")
	f.Add(" A |日本", " x |日本語\n  |a\u0301", uint8(2), " | ")
	f.Fuzz(func(t *testing.T, header, rows string, right uint8, gap string) {
		if len(header)+len(rows) > 1000 {
			return
		}
		x := Table{Header: strings.Split(header, "|"), Gap: gap}
		for i := range x.Header {
			x.Right = append(x.Right, right>>(i&7)&1 != 0)
		}
		for row := range strings.SplitSeq(rows, "\n") {
			x.Rows = append(x.Rows, strings.Split(row, "|"))
		}
		widths, ok := x.usual()
		if !ok {
			return
		}
		var want, got strings.Builder
		wantErr, gotErr := x.writeAny(&want), x.lines(&got, widths)
		if wantErr != nil || gotErr != nil || got.String() != want.String() {
			t.Fatalf("%v, %v; got\n%q, want\n%q", gotErr, wantErr, got.String(), want.String())
		}
	})
}
