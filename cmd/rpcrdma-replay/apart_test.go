package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestApart: a state directory inside the served one is refused, whether or not it exists, and through links.
func TestApart(t *testing.T) {
	top := t.TempDir()
	served, other := filepath.Join(top, "served"), filepath.Join(top, "other")
	for _, d := range []string{filepath.Join(served, "sub"), other} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{filepath.Join(other, "link"): filepath.Join(served, "sub"), filepath.Join(top, "alias"): served} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for state, inside := range map[string]bool{
		served: true, filepath.Join(served, "state"): true, filepath.Join(served, "sub/deep/state"): true, filepath.Join(other, "link"): true,
		filepath.Join(other, "link/new/state"): true, filepath.Join(top, "alias/state"): true, filepath.Join(other, "../served/x"): true,
		other: false, filepath.Join(other, "state"): false, top: false, filepath.Join(top, "served-not"): false,
	} {
		for _, dir := range []string{served, filepath.Join(top, "alias")} {
			if err := apart(state, dir); (err != nil) != inside {
				t.Errorf("state %s, served %s: %v", state, dir, err)
			}
		}
	}
}
