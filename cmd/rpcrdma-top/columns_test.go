package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// TestColumnNames wants a name for each column, by which nobody can mean another one.
func TestColumnNames(t *testing.T) {
	for _, v := range tables {
		names := emptyTable(v).names()
		for i, n := range names {
			if n == "" || strings.ContainsAny(n, " ,=") || n[0] == '-' || n == "none" || slices.Contains(names[:i], n) {
				t.Errorf("%s: column %d is called %q", viewNames[v], i, n)
			}
		}
	}
}

func TestColumnFlags(t *testing.T) {
	var a arrangements
	if err := a.flags([]string{"transactions=age,STATE, xid", "Connections=-model,-mtu", "files="}, []string{"transactions=-age", "clients=none"}); err != nil {
		t.Fatal(err)
	}
	names := func(v view) (out []string) {
		for _, i := range a[v].columns {
			out = append(out, emptyTable(v).names()[i])
		}
		return out
	}
	if got := names(transactions); !slices.Equal(got, []string{"age", "state", "xid"}) {
		t.Error(got)
	}
	if got := names(connections); slices.Contains(got, "model") || slices.Contains(got, "mtu") || len(got) != len(emptyTable(connections).columns)-2 {
		t.Error(got)
	}
	if a[files].columns != nil || !a[transactions].turn || a[transactions].sort != 0 || a[clients].sort != -1 || !a[clients].sorted || a[files].sorted {
		t.Errorf("%+v", a)
	}
	for _, c := range []struct{ columns, sort, want string }{
		{"transactions", "", "VIEW=COLUMN, such as transactions=age,xid"},
		{"", "transactions", "VIEW=COLUMN, such as transactions=-age"},
		{"transaction=age", "", "did you mean transactions?"},
		{"latency=x", "", `no view "latency"`},
		{"transactions=agee", "", "did you mean age?"},
		{"transactions=age,age", "", "twice"},
		{"transactions=age,-xid", "", "not both"},
		{"transactions=" + strings.Join(func() (all []string) {
			for _, n := range emptyTable(transactions).names() {
				all = append(all, "-"+n)
			}
			return all
		}(), ","), "", "no column is left"},
		{"transactions=age,,xid", "", `no column ""`},
		{"", "files=x", `no column "x"`},
		{"", "x=age", `no view "x"`},
	} {
		var columns, sorts []string
		if c.columns != "" {
			columns = []string{c.columns}
		}
		if c.sort != "" {
			sorts = []string{c.sort}
		}
		if err := new(arrangements).flags(columns, sorts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestLayoutChosen keeps the order of the user, and drops the last columns where there is no room.
func TestLayoutChosen(t *testing.T) {
	tb := &table{columns: []column{{title: "A", width: 5}, {title: "B", width: 5, rank: 9}, {title: "C", width: 5}}, rows: []row{{cells: make([]cell, 3)}}}
	for _, c := range []struct {
		chosen []int
		width  int
		want   []int
	}{
		{nil, 20, []int{0, 1, 2}}, {nil, 12, []int{0, 2}}, {[]int{2, 1}, 20, []int{2, 1}}, {[]int{1, 2, 0}, 12, []int{1, 2}}, {[]int{1}, 2, []int{1}},
	} {
		tb.chosen = c.chosen
		if at, _ := tb.layout(&asciiGlyphs, c.width, 0); !slices.Equal(at, c.want) {
			t.Errorf("%v in %d: %v, want %v", c.chosen, c.width, at, c.want)
		}
	}
}

// TestChooser hides, moves and sorts by columns with keys, and keeps that for the next start.
func TestChooser(t *testing.T) {
	s := newScript(t, bulk, monitor.Options{Interval: 100 * time.Millisecond})
	x := newScreen(t, s, 80, 24)
	x.config = &config{path: filepath.Join(t.TempDir(), "new", "top.toml"), files: &outfile.Files{}}
	s.run(midway)
	x.frame()
	header := func() string { return strip(strings.Split(x.View(), "\n")[3]) }
	x.press("2", "c")
	x.golden("columns.80x24")
	x.press("j", " ") // hides xid
	x.press("esc")
	if h := header(); strings.Contains(h, "XID") || !strings.Contains(h, "AGE") {
		t.Errorf("%q", h)
	}
	x.press("c", "end", " ") // and shows it as the last one
	x.press("K", "K", "<", "<", "<", "<", "<", "<", "<", "<", "<", "<", "<", "<", "<")
	if x.message == "" {
		t.Error("beyond the first")
	}
	x.press("s", "s", "w")
	if !strings.HasPrefix(x.message, "kept in ") {
		t.Fatal(x.message)
	}
	x.press("?")
	x.has("Views")
	x.press("?", "q")
	if x.quit || x.chooser.on {
		t.Error("q does not close the list")
	}
	if h := strings.Fields(header()); h[0] != "XID▼" {
		t.Errorf("%q", h)
	}
	o := &options{config: x.config.path, thresholds: monitor.DefaultThresholds}
	if err := o.configure(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if got, want := o.layout[transactions], (arrangement{x.layout[transactions].columns, true, 1, true}); !slices.Equal(got.columns, want.columns) || got.sort != 1 || !got.turn || !got.sorted {
		t.Errorf("%+v, want %+v", got, want)
	}
	// The usual columns again: nothing of it stays in the file.
	x.press("c", "d", "w", "esc")
	if b, err := os.ReadFile(x.config.path); err != nil || strings.Contains(string(b), "age") {
		t.Errorf("%q, %v", b, err)
	}
	if h := header(); !strings.Contains(h, "AGE XID") {
		t.Errorf("%q", h)
	}
	// One has to be left.
	x.press("c")
	for range 20 {
		x.press("home", " ")
	}
	if x.chooser.n != 1 || x.message == "" {
		t.Errorf("%d columns; %q", x.chooser.n, x.message)
	}
	for _, size := range [][2]int{{20, 4}, {1, 1}, {10, 5}, {200, 60}} {
		x.width, x.height = size[0], size[1]
		x.press("end", "pgup", "home", "k", "j")
	}
	x.press("esc", "6", "c")
	if x.chooser.on || x.message == "" {
		t.Error("the heat map has columns")
	}
	x.config = nil
	x.press("3", "c", "w")
	if !strings.Contains(x.message, "no configuration") {
		t.Errorf("%q", x.message)
	}
}

// TestSearchCounts says which of how many hits it is, in lists, in a transaction, and in the help.
func TestSearchCounts(t *testing.T) {
	s := newScript(t, recall, monitor.Options{})
	s.run(1 << 40)
	x := newScreen(t, s, 80, 24)
	x.frame()
	said := func(want string) {
		t.Helper()
		if x.message != want {
			t.Errorf("%q, want %q", x.message, want)
		}
	}
	x.press("2", "f", "deleg3", "enter")
	said(`1 of 4 with "deleg3"; F: the next`)
	x.press("F", "F", "F")
	said(`4 of 4 with "deleg3"; F: the next`)
	x.press("F")
	said(`1 of 4 with "deleg3"; F: the next`)
	x.press("f", "xyzzy", "enter")
	said(`no row has "xyzzy", of those that are listed`)
	for _, v := range []string{"1", "3", "4", "5", "7", "8"} {
		x.press(v, "f", "192.0.2", "enter")
		if !strings.Contains(x.message, "192.0.2") {
			t.Errorf("view %s: %q", v, x.message)
		}
	}
	x.press("6", "F")
	said(`no row has "192.0.2"`)
	x.press("2", "home", "enter", "f", "Send", "enter")
	if !strings.HasPrefix(x.message, "1 of ") {
		t.Errorf("%q", x.message)
	}
	top := x.detailTop
	x.press("F")
	if !strings.HasPrefix(x.message, "2 of ") || x.detailTop < top {
		t.Errorf("%q, line %d after %d", x.message, x.detailTop, top)
	}
	x.press("esc", "?", "f", "XID", "enter")
	if !strings.Contains(x.message, " of ") {
		t.Errorf("%q", x.message)
	}
	x.has("XID")
}

// TestHelpWidth wants the help whole in 80 columns.
func TestHelpWidth(t *testing.T) {
	for _, l := range new(ui).helpText() {
		if len(l) > 80 {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
}

// TestHelpTrue wants no title of a column in the help that no table of the view has, and no filter that is an error.
func TestHelpTrue(t *testing.T) {
	filters := 0
	var titles string // of the view, each in a line
	for _, l := range new(ui).helpText() {
		if _, expr, ok := strings.Cut(l, "rpcrdma-dump -Y: "); ok {
			filters++
			if _, err := filter.Compile(expr); err != nil {
				t.Error(err)
			}
		}
		if v, err := viewOf(strings.ToLower(l)); err == nil {
			titles = ""
			for _, c := range emptyTable(v).columns {
				titles += c.title + "\n"
			}
		}
		name, _, ok := strings.Cut(strings.TrimPrefix(l, "  "), "   ")
		if !ok || titles == "" {
			continue
		}
		for _, title := range strings.Fields(strings.ReplaceAll(name, ",", "")) {
			if title == strings.ToUpper(title) && title != "!" && !strings.Contains(titles, title) {
				t.Errorf("no column %s: %s", title, l)
			}
		}
	}
	if filters != 1 {
		t.Errorf("%d filters", filters)
	}
}

// TestBell rings once for each alarm that is new.
func TestBell(t *testing.T) {
	var r ringer
	alarm := func(over ...monitor.Alarm) *monitor.Snapshot { return &monitor.Snapshot{Over: over} }
	for i, c := range []struct {
		s    *monitor.Snapshot
		want bool
	}{
		{alarm(), false}, {alarm(monitor.AlarmP99), true}, {alarm(monitor.AlarmP99), false}, {alarm(monitor.AlarmP99, monitor.AlarmStuck), true},
		{alarm(), false}, {alarm(monitor.AlarmP99), true},
		{&monitor.Snapshot{Over: []monitor.Alarm{monitor.AlarmP99, monitor.AlarmRNR}, Fabric: []monitor.FabricRow{{ID: 3, Alarms: []monitor.Alarm{monitor.AlarmRNR}}}}, true},
		{&monitor.Snapshot{Over: []monitor.Alarm{monitor.AlarmRNR}, Fabric: []monitor.FabricRow{{ID: 3, Alarms: []monitor.Alarm{monitor.AlarmRNR}}}}, false},
		{&monitor.Snapshot{Over: []monitor.Alarm{monitor.AlarmRNR}, Fabric: []monitor.FabricRow{{ID: 4, Alarms: []monitor.Alarm{monitor.AlarmRNR}}}}, true},
	} {
		if got := r.news(c.s); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
