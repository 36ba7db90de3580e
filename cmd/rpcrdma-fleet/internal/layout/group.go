package layout

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Found is a file that a pattern has found. Folder is the part of its path that stands for wildcards of the pattern,
// without the name: the default tap.
type Found struct {
	File
	Folder string
}

// Tap is the tap that a file is of, by where it lies.
func (f *Found) Tap() string {
	tap := f.Folder
	if tap == "" {
		tap = path.Base(path.Dir(f.Path()))
	}
	if tap == "" || tap == "." || tap == "/" {
		return "default"
	}
	if len(tap) > MaxTap { // the beginning, and what tells it apart
		tap = strings.ToValidUTF8(tap[:MaxTap/2], "") + "-" + id([]byte(tap))
	}
	if CheckTap(tap) == nil {
		return tap
	}
	if tap = escape(tap); len(tap) > MaxTap {
		tap = tap[:MaxTap/2] + "-" + id([]byte(tap))
	}
	return tap
}

// Group divides files by tap: tap if that is not empty, else by folder. The files of each are in the natural order of
// their names; see Ordered.
func Group(list []Found, tap string) (taps []string, files map[string][]File) {
	files = make(map[string][]File)
	seen := make(map[string]bool, len(list))
	for i := range list {
		f := &list[i]
		if seen[f.URL] {
			continue // several patterns have found it
		}
		seen[f.URL] = true
		name := tap
		if name == "" {
			name = f.Tap()
		}
		files[name] = append(files[name], f.File)
	}
	for name, x := range files {
		taps = append(taps, name)
		slices.SortFunc(x, func(a, b File) int { return cmp.Or(Natural(a.URL, b.URL), strings.Compare(a.URL, b.URL)) })
	}
	slices.Sort(taps)
	return taps, files
}

// Ordered reports whether names tell in which order files were made: they differ in numbers only. Of others, the time
// of their first packet tells.
func Ordered(files []File) bool {
	pattern := ""
	for i := range files {
		p := skeleton(files[i].URL)
		if i == 0 {
			pattern = p
		}
		if p != pattern {
			return false
		}
	}
	return true
}

// skeleton is a name with each number replaced. A number at the very end, as of the second and further files of
// tcpdump -C, may be absent.
func skeleton(s string) string {
	var b strings.Builder
	number := false
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' {
			if !number {
				b.WriteByte('#')
			}
			number = true
			continue
		}
		number = false
		b.WriteByte(c)
	}
	return strings.TrimSuffix(b.String(), "#")
}

// Natural compares names like people do: numbers in them by value.
func Natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if d := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); d != 0 {
			return d
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits a string begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
