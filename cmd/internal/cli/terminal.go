package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/rpcrdma/toolkit/internal/table"
)

// Terminal reports whether w is a terminal, and how many columns it has (0 if unknown).
func Terminal(w io.Writer) (columns int, ok bool) {
	if p, ok := w.(paged); ok {
		return p.columns, true
	}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		columns = 0
	}
	return columns, true
}

// FitTerminal wraps what is written to the terminals among the streams at their width. The function that it returns writes
// what is left.
func FitTerminal(s *Streams) (fitted *Streams, flush func()) {
	fits := make([]*table.Fit, 0, 2)
	fit := func(w io.Writer) io.Writer {
		columns, _ := Terminal(w)
		if columns <= 0 {
			return w
		}
		f := table.NewFit(w, columns)
		fits = append(fits, f)
		return f
	}
	return &Streams{In: s.In, Out: fit(s.Out), Err: fit(s.Err)}, func() {
		for _, f := range fits {
			_ = f.Flush()
		}
	}
}

// Keyboard returns the terminal that keys come from: in, or, if that is nil or no terminal, the one that controls the process, which is
// opened. It is nil if there is none.
func Keyboard(in io.Reader) *os.File {
	if f, isFile := in.(*os.File); isFile && term.IsTerminal(int(f.Fd())) {
		return f
	}
	f, err := os.Open("/dev/tty")
	if err != nil {
		return nil
	}
	return f
}

// Color decides whether to use colors in what is written to w, by the value of
// --color: always, never, or auto, which means on a terminal, unless the
// environment forbids it (https://no-color.org).
func Color(when string, w io.Writer) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		_, tty := Terminal(w)
		return tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
	}
	return false, Usagef("--color is auto, always or never, not %q", when)
}

// UTF8 reports whether the environment asks for UTF-8. Without any information
// it is assumed.
func UTF8() bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
