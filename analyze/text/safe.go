package text

import (
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/rpcrdma/toolkit/internal/printable"
)

// Safe appends text from a peer in a form that is safe for a terminal: see printable.Backslash. It also
// returns the width in columns.
func Safe(b, s []byte) ([]byte, int) {
	if printable.Plain(s) {
		return append(b, s...), len(s)
	}
	n := len(b)
	b = printable.Backslash(b, s)
	width := 0
	for i := n; i < len(b); {
		if b[i] < utf8.RuneSelf {
			width++
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		width += runewidth.RuneWidth(r)
		i += size
	}
	return b, width
}

// SafeString returns text from a peer or a file in a form that is safe for a terminal.
func SafeString(s string) string {
	b, _ := Safe(nil, []byte(s))
	return string(b)
}

const ellipsis = "…"

// shorten removes the middle of b[start:], which is width columns wide, so that at most limit columns remain.
// It keeps more of the end, where file names differ.
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
	b = append(b, ellipsis...) // room in case the ellipsis is longer than what was removed
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
