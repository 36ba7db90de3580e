package table

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// usual are the widths of the columns of a usual table: each cell is one line of text, and each row has as many as the header. ok is false if
// it is none. To make a tablewriter takes longer than to write most tables.
func (t *Table) usual() (widths []int, ok bool) {
	widths = make([]int, len(t.Header))
	if len(widths) == 0 || strings.Trim(t.Gap, " ") != "" || !widen(widths, t.Header) {
		return nil, false
	}
	for _, row := range t.Rows {
		if !widen(widths, row) {
			return nil, false
		}
	}
	return widths, true
}

// widen makes room for a row. It returns false if that is not usual.
func widen(widths []int, row []string) bool {
	if len(row) != len(widths) {
		return false
	}
	for i, cell := range row {
		n, ok := widthOf(cell)
		if !ok {
			return false
		}
		widths[i] = max(widths[i], n)
	}
	return true
}

// widthOf is the width of a cell; ok is false if it has control characters, or others that are not as wide as all others, or
// consists of blanks.
func widthOf(cell string) (n int, ok bool) {
	ascii := true
	if strings.Trim(cell, " ") == "" {
		return 0, cell == ""
	}
	for i := range len(cell) {
		switch c := cell[i]; {
		case c < ' ' || c == 0x7f:
			return 0, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	if ascii {
		return len(cell), true
	}
	n = utf8.RuneCountInString(cell)
	return n, utf8.ValidString(cell) && twwidth.Width(cell) == n
}

// lines writes a usual table.
func (t *Table) lines(w io.Writer, widths []int) error {
	b, err := t.line(nil, w, widths, t.Header)
	for _, row := range t.Rows {
		if err != nil {
			break
		}
		b, err = t.line(b[:0], w, widths, row)
	}
	return err
}

// line writes a row. It returns b, which it has used.
func (t *Table) line(b []byte, w io.Writer, widths []int, row []string) ([]byte, error) {
	gap := t.Gap
	if gap == "" {
		gap = " "
	}
	for i, cell := range row {
		n, _ := widthOf(cell)
		if pad := widths[i] - n; i < len(t.Right) && t.Right[i] {
			b = append(spaces(b, pad), cell...)
		} else {
			b = spaces(append(b, cell...), pad)
		}
		b = append(b, gap...)
	}
	b = append(bytes.TrimRight(b, " "), '\n')
	_, err := w.Write(b)
	return b, err
}
