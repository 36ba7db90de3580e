package main

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// streamTable writes a table with the layout of printTable, row by row: for
// tables that are too long to be held. All rows are measured before the first
// is printed.
type streamTable struct {
	right []bool
	width []int
	line  []byte
}

func newStreamTable(header []string, right []bool) *streamTable {
	s := &streamTable{right: right, width: make([]int, len(header))}
	s.measure(header)
	return s
}

func (s *streamTable) measure(row []string) {
	for i, cell := range row {
		s.width[i] = max(s.width[i], utf8.RuneCountInString(cell))
	}
}

func (s *streamTable) print(w io.Writer, row []string) {
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
