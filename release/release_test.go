package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestChosen(t *testing.T) {
	if list, err := chosen(""); err != nil || len(list) != len(platforms) {
		t.Error(list, err)
	}
	if list, err := chosen("linux/arm64,darwin/amd64"); err != nil || len(list) != 2 || list[1].os != "darwin" {
		t.Error(list, err)
	}
	for _, bad := range []string{"linux", "linux/amd64,", "plan9/amd64"} {
		if list, err := chosen(bad); err == nil {
			t.Errorf("%q: %v", bad, list)
		}
	}
}

// fake prepares a build with programs of a few bytes each.
func fake(t *testing.T) *build {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	b := &build{root: root, work: t.TempDir(), out: t.TempDir(), when: time.Unix(1_700_000_000, 0).UTC(), version: "1.2.3"}
	put := func(file string) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(filepath.Base(file)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range platforms {
		for _, program := range programs {
			put(filepath.Join(b.bin(p), p.executable(program)))
		}
	}
	for _, program := range programs {
		put(filepath.Join(b.man(), program+".1"))
		for _, s := range shells {
			put(filepath.Join(b.completions(), s.file(program)))
		}
	}
	return b
}

// TestReproducible: the same programs give the same archives, packages and
// images, wherever and whenever they are made.
func TestReproducible(t *testing.T) {
	var results [2]map[string][]byte
	for i := range results {
		b := fake(t)
		for _, p := range platforms {
			if err := b.archive(p); err != nil {
				t.Fatal(err)
			}
			if p.os != "linux" {
				continue
			}
			if err := b.packages(p); err != nil {
				t.Fatal(err)
			}
			if err := b.image(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.sums(); err != nil {
			t.Fatal(err)
		}
		results[i] = map[string][]byte{}
		files, err := os.ReadDir(b.out)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			content, err := os.ReadFile(filepath.Join(b.out, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			results[i][f.Name()] = content
		}
	}
	if n := len(results[0]); n != 5+2*3+1 {
		t.Errorf("%d files", n)
	}
	for name, content := range results[0] {
		if len(content) == 0 || !bytes.Equal(content, results[1][name]) {
			t.Errorf("%s differs from one build to the next", name)
		}
	}
}

// TestCommit: a commit has the version of its tag, or one that sorts before all releases.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)
		if out, err := command(dir, nil, "git", args...).Output(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	if _, _, err := commit(dir); err == nil {
		t.Error("no commit, and no error")
	}
	git("commit", "-q", "--allow-empty", "-m", "one")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	when, version, err := commit(dir)
	if err != nil || when.Unix() != 1_700_000_000 || !strings.HasPrefix(version, "0.0~git20231114.") {
		t.Error(when, version, err)
	}
	git("tag", "v1.2.3")
	if _, version, err = commit(dir); err != nil || version != "1.2.3" {
		t.Error(version, err)
	}
	for _, program := range nested {
		if err := sameTag(dir, version); err == nil || !strings.Contains(err.Error(), "cmd/"+program+"/v1.2.3") {
			t.Error(err)
		}
		git("tag", "cmd/"+program+"/v1.2.3")
	}
	if _, version, err = commit(dir); err != nil || version != "1.2.3" || sameTag(dir, version) != nil {
		t.Error(version, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, version, err = commit(dir); err != nil || !strings.HasSuffix(version, ".dirty") {
		t.Error(version, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, _, err := commit(dir); err == nil {
		t.Error("no error")
	}
}
