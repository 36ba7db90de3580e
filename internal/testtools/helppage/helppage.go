// Package helppage writes the pages of docs/reference with the help of the programs, and checks them.
package helppage

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Page has the help of a program and of its commands.
type Page struct {
	Root *cobra.Command
	// Run runs a command line.
	Run  func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
	File string
	// About says in a sentence what the program is, and links its guide.
	About string
}

// Check compares the page with what the program prints, or writes it.
func (p *Page) Check(t *testing.T, update bool) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "# Commands and flags of %s\n\n%s This page is what `--help` prints; a test writes it.\n", p.Root.Name(), p.About)
	p.command(t, &text, p.Root)
	want := text.String()
	have, err := os.ReadFile(p.File)
	if err == nil && string(have) == want {
		return
	}
	if !update {
		t.Fatalf("%s does not say what --help says: go test . -run TestReference -update", p.File)
	}
	if err := os.WriteFile(p.File, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command writes the section of a command, and of those below it.
func (p *Page) command(t *testing.T, text *strings.Builder, cmd *cobra.Command) {
	t.Helper()
	path := strings.Fields(cmd.CommandPath())
	var out, errs bytes.Buffer
	if status := p.Run(append(path[1:], "--help"), strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("%s --help: exit status %d, %s", cmd.CommandPath(), status, &errs)
	}
	fmt.Fprintf(text, "\n## %s\n\n```text\n", cmd.CommandPath())
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 80 && !strings.Contains(line, "  "+path[0]+" ") { // examples stay in one line
			t.Errorf("%s --help: %d columns: %s", cmd.CommandPath(), n, line)
		}
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	text.WriteString("```\n")
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			p.command(t, text, c)
		}
	}
}
