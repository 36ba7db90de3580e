package main

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/monitor"
)

// TestWhy looks at the lines of causes on the first screen, and at their view.
func TestWhy(t *testing.T) {
	s := newScript(t, bulk, monitor.Options{File: "bulk.pcap"})
	x := newScreen(t, s, 80, 24)
	s.run(midway)
	x.frame()
	x.has("why now    ", "why so far ")
	x.press("9")
	x.has("Why calls are slow: the latest interval", "[9 Why]")
	x.press("G")
	x.has("Why calls are slow: all ", "rpcrdma-dump show 0x")
	for _, l := range strings.Split(strip(x.View()), "\n") {
		if n := len([]rune(l)); n != 80 {
			t.Errorf("a line of %d columns: %q", n, l)
		}
	}
}

// TestWaiting: a frozen screen says that it does not show the filter yet.
func TestWaiting(t *testing.T) {
	s := newScript(t, bulk, monitor.Options{})
	x := newScreen(t, s, 80, 24)
	s.run(midway)
	x.frame()
	x.press(" ")
	x.has("FROZEN")
	x.press("/", "op == READ", "enter")
	x.has("FROZEN; Space: see the filter")
	x.press(" ")
	if strings.Contains(strip(x.View()), "FROZEN") {
		t.Error("still frozen")
	}
}

// TestTabs: whatever the width, down to 80 columns views have names; and each column of the line belongs to the view whose name is there.
func TestTabs(t *testing.T) {
	x := newScreen(t, newScript(t, bulk, monitor.Options{}), 80, 24)
	for _, width := range []int{80, 95, 120} {
		x.width = width
		for v := range views {
			x.view = v
			line := strip(x.tabs())
			if !strings.Contains(line, "["+string(rune('1'+v))+" ") || !strings.Contains(line, "2 Trans") || !strings.Contains(line, "9 Why") || strings.Contains(line, "…") {
				t.Errorf("%d columns: %q", width, line)
			}
			for w := range views {
				if at, ok := x.tabAt(strings.Index(line, string(rune('1'+w)))); !ok || at != w {
					t.Errorf("%d columns: view %d is at %d", width, at, w)
				}
			}
		}
	}
}
