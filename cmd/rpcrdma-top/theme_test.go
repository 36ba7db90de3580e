package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestThemes makes the styles of all themes: colors differ, and none has no escape sequence at all.
func TestThemes(t *testing.T) {
	t.Setenv("COLORTERM", "truecolor")
	t.Setenv("NO_COLOR", "1") // --color always counts more
	drawn := make(map[string]string)
	for _, name := range themeNames {
		th, err := parseTheme(name)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		st := newStyles(&out, true, th)
		s := ""
		for x := range tones {
			s += st.line(10, normal, span{"text", x}) + "\n"
		}
		if strings.Contains(s, "\x1b") == (name == "none") {
			t.Errorf("%s: %q", name, s)
		}
		if strip(s) != strings.Repeat("text      \n", int(tones)) {
			t.Errorf("%s: %q", name, s)
		}
		for other, x := range drawn {
			if x == s && name != "auto" && other != "auto" {
				t.Errorf("%s and %s are the same", name, other)
			}
		}
		drawn[name] = s
	}
	if drawn["auto"] != drawn["dark"] && drawn["auto"] != drawn["light"] {
		t.Error("auto is neither dark nor light")
	}
	th := &theme{colors: defaultInks, background: darkBackground}
	th.set(bad, "#102030")
	if got := newStyles(&bytes.Buffer{}, true, th).paint(bad, "x"); !strings.Contains(got, "38;2;16;32;48") {
		t.Errorf("%q", got)
	}
	if _, err := parseTheme("drak"); err == nil || !strings.Contains(err.Error(), "did you mean dark?") {
		t.Error(err)
	}
	for s, want := range map[string]string{"red": "1", "bright-blue": "12", "gray": "8", "200": "200", "#a0B1c2": "#a0B1c2", "default": ""} {
		if got, err := parseColor(s); err != nil || got != want {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "256", "-1", "#12345", "#gggggg", "rde", "bright"} {
		if got, err := parseColor(s); err == nil {
			t.Errorf("%q is taken for %q", s, got)
		}
	}
}
