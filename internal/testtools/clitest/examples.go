package clitest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Examples are those in the help of a program.
type Examples struct {
	Root *cobra.Command
	// Run runs a command line in the working directory.
	Run func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
	// Files are what examples name, and the samples that stand for them.
	Files map[string]string
	// Elsewhere matches examples that need more than files: interfaces, servers,
	// other programs in front.
	Elsewhere *regexp.Regexp
	// Codes are exit codes other than 0, by example.
	Codes map[string]int
}

// without are the commands that need no example: those of cobra.
var without = []string{"help", "completion"}

// Check demands an example of every command that does something, and runs those
// for which files suffice, in their order, in a directory with these files.
func (e *Examples) Check(t *testing.T) {
	dir := t.TempDir()
	for name, sample := range e.Files {
		b, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	ran := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Example == "" && cmd.Runnable() && !cmd.HasSubCommands() {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", "")) {
			if e.run(t, cmd, strings.TrimSpace(line)) {
				ran++
			}
		}
		for _, c := range cmd.Commands() {
			if !slices.Contains(without, c.Name()) {
				walk(c)
			}
		}
	}
	walk(e.Root)
	if e.Root.Example == "" || ran == 0 {
		t.Errorf("%s: no example in its help, or none that runs", e.Root.Name())
	}
}

// run runs an example, if files suffice for it.
func (e *Examples) run(t *testing.T, cmd *cobra.Command, line string) bool {
	if line == "" || e.Elsewhere.MatchString(line) {
		return false
	}
	words := split(line)
	for i, w := range words {
		if w == "|" || w == ">" { // what others make of the output is theirs
			words = words[:i]
			break
		}
	}
	if words[0] != e.Root.Name() {
		t.Errorf("%s: %q is neither one of %s, nor said to need more than files", cmd.CommandPath(), line, e.Root.Name())
		return false
	}
	var out, errs bytes.Buffer
	if got, want := e.Run(words[1:], strings.NewReader(""), &out, &errs), e.Codes[line]; got != want {
		t.Errorf("%s\nexit %d, want %d\n%s", line, got, want, errs.String())
	}
	if out.Len() == 0 && errs.Len() == 0 && !slices.ContainsFunc(words, func(w string) bool { return w == "-w" || w == "-o" || w == "--html" }) {
		t.Errorf("%s\nprints nothing", line)
	}
	return true
}

// split takes a command line apart as a shell does: words in quotes stay whole.
func split(line string) []string {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
