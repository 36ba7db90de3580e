package clitest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CheckOneLine runs command lines in which NAME is a file that does not exist, CUT a capture without its end, and DIR a directory that
// both are in. Its name has line feeds and control characters: what is said of it must stay in its line.
func (p *Program) CheckOneLine(t *testing.T, lines ...string) {
	sample, err := os.ReadFile(p.Sample)
	must(t, err)
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a\nFORGED\x1b[2J\u202eb")
			must(t, os.Mkdir(dir, 0o755))
			cut := filepath.Join(dir, "cut.pcap")
			must(t, os.WriteFile(cut, sample[:len(sample)/2], 0o644))
			var args []string
			for _, a := range strings.Fields(line) {
				args = append(args, strings.NewReplacer("NAME", filepath.Join(dir, "none"), "CUT", cut, "DIR", dir).Replace(a))
			}
			var stdout, stderr bytes.Buffer
			p.Run(args, strings.NewReader(""), &stdout, &stderr)
			all := "\n" + stdout.String() + stderr.String()
			if !strings.Contains(all, `\nFORGED\x1b[2J\`) || strings.Contains(all, "\nFORGED") || strings.ContainsAny(all, "\x1b\u202e") {
				t.Errorf("%q", all)
			}
		})
	}
}
