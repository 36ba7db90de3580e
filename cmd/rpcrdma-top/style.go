package main

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/mattn/go-runewidth"
	"github.com/muesli/termenv"

	"github.com/rpcrdma/toolkit/analyze/text"
)

// tone is how a piece of text looks.
type tone uint8

const (
	normal tone = iota
	dim
	bold
	title  // of a table
	chosen // the row under the cursor
	good
	warn
	bad
	accent
	part0 // phases: call, pull, server, push, reply
	part1
	part2
	part3
	part4
	heat0 // heat: five steps
	heat1
	heat2
	heat3
	heat4
	tones
)

// styles draw tones; without colors they change nothing.
type styles struct {
	color bool
	dots  string // at the end of a line that is cut
	of    [tones]lipgloss.Style
}

// newStyles makes the styles of a theme for what is written to w.
func newStyles(w io.Writer, color bool, th *theme) *styles {
	r := lipgloss.NewRenderer(w)
	s := &styles{color: color && !th.plain}
	switch {
	case !s.color:
		r.SetColorProfile(termenv.Ascii)
	case r.ColorProfile() == termenv.Ascii: // it is not a terminal, but colors are wanted
		r.SetColorProfile(wantedProfile())
	}
	base := r.NewStyle()
	for i := range s.of {
		s.of[i] = base
	}
	s.of[dim] = base.Faint(!th.strong)
	s.of[bold] = base.Bold(true)
	s.of[title] = base.Bold(true).Reverse(true)
	s.of[chosen] = base.Reverse(true)
	if !s.color {
		return s
	}
	dark := th.background == darkBackground
	if th.background == anyBackground {
		// The terminal is asked, or COLORFGBG; this is before the screen is drawn and keys are read.
		dark = r.HasDarkBackground()
	}
	for t, c := range th.colors {
		if c == (ink{}) {
			continue
		}
		name := c.light
		if dark {
			name = c.dark
		}
		st := base
		if name != "" {
			st = st.Foreground(lipgloss.Color(name))
		}
		s.of[t] = st.Bold(th.strong || tone(t) == bad).Reverse(th.strong && tone(t) == bad)
	}
	return s
}

// wantedProfile is how many colors are written to what is not a terminal.
func wantedProfile() termenv.Profile {
	switch term := os.Getenv("TERM"); {
	case os.Getenv("COLORTERM") == "truecolor", os.Getenv("COLORTERM") == "24bit":
		return termenv.TrueColor
	case strings.Contains(term, "256color"):
		return termenv.ANSI256
	}
	return termenv.ANSI
}

// paint draws text in a tone.
func (s *styles) paint(t tone, str string) string {
	if !s.color || t == normal || str == "" {
		return str
	}
	return s.of[t].Render(str)
}

// span is a piece of a line.
type span struct {
	text string
	tone tone
}

// line joins spans and pads them to the width, or cuts them and appends dots.
func (s *styles) line(width int, over tone, spans ...span) string {
	var b strings.Builder
	left, dots := width, ""
	if tooWide(width, spans) {
		dots = s.dots
		left = max(width-runewidth.StringWidth(dots), 0)
	}
	for _, x := range spans {
		if left <= 0 {
			break
		}
		t, w := x.text, runewidth.StringWidth(x.text)
		if w > left {
			t = runewidth.Truncate(t, left, "")
			w = runewidth.StringWidth(t)
		}
		tone := x.tone
		if over != normal {
			tone = over
		}
		b.WriteString(s.paint(tone, t))
		left -= w
	}
	if left > 0 {
		b.WriteString(s.paint(over, strings.Repeat(" ", left)))
	}
	b.WriteString(s.paint(over, dots))
	return b.String()
}

// tooWide reports whether a line without its trailing spaces exceeds the width.
func tooWide(width int, spans []span) bool {
	used, end := 0, 0 // end: width up to the last character that is not a space
	for _, x := range spans {
		if t := strings.TrimRight(x.text, " "); t != "" {
			end = used + runewidth.StringWidth(t)
		}
		used += runewidth.StringWidth(x.text)
	}
	return end > width
}

// fit pads text to a width, or cuts it: at the end, or in the middle for names.
func (g *glyphs) fit(s string, width int, right bool) string {
	if width <= 0 {
		return ""
	}
	w := runewidth.StringWidth(s)
	if w > width {
		if runewidth.StringWidth(g.dots) < width {
			s = runewidth.Truncate(s, width, g.dots)
		} else {
			s = runewidth.Truncate(s, width, "")
		}
		w = runewidth.StringWidth(s)
	}
	pad := strings.Repeat(" ", max(width-w, 0))
	if right {
		return pad + s
	}
	return s + pad
}

// name makes text from a peer safe to show in at most width columns; the middle of long text is removed.
func (g *glyphs) name(s string, width int) string {
	return g.plain(string(text.Shorten([]byte(s), width)))
}

// from leaves out the first columns of a line.
func (g *glyphs) from(s string, columns int) string {
	if columns <= 0 {
		return s
	}
	return runewidth.TruncateLeft(s, columns, "")
}
