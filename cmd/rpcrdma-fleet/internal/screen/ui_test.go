package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/mattn/go-runewidth"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
)

// ui is a screen with n taps; the higher the number of a tap, the slower it is.
func ui(t *testing.T, n int) *UI {
	t.Helper()
	now := time.Unix(1000, 0)
	u := &UI{Fleet: &live.Fleet{}, Now: func() time.Time { return now }}
	for i := range n {
		s := &live.Summary{
			Schema: live.Schema, Tap: fmt.Sprintf("tap%d", i), Agent: fmt.Sprintf("%032x", i), Number: 1, Start: 999e9, Span: 1e9, Packets: 50,
			Counts: live.Counts{Transactions: 5, Time: 1e6, Max: int64(i+1) * 1e6}, P50: 1e5, P99: int64(i+1) * 1e6,
			Heat: []live.HeatBand{{Band: 20, Count: 5}},
			Ops:  []live.Operation{{Name: "nfs3 READ"}},
			Slow: []live.Slow{{Operation: "nfs3 READ", Subject: "evil\x1b[2J\u202ename", Latency: 5, Status: "ok"}},
		}
		s.Lists()
		b, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		u.Update(Arrived{{Subject: live.SubjectOf(s), Data: b, Time: now}})
	}
	u.Update(tea.WindowSizeMsg{Width: 100, Height: 20})
	return u
}

func press(u *UI, keys ...string) {
	for _, k := range keys {
		m := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
		switch k {
		case "enter":
			m = tea.KeyMsg{Type: tea.KeyEnter}
		case "esc":
			m = tea.KeyMsg{Type: tea.KeyEsc}
		case "down":
			m = tea.KeyMsg{Type: tea.KeyDown}
		case "end":
			m = tea.KeyMsg{Type: tea.KeyEnd}
		}
		u.Update(m)
	}
}

// check looks at a screen: it fits, nothing steers the terminal, and it has these texts.
func check(t *testing.T, u *UI, want ...string) {
	t.Helper()
	v := u.View()
	lines := strings.Split(v, "\n")
	if len(lines) != u.height {
		t.Errorf("%d lines, want %d", len(lines), u.height)
	}
	for _, l := range lines {
		if w := runewidth.StringWidth(l); w > u.width {
			t.Errorf("a line of %d columns: %q", w, l)
		}
	}
	if strings.ContainsAny(v, "\x1b\u202e") {
		t.Errorf("%q", v)
	}
	for _, w := range want {
		if !strings.Contains(v, w) {
			t.Errorf("%q is not on the screen:\n%s", w, v)
		}
	}
}

func TestScreen(t *testing.T) {
	u := ui(t, 40)
	check(t, u, "40 taps", "tap39", "order: p99")
	if v := u.View(); strings.Index(v, "tap39") > strings.Index(v, "tap38") {
		t.Error("the slowest tap is not the first")
	}
	press(u, "down", "enter")
	check(t, u, "tap38", "Operations", "nfs3 READ")
	press(u, "end")
	check(t, u, `evil\x1b[2J`)
	press(u, "esc", "/", "7", "enter")
	check(t, u, "tap37", "tap7", "/7")
	if strings.Contains(u.View(), "tap38") {
		t.Error("the search shows tap38")
	}
	press(u, "/", "zz", "enter")
	check(t, u, "No tap has this")
	press(u, "esc", "end", "enter")
	check(t, u, "tap0")
	press(u, "esc", "s")
	check(t, u, "order: time")
	press(u, "?")
	check(t, u, "Any key")
	u.Update(tea.WindowSizeMsg{Width: 7, Height: 2})
	check(t, u)
	press(u, "?")
	check(t, u)
	u.Update(Note("NATS is\x1b away"))
	u.Update(tea.WindowSizeMsg{Width: 100, Height: 20})
	check(t, u, `NATS is\x1b away`)
	now := u.Now().Add(time.Hour)
	u.Now = func() time.Time { return now }
	u.Update(tick{})
	check(t, u, "40 silent", "SILENT")
	if strings.Contains(u.View(), "away") {
		t.Error("a note stays for ever")
	}
	empty := &UI{Fleet: &live.Fleet{}, Now: u.Now, width: 80, height: 5}
	press(empty, "down", "enter", "esc")
	check(t, empty, "Waiting for summaries")
}
