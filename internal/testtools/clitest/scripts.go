package clitest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Scripts returns the testscript files of testdata/script, but for those that are named without their extension.
func Scripts(t *testing.T, without ...string) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) <= len(without) {
		t.Fatal(files, err)
	}
	if len(without) > 0 {
		t.Logf("without those that tests at their full length run: %s", strings.Join(without, ", "))
	}
	for _, name := range without {
		all := len(files)
		files = slices.DeleteFunc(files, func(file string) bool { return strings.TrimSuffix(filepath.Base(file), ".txtar") == name })
		if len(files) != all-1 {
			t.Fatalf("no script %s", name)
		}
	}
	return files
}
