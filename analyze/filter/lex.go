package filter

import (
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd   tokenKind = iota
	tokWord            // field, keyword or literal without quotes
	tokText            // literal in quotes
	tokPunct           // ( ) { } , .. and operators made of signs
)

func (k tokenKind) literal() bool { return k == tokWord || k == tokText }

type token struct {
	kind tokenKind
	pos  int
	src  string // as written
	text string // of tokText: without quotes and escapes; else src
}

// lexer splits an expression into tokens.
type lexer struct {
	expr string
	pos  int
	set  bool // inside braces, where ".." is a separator
}

const signs = "()!=<>&|{},~\"'"

var operators = [...]string{"===", "!==", "&&", "||", "==", "!=", "<=", ">=", "(", ")", "{", "}", ",", "!", "=", "<", ">", "&", "~"}

func (l *lexer) next() (token, error) {
	for l.pos < len(l.expr) && isSpace(l.expr[l.pos]) {
		l.pos++
	}
	start := l.pos
	rest := l.expr[start:]
	if rest == "" {
		return token{pos: start}, nil
	}
	if rest[0] == '"' || rest[0] == '\'' {
		return l.quoted()
	}
	if l.set && strings.HasPrefix(rest, "..") {
		return l.punct("..")
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			return l.punct(op)
		}
	}
	n := 0
	for n < len(rest) && !isSpace(rest[n]) && strings.IndexByte(signs, rest[n]) < 0 {
		if l.set && strings.HasPrefix(rest[n:], "..") {
			break
		}
		n++
	}
	if n == 0 {
		return token{}, &Error{Expr: l.expr, Pos: start, Found: rest[:1], Expected: "a field, an operator or a value"}
	}
	l.pos += n
	return token{kind: tokWord, pos: start, src: rest[:n], text: rest[:n]}, nil
}

func (l *lexer) punct(s string) (token, error) {
	t := token{kind: tokPunct, pos: l.pos, src: s, text: s}
	l.pos += len(s)
	return t, nil
}

// quoted reads a quoted literal. It knows the C escapes for control characters, quotes, the backslash and
// \xHH. Other escapes are left unchanged, so that a regular expression needs no doubled backslashes.
func (l *lexer) quoted() (token, error) {
	start, quote := l.pos, l.expr[l.pos]
	var b []byte
	for i := start + 1; i < len(l.expr); i++ {
		c := l.expr[i]
		if c == quote {
			l.pos = i + 1
			return token{kind: tokText, pos: start, src: l.expr[start:l.pos], text: string(b)}, nil
		}
		if c != '\\' || i+1 == len(l.expr) {
			b = append(b, c)
			continue
		}
		i++
		switch c = l.expr[i]; c {
		case '\\':
			b = append(b, '\\')
		case '"', '\'':
			b = append(b, c)
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'x':
			if i+2 < len(l.expr) {
				if v, ok := hexByte(l.expr[i+1], l.expr[i+2]); ok {
					b = append(b, v)
					i += 2
					continue
				}
			}
			b = append(b, '\\', 'x')
		default:
			b = append(b, '\\', c)
		}
	}
	return token{}, &Error{Expr: l.expr, Pos: start, Found: l.expr[start:], Expected: "a closing " + string(quote)}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func hexByte(hi, lo byte) (byte, bool) {
	h, ok1 := hexDigit(hi)
	l, ok2 := hexDigit(lo)
	return h<<4 | l, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// first is the first letter of a text, for messages.
func first(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}
