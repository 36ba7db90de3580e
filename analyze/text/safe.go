package text

import (
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Safe appends text that a peer has sent so that it can be shown on a
// terminal: what is not printable is escaped as in Go or C strings. It returns
// the width in columns as well.
func Safe(b, s []byte) ([]byte, int) {
	width := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '\\' {
			b = append(b, c)
			width++
			i++
			continue
		}
		n := len(b)
		size := 1
		switch {
		case c == '\\':
			b = append(b, `\\`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c < utf8.RuneSelf:
			b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			var r rune
			r, size = utf8.DecodeRune(s[i:])
			if (r != utf8.RuneError || size > 1) && unicode.IsPrint(r) {
				b = append(b, s[i:i+size]...)
				width += runewidth.RuneWidth(r)
				i += size
				continue
			}
			for _, c := range s[i : i+size] {
				b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		width += len(b) - n
		i += size
	}
	return b, width
}

const ellipsis = "…"

// shorten cuts the middle out of b[start:], which is width columns wide, so
// that at most limit columns are left. More is kept of the end, where file
// names differ.
func shorten(b []byte, start, width, limit int) ([]byte, int) {
	if width <= limit || limit < 3 {
		return b, width
	}
	s := b[start:]
	head := (limit - 1) / 3
	tail := limit - 1 - head
	// The head.
	from, w := 0, 0
	for from < len(s) {
		r, n := utf8.DecodeRune(s[from:])
		rw := columns(r)
		if w+rw > head {
			break
		}
		from, w = from+n, w+rw
	}
	// The tail.
	to, tw := len(s), 0
	for to > from {
		r, n := utf8.DecodeLastRune(s[:to])
		rw := columns(r)
		if tw+rw > tail {
			break
		}
		to, tw = to-n, tw+rw
	}
	rest := len(s) - to
	b = append(b, ellipsis...) // room, should less than that have been cut out
	s = b[start:]
	copy(s[from+len(ellipsis):], s[to:to+rest])
	copy(s[from:], ellipsis)
	return b[:start+from+len(ellipsis)+rest], w + 1 + tw
}

func columns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return runewidth.RuneWidth(r)
}
