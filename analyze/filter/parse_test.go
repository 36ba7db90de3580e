package filter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// show writes a tree as a list in brackets.
func show(t tree) string {
	list := func(op string, all []tree) string {
		var b strings.Builder
		b.WriteString("(" + op)
		for _, x := range all {
			b.WriteString(" " + show(x))
		}
		return b.String() + ")"
	}
	switch t := t.(type) {
	case nil:
		return "()"
	case treeAnd:
		return list("and", t)
	case treeOr:
		return list("or", t)
	case treeNot:
		return "(not " + show(t.x) + ")"
	case *treeTest:
		if t.op == opExists {
			return t.field.src
		}
		s := "(" + t.op.String() + " " + t.field.src
		for _, a := range t.args {
			s += " " + showToken(a.lo)
			if a.ranged {
				s += ".." + showToken(a.hi)
			}
		}
		return s + ")"
	}
	return fmt.Sprintf("%T", t)
}

func showToken(t token) string {
	if t.kind == tokText {
		return fmt.Sprintf("%q", t.text)
	}
	return t.text
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{"", "()"},
		{" \t\n", "()"},
		{"a", "a"},
		{"a == 1", "(== a 1)"},
		{"a==1", "(== a 1)"},
		{"a = 1", "(== a 1)"},
		{"a eq 1", "(== a 1)"},
		{"a EQ 1", "(== a 1)"},
		{"a != 1", "(!= a 1)"},
		{"a ne 1", "(!= a 1)"},
		{"a !== 1", "(!== a 1)"},
		{"a any_ne 1", "(!== a 1)"},
		{"a === 1", "(=== a 1)"},
		{"a all_eq 1", "(=== a 1)"},
		{"a<1", "(< a 1)"},
		{"a lt 1", "(< a 1)"},
		{"a<=1", "(<= a 1)"},
		{"a le 1", "(<= a 1)"},
		{"a>1", "(> a 1)"},
		{"a gt 1", "(> a 1)"},
		{"a>=1", "(>= a 1)"},
		{"a ge 1", "(>= a 1)"},
		{"a & 4", "(& a 4)"},
		{"a bitwise_and 4", "(& a 4)"},
		{"a contains b", "(contains a b)"},
		{"a matches 'x y'", `(matches a "x y")`},
		{"a ~ b", "(matches a b)"},
		{"a in {1}", "(in a 1)"},
		{"a in {1, 2, 5..9}", "(in a 1 2 5..9)"},
		{"a in {1 2 5 .. 9}", "(in a 1 2 5..9)"},
		{"a in {'x y' ,z}", `(in a "x y" z)`},
		{"a not in {1}", "(not in a 1)"},
		{"not a in {1}", "(not (in a 1))"},
		// Precedence: not, then and, then or.
		{"a and b or c and d", "(or (and a b) (and c d))"},
		{"a && b || c && d", "(or (and a b) (and c d))"},
		{"a or b and c or d", "(or a (and b c) d)"},
		{"a and b and c", "(and a b c)"},
		{"a and (b or c)", "(and a (or b c))"},
		{"not a and b", "(and (not a) b)"},
		{"!a == 1", "(not (== a 1))"},
		{"!(a and b)", "(not (and a b))"},
		{"not not a", "(not (not a))"},
		{"!!a", "(not (not a))"},
		{"NOT a AND b OR c", "(or (and (not a) b) c)"},
		{"((a))", "a"},
		// A keyword is a value where one is expected.
		{"a == not", "(== a not)"},
		{"a == in", "(== a in)"},
		// Values.
		{"a == 10.0.0.0/8", "(== a 10.0.0.0/8)"},
		{"a == fe80::1/64", "(== a fe80::1/64)"},
		{"a == 2024-05-01T12:00:00.5+02:00", "(== a 2024-05-01T12:00:00.5+02:00)"},
		{"a == ../x", "(== a ../x)"},
		{"a == 'it''s'", "!"},
		{`a == "\"\\\'\n\t\r\x41\d\.\xzz"`, `(== a "\"\\'\n\t\rA\\d\\.\\xzz")`},
		{"a == ''", `(== a "")`},
		{"a == grüß", "(== a grüß)"},
		// As in tcpdump.
		{"host 10.0.0.1 and port 2049", "(and (== host 10.0.0.1) (== port 2049))"},
		{"host == 10.0.0.1", "(== host 10.0.0.1)"},
		{"host and port", "(and host port)"},
	} {
		got, err := parse(c.expr)
		if c.want == "!" {
			if err == nil {
				t.Errorf("%s: %s, want an error", c.expr, show(got))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
		} else if s := show(got); s != c.want {
			t.Errorf("%s: %s, want %s", c.expr, s, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		expr, found, expected string // expected is how the text begins
		pos                   int
		hint                  string // in the hint; "" for no hint, "*" for any
	}{
		// Syntax.
		{"op ==", "", "a value", 5, ""},
		{"op == and", "and", "a symbol", 6, "*"},
		{"op == READ)", ")", `"and", "or" or the end`, 10, ""},
		{"(op == READ", "", `"and", "or" or ")"`, 11, ""},
		{"op == READ xid", "xid", `"and", "or" or the end`, 11, ""},
		{"latency > 20 ms", "ms", `"and", "or" or the end`, 13, "write 20ms without a space"},
		{"op == READ or xid == 1 and nfs.count >= 1 MiB", "MiB", `"and", "or" or the end`, 42, "write 1MiB without a space"},
		{"xid == 1 5", "5", `"and", "or" or the end`, 9, ""},
		{"not", "", `a field, "not" or "("`, 3, ""},
		{"eq 1", "eq", "a field", 0, ""},
		{"xid and", "", `a field, "not" or "("`, 7, ""},
		{"and xid", "and", "a field", 0, ""},
		{"()", ")", `a field, "not" or "("`, 1, ""},
		{"'x' == 1", "'x'", `a field, "not" or "("`, 0, ""},
		{"xid in 1", "1", `"{"`, 7, ""},
		{"xid in {", "", "a value", 8, ""},
		{"xid in {}", "}", "a value", 8, ""},
		{"xid in {1 2", "", `"," or "}"`, 11, ""},
		{"xid in {1,}", "}", "a value", 10, ""},
		{"xid in {1..}", "}", "a value", 11, ""},
		{"xid in {..1}", "..", "a value", 8, ""},
		{"xid in {2..1}", "1", "the end of a range, not less than 2", 11, ""},
		{"xid in {5, 0x20..0x1f}", "0x1f", "the end of a range, not less than 0x20", 17, ""},
		{"latency in {1s..999ms}", "999ms", "the end of a range, not less than 1s", 16, ""},
		{"client in {192.0.2.2..192.0.2.1}", "192.0.2.1", "the end of a range, not less than", 22, ""},
		{"nfs.count in {9..8}", "8", "the end of a range", 17, ""},
		{"xid not 1", "1", `"in"`, 8, ""},
		{"file.name == 'x", "'x", "a closing '", 13, ""},
		{"xid | 1", "|", "a field, an operator or a value", 4, ""},
		{"xid == == 1", "==", "a value", 7, ""},
		// Names.
		{"latncy > 1ms", "latncy", "a field", 0, "latency"},
		{"xid == 1 and oop == READ", "oop", "a field", 13, "op"},
		{"offset == 1", "offset", "a field", 0, "file.offset"},
		{"dirpath", "dirpath", "a field", 0, "mount.dirpath"},
		{"zzzzzzzzzzzz", "zzzzzzzzzzzz", "a field", 0, ""},
		{"nfs.READ.offst == 1", "offst", "the name of a field of nfs", 9, "offset"},
		{"nfs.READ.dirpath", "dirpath", "the name of a field of nfs", 9, "mount.dirpath"},
		{"nfs..offset", "", "the name of a field of nfs", 4, ""},
		{"nfs. == 1", "", "the name of a field of nfs", 4, ""},
		{"nfs.READ.linkdata", "READ.linkdata", "the path of a field of nfs", 4, "linkdata is in the arguments of CREATE"},
		{"nfs.res.READ.offset", "res.READ.offset", "the path of a field of nfs", 4, "*"},
		{"nfs.size.obj_attributes.size.size", "size.obj_attributes.size.size", "the path", 4, "*"},
		// Types.
		{"xid == abc", "abc", "a number for xid", 7, ""},
		{"xid == -1", "-1", "a number for xid", 7, ""},
		{"xid == 99999999999999999999", "99999999999999999999", "a number", 7, ""},
		{"xid == 1.5", "1.5", "a number", 7, ""},
		{"xid == 0x", "0x", "a number", 7, ""},
		{"xid == 089", "089", "a number", 7, ""},
		{"xid == 16777216T", "16777216T", "a number", 7, ""},
		{"xid contains 1", "contains", "an operator that fits xid, whose type is number", 4, ""},
		{"retransmits contains 1", "contains", "an operator that fits retransmits, whose type is count", 12, ""},
		{"latency > abc", "abc", "a duration", 10, ""},
		{"latency > 20", "20", "a duration with a unit for latency", 10, "such as 20ns, 20us, 20ms or 20s"},
		{"latency.server in {1..20}", "1", "a duration with a unit", 19, "such as 1ns"},
		{"operation == REED", "REED", "a symbol", 13, "did you mean READ?"},
		{"operation == LOOKUP+REED", "LOOKUP+REED", "a symbol", 13, ""},
		{"operation == LOOKUP*x", "LOOKUP*x", "a symbol", 13, "did you mean LOOKUP"},
		{"latency > 64k", "64k", "a duration", 10, ""},
		{"time > yesterday", "yesterday", "a time", 7, ""},
		{"time > 12", "12", "a time", 7, ""},
		{"time > 25:00:00", "25:00:00", "a time", 7, ""},
		{"time in {13:00..12:00}", "12:00", "the end of a range, not less than 13:00", 16, ""},
		{"time in {13:00..2024-05-01}", "2024-05-01", "the end of a range", 16, ""},
		{"error == maybe", "maybe", "true or false for error", 9, ""},
		{"error < true", "<", "an operator", 6, ""},
		{"client == 10.0.0", "10.0.0", "an IP address", 10, ""},
		{"client == 10.0.0.0/33", "10.0.0.0/33", "an IP address", 10, ""},
		{"client > 10.0.0.1", ">", "an operator", 7, ""},
		{"client in {10.0.0.1..fe80::1}", "fe80::1", "an IP address", 21, ""},
		{"op == RAED", "RAED", "a symbol", 6, "did you mean READ?"},
		{"status == NFS3ERR_STALL", "NFS3ERR_STALL", "a symbol", 10, "NFS3ERR_STALE"},
		{"status == NOETN", "NOETN", "a symbol", 10, "NOENT"},
		{"status > NFS3ERR_STALE", "NFS3ERR_STALE", "a number for status", 9, "symbols have no order"},
		{"op > READ", ">", "an operator", 3, ""},
		{"fabric == ethernet", "ethernet", "a symbol", 10, "rocev2"},
		{"file.filehandle == xyz", "xyz", "bytes", 19, ""},
		{"file.filehandle == abc", "abc", "bytes", 19, ""},
		{"file.filehandle contains abc", "abc", "bytes", 25, ""},
		{"file.name contains ''", "''", "a text", 19, ""},
		{"op matches '('", "'('", "a regular expression", 11, "missing closing )"},
		{"nfs == 1", "nfs", "a field that has a value before ==", 0, ""},
		{"nfs.READ == 1", "nfs.READ", "a field that has a value", 0, "it holds"},
		{"nfs.size contains 1", "contains", "an operator that fits nfs.size", 9, ""},
		{"nfs.stable > FILE_SYNC", "FILE_SYNC", "a number for nfs.stable", 13, "order"},
		{"nfs.mtime > 5", "5", "a time", 12, ""},
		{"nfs.res.eof == 17", "17", "true or false", 15, ""},
		{"xid in {1, x}", "x", "a number", 11, ""},
		{"xid in {1..x}", "x", "a number", 11, ""},
		{"status in {1..NFS3ERR_IO}", "NFS3ERR_IO", "a symbol or a number", 14, "*"},
		{"op in {1..5}", "1", "another test", 7, ""},
	} {
		_, err := Compile(c.expr)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v, want an *Error", c.expr, err)
			continue
		}
		if e.Pos != c.pos || e.Found != c.found || !strings.HasPrefix(e.Expected, c.expected) {
			t.Errorf("%s: %d %q %q, want %d %q %q", c.expr, e.Pos, e.Found, e.Expected, c.pos, c.found, c.expected)
		}
		if c.hint != "*" && (c.hint == "") != (e.Hint == "") || c.hint != "*" && !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: hint %q, want %q", c.expr, e.Hint, c.hint)
		}
		if e.Expr != c.expr || !strings.HasPrefix(c.expr[e.Pos:], e.Found) {
			t.Errorf("%s: the error shows %q of %q", c.expr, e.Found, e.Expr)
		}
	}
}

func TestErrorText(t *testing.T) {
	_, err := Compile("größe == 1 and op == RAED")
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if want := `filter: byte 0: expected a field, found "größe"`; err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
	e.Pos = strings.Index(e.Expr, "op")
	if want := e.Expr + "\n               ^"; e.Caret() != want {
		t.Errorf("\n%s\nwant\n%s", e.Caret(), want)
	}
	_, err = Compile("op == RAED or")
	if want := `filter: byte 13: expected a field, "not" or "(", found the end`; err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
	_, err = Field("op.")
	if !errors.As(err, &e) || e.Pos != 0 || e.Expr != "op." {
		t.Errorf("Field: %v", err)
	}
}

func TestDepth(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("(", n) + "xid" + strings.Repeat(")", n) }
	if _, err := Compile(deep(maxDepth - 1)); err != nil {
		t.Error(err)
	}
	if _, err := Compile(deep(100000)); err == nil {
		t.Error("100000 parentheses were accepted")
	}
	if _, err := Compile(strings.Repeat("!", 100000) + "xid"); err == nil {
		t.Error("100000 negations were accepted")
	}
	if _, err := Compile("xid" + strings.Repeat(" and xid", 100000)); err != nil {
		t.Error(err)
	}
	if _, err := Compile(strings.Repeat("x", maxExpr+1)); err == nil {
		t.Error("more than 1 MiB was accepted")
	}
	if _, err := Compile("nfs" + strings.Repeat(".READ", 1000)); err == nil {
		t.Error("a path of 1000 components was accepted")
	}
}

// An XID of eight decimal digits may be a number or one copied from a listing.
func TestListedXID(t *testing.T) {
	f, err := Compile("xid == 12345678")
	if err != nil {
		t.Fatal(err)
	}
	for xid, want := range map[uint32]bool{12345678: true, 0x12345678: true, 12345679: false} {
		v := call{program: 100003, version: 3}.view()
		v.Tx.XID = xid
		if got := f.Match(v); got != want {
			t.Errorf("xid %#x: %v, want %v", xid, got, want)
		}
	}
}

// TestLongCaret: of a long expression only what lies around the error is shown.
func TestLongCaret(t *testing.T) {
	e := Error{Expr: strings.Repeat("(", 5000) + "op==READ" + strings.Repeat(")", 5000), Pos: 4990}
	shown, mark, _ := strings.Cut(e.Caret(), "\n")
	if n := utf8.RuneCountInString(shown); n != 2*caretRoom+2 || []rune(shown)[len(mark)-1] != '(' || !strings.Contains(shown, "op==READ") {
		t.Errorf("%d characters:\n%s\n%s", n, shown, mark)
	}
}
