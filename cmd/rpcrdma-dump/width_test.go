package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// TestWidth has all commands print all samples 80 columns wide. Longer than a line is only what is one word: the name of a
// file, or a value from the wire.
func TestWidth(t *testing.T) {
	files := sampleFiles(t)
	if testing.Short() {
		files = nil
		for _, name := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs3-loss.pcap.zst", "rocev2-nfs41-ipv6.pcap.zst", "rocev2-rping.pcap"} {
			files = append(files, filepath.Join(samples, name))
		}
	}
	commands := [][]string{
		{"-c", "200"}, {"-v", "-c", "100"}, {"-vv", "-x", "-c", "5"}, {"-q"}, {"packets", "-c", "300"}, {"connections"}, {"connections", "-v"},
		{"operations", "-c", "200"}, {"report"}, {"report", "-v"}, {"report", "--view", "fabric"}, {"why"}, {"sessions"}, {"sessions", "-v"},
		{"check"}, {"check", "--severity", "note"},
	}
	for i, file := range files {
		for k, c := range commands {
			if testing.Short() && k%2 != i%2 {
				continue
			}
			narrow(t, append(append([]string{}, c...), file))
		}
		var out, problems bytes.Buffer
		if run([]string{"-T", "fields", "-e", "xid", "-c", "3", file}, &cli.Streams{Out: &out, Err: &problems}) == 0 && out.Len() > 0 {
			narrow(t, append(append([]string{"show", "-v"}, strings.Fields(out.String())...), file))
		}
	}
	base := filepath.Join(samples, "rocev2-nfs41-recall")
	narrow(t, []string{"kernel", "--ftrace", base + ".trace.client", "--ftrace", base + ".trace.server", base + ".pcap"})
	narrow(t, []string{"diff", base + ".pcap", filepath.Join(samples, "iwarp-nfs41-recall.pcap")})
}

// narrow runs a command and looks at the width of its lines.
func narrow(t *testing.T, args []string) {
	t.Helper()
	const width = 80
	var out, problems bytes.Buffer
	if code := run(append(args, "--width", "80"), &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems}); code != cli.ExitOK && code != cli.ExitFailure && code != cli.ExitDamaged {
		t.Errorf("%q: exit status %d\n%s", args, code, &problems)
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		if utf8.RuneCountInString(line) > width && strings.Contains(strings.TrimLeft(line, " "), " ") {
			t.Errorf("%q: %d columns: %s", args, utf8.RuneCountInString(line), line)
			return
		}
	}
}
