package clitest

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// full is a stream that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// CheckLost asks each command for its help and version, and runs further command lines that need no input, while standard output takes
// nothing: each must fail and say why.
func (p *Program) CheckLost(t *testing.T, lines ...[]string) {
	p.Root.InitDefaultHelpCmd()
	p.Root.InitDefaultCompletionCmd()
	lines = append(lines, []string{"help"}, []string{"completion", "bash"})
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		for _, flag := range []string{"--help", "-h", "--version", "-V"} {
			if (flag == "-V" && cmd.HasParent()) || (flag == "--version" && slices.Contains(path, "completion")) {
				continue
			}
			lines = append(lines, append(slices.Clone(path), flag))
		}
		lines = append(lines, append([]string{"help"}, path...))
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(p.Root)
	for _, args := range lines {
		var stderr bytes.Buffer
		if code := p.Run(args, strings.NewReader(""), full{}, &stderr); code != 1 || !strings.Contains(stderr.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%q: exit status %d, not 1: %s", args, code, stderr.String())
		}
	}
}
