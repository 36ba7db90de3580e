package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// TestDeploy: the command lines of systemd units and of Kubernetes have commands and flags that exist.
func TestDeploy(t *testing.T) {
	lines := 0
	for pattern, find := range map[string]string{
		"../../release/files/systemd/rpcrdma-fleet-*.service": `(?m)^ExecStart=/usr/bin/rpcrdma-fleet (\S+) (.*)$`,
		"../../docs/fleet/kubernetes/*.yaml":                  `command: \[/usr/bin/rpcrdma-fleet, (\w+)\]\n +args: \[(.*)\]`,
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(find).FindAllStringSubmatch(string(b), -1) {
				lines++
				var args []string
				for _, a := range strings.Fields(strings.ReplaceAll(m[2], ",", " ")) {
					if a = strings.Trim(a, `"`); !strings.HasSuffix(a, "_FLAGS") {
						args = append(args, a)
					}
				}
				cmd, rest, err := newRootCommand(&cli.Streams{}).Find(append([]string{m[1]}, args...))
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err != nil || cmd.Name() != m[1] {
					t.Errorf("%s: %s: %v", file, m[0], err)
				}
			}
		}
	}
	if lines != 6 {
		t.Errorf("%d command lines", lines)
	}
}
