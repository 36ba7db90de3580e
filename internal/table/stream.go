package table

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Stream writes a table with the layout of Print row by row, for tables that are
// too long to be held. All rows must be measured before the first is printed.
type Stream struct {
	right []bool
	width []int
	line  []byte
}

// NewStream begins a table with a header, which is measured; it still has to be
// printed. right is the same as for Print.
func NewStream(header []string, right []bool) *Stream {
	s := &Stream{right: right, width: make([]int, len(header))}
	s.Measure(header)
	return s
}

// Measure widens the columns so that a row fits.
func (s *Stream) Measure(row []string) {
	for i, cell := range row {
		s.width[i] = max(s.width[i], utf8.RuneCountInString(cell))
	}
}

// Print writes one row. Errors of w are its own matter: a buffered writer keeps
// them.
func (s *Stream) Print(w io.Writer, row []string) {
	b := s.line[:0]
	for i, cell := range row {
		pad := s.width[i] - utf8.RuneCountInString(cell)
		if s.right[i] {
			b = spaces(b, pad)
		}
		b = append(b, cell...)
		if !s.right[i] {
			b = spaces(b, pad)
		}
		b = append(b, ' ')
	}
	s.line = append(bytes.TrimRight(b, " "), '\n')
	_, _ = w.Write(s.line)
}

func spaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}
