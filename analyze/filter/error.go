package filter

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/internal/nearest"
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

// caretRoom is how many characters Caret shows on each side of an error.
const caretRoom = 100

// Caret shows the expression, of a long one the surroundings of the error, and on the line below a mark at the error.
// There is no newline at the end.
func (e *Error) Caret() string {
	pos := min(e.Pos, len(e.Expr))
	before, after := []rune(e.Expr[:pos]), []rune(e.Expr[pos:])
	if n := len(before) - caretRoom; n > 0 {
		before = append([]rune{'…'}, before[n:]...)
	}
	if len(after) > caretRoom {
		after = append(after[:caretRoom], '…')
	}
	var b strings.Builder
	for _, r := range slices.Concat(before, after) {
		switch {
		case r < ' ':
			r = ' '
		case r == utf8.RuneError:
			r = '?'
		}
		b.WriteRune(r)
	}
	b.WriteByte('\n')
	for range before {
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
	return suggest(nearest.Names(name, candidates), 3)
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
