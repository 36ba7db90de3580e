// Package programs builds the programs of the toolkit for tests that run them.
package programs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build puts programs into a folder. Packages are relative to the root of the checkout, as ./cmd/rpcrdma-dump; one may be a module of
// its own. All tests build
// with the same flags and by go run, which keeps linked programs in the build cache: a program is linked only once for all
// test packages, and again after a change.
func Build(dir string, packages ...string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if err := sources(root); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	for _, p := range packages {
		cmd := exec.Command("go", "run", "-buildvcs=false", "-ldflags=-s", "-exec", "cp", p, filepath.Join(dir, filepath.Base(p)))
		if cmd.Dir = filepath.Join(root, p); !isModule(cmd.Dir) {
			cmd.Dir = root
		} else {
			cmd.Args[len(cmd.Args)-2] = "."
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build %s: %w\n%s", p, err, out)
		}
	}
	return nil
}

// moduleRoot is the folder of the toolkit's module, at or above the working folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for up := filepath.Dir(dir); up != dir; dir, up = up, filepath.Dir(up) {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(b, []byte("module github.com/rpcrdma/toolkit\n")) {
			return dir, nil
		}
	}
	return "", errors.New("the working folder is not in a checkout")
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// sources stats every source file, so that go test knows that the cached result of the test depends on them.
func sources(root string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") {
			_, err = os.Stat(name)
		}
		return err
	})
}
