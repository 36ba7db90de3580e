package table

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Stream writes a table with the layout of Print row by row, for tables that are
// too long to be held. All rows must be measured before the first is printed.
type Stream struct {
	right  []bool
	gap    string
	width  []int
	says   []bool // whether a row has more than "-" in a column
	folds  []int  // columns that begin a line, if a row takes several
	folded bool   // folds is known
	line   []byte
}

// NewStream begins a table with a header, which is measured; it still has to be
// printed. right is the same as for Print.
func NewStream(header []string, right []bool) *Stream {
	s := &Stream{right: right, gap: " ", width: make([]int, len(header)), says: make([]bool, len(header))}
	for i, cell := range header {
		s.width[i] = utf8.RuneCountInString(cell)
	}
	return s
}

// Measure widens the columns so that a row fits.
func (s *Stream) Measure(row []string) {
	for i, cell := range row {
		s.width[i] = max(s.width[i], utf8.RuneCountInString(cell))
		s.says[i] = s.says[i] || cell != "" && cell != "-"
	}
}

// Print writes one row. Errors of w are its own matter: a buffered writer keeps
// them.
func (s *Stream) Print(w io.Writer, row []string) {
	if !s.folded {
		s.fold(columns(w))
	}
	b := s.line[:0]
	folds := s.folds
	for i, cell := range row {
		if len(folds) > 0 && folds[0] == i {
			b = spaces(ended(b), hanging)
			folds = folds[1:]
		}
		if s.width[i] < 0 {
			continue
		}
		pad := s.width[i] - utf8.RuneCountInString(cell)
		right := i < len(s.right) && s.right[i]
		if right {
			b = spaces(b, pad)
		}
		b = append(b, cell...)
		if !right {
			b = spaces(b, pad)
		}
		b = append(b, s.gap...)
	}
	s.line = ended(b)
	_, _ = w.Write(s.line)
}

// ended ends a line, without blanks at its end. Of a row, a continuation line without text is left out.
func ended(b []byte) []byte {
	b = bytes.TrimRight(b, " ")
	if len(b) > 0 && b[len(b)-1] == '\n' {
		return b
	}
	return append(b, '\n')
}

// fold decides which columns begin a continuation line. Of a table that is too wide, columns that say nothing are left out first:
// their width is -1.
func (s *Stream) fold(columns int) {
	s.folded = true
	total := -len(s.gap)
	for _, n := range s.width {
		total += n + len(s.gap)
	}
	if columns <= 0 || total <= columns {
		return
	}
	for i, says := range s.says {
		if !says {
			s.width[i] = -1
		}
	}
	col := 0
	for i, n := range s.width {
		if n < 0 {
			continue
		}
		if i > 0 && col+n > columns && n > 0 {
			s.folds = append(s.folds, i)
			col = hanging
		}
		col += n + len(s.gap)
	}
}

func spaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}
