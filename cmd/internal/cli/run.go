package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Run executes a command line, says what failed, and returns the exit code. Errors in told have already been
// reported.
func Run(root *cobra.Command, args []string, stderr io.Writer, reported ...error) int {
	checkHelp(root)
	versionBelow(root, root.Name())
	root.SetArgs(args)
	// Cobra does not look whether its help was written.
	out := &Witness{W: root.OutOrStdout()}
	root.SetOut(out)
	var mistake error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); len(words) > 0 {
			mistake = commandMistake(cmd, words[0])
		}
		if mistake == nil {
			help(cmd, args)
		}
	})
	cmd, err := root.ExecuteC()
	if err == nil {
		err = mistake
	}
	if err == nil {
		err = out.Err
	}
	if err == nil {
		return ExitOK
	}
	if closed(err) {
		return ExitOK
	}
	for _, t := range append(reported, ErrDamaged) {
		if errors.Is(err, t) {
			return ExitCode(err)
		}
	}
	text := root.Name() + ": " + Message(err) + "\n"
	first := strings.IndexByte(text, '\n') + 1 // lines after the first may point into the one above them
	fmt.Fprint(stderr, fitted(stderr, text[:first])+text[first:])
	if isUsage(err) {
		fmt.Fprintf(stderr, "Try '%s --help'.\n", cmd.CommandPath())
	}
	return ExitCode(err)
}

// Version returns the module's version, with the commit that it was built from and the
// version of Go, as far as they are known: "v1.2.0 commit 0123456789ab go1.26.8".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version and commit"
	}
	return version(info)
}

func version(info *debug.BuildInfo) string {
	v, commit, goVersion := build(info)
	return v + " commit " + commit + " " + goVersion
}

// Build returns the parts of Version.
func Build() (version, commit, goVersion string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", "unknown", runtime.Version()
	}
	return build(info)
}

func build(info *debug.BuildInfo) (version, commit, goVersion string) {
	version, commit = info.Main.Version, "unknown"
	if version == "" || version == "(devel)" {
		version = "development version"
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && s.Value != "":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " with changes"
		}
	}
	return version, commit + modified, info.GoVersion
}
