package main

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// addressWidth is the room for an address before columns of a higher rank appear: that of the longest of IPv4.
const addressWidth = 15

// distinct cuts names to at most width columns: folders first, or the middle. Names that differ still do
// wherever one way of cutting them achieves that.
func distinct(g *glyphs, all []string, width int) []string {
	safe := make([]string, len(all))
	short := make([]string, len(all))
	long := false
	for i, s := range all {
		safe[i] = g.name(s, maxNameWidth)
		short[i] = safe[i]
		if runewidth.StringWidth(safe[i]) > width {
			long, short[i] = true, dropFolders(g, safe[i], width)
		}
	}
	if !long {
		return safe
	}
	tails := splits(max(width-runewidth.StringWidth(g.dots), 0))
	best := cutAll(g, short, width, tails[0])
	same, least := confused(safe, best)
	for _, tail := range tails {
		if least == 0 || width < 4 {
			break
		}
		// Only those that look the same are cut in another way.
		cut, other := slices.Clone(best), cutAll(g, safe, width, tail)
		for i := range cut {
			if same[i] {
				cut[i] = other[i]
			}
		}
		if now, n := confused(safe, cut); n < least {
			best, same, least = cut, now, n
		}
	}
	return best
}

// apart is the least width, from one to another, in which names that differ still do; the first one if there is
// none.
func apart(g *glyphs, all []string, from, to int) int {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) > maxApart {
		return from
	}
	for width := from; width < to; width++ {
		if _, n := confused(all, distinct(g, all, width)); n == 0 {
			return width
		}
	}
	return from
}

// maxApart is how many names are worth the time to look for a width.
const maxApart = 64

// maxNameWidth bounds names before they are compared, and maxSplits the ways in which they are cut.
const (
	maxNameWidth = 512
	maxSplits    = 16
)

// splits are lengths of the end that is kept: first two thirds of the room, as ends usually tell more than
// beginnings, then longer and shorter ones.
func splits(room int) []int {
	first := room - room/3
	out := []int{first}
	step := max(room/maxSplits, 1)
	for d := step; d <= room && len(out) < maxSplits; d += step {
		if first+d <= room {
			out = append(out, first+d)
		}
		if first-d >= 0 {
			out = append(out, first-d)
		}
	}
	return out
}

// cutAll shortens what is too wide, and leaves some columns of its end.
func cutAll(g *glyphs, all []string, width, tail int) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = s
		w := runewidth.StringWidth(s)
		switch {
		case w <= width:
		case width < 4:
			out[i] = runewidth.Truncate(s, max(width, 0), "")
		default:
			head := width - runewidth.StringWidth(g.dots) - tail
			out[i] = runewidth.Truncate(s, head, "") + g.dots + runewidth.TruncateLeft(s, w-tail, "")
		}
	}
	return out
}

// confused finds the names that are cut to a text that a different name has, too, and counts them.
func confused(all, cut []string) (which []bool, n int) {
	which = make([]bool, len(all))
	first := make(map[string]int, len(all))
	mixed := make(map[string]bool)
	for i, c := range cut {
		if j, ok := first[c]; !ok {
			first[c] = i
		} else if all[j] != all[i] {
			mixed[c] = true
		}
	}
	for i, c := range cut {
		if which[i] = mixed[c]; which[i] {
			n++
		}
	}
	return which, n
}

// dropFolders leaves out the first folders of a path, as far as needed. What follows a space, such as a range,
// is not part of it.
func dropFolders(g *glyphs, s string, width int) string {
	path, _, _ := strings.Cut(s, " ")
	for at := 0; ; {
		i := strings.IndexByte(path[at:], '/')
		if i < 0 || at+i == len(path)-1 {
			return s
		}
		at += i
		if rest := g.dots + s[at:]; at > 0 && runewidth.StringWidth(rest) <= width {
			return rest
		}
		at++
	}
}
