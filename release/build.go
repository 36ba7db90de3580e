package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A build has the paths and the version of what is built.
type build struct {
	root, work, out string
	when            time.Time // of all files
	version         string    // as packages write it: 1.2.0, or 0.0~git20261122.0123456789ab
}

// bin is the directory of a platform's programs.
func (b *build) bin(p platform) string { return filepath.Join(b.work, p.os+"_"+p.arch) }

// result is the path of a file of the release.
func (b *build) result(format string, args ...any) string {
	return filepath.Join(b.out, packageName+"_"+b.version+"_"+fmt.Sprintf(format, args...))
}

// command prepares a command in the checkout. Git is told to trust it: otherwise a checkout owned
// by another user would have no version.
func command(root string, env []string, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = root
	c.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	c.Env = append(c.Env, env...)
	c.Stderr = os.Stderr
	return c
}

func output(root, name string, args ...string) (string, error) {
	b, err := command(root, nil, name, args...).Output()
	return strings.TrimSpace(string(b)), err
}

// commit returns the date and the version of the checkout. Tags vX.Y.Z are releases; every other
// commit sorts before the first of them.
func commit(root string) (when time.Time, version string, err error) {
	seconds, err := output(root, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return when, "", fmt.Errorf("a release is built from a git checkout: %w", err)
	}
	if s := os.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		seconds = s
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return when, "", fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	when = time.Unix(n, 0).UTC()
	tag, err := output(root, "git", "tag", "--points-at", "HEAD", "--list", "v[0-9]*", "--sort=-version:refname")
	if err != nil {
		return when, "", err
	}
	hash, err := output(root, "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return when, "", err
	}
	changed, err := output(root, "git", "status", "--porcelain")
	if err != nil {
		return when, "", err
	}
	if tag, _, _ = strings.Cut(tag, "\n"); tag != "" && changed == "" {
		return when, strings.TrimPrefix(tag, "v"), nil
	}
	version = "0.0~git" + when.Format("20060102") + "." + hash
	if changed != "" {
		version += ".dirty"
	}
	return when, version, nil
}

// sameTag makes sure that a release has the tags of the nested modules, too: Go takes the versions that their programs tell
// from those.
func sameTag(root, version string) error {
	if strings.HasPrefix(version, "0.0~git") {
		return nil
	}
	for _, program := range nested {
		want := "cmd/" + program + "/v" + version
		tag, err := output(root, "git", "tag", "--points-at", "HEAD", "--list", want)
		if err != nil {
			return err
		}
		if tag == "" {
			return fmt.Errorf("the commit has the tag v%s, and not %s: %s would tell another version", version, want, program)
		}
	}
	return nil
}

// recorded returns a checkout of which Go records version and commit in programs. It does not do that in a
// worktree of git (.git is a file), even with -buildvcs=true: a clone takes its place.
func recorded(root, work, version string) (string, error) {
	if s, _ := os.Lstat(filepath.Join(root, ".git")); s == nil || s.IsDir() {
		return root, nil
	}
	if strings.HasSuffix(version, ".dirty") {
		fmt.Fprintln(os.Stderr, "release: note: a worktree with changes: the programs do not tell their version and commit")
		return root, nil
	}
	hash, err := output(root, "git", "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	clone := filepath.Join(work, "checkout")
	if _, err := output(root, "git", "clone", "--quiet", root, clone); err != nil {
		return "", err
	}
	_, err = output(clone, "git", "checkout", "--quiet", "--detach", hash)
	return clone, err
}

// profile tells the compiler which functions and branches take the time (-pgo). It is made by release/profile. It is not a
// default.pgo in the folder of a program: such a program would share no compiled package with others and with tests.
const profile = "release/rpcrdma.pgo"

// profiled are the programs that are compiled with it. Each package is compiled once more for them, so there are few.
var profiled = map[string]bool{"rpcrdma-dump": true, "rpcrdma-top": true}

// compile builds the programs. Go records the version and the commit itself
// (-buildvcs); paths of this machine are left out (-trimpath), so is the build
// ID, which depends on the linker's temporary names.
func (b *build) compile(p platform) error {
	if _, err := os.Stat(b.bin(p)); err == nil {
		return nil // for the manual pages
	}
	flags := []string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", b.bin(p) + string(filepath.Separator)}
	type step struct {
		dir  string
		args []string
	}
	steps := []step{
		{b.root, append(slices.Clone(flags), "-pgo="+filepath.Join(b.root, profile))},
		{b.root, slices.Clone(flags)},
	}
	for _, program := range programs {
		switch {
		case profiled[program]:
			steps[0].args = append(steps[0].args, "./cmd/"+program)
		case slices.Contains(nested, program):
			steps = append(steps, step{filepath.Join(b.root, "cmd", program), append(slices.Clone(flags), ".")})
		default:
			steps[1].args = append(steps[1].args, "./cmd/"+program)
		}
	}
	env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT="}
	if err := os.MkdirAll(b.bin(p), 0o755); err != nil {
		return err
	}
	for _, step := range steps {
		if err := command(step.dir, env, "go", step.args...).Run(); err != nil {
			return err
		}
	}
	for _, program := range programs {
		file := filepath.Join(b.bin(p), p.executable(program))
		s, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Printf("%-14s %-15s %5.1f MB\n", p, program, float64(s.Size())/1e6)
	}
	return nil
}

// extras has each program of this machine write its manual pages and
// completions: they come from its actual flags.
func (b *build) extras() error {
	here := platform{runtime.GOOS, runtime.GOARCH}
	if err := b.compile(here); err != nil {
		return err
	}
	if err := os.MkdirAll(b.completions(), 0o755); err != nil {
		return err
	}
	env := []string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(b.when.Unix(), 10)}
	for _, program := range programs {
		exe := filepath.Join(b.bin(here), here.executable(program))
		man := command(b.root, env, exe, "man", b.man())
		man.Stderr = nil
		if msg, err := man.CombinedOutput(); err != nil {
			return fmt.Errorf("%s man: %w: %s", program, err, msg)
		}
		for _, c := range shells {
			text, err := command(b.root, nil, exe, "completion", c.shell).Output()
			if err != nil {
				return fmt.Errorf("%s completion %s: %w", program, c.shell, err)
			}
			if err := os.WriteFile(filepath.Join(b.completions(), c.file(program)), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *build) man() string         { return filepath.Join(b.work, "man") }
func (b *build) completions() string { return filepath.Join(b.work, "completions") }

// Completions of a shell: their file, and the directory that the shell reads.
type shell struct {
	shell, dir, prefix, suffix string
}

func (s shell) file(program string) string { return s.prefix + program + s.suffix }

var shells = []shell{
	{"bash", "/usr/share/bash-completion/completions", "", ""},
	{"zsh", "/usr/share/zsh/vendor-completions", "_", ""},
	{"fish", "/usr/share/fish/vendor_completions.d", "", ".fish"},
}

// documents are the files of the checkout that every package carries.
var documents = []string{"README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "NOTICE"}

// write creates a file of the release from memory.
func write(file string, content *bytes.Buffer) error {
	return os.WriteFile(file, content.Bytes(), 0o644)
}
