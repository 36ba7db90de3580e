package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/internal/printable"
)

// Run executes a command line, says what failed, and returns the exit code. Errors in told have already been
// reported.
func Run(root *cobra.Command, args []string, stderr io.Writer, told ...error) int {
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return ExitOK
	}
	for _, t := range append(told, ErrDamaged, ErrClosed) {
		if errors.Is(err, t) {
			return ExitCode(err)
		}
	}
	// Errors quote names of files, and text of captures, plans and peers.
	fmt.Fprint(stderr, printable.Text(root.Name()+": "+message(err)+"\n"))
	if isUsage(err) {
		fmt.Fprintf(stderr, "Try '%s --help'.\n", root.Name())
	}
	return ExitCode(err)
}

// message is the text of an error, in which joined errors with the same text appear once: a full disk fails
// both the write and the close.
func message(err error) string {
	return strings.Join(slices.Compact(strings.Split(err.Error(), "\n")), "\n")
}

// Version is the version of the module, or the revision that it was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "development version"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v = s.Value
			}
		}
	}
	return v + " " + info.GoVersion
}
