// Package table lays out rows for people: a header, columns as wide as they have to
// be, no lines around anything.
package table

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

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

// Write writes the table. No line ends with blanks. If w is narrower (Columns), each row continues on further lines.
func (t *Table) Write(w io.Writer) error {
	s := NewStream(t.Header, t.Right)
	if t.Gap != "" {
		s.gap = t.Gap
	}
	for _, row := range t.Rows {
		s.Measure(row)
	}
	s.fold(columns(w))
	if slices.Contains(s.width, -1) {
		less := t.without(func(i int) bool { return s.width[i] < 0 })
		return less.Write(w)
	}
	var parts [][][]byte // by line of a row
	from := 0
	for _, to := range append(s.folds, len(t.Header)) {
		lines, err := t.lines(from, to, s.gap)
		if err != nil {
			return err
		}
		parts = append(parts, lines)
		from = to
	}
	for row := range len(t.Rows) + 1 {
		b := s.line[:0]
		for i, lines := range parts {
			line := bytes.TrimRight(lines[row], " ")
			if i > 0 {
				if len(line) == 0 {
					continue
				}
				b = spaces(b, hanging)
			}
			b = append(append(b, line...), '\n')
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		s.line = b
	}
	return nil
}

// without is the table without some columns.
func (t *Table) without(drop func(i int) bool) Table {
	less := Table{Gap: t.Gap, Rows: make([][]string, len(t.Rows))}
	for i, name := range t.Header {
		if drop(i) {
			continue
		}
		less.Header, less.Right = append(less.Header, name), append(less.Right, i < len(t.Right) && t.Right[i])
		for j, row := range t.Rows {
			less.Rows[j] = append(less.Rows[j], row[i])
		}
	}
	return less
}

// lines lays out some columns of the header and of all rows.
func (t *Table) lines(from, to int, gap string) ([][]byte, error) {
	align := make([]tw.Align, to-from)
	for i := range align {
		align[i] = tw.AlignLeft
		if from+i < len(t.Right) && t.Right[from+i] {
			align[i] = tw.AlignRight
		}
	}
	cell := tw.CellConfig{
		Alignment:  tw.CellAlignment{PerColumn: align},
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Padding:    tw.CellPadding{Global: tw.Padding{Left: tw.Empty, Right: gap, Overwrite: true}},
	}
	var b bytes.Buffer
	writer := tablewriter.NewTable(&b,
		tablewriter.WithConfig(tablewriter.Config{
			Header:   cell,
			Row:      cell,
			Behavior: tw.Behavior{TrimSpace: tw.Off},
		}),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off, ShowHeader: tw.Off},
				Lines:      tw.LinesNone,
			},
		})),
	)
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = row[min(from, len(row)):min(to, len(row))]
	}
	writer.Header(t.Header[from:to])
	if err := writer.Bulk(rows); err != nil {
		return nil, err
	}
	if err := writer.Render(); err != nil {
		return nil, err
	}
	lines := bytes.Split(b.Bytes(), []byte("\n"))
	if len(lines) < len(t.Rows)+1 {
		return nil, fmt.Errorf("table: %d lines of %d rows", len(lines), len(t.Rows)+1)
	}
	return lines, nil
}

// Print writes rows below a header. right says which columns are aligned to the
// right. Cells have to be printable (text.Safe).
func Print(w io.Writer, header []string, right []bool, rows [][]string) error {
	t := Table{Header: header, Right: right, Rows: rows}
	return t.Write(w)
}
