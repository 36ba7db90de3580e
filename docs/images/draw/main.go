// Command draw makes the pictures of the documentation small enough to be checked in.
//
//	draw -cols 96 -rows 20 -frame 800ms SCREEN... >top.svg
//
// makes an SVG that shows screens of a terminal one after the other, forever; a screen is what
// "tmux capture-pane -e -p" writes.
//
//	draw -png IN >OUT
//
// writes a PNG with at most 256 colors.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Size of a character, in pixels of the picture.
const (
	width  = 8
	height = 17
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("draw: ")
	cols := flag.Int("cols", 80, "columns of a screen")
	rows := flag.Int("rows", 24, "rows of a screen")
	frame := flag.Duration("frame", time.Second, "time for which a screen is shown")
	picture := flag.String("png", "", "reduce the colors of this PNG instead")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	var err error
	if *picture != "" {
		err = reduce(out, *picture)
	} else {
		err = terminal(out, flag.Args(), *cols, *rows, *frame)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		log.Fatal(err)
	}
}

// reduce keeps the 256 most frequent colors, and takes the nearest of them for each other.
func reduce(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := png.Decode(f)
	if err != nil {
		return err
	}
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(in.At(x, y)).(color.RGBA) }
	b := in.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	colors := make([]color.RGBA, 0, len(count))
	for c := range count {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(b, palette)
	nearest := map[color.RGBA]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := at(x, y)
			i, ok := nearest[c]
			if !ok {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, out)
}

// terminal writes the SVG. A line that does not change from one screen to the next is written
// once.
func terminal(w io.Writer, names []string, cols, rows int, frame time.Duration) error {
	if len(names) == 0 {
		return fmt.Errorf("no screens")
	}
	screens := make([][]string, len(names))
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines, err := draw(string(text), rows)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		screens[i] = lines
	}
	wide, high := cols*width+16, rows*height+16
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+"\n", wide, high)
	fmt.Fprint(w, `<rect width="100%" height="100%" rx="6" fill="#14171c"/>`+"\n<style>\n")
	fmt.Fprintf(w, "text{font:%dpx ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d5d8de;white-space:pre}\n", height-4)
	for i, c := range ansi {
		fmt.Fprintf(w, ".c%d{fill:%s}\n", i, c)
	}
	fmt.Fprint(w, ".b{font-weight:bold}.d{opacity:.6}.r{fill:#14171c}\n")
	total := time.Duration(len(screens)) * frame
	// One animation for each run of screens.
	type span struct{ from, to int }
	seen := map[span]bool{}
	class := func(s span) string {
		if s.from == 0 && s.to == len(screens) {
			return ""
		}
		return fmt.Sprintf(` class="s%d_%d"`, s.from, s.to)
	}
	var body strings.Builder
	for y := range rows {
		for from := 0; from < len(screens); {
			to := from + 1
			for to < len(screens) && screens[to][y] == screens[from][y] {
				to++
			}
			if line := screens[from][y]; line != "" {
				s := span{from, to}
				fmt.Fprintf(&body, `<g%s transform="translate(8,%d)">%s</g>`+"\n", class(s), 8+y*height, line)
				if class(s) != "" && !seen[s] {
					seen[s] = true
					a, b := 100*float64(from)/float64(len(screens)), 100*float64(to)/float64(len(screens))
					id := fmt.Sprintf("s%d_%d", from, to)
					fmt.Fprintf(w, ".%s{animation:%s %gs step-end infinite}@keyframes %[2]s{", id, "k"+id, total.Seconds())
					if from > 0 {
						fmt.Fprint(w, "0%{visibility:hidden}")
					}
					fmt.Fprintf(w, "%.3f%%{visibility:visible}", a)
					if to < len(screens) {
						fmt.Fprintf(w, "%.3f%%{visibility:hidden}", b)
					}
					fmt.Fprint(w, "}\n")
				}
			}
			from = to
		}
	}
	fmt.Fprintf(w, "</style>\n%s</svg>\n", body.String())
	return nil
}

var ansi = [16]string{
	"#5c6370", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
	"#7f848e", "#ff7b86", "#a9d98a", "#ffd68a", "#7cc4ff", "#d9a1ee", "#6fd0dc", "#ffffff",
}

// style describes a run of characters. Colors are an index into ansi plus 1; 0 is the default.
type style struct {
	front, back        int
	bold, dim, reverse bool
}

// draw turns a screen into the elements of each row.
func draw(text string, rows int) ([]string, error) {
	out := make([]string, rows)
	var now style
	for y, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if y == rows {
			break
		}
		var b strings.Builder
		x := 0
		for line != "" {
			if codes, rest, ok := sgr(line); ok {
				if err := now.set(codes); err != nil {
					return nil, fmt.Errorf("line %d: %w", y+1, err)
				}
				line = rest
				continue
			}
			run, rest := line, ""
			if i := strings.IndexByte(line[1:], '\x1b'); i >= 0 {
				run, rest = line[:i+1], line[i+1:]
			}
			n := utf8.RuneCountInString(run)
			now.write(&b, run, x, n)
			x += n
			line = rest
		}
		out[y] = b.String()
	}
	return out, nil
}

// sgr splits a sequence "select graphic rendition" from a text.
func sgr(s string) (codes, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "\x1b[")
	if !ok {
		return "", "", false
	}
	return strings.Cut(s, "m")
}

func (s *style) set(codes string) error {
	for c := range strings.SplitSeq(codes, ";") {
		n, err := strconv.Atoi("0" + c)
		if err != nil {
			return err
		}
		switch {
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.dim = true
		case n == 22:
			s.bold, s.dim = false, false
		case n == 7:
			s.reverse = true
		case n == 27:
			s.reverse = false
		case n >= 30 && n <= 37:
			s.front = n - 30 + 1
		case n >= 90 && n <= 97:
			s.front = n - 90 + 9
		case n == 39:
			s.front = 0
		case n >= 40 && n <= 47:
			s.back = n - 40 + 1
		case n == 49:
			s.back = 0
		default:
			return fmt.Errorf("style %d is not known", n)
		}
	}
	return nil
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// write adds n characters that begin in column x.
func (s *style) write(b *strings.Builder, text string, x, n int) {
	if s.reverse || s.back > 0 {
		fill := "#d5d8de"
		if s.back > 0 && !s.reverse {
			fill = ansi[s.back-1]
		}
		fmt.Fprintf(b, `<rect x="%d" width="%d" height="%d" fill="%s"/>`, x*width, n*width, height, fill)
	}
	trimmed := strings.TrimRight(text, " ")
	if trimmed == "" {
		return
	}
	left := strings.TrimLeft(trimmed, " ")
	x += len(trimmed) - len(left)
	n = utf8.RuneCountInString(left)
	var classes []string
	switch {
	case s.reverse:
		classes = append(classes, "r")
	case s.front > 0:
		classes = append(classes, "c"+strconv.Itoa(s.front-1))
	}
	if s.bold {
		classes = append(classes, "b")
	}
	if s.dim {
		classes = append(classes, "d")
	}
	attr := ""
	if len(classes) > 0 {
		attr = fmt.Sprintf(` class="%s"`, strings.Join(classes, " "))
	}
	// The length is given, so that columns stay aligned whatever font there is.
	fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d"%s>%s</text>`, x*width, height-4, n*width, attr, escape.Replace(left))
}
