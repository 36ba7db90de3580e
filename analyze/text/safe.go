package text

import (
	"encoding/binary"
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
	head, tail := sides(limit)
	s := b[start:]
	if end := len(s) - tail; ascii(s[:head+1]) && ascii(s[end-1:]) { // most names: each byte is a column
		b = append(b, ellipsis[1:]...) // room in case only two bytes are removed
		s = b[start:]
		copy(s[head+len(ellipsis):], s[end:end+tail])
		copy(s[head:], ellipsis)
		return b[:start+limit-1+len(ellipsis)], limit
	}
	return shortenRunes(b, start, head, tail)
}

// shortenRunes is shorten for text of any characters, with the columns that are to remain on both sides.
func shortenRunes(b []byte, start, head, tail int) ([]byte, int) {
	s := b[start:]
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

// sides is how many columns are kept of both sides of what is shortened.
func sides(limit int) (head, tail int) {
	head = (limit - 1) / 3
	return head, limit - 1 - head
}

// ascii looks at eight bytes at a time.
func ascii(s []byte) bool {
	const highs = 0x8080808080808080
	all, n := uint64(0), len(s)
	for i := 0; i+8 <= n; i += 8 {
		all |= binary.LittleEndian.Uint64(s[i:])
	}
	for i := n &^ 7; i < n; i++ {
		all |= uint64(s[i])
	}
	return all&highs == 0
}

func columns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return runewidth.RuneWidth(r)
}
