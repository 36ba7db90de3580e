package table

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// hanging is the extra indent of continuation lines, in columns.
const hanging = 4

// Columns is implemented by writers that know the width of their lines. Wider tables continue each row on further lines.
type Columns interface {
	Columns() int // 0: unlimited
}

// columns returns the width of lines on w, 0 if it is unlimited.
func columns(w io.Writer) int {
	if c, ok := w.(Columns); ok {
		return c.Columns()
	}
	return 0
}

// Fit wraps lines at a width. A word that is longer than a line stays whole, since names of files and values are copied
// from the output.
type Fit struct {
	w     io.Writer
	width int
	line  []byte // the beginning of a line
	buf   []byte
}

// NewFit returns a Fit that writes lines of at most width columns to w.
func NewFit(w io.Writer, width int) *Fit { return &Fit{w: w, width: width} }

// Columns implements Columns.
func (f *Fit) Columns() int { return f.width }

// Write implements io.Writer. It holds an incomplete line until its end or Flush.
func (f *Fit) Write(p []byte) (int, error) {
	f.buf = f.buf[:0]
	rest := p
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		f.line = append(f.line, rest[:i]...)
		f.buf = append(AppendFit(f.buf, f.line, f.width), '\n')
		f.line = f.line[:0]
		rest = rest[i+1:]
		if len(f.buf) > 64<<10 {
			if _, err := f.w.Write(f.buf); err != nil {
				return 0, err
			}
			f.buf = f.buf[:0]
		}
	}
	f.line = append(f.line, rest...)
	if _, err := f.w.Write(f.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes an incomplete line.
func (f *Fit) Flush() error {
	if len(f.line) == 0 {
		return nil
	}
	_, err := f.w.Write(AppendFit(nil, f.line, f.width))
	f.line = f.line[:0]
	return err
}

// AppendFit appends a line, wrapped between words at a width. Continuation lines are indented further than the first.
func AppendFit(b, line []byte, width int) []byte {
	return AppendHanging(b, line, width, len(line)-len(bytes.TrimLeft(line, " "))+hanging)
}

// AppendHanging is AppendFit with continuation lines that are indented by hang columns, but at most half of the width. With a width
// of 0 the line stays as it is.
func AppendHanging(b, line []byte, width, hang int) []byte {
	if width <= 0 || len(line) <= width || shown(line) <= width {
		return append(b, line...)
	}
	hang = min(hang, width/2)
	col, begins := 0, true // whether no word of this line has been written
	for len(line) > 0 {
		gap := len(line) - len(bytes.TrimLeft(line, " "))
		end := gap + len(line[gap:])
		if i := bytes.IndexByte(line[gap:], ' '); i >= 0 {
			end = gap + i
		}
		word := shown(line[gap:end])
		if !begins && word > 0 && col+gap+word > width {
			b = spaces(append(b, '\n'), hang)
			col = hang
		} else {
			b = append(b, line[:gap]...)
			col += gap
		}
		b = append(b, line[gap:end]...)
		col += word
		begins = false
		line = line[end:]
	}
	return b
}

// shown returns the width of text in columns, without escape sequences for colors.
func shown(s []byte) int {
	n := 0
	for len(s) > 0 {
		if s[0] == '\x1b' && len(s) > 1 && s[1] == '[' {
			i := bytes.IndexByte(s, 'm')
			if i < 0 {
				i = 1
			}
			s = s[i+1:]
			continue
		}
		_, size := utf8.DecodeRune(s)
		s = s[size:]
		n++
	}
	return n
}
