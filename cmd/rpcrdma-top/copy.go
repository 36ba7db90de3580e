package main

import (
	"io"
	"os"
	"strings"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"
)

// clipboard is the sequence that has the terminal copy a text (OSC 52), which works over SSH. tmux takes the
// plain one with "set-clipboard on" and hands on the wrapped one with "allow-passthrough on": it gets both.
func clipboard(s string, env func(string) string) string {
	x := osc52.New(s)
	switch {
	case env("TMUX") != "":
		return x.String() + x.Tmux().String()
	case env("STY") != "" || strings.HasPrefix(env("TERM"), "screen"):
		return x.Screen().String()
	}
	return x.String()
}

// said is a message of something that ran beside the screen.
type said string

// copyText copies a text to the clipboard of the terminal. Whether the terminal does so is not known, so the text is
// shown as well.
func (u *ui) copyText(s string) tea.Cmd {
	if s == "" {
		return nil
	}
	// The text comes first: it is what somebody marks whose terminal does not take the sequence.
	u.message = s + "  copied by OSC 52; if not, mark it here"
	if u.mouseOn {
		u.message += " with Shift + mouse"
	}
	return u.raw(clipboard(s, os.Getenv))
}

// raw writes a sequence to the terminal, beside what the program draws: in one piece, so that neither is torn.
func (u *ui) raw(sequence string) tea.Cmd {
	out := u.terminal
	if out == nil {
		return nil
	}
	return func() tea.Msg {
		if _, err := io.WriteString(out, sequence); err != nil {
			return said(err.Error())
		}
		return nil
	}
}
