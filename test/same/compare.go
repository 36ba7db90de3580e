package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// difference is a difference that is meant: in the cases that match, whatever drop matches is left out on both
// sides before they are compared.
type difference struct {
	cases, drop *regexp.Regexp
	line        int
	seen        atomic.Bool // it left something out of outputs that differed
}

// readDifferences reads the file of declared differences. A line has three columns, which tabs separate: a regular
// expression for the names of cases, one for what is left out on both sides, and the reason.
func readDifferences(name string) ([]*difference, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []*difference
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || strings.TrimSpace(f[2]) == "" {
			return nil, fmt.Errorf("%s:%d: %d columns, want cases, what is left out, and the reason", name, n, len(f))
		}
		d := &difference{line: n}
		if d.cases, err = regexp.Compile(f[0]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if d.drop, err = regexp.Compile(f[1]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// finding is a difference in one output of a case.
type finding struct {
	stream string
	text   string
}

// compare compares what two programs did in a case.
func compare(name string, before, after result, declared []*difference) []finding {
	streams := maps.Clone(before)
	maps.Copy(streams, after)
	var found []finding
	for _, s := range slices.Sorted(maps.Keys(streams)) {
		old, was := before[s]
		now, is := after[s]
		switch {
		case !was:
			found = append(found, finding{s, "there was no such file"})
		case !is:
			found = append(found, finding{s, "is missing"})
		case bytes.Equal(old, now):
		default:
			for _, d := range declared {
				if d.cases.MatchString(name) && s != "status" {
					if d.drop.Match(old) || d.drop.Match(now) {
						d.seen.Store(true)
					}
					old, now = d.drop.ReplaceAll(old, nil), d.drop.ReplaceAll(now, nil)
				}
			}
			if !bytes.Equal(old, now) {
				found = append(found, finding{s, describe(old, now)})
			}
		}
	}
	return found
}

// describe shows how two outputs differ: lines from the first that differs to the last, or the place if they are not text.
func describe(old, now []byte) string {
	if !utf8.Valid(old) || !utf8.Valid(now) || bytes.IndexByte(old, 0) >= 0 {
		at := 0
		for at < min(len(old), len(now)) && old[at] == now[at] {
			at++
		}
		return fmt.Sprintf("%d bytes, now %d; the first difference is at %d\n", len(old), len(now), at)
	}
	a, b := strings.SplitAfter(string(old), "\n"), strings.SplitAfter(string(now), "\n")
	first := 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	last := 0
	for last < min(len(a), len(b))-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	a, b = a[first:len(a)-last], b[first:len(b)-last]
	var s strings.Builder
	fmt.Fprintf(&s, "line %d: %d lines, now %d\n", first+1, len(a), len(b))
	for i := range max(len(a), len(b)) {
		x, y := at(a, i), at(b, i)
		if x != y {
			from := max(0, common(x, y)-60)
			write(&s, "-", x, from)
			write(&s, "+", y, from)
		}
	}
	return s.String()
}

// at is line i of some, or nothing.
func at(lines []string, i int) string {
	if i < len(lines) {
		return strings.TrimSuffix(lines[i], "\n")
	}
	return ""
}

// common is the number of bytes that two lines begin with alike.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// write writes the part of a line that shows a difference.
func write(s *strings.Builder, sign, line string, from int) {
	line = line[from:]
	if len(line) > 200 {
		line = line[:200] + "…"
	}
	if from > 0 {
		line = "…" + line
	}
	fmt.Fprintf(s, "  %s %s\n", sign, strings.ToValidUTF8(line, "?"))
}

// report collects what the cases found.
type report struct {
	o         *options
	mu        sync.Mutex
	found     map[*testCase][]finding
	different int
}

func newReport(o *options) *report { return &report{o: o, found: make(map[*testCase][]finding)} }

// add notes what a case found. Cases run side by side.
func (r *report) add(c *testCase, found []finding) {
	if len(found) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[c] = found
	r.different++
}

// write shows the differences by command, some of each.
func (r *report) write(w io.Writer, cases []*testCase) {
	shown := make(map[string]int)
	var names []string
	for _, c := range cases {
		found := r.found[c]
		if len(found) == 0 {
			continue
		}
		name := c.command.name
		if shown[name] == 0 {
			names = append(names, name)
		}
		shown[name]++
		if shown[name] > r.o.cases {
			continue
		}
		for _, f := range found {
			lines := strings.SplitAfter(f.text, "\n")
			fmt.Fprintf(w, "%s: %s, %s", c.name(), f.stream, strings.Join(lines[:min(len(lines), 1+2*r.o.lines)], ""))
			if !strings.HasSuffix(f.text, "\n") {
				fmt.Fprintln(w)
			}
		}
	}
	for _, name := range names {
		fmt.Fprintf(w, "%s: %d files differ\n", name, shown[name])
	}
}
