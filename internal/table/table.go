// Package table lays out rows for people: a header, columns as wide as they have to
// be, no lines around anything.
package table

import "io"

// Table is what is written.
type Table struct {
	Header []string
	// Right says which columns are aligned to the right, as numbers are. Columns
	// that it does not reach are aligned to the left.
	Right []bool
	Rows  [][]string
	// Gap stands between columns. Empty is one blank.
	Gap string
}

// Write writes the table. No line ends with blanks.
func (t *Table) Write(w io.Writer) error {
	s := NewStream(t.Header, t.Right)
	if t.Gap != "" {
		s.gap = t.Gap
	}
	for _, row := range t.Rows {
		s.Measure(row)
	}
	if err := s.put(w, t.Header); err != nil {
		return err
	}
	for _, row := range t.Rows {
		if err := s.put(w, row); err != nil {
			return err
		}
	}
	return nil
}

// Print writes rows below a header. right says which columns are aligned to the
// right. Cells have to be printable (text.Safe).
func Print(w io.Writer, header []string, right []bool, rows [][]string) error {
	t := Table{Header: header, Right: right, Rows: rows}
	return t.Write(w)
}
