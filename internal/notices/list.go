package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is one whose code is in a program.
type module struct {
	path, version string
	files         []file
}

// file holds a licence or a notice.
type file struct {
	name string // below the module, with slashes
	text string
}

// programs are what is distributed, by the folder of their module; tags take in what is built on request.
var (
	programs = map[string][]string{
		".":                 {"./cmd/rpcrdma-dump", "./cmd/rpcrdma-top", "./cmd/rpcrdma-replay"},
		"cmd/rpcrdma-otlp":  {"."},
		"cmd/rpcrdma-fleet": {"."},
	}
	tags = "seccomp"
)

// own is the module of this repository. Modules below it are ours, too.
const own = "github.com/rpcrdma/toolkit"

// list finds the modules of the programs below root, sorted by path and version: of Linux on
// amd64, wherever it runs, so that all see the same. Go itself is one.
func list(root string) ([]module, error) {
	found := make(map[string]*module)
	for dir, packages := range programs {
		if err := find(filepath.Join(root, filepath.FromSlash(dir)), packages, found); err != nil {
			return nil, err
		}
	}
	env := exec.Command("go", "env", "GOROOT")
	env.Env = append(os.Environ(), "GOFLAGS=") // -json there would make it JSON
	goroot, err := env.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	std := &module{path: "Go, its runtime and standard library"}
	if err := std.collect(strings.TrimSpace(string(goroot)), strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}
	modules := []module{*std}
	for _, m := range found {
		modules = append(modules, *m)
	}
	slices.SortFunc(modules[1:], func(a, b module) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.version, b.version))
	})
	return modules, nil
}

// find adds the modules of packages in a folder to those that were found, by path and version: two modules of ours may
// use different ones.
func find(dir string, packages []string, found map[string]*module) error {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-tags", tags, "-json=Dir,Standard,Module"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1", "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	d := json.NewDecoder(out)
	for {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{ Path string }
			}
		}
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("go list: %w", err), cmd.Wait())
		}
		if p.Standard || p.Module == nil || p.Module.Main || p.Module.Path == own {
			continue
		}
		if p.Module.Replace != nil {
			return fmt.Errorf("%s is replaced by %s: what is its licence?", p.Module.Path, p.Module.Replace.Path)
		}
		key := p.Module.Path + " " + p.Module.Version
		m := found[key]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version}
			found[key] = m
		}
		if err := m.collect(p.Module.Dir, p.Dir); err != nil {
			return err
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go list in %s: %w", dir, err)
	}
	return nil
}

// collect adds the licences in the folder of a package and in those above it, as
// far as the module goes.
func (m *module) collect(root, dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !isNotice(e.Name()) {
				continue
			}
			rel, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			name := filepath.ToSlash(rel)
			if slices.ContainsFunc(m.files, func(f file) bool { return f.name == name }) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			m.files = append(m.files, file{name, tidy(string(text))})
		}
		if dir == root {
			break
		}
		if parent := filepath.Dir(dir); len(parent) < len(root) || parent == dir {
			return fmt.Errorf("%s is not below %s", dir, root)
		}
		dir = filepath.Dir(dir)
	}
	slices.SortFunc(m.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return nil
}

// isNotice tells files with licences and notices by their names.
func isNotice(name string) bool {
	base := strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(name, ".md"), ".txt"))
	for _, s := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"} {
		if base == s || strings.HasPrefix(base, s+"-") || strings.HasPrefix(base, s+".") || strings.HasPrefix(base, s+"_") {
			return !strings.HasSuffix(base, ".GO")
		}
	}
	return false
}

// tidy makes line ends and trailing spaces all alike.
func tidy(s string) string {
	var b strings.Builder
	for l := range strings.Lines(strings.ReplaceAll(s, "\r\n", "\n")) {
		b.WriteString(strings.TrimRight(l, " \t\n\f"))
		b.WriteByte('\n')
	}
	return strings.Trim(b.String(), "\n") + "\n"
}
