package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDraw(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"   ":                     "",
		"a  b":                    `<text x="0" y="13" textLength="32">a  b</text>`,
		"  <&>":                   `<text x="16" y="13" textLength="24">&lt;&amp;&gt;</text>`,
		"\x1b[1mab\x1b[0m c":      `<text x="0" y="13" textLength="16" class="b">ab</text><text x="24" y="13" textLength="8">c</text>`,
		"\x1b[96m▁█\x1b[39m":      `<text x="0" y="13" textLength="16" class="c14">▁█</text>`,
		"\x1b[7mx\x1b[27;31;2my":  `<rect x="0" width="8" height="17" fill="#d5d8de"/><text x="0" y="13" textLength="8" class="r">x</text><text x="8" y="13" textLength="8" class="c1 d">y</text>`,
		"\x1b[42m \x1b[49m\x1b[m": `<rect x="0" width="8" height="17" fill="#98c379"/>`,
	} {
		got, err := draw(in, 1)
		if err != nil || got[0] != want {
			t.Errorf("%q:\n%s (%v), not\n%s", in, got[0], err, want)
		}
	}
	for _, in := range []string{"\x1b[38;5;1mx", "\x1b[xm"} {
		if got, err := draw(in, 1); err == nil {
			t.Errorf("%q gives %q, no error", in, got)
		}
	}
}

// TestTerminal makes a recording of three screens: a line that stays is written once.
func TestTerminal(t *testing.T) {
	var names []string
	for i, text := range []string{"stays\none", "stays\ntwo", "stays\ntwo\nnew\nbelow"} {
		name := filepath.Join(t.TempDir(), "screen"+string(rune('0'+i)))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	var b bytes.Buffer
	if err := terminal(&b, names, 10, 3, time.Second); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{">stays<": 1, ">one<": 1, ">two<": 1, ">new<": 1, ">below<": 0, "@keyframes": 3} {
		if n := strings.Count(b.String(), text); n != want {
			t.Errorf("%q is there %d times, not %d:\n%s", text, n, want, b.String())
		}
	}
	wellFormed(t, b.Bytes())
	if err := terminal(&b, nil, 1, 1, time.Second); err == nil {
		t.Error("no error without screens")
	}
}

// TestPictures looks at what is checked in: well formed, and small.
func TestPictures(t *testing.T) {
	svg, err := os.ReadFile("../top.svg")
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, svg)
	var b bytes.Buffer
	if err := reduce(&b, "../report.png"); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile("../report.png")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(svg) + len(picture); n > 150_000 {
		t.Errorf("the pictures have %d bytes, more than 150000", n)
	}
}

func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
