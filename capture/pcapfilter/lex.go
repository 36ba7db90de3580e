package pcapfilter

import (
	"fmt"
	"strings"
)

// Error is a mistake in an expression.
type Error struct {
	Expr string
	Pos  int // in bytes
	Text string
}

func (e *Error) Error() string {
	return fmt.Sprintf("filter %q, at %d: %s", e.Expr, e.Pos+1, e.Text)
}

type token struct {
	text string
	pos  int
}

// maxExpr bounds the length of an expression.
const maxExpr = 16 << 10

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '%'
}

// lex splits an expression. Within brackets a colon stands alone; elsewhere it
// is part of an address.
func lex(s string) ([]token, error) {
	if len(s) > maxExpr {
		return nil, &Error{s[:40] + "...", 0, "too long"}
	}
	var list []token
	depth := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case isWord(c) || c == ':' && depth == 0:
			n := i + 1
			for n < len(s) && (isWord(s[n]) || depth == 0 && (s[n] == ':' || s[n] == '/') || s[n] == '-' && depth == 0) {
				n++
			}
			list = append(list, token{s[i:n], i})
			i = n
			continue
		}
		n := 1
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if i+1 < len(s) && strings.Contains("&&||==!=<=>=<<>>", s[i:i+2]) {
			switch s[i : i+2] {
			case "&&", "||", "==", "!=", "<=", ">=", "<<", ">>":
				n = 2
			}
		}
		if n == 1 && !strings.ContainsRune("()[]!&|^+-*/<>=:", rune(c)) {
			return nil, &Error{s, i, fmt.Sprintf("%q has no meaning here", c)}
		}
		list = append(list, token{s[i : i+n], i})
		i += n
	}
	return list, nil
}
