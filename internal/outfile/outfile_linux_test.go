package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func isConflict(err error) bool {
	var c *Conflict
	return errors.As(err, &c)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCreate: the name is absent or the old file until Commit.
func TestCreate(t *testing.T) {
	for _, old := range []string{"", "old"} {
		for _, commit := range []bool{true, false} {
			dir := t.TempDir()
			name := filepath.Join(dir, "out")
			if old != "" {
				put(t, name, old)
			}
			f, err := (&Files{}).Create(name)
			must(t, err)
			_, err = f.Write([]byte("new"))
			must(t, err)
			if got, _ := os.ReadFile(name); string(got) != old {
				t.Errorf("before the end: %q", got)
			}
			want := old
			if commit {
				must(t, f.Commit())
				want = "new"
			}
			f.Discard()
			if err := f.Commit(); err == nil {
				t.Error("a second end is taken")
			}
			if got, _ := os.ReadFile(name); string(got) != want {
				t.Errorf("commit %v: %q, want %q", commit, got, want)
			}
			left := names(t, dir)
			if want == "" && len(left) != 0 || want != "" && !slices.Equal(left, []string{"out"}) {
				t.Errorf("left: %q", left)
			}
		}
	}
}

// TestRefused names an input as the output in all ways.
func TestRefused(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, dir string) string{
		"same":             func(_ *testing.T, dir string) string { return dir + "/in" },
		"spelled":          func(_ *testing.T, dir string) string { return dir + "//./sub/../in" },
		"symlink":          func(t *testing.T, dir string) string { must(t, os.Symlink("in", dir+"/l")); return dir + "/l" },
		"absolute symlink": func(t *testing.T, dir string) string { must(t, os.Symlink(dir+"/in", dir+"/l")); return dir + "/l" },
		"chain": func(t *testing.T, dir string) string {
			must(t, os.Symlink("../in", dir+"/sub/a"))
			must(t, os.Symlink("sub/a", dir+"/b"))
			return dir + "/b"
		},
		"hard link": func(t *testing.T, dir string) string { must(t, os.Link(dir+"/in", dir+"/h")); return dir + "/h" },
		"link to hard link": func(t *testing.T, dir string) string {
			must(t, os.Link(dir+"/in", dir+"/h"))
			must(t, os.Symlink("h", dir+"/l"))
			return dir + "/l"
		},
		"linked directory": func(t *testing.T, dir string) string {
			must(t, os.Symlink(dir, dir+"/sub/up"))
			return dir + "/sub/up/in"
		},
		// sub/up/.. is not sub: a path must not be cleaned.
		"behind a link": func(t *testing.T, dir string) string {
			must(t, os.MkdirAll(dir+"/x/y", 0o755))
			must(t, os.Symlink("../x/y", dir+"/sub/up"))
			must(t, os.Link(dir+"/in", dir+"/x/in"))
			return dir + "/sub/up/../in"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Mkdir(dir+"/sub", 0o755))
			put(t, dir+"/in", "input")
			out := make(t, dir)
			before := names(t, dir)
			files := &Files{}
			files.Reads(dir + "/in")
			if _, err := files.Create(out); !isConflict(err) {
				t.Errorf("Create: %v", err)
			}
			if _, err := files.Stream(out); !isConflict(err) {
				t.Errorf("Stream: %v", err)
			}
			if err := files.Check(out); !isConflict(err) {
				t.Errorf("Check: %v", err)
			}
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			defer f.Close()
			if err := files.CheckStream("standard output", f); !isConflict(err) {
				t.Errorf("CheckStream: %v", err)
			}
			if content(t, dir+"/in") != "input" || !slices.Equal(before, names(t, dir)) {
				t.Error("something has changed")
			}
			// The other way round: the input is noted as a stream.
			files = &Files{}
			in, err := os.Open(out)
			must(t, err)
			defer in.Close()
			files.ReadsStream("standard input", in)
			if _, err := files.Create(dir + "/in"); !isConflict(err) {
				t.Errorf("Create, read as a stream: %v", err)
			}
		})
	}
}

// TestDescriptors: names such as /dev/stdin lead to a file that is read.
func TestDescriptors(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/in", "input")
	f, err := os.OpenFile(dir+"/in", os.O_RDWR|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	name := "/dev/fd/" + itoa(int(f.Fd()))
	files := &Files{}
	files.Reads(name)
	if _, err := files.Create(dir + "/in"); !isConflict(err) {
		t.Errorf("%v", err)
	}
	files = &Files{}
	files.Reads(dir + "/in")
	for _, out := range []string{name, strings.Replace(name, "/dev/fd", "/proc/self/fd", 1)} {
		if _, err := files.Create(out); !isConflict(err) {
			t.Errorf("%s: %v", out, err)
		}
		if _, err := files.Stream(out); !isConflict(err) {
			t.Errorf("%s: %v", out, err)
		}
	}
	// Otherwise it is written where the shell has opened it: here, at the end.
	o, err := (&Files{}).Create(name)
	must(t, err)
	_, err = o.Write([]byte(" more"))
	must(t, err)
	must(t, o.Commit())
	if got := content(t, dir+"/in"); got != "input more" {
		t.Errorf("%q", got)
	}
}

func itoa(n int) string { return strings.TrimSpace(string(appendInt(nil, n))) }

func appendInt(b []byte, n int) []byte {
	if n >= 10 {
		b = appendInt(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

// TestOutputsApart: two outputs are not one file, whether it exists or not.
func TestOutputsApart(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/sub", 0o755))
	put(t, dir+"/old", "old")
	must(t, os.Link(dir+"/old", dir+"/older"))
	must(t, os.Symlink("new", dir+"/l"))
	for _, pair := range [][2]string{{"new", "new"}, {"new", "sub/../new"}, {"new", "l"}, {"old", "old"}, {"old", "older"}} {
		files := &Files{}
		a, err := files.Create(dir + "/" + pair[0])
		must(t, err)
		for _, second := range []func(string) (*File, error){files.Create, files.Stream} {
			if _, err := second(dir + "/" + pair[1]); !isConflict(err) {
				t.Errorf("%q: %v", pair, err)
			}
		}
		a.Discard()
		// Given up, the name is free.
		b, err := files.Create(dir + "/" + pair[1])
		must(t, err)
		b.Discard()
	}
	files := &Files{}
	a, err := files.Create(dir + "/old")
	must(t, err)
	must(t, a.Commit())
	if _, err := files.Stream(dir + "/old"); !isConflict(err) {
		t.Errorf("an output that was written is written again: %v", err)
	}
	for range 2 { // devices can be shared
		f, err := files.Create(os.DevNull)
		must(t, err)
		defer f.Discard()
	}
}

// TestTargets says what links, modes and things that are not files do.
func TestTargets(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) error {
		f, err := (&Files{}).Create(dir + "/" + name)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte(text))
		return errors.Join(err, f.Commit())
	}
	must(t, os.Mkdir(dir+"/sub", 0o755))
	must(t, os.Mkdir(dir+"/d", 0o755))

	must(t, os.Symlink("sub/target", dir+"/dangling"))
	must(t, write("dangling", "1"))
	if info, err := os.Lstat(dir + "/dangling"); err != nil || info.Mode()&fs.ModeSymlink == 0 || content(t, dir+"/sub/target") != "1" {
		t.Errorf("a link that leads to nothing: %v, %v", info, err)
	}
	must(t, write("dangling", "2"))
	if content(t, dir+"/sub/target") != "2" || len(names(t, dir+"/sub")) != 1 {
		t.Error("a link is followed the second time, too")
	}

	put(t, dir+"/mode", "x")
	must(t, os.Chmod(dir+"/mode", 0o640))
	must(t, write("mode", "y"))
	if info, _ := os.Stat(dir + "/mode"); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	old := syscall.Umask(0o027)
	err := write("fresh", "y")
	syscall.Umask(old)
	must(t, err)
	if info, _ := os.Stat(dir + "/fresh"); info.Mode().Perm() != 0o640 {
		t.Errorf("mode of a new file %v", info.Mode())
	}

	put(t, dir+"/one", "x")
	must(t, os.Link(dir+"/one", dir+"/two"))
	must(t, write("one", "y"))
	if content(t, dir+"/two") != "x" {
		t.Error("the other name of a file has changed")
	}

	must(t, os.Symlink("loop", dir+"/loop"))
	long := strings.Repeat("n", 255)
	must(t, write(long, "z"))
	for _, bad := range []string{"d", "d/", "loop", "none/x", "new/", ""} {
		name := dir + "/" + bad
		if bad == "" {
			name = ""
		}
		if _, err := (&Files{}).Create(name); err == nil {
			t.Errorf("%q can be written", bad)
		}
		if _, err := (&Files{}).Stream(name); err == nil {
			t.Errorf("%q can be streamed", bad)
		}
	}
	must(t, write("../"+filepath.Base(dir)+"/up", "u"))

	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	read := make(chan string)
	go func() {
		b, _ := os.ReadFile(dir + "/fifo")
		read <- string(b)
	}()
	must(t, write("fifo", "through"))
	if got := <-read; got != "through" {
		t.Errorf("FIFO: %q", got)
	}
	for _, n := range names(t, dir) {
		if strings.HasSuffix(n, ".tmp") {
			t.Errorf("%s was left", n)
		}
	}
}

func TestStream(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/out", "something old and long")
	files := &Files{}
	f, err := files.Stream(dir + "/out")
	must(t, err)
	_, err = f.Write([]byte("new"))
	must(t, err)
	if got := content(t, dir+"/out"); got != "new" {
		t.Errorf("while it is written: %q", got)
	}
	must(t, f.Truncate(2))
	must(t, f.Close())
	if got := content(t, dir+"/out"); got != "ne" {
		t.Errorf("%q", got)
	}
	must(t, f.Reopen())
	_, err = f.Write([]byte("xt"))
	must(t, err)
	must(t, f.Commit())
	if got := content(t, dir+"/out"); got != "next" {
		t.Errorf("%q", got)
	}
	// Somebody has put another file there.
	must(t, os.Rename(dir+"/out", dir+"/moved"))
	put(t, dir+"/out", "another")
	if err := f.Reopen(); err == nil {
		t.Error("another file was opened")
	}
	must(t, f.Remove())
	if content(t, dir+"/out") != "another" {
		t.Error("another file was removed")
	}
	must(t, os.Rename(dir+"/moved", dir+"/out"))
	must(t, f.Remove())
	if _, err := os.Stat(dir + "/out"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestCommitNew(t *testing.T) {
	dir := t.TempDir()
	name := func(n int) string { return filepath.Join(dir, "part-"+itoa(n)) }
	put(t, name(0), "stays")
	must(t, os.Symlink("nothing", name(1)))
	for n := range 3 {
		f, err := (&Files{}).CreateIn(dir)
		must(t, err)
		_, err = f.Write([]byte(itoa(n)))
		must(t, err)
		must(t, f.Close())
		must(t, f.CommitNew(name, 10))
	}
	if content(t, name(0)) != "stays" || content(t, name(2)) != "0" || content(t, name(4)) != "2" {
		t.Errorf("%q", names(t, dir))
	}
	f, err := (&Files{}).CreateIn(dir)
	must(t, err)
	if err := f.CommitNew(name, 3); err == nil {
		t.Error("no name was free")
	}
	if got := names(t, dir); len(got) != 5 {
		t.Errorf("%q", got)
	}
}

// TestNoTempDir says where temporary files can be put instead.
func TestNoTempDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	if _, _, err := TempDir("x"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "(see TMPDIR)") {
		t.Error(err)
	}
}

// TestUnwritable: neither a file that may not be written nor a directory that
// takes no new ones is worked around.
func TestUnwritable(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root may do all that: be somebody else for a while, in another process.
		asNobody(t, "TestUnwritable")
		return
	}
	dir := os.Getenv("OUTFILE_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	put(t, dir+"/kept", "old")
	must(t, os.Chmod(dir+"/kept", 0o444))
	if _, err := (&Files{}).Create(dir + "/kept"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that may not be written: %v", err)
	}
	put(t, dir+"/out", "old")
	must(t, os.Chmod(dir, 0o555))
	defer os.Chmod(dir, 0o755)
	_, err := (&Files{}).Create(dir + "/out")
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "another directory") {
		t.Errorf("a directory that may not be written: %v", err)
	}
	f, err := (&Files{}).Stream(dir + "/out")
	must(t, err)
	f.Discard()
}

// TestSwapped: what the name stands for changes while the file is written.
func TestSwapped(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/in", "input")
	files := &Files{}
	files.Reads(dir + "/in")
	f, err := files.Create(dir + "/out")
	must(t, err)
	must(t, os.Link(dir+"/in", dir+"/out"))
	if err := f.Commit(); !isConflict(err) {
		t.Error(err)
	}
	if content(t, dir+"/out") != "input" || len(names(t, dir)) != 2 {
		t.Errorf("%q", names(t, dir))
	}
}

func TestNil(t *testing.T) {
	var files *Files
	files.Reads("x")
	files.ReadsStream("x", os.Stdin)
	name := filepath.Join(t.TempDir(), "x")
	f, err := files.Create(name)
	must(t, err)
	must(t, f.Commit())
	must(t, files.Check(name))
	must(t, files.CheckStream("x", os.Stdout))
	s, err := files.Stream(name)
	must(t, err)
	s.Forget()
	must(t, s.Commit())
	must(t, s.Remove())
}

// TestStreamsApart: two outputs do not go into one pipe or descriptor, and none into the file that standard output has become.
func TestStreamsApart(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(dir+"/fifo", 0o600))
	reader, err := os.OpenFile(dir+"/fifo", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close()
	out, err := os.Create(dir + "/out")
	must(t, err)
	defer out.Close()
	fd := "/dev/fd/" + strconv.Itoa(int(out.Fd()))
	for _, name := range []string{dir + "/fifo", fd, "/dev/stderr"} {
		files := &Files{}
		f, err := files.Create(name)
		must(t, err)
		if _, err := files.Create(name); !isConflict(err) {
			t.Errorf("%s twice: %v", name, err)
		}
		f.Discard()
	}
	files := &Files{}
	files.Prints(out)
	must(t, files.CheckStream("standard output", out))
	if _, err := files.Create(dir + "/out"); !isConflict(err) {
		t.Errorf("the file of standard output: %v", err)
	}
	f, err := files.Create(fd)
	must(t, err)
	f.Discard()
	files = &Files{}
	must(t, files.TakeStdout(out))
	if err := files.TakeStdout(out); !isConflict(err) {
		t.Errorf("standard output twice: %v", err)
	}
}
