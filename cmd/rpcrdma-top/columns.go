package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/nearest"
)

// arrangement is how the user wants the table of a view.
type arrangement struct {
	columns []int // in order; nil: the usual ones
	sorted  bool  // by a column of the user's choice,
	sort    int   // which is this one; -1: as the rows come
	turn    bool
}

// arrangements has an arrangement for each view.
type arrangements [views]arrangement

// apply gives a table the columns of a view.
func (a *arrangements) apply(v view, t *table) *table {
	if t != nil {
		t.chosen = a[v].columns
	}
	return t
}

// by is the column that the table of a view is sorted by, if the user has not chosen another one.
func (a *arrangements) by(v view, usual int) (column int, turn bool) {
	if a[v].sorted {
		return a[v].sort, a[v].turn
	}
	return usual, false
}

// viewOf finds a view that has a table by its name.
func viewOf(name string) (view, error) {
	for _, v := range tables {
		if strings.EqualFold(viewNames[v], name) {
			return v, nil
		}
	}
	var names []string
	for _, v := range tables {
		names = append(names, strings.ToLower(viewNames[v]))
	}
	hint := ""
	if near := nearest.Names(name, names); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return 0, fmt.Errorf("there is no view %q%s (%s)", name, hint, strings.Join(names, ", "))
}

// tables are the views that have one.
var tables = [...]view{overview, transactions, connections, files, clients, wire, sessions}

// emptyTable is the table of a view without rows.
func emptyTable(v view) *table {
	return (&drawing{g: &asciiGlyphs, st: &styles{}}).tableOf(&monitor.Snapshot{}, v, false)
}

// unknownColumn is the error for a name that no column has.
func unknownColumn(t *table, v view, name string) error {
	hint := ""
	if near := nearest.Names(name, t.names()); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s has no column %q%s (%s)", strings.ToLower(viewNames[v]), name, hint, strings.Join(t.names(), ", "))
}

// setColumns chooses the columns of a view, in order. Names that all begin with "-" leave columns out of the
// usual ones; no names are the usual ones.
func (a *arrangements) setColumns(v view, names []string) error {
	t := emptyTable(v)
	var chosen, hidden []int
	for _, name := range names {
		name = strings.TrimSpace(name)
		bare, hide := strings.CutPrefix(name, "-")
		at := t.find(strings.ToLower(bare))
		switch {
		case at < 0:
			return unknownColumn(t, v, bare)
		case hide:
			hidden = append(hidden, at)
		case slices.Contains(chosen, at):
			return fmt.Errorf("column %q is named twice", bare)
		default:
			chosen = append(chosen, at)
		}
	}
	if len(hidden) > 0 {
		if len(chosen) > 0 {
			return fmt.Errorf("name the columns that are wanted, or with - those that are not, but not both")
		}
		for i := range t.columns {
			if !slices.Contains(hidden, i) {
				chosen = append(chosen, i)
			}
		}
		if len(chosen) == 0 {
			return fmt.Errorf("no column is left")
		}
	}
	a[v].columns = chosen
	return nil
}

// setSort chooses the column that the rows of a view are sorted by: "age", "-age" for the reverse, "none" for the order
// in which they come.
func (a *arrangements) setSort(v view, name string) error {
	x := &a[v]
	bare, turn := strings.CutPrefix(strings.TrimSpace(name), "-")
	at := -1
	if t := emptyTable(v); bare != "none" {
		if at = t.find(strings.ToLower(bare)); at < 0 {
			return unknownColumn(t, v, bare)
		}
	}
	x.sorted, x.sort, x.turn = true, at, turn
	return nil
}

// sortName is the opposite of setSort.
func sortName(t *table, column int, turn bool) string {
	name := "none"
	if column >= 0 {
		name = t.columns[column].called()
	}
	if turn {
		name = "-" + name
	}
	return name
}

// viewFlag reads the value of a flag, which is in the form of an example.
func viewFlag(flag, example, value string) (v view, rest string, err error) {
	name, rest, ok := strings.Cut(value, "=")
	if !ok {
		return 0, "", cli.Usagef("%s is VIEW=COLUMN, such as %s, not %q", flag, example, value)
	}
	if v, err = viewOf(name); err != nil {
		return 0, "", cli.Usagef("%s: %w", flag, err)
	}
	return v, rest, nil
}

// columnFlags reads the values of --columns and --sort.
func (a *arrangements) flags(columns, sorts []string) error {
	for _, s := range columns {
		v, list, err := viewFlag("--columns", "transactions=age,xid", s)
		if err != nil {
			return err
		}
		var names []string
		if list != "" {
			names = strings.Split(list, ",")
		}
		if err := a.setColumns(v, names); err != nil {
			return cli.Usagef("--columns: %w", err)
		}
	}
	for _, s := range sorts {
		v, name, err := viewFlag("--sort", "transactions=-age", s)
		if err != nil {
			return err
		}
		if err := a.setSort(v, name); err != nil {
			return cli.Usagef("--sort: %w", err)
		}
	}
	return nil
}

// chooser is the list of the columns of a view, in which they are hidden and moved.
type chooser struct {
	on   bool
	at   int // the column under the cursor, in the list
	top  int
	list []int // columns: those that are shown first, in their order
	n    int   // how many are shown
}

// choose opens the list.
func (u *ui) choose() {
	t := u.tableOf(u.view)
	if t == nil || u.detail {
		u.message = "there are no columns here"
		return
	}
	c := &u.chooser
	*c = chooser{on: true, list: slices.Clone(t.wanted())}
	c.n = len(c.list)
	for i := range t.columns {
		if !slices.Contains(c.list, i) {
			c.list = append(c.list, i)
		}
	}
}

// chosen takes over what the list says.
func (u *ui) chosen() {
	c := &u.chooser
	list := slices.Clone(c.list[:c.n])
	if c.n == len(c.list) && slices.IsSorted(list) {
		list = nil // the usual ones
	}
	u.layout[u.view].columns = list
}

// chooseKey handles a key in the list of columns.
func (u *ui) chooseKey(key string) {
	c := &u.chooser
	p := &u.at[u.view]
	switch key {
	case "esc", "q", "c", "backspace":
		c.on = false
	case " ", "enter", "x":
		u.toggle()
	case "<", ",", "left", "K", "shift+up":
		u.shift(-1)
	case ">", ".", "right", "J", "shift+down":
		u.shift(1)
	case "s":
		if p.sort == c.list[c.at] {
			p.turn = !p.turn
		} else {
			p.sort, p.turn = c.list[c.at], false
		}
	case "d":
		u.layout[u.view] = arrangement{}
		p.sort, p.turn = defaultSort(u.view), false
		u.choose()
	case "w":
		u.keep()
	case "?":
		u.help, u.helpTop, u.helpHit = true, 0, -1
	default:
		c.at = min(max(scrollTo(key, c.at, max(u.body()-2, 1), len(c.list)), 0), len(c.list)-1)
	}
}

// toggle hides the column under the cursor, or shows it as the last one.
func (u *ui) toggle() {
	c := &u.chooser
	x := c.list[c.at]
	if c.at < c.n {
		if c.n == 1 {
			u.message = "one column has to be left"
			return
		}
		c.list = slices.Insert(slices.Delete(c.list, c.at, c.at+1), c.n-1, x)
		c.n--
	} else {
		c.list = slices.Insert(slices.Delete(c.list, c.at, c.at+1), c.n, x)
		c.n++
	}
	u.chosen()
}

// shift moves the column under the cursor to the left or right.
func (u *ui) shift(by int) {
	c := &u.chooser
	to := c.at + by
	if c.at >= c.n || to < 0 || to >= c.n {
		u.message = "only columns that are shown can be moved, among each other"
		return
	}
	c.list[c.at], c.list[to] = c.list[to], c.list[c.at]
	c.at = to
	u.chosen()
}

// keep writes the columns and the order of the view to the configuration file.
func (u *ui) keep() {
	if u.config == nil {
		u.message = "no configuration file is in use: --config none"
		return
	}
	t := u.tableOf(u.view)
	p := &u.at[u.view]
	var names []string
	for _, i := range u.layout[u.view].columns {
		names = append(names, t.columns[i].called())
	}
	sorted := ""
	if p.sort != defaultSort(u.view) || p.turn {
		sorted = sortName(t, p.sort, p.turn)
	}
	if err := u.config.keep(strings.ToLower(viewNames[u.view]), names, sorted); err != nil {
		u.message = "not kept: " + err.Error()
		return
	}
	u.message = "kept in " + u.config.path
}

// chooserLines draw the list of columns.
func (u *ui) chooserLines(height int) []string {
	c := &u.chooser
	t := u.tableOf(u.view)
	if t == nil {
		return nil
	}
	at, _ := t.layout(u.g, u.width, markWidth)
	out := []string{u.st.line(u.width, title, span{fmt.Sprintf("  Columns of %s: %d of %d", viewNames[u.view], c.n, len(c.list)), title})}
	room := max(height-1, 1)
	c.top = min(c.top, c.at)
	c.top = max(c.top, c.at-room+1, 0)
	p := &u.at[u.view]
	for i := c.top; i < min(c.top+room, len(c.list)); i++ {
		col := &t.columns[c.list[i]]
		over, cursor := normal, " "
		if i == c.at {
			over, cursor = chosen, u.g.cursor
		}
		box, note := "[ ]", ""
		if i < c.n {
			box = "[x]"
			if !slices.Contains(at, c.list[i]) {
				note = "no room"
			}
		}
		if p.sort == c.list[i] {
			arrow := u.g.down
			if p.turn == col.right {
				arrow = u.g.up
			}
			note = strings.TrimSpace(arrow + " sorted by it " + note)
		}
		out = append(out, u.st.line(u.width, over, span{cursor + " " + box + " ", normal}, span{u.g.fit(col.called(), 18, false), toneIf(i >= c.n, dim)},
			span{u.g.fit(col.title, 18, false), dim}, span{note, accent}))
	}
	return out
}
