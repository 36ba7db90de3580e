package printable

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// forbidden are characters that no output shows as they are.
var forbidden = func() []rune {
	var out []rune
	add := func(from, to rune) {
		for r := from; r <= to; r++ {
			out = append(out, r)
		}
	}
	add(0, 0x1f)
	add(0x7f, 0x9f) // DEL, C1
	add(0x61c, 0x61c)
	add(0x200b, 0x200f)
	add(0x2028, 0x202e)
	add(0x2060, 0x206f)
	add(0xfeff, 0xfeff)
	add(0xe000, 0xe000) // private use
	add(0xe0001, 0xe007f)
	return out
}()

func TestRune(t *testing.T) {
	for _, r := range forbidden {
		if Rune(r) {
			t.Errorf("%U is shown", r)
		}
	}
	for _, r := range "aZ~ é漢ファ😀…∆̈" {
		if !Rune(r) {
			t.Errorf("%U is not shown", r)
		}
	}
}

// TestPlain compares Plain with its definition, for each byte at each place of texts of many lengths.
func TestPlain(t *testing.T) {
	for n := range 50 {
		s := bytes.Repeat([]byte("a"), n)
		if !Plain(s) || !Plain(string(s)) {
			t.Fatalf("%q is not plain", s)
		}
		for i := range s {
			for c := range 256 {
				s[i] = byte(c)
				want := c >= 0x20 && c < 0x7f && c != '"' && c != '\\'
				if Plain(s) != want || Plain(string(s)) != want {
					t.Fatalf("%q: not %v", s, want)
				}
				if i+1 < n { // a carry or a borrow hides nothing
					for _, next := range []byte{0, 0x1f, '"', '\\', 0x7f, 0x80, 0xff} {
						if s[i+1] = next; Plain(s) {
							t.Fatalf("%q is plain", s)
						}
					}
					s[i+1] = 'a'
				}
			}
			s[i] = 'a'
		}
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct{ in, json, backslash, text string }{
		{"plain", `"plain"`, "plain", "plain"},
		{"naïve ファ", `"naïve ファ"`, "naïve ファ", "naïve ファ"},
		{"a\nb\tc\rd", `"a\nb\tc\rd"`, `a\nb\tc\rd`, "a\nb\tc\\x0dd"},
		{"\x1b[31m", `"\u001b[31m"`, `\x1b[31m`, `\x1b[31m`},
		{"\u202egpj", `"\u202egpj"`, `\xe2\x80\xaegpj`, `\xe2\x80\xaegpj`},
		{"\u0085\u009b", `"\u0085\u009b"`, `\xc2\x85\xc2\x9b`, `\xc2\x85\xc2\x9b`},
		{"\u2028\u2029", `"\u2028\u2029"`, `\xe2\x80\xa8\xe2\x80\xa9`, `\xe2\x80\xa8\xe2\x80\xa9`},
		{"\U000e0041", `"\udb40\udc41"`, `\xf3\xa0\x81\x81`, `\xf3\xa0\x81\x81`},
		{"\xff\xc3", `"\ufffd\ufffd"`, `\xff\xc3`, `\xff\xc3`},
		{"\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`, `\xed\xa0\x80`, `\xed\xa0\x80`}, // a surrogate
		{`q"b\`, `"q\"b\\"`, `q"b\\`, `q"b\`},
		{"\x7f\x00", `"\u007f\u0000"`, `\x7f\x00`, `\x7f\x00`},
		{"\ufffd", "\"\ufffd\"", "\ufffd", "\ufffd"},
		{"", `""`, "", ""},
	} {
		if got := string(JSON(nil, c.in)); got != c.json {
			t.Errorf("JSON(%q) = %s, want %s", c.in, got, c.json)
		}
		if got := string(JSON(nil, []byte(c.in))); got != c.json {
			t.Errorf("JSON([]byte(%q)) = %s, want %s", c.in, got, c.json)
		}
		if got := string(Backslash(nil, []byte(c.in))); got != c.backslash {
			t.Errorf("Backslash(%q) = %s, want %s", c.in, got, c.backslash)
		}
		if got := Text(c.in); got != c.text {
			t.Errorf("Text(%q) = %s, want %s", c.in, got, c.text)
		}
	}
}

// safe reports whether s has only what is shown, and line feeds and tabs if they are allowed.
func safe(s string, lines bool) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) && (!lines || r != '\n' && r != '\t') {
			return false
		}
		i += n
	}
	return true
}

func FuzzPrintable(f *testing.F) {
	f.Add("plain", 3)
	f.Add("\x1b[2J\u202e\xff\xe2\x80", 1)
	f.Add(string(forbidden), 7)
	f.Fuzz(func(t *testing.T, s string, cut int) {
		quoted := string(JSON(nil, s))
		var back string
		if err := json.Unmarshal([]byte(quoted), &back); err != nil || !safe(quoted, false) {
			t.Fatalf("%q: %s, %v", s, quoted, err)
		}
		if back != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Fatalf("%q: %s is %q", s, quoted, back)
		}
		b := string(Backslash(nil, []byte(s)))
		if !safe(b, false) {
			t.Fatalf("%q: %q", s, b)
		}
		if plain, err := strconv.Unquote(`"` + strings.ReplaceAll(b, `"`, `\"`) + `"`); err != nil || plain != s {
			t.Fatalf("%q: %s does not lead back: %q, %v", s, b, plain, err)
		}
		if text := Text(s); !safe(text, true) {
			t.Fatalf("%q: %q", s, text)
		}
		// However the pieces fall, the writers do the same.
		v := map[string]string{s: s}
		var whole bytes.Buffer
		if err := json.NewEncoder(&whole).Encode(v); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := JSONWriter(&out)
		cut = max(min(cut, whole.Len()), 0)
		for _, piece := range [][]byte{whole.Bytes()[:cut], whole.Bytes()[cut:]} {
			if n, err := w.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		got := map[string]string{}
		want := map[string]string{}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || !safe(out.String(), true) {
			t.Fatalf("%q: %s, %v", s, out.Bytes(), err)
		}
		if err := json.Unmarshal(whole.Bytes(), &want); err != nil || len(got) != 1 {
			t.Fatal(err)
		}
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%q: %q became %q", s, want, got)
			}
		}
		out.Reset()
		w = TextWriter(&out)
		text := s + "\n" // completes what was begun
		cut = max(min(cut, len(text)), 0)
		_, _ = w.Write([]byte(text[:cut]))
		_, _ = w.Write([]byte(text[cut:]))
		if out.String() != Text(text) {
			t.Fatalf("%q cut at %d: %q, want %q", text, cut, out.String(), Text(text))
		}
	})
}

func TestNoAllocation(t *testing.T) {
	b := make([]byte, 0, 256)
	s, u := "export/naïve-ファイル.txt", []byte("a\u202eb\x1b")
	if n := testing.AllocsPerRun(100, func() {
		b = JSON(b[:0], s)
		b = JSON(b, u)
		b = Backslash(b, u)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
