// Package sampled lists the captures of the folder samples for tests that read all of them.
package sampled

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// long are four fifths of all bytes. CI's step "tests at their full length" reads them, too. So do, always, the tests that
// compare captures with what the kernel saw (test/truth) and with golden files (cmd/rpcrdma-dump).
var long = []string{
	"iwarp-nfs40-basic", "rocev2-nfs3-basic", "rocev2-nfs3-bulk", "rocev2-nfs3-loss", "rocev2-nfs41-mixed-load", "rocev2-nfs41-restart", "rocev2-nfs42-basic",
}

// Rounds says how many of n rounds of random input a test runs: with -short a fifth of them. CI's step "tests at their full length" runs all.
func Rounds(n int) int {
	if testing.Short() {
		return (n + 4) / 5
	}
	return n
}

// Captures are the files whose names match a pattern. With -short, the long ones are not among them.
func Captures(tb testing.TB, pattern string) []string {
	tb.Helper()
	root := "."
	for _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil; _, err = os.Stat(filepath.Join(root, "go.mod")) {
		if root = filepath.Join(root, ".."); len(root) > 100 {
			tb.Fatal("no go.mod above the working folder")
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "samples", pattern+".pcap*"))
	if err != nil {
		tb.Fatal(err)
	}
	if testing.Short() {
		files = slices.DeleteFunc(files, func(file string) bool {
			name, _, _ := strings.Cut(filepath.Base(file), ".")
			return slices.Contains(long, name)
		})
		tb.Logf("without the long captures, which tests at their full length read: %s", strings.Join(long, ", "))
	}
	if len(files) == 0 {
		tb.Fatalf("no captures match %s", pattern)
	}
	return files
}
