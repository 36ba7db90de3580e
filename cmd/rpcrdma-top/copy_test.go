package main

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/monitor"
)

// TestClipboard checks the bytes for a terminal, for tmux, and for screen.
func TestClipboard(t *testing.T) {
	const plain = "\x1b]52;c;MHhiMTQ2NmQ3OA==\a" // 0xb1466d78
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, plain},
		{map[string]string{"TERM": "xterm-256color"}, plain},
		{map[string]string{"TERM": "tmux-256color", "TMUX": "/x,1,0"}, plain + "\x1bPtmux;\x1b" + plain + "\x1b\\"},
		{map[string]string{"TERM": "screen", "STY": "1.x"}, "\x1bP" + plain + "\x1b\\"},
	} {
		if got := clipboard("0xb1466d78", func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %q, want %q", c.env, got, c.want)
		}
	}
}

// TestCopy presses y in all views: what is copied is a filter that the program takes, or an XID.
func TestCopy(t *testing.T) {
	t.Setenv("TMUX", "")
	t.Setenv("STY", "")
	t.Setenv("TERM", "xterm")
	s := newScript(t, "rocev2-nfs41-recall.pcap", monitor.Options{})
	s.run(1 << 40)
	x := newScreen(t, s, 80, 24)
	x.frame()
	copied := func() string {
		var out bytes.Buffer
		x.terminal = &out
		x.press("y")
		b64, ok := strings.CutPrefix(strings.TrimSuffix(out.String(), "\a"), "\x1b]52;c;")
		b, err := base64.StdEncoding.DecodeString(b64)
		if out.Len() > 0 && (!ok || err != nil) {
			t.Errorf("%q", out.String())
		}
		return string(b)
	}
	x.press("2", "home")
	if got := copied(); got != "0xc5466d78" {
		t.Errorf("copied %q", got)
	}
	x.has("0xc5466d78  copied")
	x.press("enter") // in full
	if got := copied(); got != "0xc5466d78" {
		t.Errorf("of an open transaction: %q", got)
	}
	x.press("esc")
	for v, want := range map[string]string{"1": "operation_group == ", "3": "connection == 1", "4": `file.path == "`, "5": "client == 192.0.2.2", "7": "connection == 1", "8": "connection in {1}"} {
		x.press(v, "home")
		if got := copied(); !strings.HasPrefix(got, want) {
			t.Errorf("view %s: copied %q", v, got)
		}
	}
	x.press("6")
	if got := copied(); got != "" || x.message == "" {
		t.Errorf("of no list: %q, %q", got, x.message)
	}
}
