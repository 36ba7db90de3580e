package main

import (
	"math"
	"strings"
)

// glyphs are the characters that pictures are made of.
type glyphs struct {
	ascii    bool
	spark    []string // rising
	heat     []string // rising; the first is nothing
	full     string   // of a bar
	empty    string
	cursor   string
	up, down string
	dots     string
}

var (
	unicodeGlyphs = glyphs{
		spark: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, heat: []string{" ", "░", "▒", "▓", "█"},
		full: "█", empty: "░", cursor: "▸", up: "▲", down: "▼", dots: "…",
	}
	asciiGlyphs = glyphs{
		ascii: true,
		spark: []string{".", ":", "-", "=", "+", "*", "%", "#"}, heat: []string{" ", ".", ":", "+", "#"},
		full: "#", empty: ".", cursor: ">", up: "^", down: "v", dots: "~",
	}
)

// glyphsFor picks the characters that the terminal can show.
func glyphsFor(ascii bool) *glyphs {
	if ascii {
		return &asciiGlyphs
	}
	return &unicodeGlyphs
}

var toASCII = strings.NewReplacer("µ", "u", "…", "~", "×", "x", "≤", "<=")

// plain replaces non-ASCII characters of other packages if necessary.
func (g *glyphs) plain(s string) string {
	if !g.ascii {
		return s
	}
	s = toASCII.Replace(s)
	return strings.Map(func(r rune) rune {
		if r > 126 {
			return '?'
		}
		return r
	}, s)
}

// sparkline draws the latest values, one column each. Zero is empty, so that a silent network and a slow one
// look different.
func (g *glyphs) sparkline(values []float64, width int) string {
	if width <= 0 {
		return ""
	}
	if len(values) > width {
		values = values[len(values)-width:]
	}
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	for range width - len(values) {
		b.WriteByte(' ')
	}
	for _, v := range values {
		if v <= 0 || top <= 0 {
			b.WriteByte(' ')
			continue
		}
		i := int(math.Ceil(v/top*float64(len(g.spark)))) - 1
		b.WriteString(g.spark[min(max(i, 0), len(g.spark)-1)])
	}
	return b.String()
}

// bar draws a part of a whole.
func (g *glyphs) bar(part, whole uint64, width int) string {
	n := 0
	if whole > 0 {
		n = int(math.Round(float64(min(part, whole)) / float64(whole) * float64(width)))
		if n == 0 && part > 0 {
			n = 1
		}
		if n == width && part < whole {
			n = width - 1
		}
	}
	return strings.Repeat(g.full, max(n, 0)) + strings.Repeat(g.empty, max(width-n, 0))
}

// shares divides width columns among the parts in proportion. Every part above a quarter of a column gets
// one.
func shares(parts []int64, width int) []int {
	var total float64
	for _, p := range parts {
		total += float64(max(p, 0))
	}
	out := make([]int, len(parts))
	if total <= 0 {
		return out
	}
	sum, drawn := 0.0, 0
	for i, p := range parts {
		sum += float64(max(p, 0))
		end := min(int(sum/total*float64(width)+0.5), width)
		if p > 0 && end == drawn && drawn < width && float64(p)*float64(width)*4 > total {
			end++
		}
		out[i] = max(end-drawn, 0)
		drawn = max(end, drawn)
	}
	return out
}
