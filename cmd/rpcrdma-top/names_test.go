package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/rpcrdma/toolkit/analyze/monitor"
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
		// The same file in two folders: the folders have to be seen, but only there.
		{[]string{"aaaaaa/file", "bbbbbb/file", "aaaaaa/other"}, 8, []string{"aa…/file", "bb…/file", "…/other"}},
		// Addresses of one network differ at the end, some in the middle.
		{[]string{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:7"}, 10, []string{"200…:4:5:6", "200…:4:5:7"}},
		{[]string{"2001:db8::1:0:0:1", "2001:db8::2:0:0:1"}, 10, []string{"20…1:0:0:1", "20…2:0:0:1"}},
		{[]string{"xxxxxxxx", "xxxxxxxy"}, 3, []string{"xxx", "xxx"}}, // no way
		{nil, 5, nil},
	} {
		if got := distinct(&unicodeGlyphs, c.all, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.all, got, c.want)
		}
	}
}

// TestLongAddresses shows both ends of connections over IPv6 in 80 columns, and which is which.
func TestLongAddresses(t *testing.T) {
	s := &monitor.Snapshot{}
	for i := range 4 {
		s.Connections = append(s.Connections, monitor.Connection{
			ID: i + 1, Fabric: "tcp", State: "open",
			Client: monitor.Peer{Address: fmt.Sprintf("2001:db8:1111:%d222:3333:4444:5555:6666", i/2), Endpoint: fmt.Sprintf("port 5010%d", i)},
			Server: monitor.Peer{Address: "2001:db8:1111:2222:3333:4444:5555:7777", Endpoint: "port 2049"},
		})
	}
	d := &drawing{g: &unicodeGlyphs, st: &styles{}}
	tb := d.tableOf(s, connections, false)
	at, widths := tb.layout(d.g, 80, markWidth)
	for _, name := range []string{"client", "client-end", "server", "ops/s"} {
		if !slices.Contains(at, tb.find(name)) {
			t.Errorf("no column %s", name)
		}
	}
	lines := make(map[string]bool)
	for i := range tb.rows {
		line := ""
		for _, x := range tb.line(d.g, &tb.rows[i], at, widths)[2:] { // but for the ID
			line += x.text
		}
		lines[line] = true
		if !strings.Contains(line, fmt.Sprintf("port 5010%d", i)) {
			t.Errorf("the port is cut: %q", line)
		}
	}
	if len(lines) != 4 {
		t.Errorf("%v", lines)
	}
	if _, n := confused([]string{s.Connections[0].Client.Address, s.Connections[2].Client.Address}, []string{tb.rows[0].cells[1].cut, tb.rows[2].cells[1].cut}); n > 0 {
		t.Errorf("%q and %q", tb.rows[0].cells[1].cut, tb.rows[2].cells[1].cut)
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
		got := distinct(&asciiGlyphs, all, width)
		if _, n := confused(all, got); n > 0 && width > 25 {
			t.Errorf("width %d: %q", width, got)
		}
	}
}
