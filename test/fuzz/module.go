package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// target is a fuzz target.
type target struct {
	pkg  string // below the module
	name string
}

func (t target) String() string { return t.pkg + "." + t.name }

// module is the checkout.
type module struct {
	root    string
	path    string
	targets []target
	covered string // the package whose binary reports coverage: the last one built
}

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// loadModule finds the targets of the packages that match.
func loadModule(ctx context.Context, patterns []string) (*module, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	out, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-json"))
	if err != nil {
		return nil, err
	}
	var main struct{ Path, Dir string }
	if err := json.Unmarshal(out, &main); err != nil {
		return nil, err
	}
	m := &module{root: main.Dir, path: main.Path}
	args := append([]string{"list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles"}, patterns...)
	if out, err = output(exec.CommandContext(ctx, "go", args...)); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, m.path), "/")
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			for _, f := range fuzzFunc.FindAllSubmatch(text, -1) {
				m.targets = append(m.targets, target{rel, string(f[1])})
			}
		}
	}
	sort.Slice(m.targets, func(i, j int) bool { return m.targets[i].String() < m.targets[j].String() })
	return m, nil
}

// dir is the folder of a target's package.
func (m *module) dir(t target) string { return filepath.Join(m.root, filepath.FromSlash(t.pkg)) }

// build makes a test binary of a package.
func (m *module) build(ctx context.Context, pkg, bin string, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-o", bin}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = m.root
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, b)
	}
	return nil
}

// instrument has the module's own packages count what is reached, as go test -fuzz
// has all packages do: that the standard library has gone another way is no news,
// and to tell the engine of it takes longer than to run an input. Nor is it with
// what makes inputs, and with what goes through maps in their random order,
// unless that is what is tested.
func (m *module) instrument(pkg string) []string {
	flags := []string{"-gcflags=" + m.path + "/...=-d=libfuzzer"}
	for _, other := range append([]string{"internal/testtools/mutate", "internal/snapshot"}, unheeded[pkg]...) {
		if pkg != other {
			flags = append(flags, "-gcflags="+m.path+"/"+other+"/...=")
		}
	}
	return flags
}

// unheeded are packages that targets of a package run only to compare results: that the codec of another
// procedure was reached, or another line was printed, is no news to targets about trackers. They have targets of
// their own.
var unheeded = map[string][]string{
	"decode":          {"decode/nfs"},
	"analyze/parquet": {"decode"},
	"analyze/monitor": {"decode/nfs"},
	"replay/planner":  {"decode/nfs"},
	"test/resume":     {"decode/nfs", "analyze"},
}

// output is Cmd.Output with the command's error messages.
func output(cmd *exec.Cmd) ([]byte, error) {
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, complaint.Bytes())
	}
	return b, nil
}
