// Package printable decides which characters may be shown as they are, for all
// outputs, and escapes the others. Text of a capture, a plan or a peer can hold
// anything: sequences that steer a terminal, characters that turn the direction
// of writing and so make one name look like another, bytes that are not UTF-8.
package printable

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// Rune reports whether a character may be shown as it is: letters, marks,
// numbers, punctuation, symbols and the ASCII space. Not among them are control
// characters (C0, DEL, C1), those that set the direction of writing (U+061C,
// U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), line and paragraph
// separators, other invisible characters, and what Unicode has not assigned.
func Rune(r rune) bool { return unicode.IsPrint(r) }

// shown reports whether what utf8.DecodeRune has returned may be shown.
func shown(r rune, n int) bool { return Rune(r) && (r != utf8.RuneError || n > 1) }

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// Plain reports whether text consists of ASCII that all forms show as it is: no control characters, quotation marks or
// backslashes. It looks at eight bytes at a time, or twice eight.
func Plain[T string | []byte](s T) bool {
	n := len(s)
	switch {
	case n < 8:
		return plain8(short(s))
	case n < 16:
		return plain8(load(s, 0)) && plain8(load(s, n-8))
	}
	good := shows(load(s, n-16)) & shows(load(s, n-8))
	for i := 0; i < n-16; i += 16 {
		good &= shows(load(s, i)) & shows(load(s, i+8))
	}
	return good&highs == highs
}

// shows has the highest bits of all bytes set if all are ASCII and none is a control character, quotation mark or backslash. A byte that is not at fault
// neither carries into another one nor borrows from it. So the first one at fault is found, whatever follows it.
func shows(w uint64) uint64 {
	const control, most = (0x80 - ' ') * ones, (0x80 + '~') * ones // to a byte of most, 0xff makes no difference; control finds it
	return (w + control) & (most - w) & ((w ^ '"'*ones) + 0x7f*ones) & ((w ^ '\\'*ones) + 0x7f*ones)
}

// plain8 is Plain for eight bytes.
func plain8(w uint64) bool { return shows(w)&highs == highs }

// load is eight bytes.
func load[T string | []byte](s T, i int) uint64 {
	s = s[i:]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// short is up to seven bytes, filled up with some of them, or with spaces.
func short[T string | []byte](s T) uint64 {
	n := len(s)
	if n >= 4 {
		end := s[n-4:]
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(end[0])<<32 | uint64(end[1])<<40 | uint64(end[2])<<48 | uint64(end[3])<<56
	}
	if n == 0 {
		return ' ' * ones
	}
	return uint64(s[0]) | uint64(s[n/2])<<8 | uint64(s[n-1])<<16 | ' '*(ones&^0xffffff)
}

// JSON appends s as a JSON string. Characters that Rune refuses are escaped as \uXXXX, so that a JSON reader
// gets them back; bytes that are not UTF-8 become \ufffd.
func JSON[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	if Plain(s) {
		return append(append(b, s...), '"')
	}
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			var next [utf8.UTFMax]byte
			if r, n = utf8.DecodeRune(next[:copy(next[:], s[i:])]); shown(r, n) {
				i += n
				continue
			}
		}
		b = append(b, s[start:i]...)
		b = escape(b, r)
		i += n
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// escape appends a character as JSON writes it.
func escape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	if r > 0xffff { // as a surrogate pair
		r -= 0x10000
		return unit(unit(b, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return unit(b, r)
}

func unit(b []byte, v rune) []byte {
	return append(b, '\\', 'u', hexDigits[v>>12&15], hexDigits[v>>8&15], hexDigits[v>>4&15], hexDigits[v&15])
}

// Backslash appends text with what Rune refuses escaped as in strings of Go and
// C, byte by byte: \n, \t, \r, \xNN. The backslash itself is doubled.
func Backslash(b, s []byte) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		n := 1
		switch {
		case c == '\\':
			b = append(b, `\\`...)
		case c >= 0x20 && c < 0x7f:
			b = append(b, c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\r':
			b = append(b, `\r`...)
		default:
			var r rune
			if r, n = utf8.DecodeRune(s[i:]); shown(r, n) {
				b = append(b, s[i:i+n]...)
				break
			}
			b = hex(b, s[i:i+n])
		}
		i += n
	}
	return b
}

func hex(b, s []byte) []byte {
	for _, c := range s {
		b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}

// Text returns text for people that the program has composed itself, with what
// Rune refuses escaped as \xNN. Line feeds, tabs and backslashes stay: parts
// that come from elsewhere and may hold these belong through Backslash first.
func Text(s string) string {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !shown(r, n) && r != '\n' && r != '\t' {
			return string(appendText(nil, []byte(s)))
		}
		i += n
	}
	return s
}

// Line is Text in one line: line feeds are escaped, too. Names of files may hold them.
func Line(s string) string { return strings.ReplaceAll(Text(s), "\n", `\n`) }

func appendText(b, s []byte) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		if shown(r, n) || r == '\n' || r == '\t' {
			b = append(b, s[i:i+n]...)
		} else {
			b = hex(b, s[i:i+n])
		}
		i += n
	}
	return b
}

// AppendValue appends a value as encoding/json writes it, without escapes for
// HTML and with those of JSONWriter, and a line feed. The value must be one that
// has a form in JSON.
func AppendValue(b []byte, v any) []byte {
	var buf bytes.Buffer
	if err := Encoder(&buf).Encode(v); err != nil {
		panic(err) // a type that JSON does not know
	}
	return append(b, buf.Bytes()...)
}

// Encoder returns an encoder of JSON that escapes what Rune refuses, and nothing
// for HTML.
func Encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(JSONWriter(w))
	e.SetEscapeHTML(false)
	return e
}

// JSONWriter returns a writer for what encoding/json makes, which escapes
// characters that Rune refuses as \uXXXX. They can only stand in strings there,
// so the value stays the same.
func JSONWriter(w io.Writer) io.Writer {
	return &filter{w: w, escape: func(b, s []byte) []byte {
		start := 0
		for i := 0; i < len(s); {
			if s[i] < 0x7f { // encoding/json has escaped what is below the space
				i += max(ordinary(s[i:]), 1)
				continue
			}
			r, n := utf8.DecodeRune(s[i:])
			if !shown(r, n) {
				b = escape(append(b, s[start:i]...), r)
				start = i + n
			}
			i += n
		}
		return append(b, s[start:]...)
	}}
}

// ordinary is how many bytes at the beginning are below 0x7f: a multiple of eight, and
// not more than there are.
func ordinary(s []byte) (n int) {
	for len(s)-n >= 8 {
		w := binary.LittleEndian.Uint64(s[n:])
		if (w|(w+ones))&highs != 0 { // 0x7f becomes 0x80; a carry comes only from 0xff
			break
		}
		n += 8
	}
	return n
}

// TextWriter returns a writer for text that escapes as Text does. What is not
// text, or is to steer a terminal, must not go through it.
func TextWriter(w io.Writer) io.Writer { return &filter{w: w, escape: appendText} }

// filter changes what is written, whole characters at a time.
type filter struct {
	w      io.Writer
	escape func(b, s []byte) []byte
	held   []byte // the beginning of a character
	buf    []byte
}

// Columns returns the width of a line if the writer below knows it, else 0.
func (f *filter) Columns() int {
	if c, ok := f.w.(interface{ Columns() int }); ok {
		return c.Columns()
	}
	return 0
}

// Stat tells what the stream below is, so that it can be compared with files.
func (f *filter) Stat() (fs.FileInfo, error) {
	if s, ok := f.w.(interface{ Stat() (fs.FileInfo, error) }); ok {
		return s.Stat()
	}
	return nil, errors.ErrUnsupported
}

// Write implements io.Writer.
func (f *filter) Write(p []byte) (int, error) {
	s := p
	if len(f.held) > 0 {
		s = append(f.held, p...)
	}
	whole := len(s)
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if c := s[len(s)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(s[len(s)-n:]) {
				whole = len(s) - n
			}
			break
		}
	}
	f.buf = f.escape(f.buf[:0], s[:whole])
	f.held = append([]byte(nil), s[whole:]...)
	if _, err := f.w.Write(f.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}
