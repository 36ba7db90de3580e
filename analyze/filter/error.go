package filter

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says what is wrong with an expression or with the name of a field.
type Error struct {
	Expr     string
	Pos      int    // byte offset in Expr
	Found    string // the text at Pos; empty at the end
	Expected string // what was expected there
	Hint     string // "did you mean READ?"; may be empty
	Unknown  bool   // Found is not the name of a field
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("filter: byte ")
	b.WriteString(strconv.Itoa(e.Pos))
	b.WriteString(": expected ")
	b.WriteString(e.Expected)
	b.WriteString(", found ")
	if e.Found == "" {
		b.WriteString("the end")
	} else {
		b.WriteString(strconv.Quote(shorten(e.Found)))
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Caret shows the expression and, on the line below, a mark at the error. There is no newline at the end.
func (e *Error) Caret() string {
	var b strings.Builder
	for _, r := range e.Expr {
		switch {
		case r < ' ':
			r = ' '
		case r == utf8.RuneError:
			r = '?'
		}
		b.WriteRune(r)
	}
	b.WriteByte('\n')
	for range utf8.RuneCountInString(e.Expr[:min(e.Pos, len(e.Expr))]) {
		b.WriteByte(' ')
	}
	b.WriteByte('^')
	return b.String()
}

// shorten cuts text that is too long for a message.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// didYouMean is a hint with the names closest to a misspelt one, or empty.
func didYouMean(name string, candidates []string) string {
	const most = 3
	if len(name) == 0 || len(name) > 64 {
		return ""
	}
	limit := 1 + len(name)/4
	best := limit + 1
	var found []string
	lower := strings.ToLower(name)
	for _, c := range candidates {
		if len(c) > len(name)+limit || len(c) < len(name)-limit {
			continue
		}
		d := distance(lower, strings.ToLower(c), best)
		switch {
		case d > limit || d > best:
		case d < best:
			best, found = d, append(found[:0], c)
		case !contains(found, c):
			found = append(found, c)
		}
	}
	return suggest(found, most)
}

func suggest(found []string, most int) string {
	switch {
	case len(found) == 0:
		return ""
	case len(found) > most:
		found = found[:most]
	}
	return "did you mean " + strings.Join(found, " or ") + "?"
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// distance is the number of letters to change, insert, delete or swap with a neighbour to turn a into b.
// Anything above limit is reported as limit+1.
func distance(a, b string, limit int) int {
	var rows [3][130]int
	if len(b) >= len(rows[0]) {
		return limit + 1
	}
	prev2, prev, row := rows[0][:], rows[1][:], rows[2][:]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(prev[j]+cost, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, prev2[j-1]+1)
			}
			row[j+1] = d
			least = min(least, d)
		}
		if least > limit {
			return limit + 1
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
