package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
)

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// column is one of a table.
type column struct {
	title string
	id    string // its name for --columns; empty: the title in lower case
	width int    // at least; the widest cell counts
	want  int    // for names: width granted before columns of a higher rank appear
	most  int    // at most; 0: no limit
	right bool   // numbers
	// share means that the column grows into the remaining width.
	share int
	// rank says which columns are dropped first if there is no room: the highest.
	rank int
	name bool // its text is cut in the middle
	head bool // its text is cut at the end
	// short, if set, cuts the texts of the column to a width. It is given all of them at once, so that those
	// which differ still do.
	short func(g *glyphs, all []string, width int) []string
	apart bool // it is at least so wide that they do, before columns of a higher rank appear
}

// called is what the user calls the column.
func (c *column) called() string {
	if c.id != "" {
		return c.id
	}
	return strings.ReplaceAll(strings.ToLower(c.title), " ", "-")
}

// cell is a value.
type cell struct {
	text string
	key  float64 // to sort by; where it is equal, the text counts
	tone tone
	draw func(width int) []span // a picture as wide as the column
	cut  string                 // the text as column.short has cut it
}

// row is a line of a table.
type row struct {
	id    string // tells it from all others
	cells []cell
	tone  tone
	mark  string // in front of it
}

// table is what a view shows.
type table struct {
	columns []column
	rows    []row
	empty   string // shown if there are none
	first   uint64 // number of the first row, if the table is a part of a longer one
	more    uint64 // rows that are known of, and not in the table
	chosen  []int  // columns that are wanted, in order; nil: all that there is room for
	sorted  int    // column that the rows are sorted by, from 1; 0: none
	turn    bool   // the other way round
}

// find is the index of a column, -1 if there is none.
func (t *table) find(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.called() == name })
}

// names are the names of all columns.
func (t *table) names() []string {
	out := make([]string, len(t.columns))
	for i := range t.columns {
		out[i] = t.columns[i].called()
	}
	return out
}

// wanted are the columns in the order in which they are shown if there is room.
func (t *table) wanted() []int {
	if t.chosen != nil {
		return t.chosen
	}
	out := make([]int, len(t.columns))
	for i := range out {
		out[i] = i
	}
	return out
}

// of tells which part of all rows is shown, such as "1-19 of 41"; it is empty if
// that is all. n rows are shown, the first of which is row from.
func (t *table) of(from, n int) string {
	all := uint64(len(t.rows)) + t.more
	switch {
	case uint64(n) >= all:
		return ""
	case n == 0:
		return "0 of " + number(all)
	case from == 0 && t.first == 0:
		return number(uint64(n)) + " of " + number(all)
	}
	return number(t.first+uint64(from)+1) + "-" + number(t.first+uint64(from+n)) + " of " + number(all)
}

// order sorts by a column; a negative one keeps the order. Numbers sort largest first, text alphabetically,
// unless turned round.
func (t *table) order(by int, turn bool) {
	if by < 0 || by >= len(t.columns) {
		if turn {
			slices.Reverse(t.rows)
		}
		return
	}
	t.sorted, t.turn = by+1, turn
	down := t.columns[by].right
	if turn {
		down = !down
	}
	slices.SortStableFunc(t.rows, func(a, b row) int {
		x, y := &a.cells[by], &b.cells[by]
		n := cmp.Or(cmp.Compare(x.key, y.key), strings.Compare(x.text, y.text))
		if down {
			n = -n
		}
		return n
	})
}

// layout selects the columns that fit and sets their widths. mark is the room in front of a row. Columns that
// the user has chosen give way from the last one on; the one that the rows are sorted by does not.
func (t *table) layout(g *glyphs, width, mark int) (at []int, widths []int) {
	need := t.needs(g)
	shown := make([]bool, len(t.columns))
	least := func(i int) int {
		c := &t.columns[i]
		if c.name || c.head || c.share > 0 || c.short != nil {
			return min(need[i], max(c.width, c.want, t.titleWidth(i)))
		}
		return need[i]
	}
	used := mark
	order := slices.Clone(t.wanted())
	if t.chosen == nil {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.columns[a].rank, t.columns[b].rank) })
	}
	if i := slices.Index(order, t.sorted-1); i > 1 {
		order = slices.Insert(slices.Delete(order, i, i+1), 1, t.sorted-1) // behind what tells the rows apart
	}
	for k, i := range order {
		gap := 1
		if k == 0 {
			gap = 0
		}
		if used+gap+least(i) > width && k > 0 {
			continue
		}
		shown[i] = true
		used += gap + least(i)
	}
	for _, i := range t.wanted() {
		if shown[i] {
			at = append(at, i)
			widths = append(widths, min(least(i), max(width-mark, 1)))
		}
	}
	left := width - used
	// First what names need; the columns that grow get the rest.
	for k, i := range at {
		if more := min(need[i]-widths[k], left); more > 0 {
			widths[k] += more
			left -= more
		}
	}
	total := 0
	for _, i := range at {
		total += t.columns[i].share
	}
	if total > 0 && left > 0 {
		for k, i := range at {
			if s := t.columns[i].share; s > 0 {
				more := left * s / total
				if m := t.columns[i].most; m > 0 {
					more = min(more, max(m-widths[k], 0))
				}
				widths[k] += more
			}
		}
	}
	t.shorten(g, at, widths)
	return at, widths
}

// needs are the widths that the columns would have if there was room for all.
func (t *table) needs(g *glyphs) []int {
	need := make([]int, len(t.columns))
	for i := range t.columns {
		c := &t.columns[i]
		need[i] = max(c.width, t.titleWidth(i))
		for j := range t.rows {
			if x := &t.rows[j].cells[i]; x.draw == nil {
				need[i] = max(need[i], runewidth.StringWidth(x.text))
			}
		}
		if c.most > 0 {
			need[i] = min(need[i], max(c.most, c.width))
		}
		if c.apart && need[i] > c.want {
			c.want = apart(g, t.texts(i), max(c.want, c.width), need[i])
		}
	}
	return need
}

// titleWidth is the width of a title with its arrow.
func (t *table) titleWidth(i int) int {
	n := runewidth.StringWidth(t.columns[i].title)
	if i == t.sorted-1 {
		n++
	}
	return n
}

// shorten cuts the texts that have to be cut together.
func (t *table) shorten(g *glyphs, at, widths []int) {
	for k, i := range at {
		if t.columns[i].short == nil {
			continue
		}
		for j, s := range t.columns[i].short(g, t.texts(i), widths[k]) {
			t.rows[j].cells[i].cut = s
		}
	}
}

// texts are the texts of a column.
func (t *table) texts(column int) []string {
	all := make([]string, len(t.rows))
	for j := range t.rows {
		all[j] = t.rows[j].cells[column].text
	}
	return all
}

// header draws the titles, and an arrow where the rows are sorted.
func (t *table) header(g *glyphs, at, widths []int, mark int) []span {
	out := []span{{strings.Repeat(" ", mark), title}}
	for k, i := range at {
		c := &t.columns[i]
		name := c.title
		if i == t.sorted-1 {
			arrow := g.down
			if t.turn == c.right {
				arrow = g.up
			}
			if c.right {
				name = arrow + name
			} else {
				name += arrow
			}
		}
		s := g.fit(name, widths[k], c.right)
		if k > 0 {
			s = " " + s
		}
		out = append(out, span{s, title})
	}
	return out
}

// line draws a row.
func (t *table) line(g *glyphs, r *row, at, widths []int) []span {
	var out []span
	for k, i := range at {
		if k > 0 {
			out = append(out, span{" ", r.tone})
		}
		x, c := &r.cells[i], &t.columns[i]
		if x.draw != nil {
			out = append(out, x.draw(widths[k])...)
			continue
		}
		s := x.text
		switch {
		case c.short != nil:
			s = x.cut
		case c.name:
			s = g.name(s, widths[k])
		case c.head:
			s = g.name(s, 1000)
		default:
			s = g.plain(s)
		}
		tone := x.tone
		if tone == normal {
			tone = r.tone
		}
		out = append(out, span{g.fit(s, widths[k], c.right), tone})
	}
	return out
}

// hit is the column at a position in a line; -1 if there is none.
func hit(at, widths []int, mark, x int) int {
	x -= mark
	for k, i := range at {
		if k > 0 {
			x--
		}
		if x < widths[k] {
			if x < -1 {
				return -1
			}
			return i
		}
		x -= widths[k]
	}
	return -1
}
