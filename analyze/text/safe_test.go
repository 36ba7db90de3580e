package text

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

func TestSafe(t *testing.T) {
	for _, c := range []struct {
		in, want string
		width    int
	}{
		{"plain", "plain", 5},
		{"naïve", "naïve", 5},
		{"ファ", "ファ", 4},
		{"a\nb\tc\rd", `a\nb\tc\rd`, 10},
		{"\x1b[31mred", `\x1b[31mred`, 11},
		{`back\slash`, `back\\slash`, 11},
		{"\xff\xfe", `\xff\xfe`, 8},
		{"\u202egpj.exe", `\xe2\x80\xaegpj.exe`, 19}, // right-to-left override
		{"\u0085", `\xc2\x85`, 8},                    // next line, a C1 control
		{"\x7f", `\x7f`, 4},
		{"", "", 0},
	} {
		got, width := Safe(nil, []byte(c.in))
		if string(got) != c.want || width != c.width {
			t.Errorf("%q: %s (%d columns), want %s (%d)", c.in, got, width, c.want, c.width)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"shorter", 5, "s…ter"},
		{"export/directory/file-name.txt", 16, "expor…e-name.txt"},
		{"ab", 1, "ab"},
		{"ファイルファイル", 9, "フ…ァイル"},
		{"abcdef", 5, "a…def"},
	} {
		b, w := Safe([]byte("x "), []byte(c.in))
		b, w = shorten(b, 2, w, c.limit)
		if got := string(b[2:]); got != c.want || w != runewidth.StringWidth(got) {
			t.Errorf("%q in %d: %q (%d columns), want %q", c.in, c.limit, got, w, c.want)
		}
	}
}

// TestShortenPlain compares the way of text whose sides are ASCII with that of all text.
func TestShortenPlain(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	parts := []string{"a", "bc", "some-name", "é", "ファ", "e\u0301", "/"}
	short := 0
	for range 50_000 {
		var s []byte
		for range random.IntN(40) {
			part := parts[random.IntN(len(parts))]
			if random.IntN(3) > 0 {
				part = parts[random.IntN(3)]
			}
			s = append(s, part...)
		}
		before := "ü " // not looked at
		b, width := Safe([]byte(before), s)
		limit := 3 + random.IntN(60)
		if width <= limit {
			continue
		}
		head, tail := sides(limit)
		want, columns := shortenRunes(bytes.Clone(b), len(before), head, tail)
		if ascii(s) {
			short++
		}
		if got, n := shorten(b, len(before), width, limit); string(got) != string(want) || n != columns {
			t.Fatalf("%q in %d columns: %q of %d, want %q of %d", s, limit, got, n, want, columns)
		}
	}
	if short < 300 {
		t.Errorf("%d are ASCII", short)
	}
}

// Whatever a peer sends, the output is printable, and as wide as reported.
func FuzzSafe(f *testing.F) {
	f.Add("naïve-ファイル\x1b[0m", 12)
	f.Add(strings.Repeat("0", 300), 26)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		b, width := Safe(nil, []byte(s))
		check := func(b []byte, width int) {
			sum := 0
			for _, r := range string(b) {
				if r == utf8.RuneError || !unicode.IsPrint(r) {
					t.Fatalf("%q: %q", s, b)
				}
				sum += columns(r)
			}
			if sum != width {
				t.Fatalf("%q: %q is %d columns wide, not %d", s, b, sum, width)
			}
		}
		check(b, width)
		b, width = shorten(b, 0, width, limit)
		check(b, width)
		if limit >= 3 && width > limit {
			t.Fatalf("%q: %q exceeds %d columns", s, b, limit)
		}
	})
}
