package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// coverage counts statements that a corpus reaches.
type coverage struct {
	here, of int // in the target's own package
	all      int // in all of the module
}

func (c coverage) own() float64 {
	if c.of == 0 {
		return 0
	}
	return 100 * float64(c.here) / float64(c.of)
}

// cover runs the seeds and a corpus of a target and counts what they reach. Go
// runs only what lies in testdata, so that the package is given a folder of
// links with a testdata of its own.
func (m *module) cover(ctx context.Context, t target, corpus, work string) (coverage, error) {
	var c coverage
	bin, profile := filepath.Join(work, "cover.test"), filepath.Join(work, "profile")
	if m.covered != t.pkg {
		m.covered = ""
		if err := m.build(ctx, t.pkg, bin, "-cover", "-coverpkg="+m.path+"/..."); err != nil {
			return c, err
		}
		m.covered = t.pkg
	}
	shadow := filepath.Join(work, "shadow")
	defer os.RemoveAll(shadow)
	dir, err := m.shadow(t, corpus, shadow)
	if err != nil {
		return c, err
	}
	cmd := exec.CommandContext(ctx, bin, "-test.run=^"+t.name+"$", "-test.coverprofile="+profile)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		return c, fmt.Errorf("%w\n%s", err, b[:min(len(b), 2000)])
	}
	f, err := os.Open(profile)
	if err != nil {
		return c, err
	}
	defer f.Close()
	// Each line is FILE:BEGIN,END STATEMENTS COUNT.
	in := bufio.NewScanner(f)
	for in.Scan() {
		file, rest, ok := strings.Cut(in.Text(), ":")
		w := strings.Fields(rest)
		if !ok || len(w) != 3 {
			continue
		}
		n, _ := strconv.Atoi(w[1])
		reached := w[2] != "0"
		if path.Dir(file) == path.Join(m.path, t.pkg) {
			c.of += n
			if reached {
				c.here += n
			}
		}
		if reached {
			c.all += n
		}
	}
	return c, in.Err()
}

// shadow makes a copy of the checkout out of links, as far as a package's tests
// may look, with the corpus among the package's seeds. It returns the folder of
// the package.
func (m *module) shadow(t target, corpus, to string) (string, error) {
	from := m.root
	for _, part := range strings.Split(t.pkg, "/") {
		if err := links(from, to, part); err != nil {
			return "", err
		}
		from, to = filepath.Join(from, part), filepath.Join(to, part)
	}
	if err := links(from, to, "testdata"); err != nil {
		return "", err
	}
	dir := to
	from, to = filepath.Join(from, "testdata"), filepath.Join(to, "testdata")
	if err := links(from, to, "fuzz"); err != nil {
		return "", err
	}
	to = filepath.Join(to, "fuzz", t.name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	for i, source := range []string{filepath.Join(from, "fuzz", t.name), corpus} {
		list, err := os.ReadDir(source)
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		for _, e := range list {
			if err := os.Symlink(filepath.Join(source, e.Name()), filepath.Join(to, fmt.Sprintf("%d-%s", i, e.Name()))); err != nil {
				return "", err
			}
		}
	}
	return dir, nil
}

// links makes a folder of links to all that another one holds, but one entry.
func links(from, to, but string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range list {
		if e.Name() == but {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
