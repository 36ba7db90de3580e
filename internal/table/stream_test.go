package table

import (
	"bytes"
	"testing"
)

// A streamed table has the same layout as one that is printed at once.
func TestStream(t *testing.T) {
	rows := [][]string{
		{"1", "a", "10"}, {"", "longer", "2"}, {"300", "", "12345"},
	}
	var want, got bytes.Buffer
	header, right := []string{"ID", "NAME", "N"}, []bool{true, false, true}
	if err := Print(&want, header, right, rows); err != nil {
		t.Fatal(err)
	}
	s := NewStream(header, right)
	for _, row := range rows {
		s.Measure(row)
	}
	s.Print(&got, header)
	for _, row := range rows {
		s.Print(&got, row)
	}
	if got.String() != want.String() {
		t.Errorf("%q, want %q", got.String(), want.String())
	}
}
