package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rpcrdma/toolkit/internal/outfile"
)

// NewManCommand makes the command man of a program. Messages go to stderr.
func NewManCommand(program string, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages to a directory",
		Long: "Write the manual pages of " + program + " and its commands to a directory,\n" +
			"which is made if it does not exist. SOURCE_DATE_EPOCH sets their date.",
		Example: "  " + program + " man /usr/local/share/man/man1",
		Args:    Exactly(1, "a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			cmd.Root().DisableAutoGenTag = true
			h := &doc.GenManHeader{Section: "1", Source: "RPC-over-RDMA toolkit", Manual: "User Commands"}
			if os.Getenv("SOURCE_DATE_EPOCH") == "" {
				now := time.Now()
				h.Date = &now
			}
			preformatAll(cmd.Root())
			if err := manPages(&outfile.Files{}, cmd.Root(), h, args[0]); err != nil {
				return err
			}
			Tell(stderr, program, "manual pages written to %s", args[0])
			return nil
		},
	}
}

// manPages writes the page of a command, and of those below it.
func manPages(files *outfile.Files, cmd *cobra.Command, h *doc.GenManHeader, dir string) error {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			if err := manPages(files, c, h, dir); err != nil {
				return err
			}
		}
	}
	header := *h // the generator fills in the title
	page := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + "." + h.Section
	return WriteFile(files, filepath.Join(dir, page), nil, func(w io.Writer) error { return doc.GenMan(cmd, &header, w) })
}

// Exactly demands n arguments.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return Usagef("name %s", what)
		}
		return nil
	}
}

// preformatAll readies the descriptions of all commands for the generator,
// which takes them for Markdown: indented lines are to stay as they are.
func preformatAll(cmd *cobra.Command) {
	cmd.Long = preformat(cmd.Long)
	for _, c := range cmd.Commands() {
		preformatAll(c)
	}
}

// preformat makes code blocks of indented lines.
func preformat(s string) string {
	var b strings.Builder
	block := false
	for line := range strings.Lines(s) {
		indented := strings.HasPrefix(line, "  ") || block && line == "\n"
		if indented && !block {
			b.WriteByte('\n')
		}
		block = indented
		if indented && line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}
