// Package table lays out rows for people: a header, columns as wide as they have to
// be, no lines around anything.
package table

import (
	"bytes"
	"io"

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

// Write writes the table. No line ends with blanks.
func (t *Table) Write(w io.Writer) error {
	align := make([]tw.Align, len(t.Header))
	for i := range align {
		align[i] = tw.AlignLeft
		if i < len(t.Right) && t.Right[i] {
			align[i] = tw.AlignRight
		}
	}
	gap := t.Gap
	if gap == "" {
		gap = " "
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
	writer.Header(t.Header)
	if err := writer.Bulk(t.Rows); err != nil {
		return err
	}
	if err := writer.Render(); err != nil {
		return err
	}
	for line := range bytes.Lines(b.Bytes()) {
		if _, err := w.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
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
