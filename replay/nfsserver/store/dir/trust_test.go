//go:build linux

package dir

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func readFile(s *Store, h store.Handle) (string, error) {
	c := me()
	var r store.ReadResult
	if err := s.Read(&c, h, 0, 100, &r); err != nil {
		return "", err
	}
	defer r.Release()
	return string(r.Data), nil
}

// What somebody moves out of the directory is out of reach, though it was open.
func TestMovedOut(t *testing.T) {
	for _, what := range []string{"d/e/f", "d/e", "d"} {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s held=%v", what, held), func(t *testing.T) {
				served, secret := tree(t)
				for _, err := range []error{
					os.Mkdir(filepath.Join(served, "d/e"), 0o755),
					os.WriteFile(filepath.Join(served, "d/e/f"), []byte("before"), 0o644),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
				s := open(t, served, Options{Writable: true, Recheck: time.Nanosecond})
				d := lookup(t, s, s.Root(), "d")
				e := lookup(t, s, d.Handle, "e")
				f := lookup(t, s, e.Handle, "f")
				if held {
					if err := s.Hold(f.Handle); err != nil {
						t.Fatal(err)
					}
					defer s.Unhold(f.Handle)
				}
				c := me()
				var w store.Wcc
				if err := s.Write(&c, f.Handle, 0, []byte("before"), false, &w); err != nil {
					t.Fatal(err)
				}
				if got, err := readFile(s, f.Handle); err != nil || got != "before" {
					t.Fatalf("%q, %v", got, err)
				}
				from, to := filepath.Join(served, what), filepath.Join(secret, "moved")
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
				out := to + strings.TrimPrefix("d/e/f", what)
				if err := os.WriteFile(out, []byte("secret"), 0o644); err != nil {
					t.Fatal(err)
				}
				if got, err := readFile(s, f.Handle); err != store.ErrStale {
					t.Errorf("read: %q, %v", got, err)
				}
				if err := s.Write(&c, f.Handle, 0, []byte("broken"), false, &w); err != store.ErrStale {
					t.Errorf("write: %v", err)
				}
				if err := s.SetAttr(&c, f.Handle, &store.SetAttr{Mask: store.SetMode, Mode: 0o777}, &w); err != store.ErrStale {
					t.Errorf("setattr: %v", err)
				}
				var a store.Attr
				if err := s.GetAttr(f.Handle, &a); err != store.ErrStale {
					t.Errorf("getattr: %v", err)
				}
				if what != "d/e/f" {
					list := &store.DirList{Max: 10}
					if err := s.ReadDir(&c, e.Handle, 0, 0, list); err != store.ErrStale {
						t.Errorf("readdir: %v, %d entries", err, len(list.Entries))
					}
					if err := s.Lookup(&c, e.Handle, []byte("f"), &a); err != store.ErrStale {
						t.Errorf("lookup: %v", err)
					}
					if _, err := s.Create(&c, e.Handle, []byte("new"), &store.Create{}, &a, &w); err != store.ErrStale {
						t.Errorf("create: %v", err)
					}
					if err := s.Remove(&c, e.Handle, []byte("f"), &w); err != store.ErrStale {
						t.Errorf("remove: %v", err)
					}
					if err := s.Rename(&c, e.Handle, []byte("f"), s.Root(), []byte("stolen"), &w, &w); err != store.ErrStale {
						t.Errorf("rename: %v", err)
					}
					if _, err := s.Parent(&c, e.Handle); err != store.ErrStale {
						t.Errorf("parent: %v", err)
					}
				}
				if got, err := os.ReadFile(out); err != nil || string(got) != "secret" {
					t.Errorf("outside: %q, %v", got, err)
				}
				// Moved back and looked up, it has its handle again.
				if err := os.Rename(to, from); err != nil {
					t.Fatal(err)
				}
				f2 := lookup(t, s, lookup(t, s, lookup(t, s, s.Root(), "d").Handle, "e").Handle, "f")
				if f2.Handle != f.Handle {
					t.Error("another handle")
				}
				if got, err := readFile(s, f.Handle); err != nil || got != "secret" {
					t.Errorf("back: %q, %v", got, err)
				}
			})
		}
	}
}

// A directory is out of reach within Options.Recheck, however deep it is and
// whatever was looked at in between.
func TestMovedOutInTime(t *testing.T) {
	served, secret := tree(t)
	deep := "d"
	for range 20 {
		deep += "/x"
		if err := os.Mkdir(filepath.Join(served, deep), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const recheck = 200 * time.Millisecond
	s := open(t, served, Options{Recheck: recheck})
	at := lookup(t, s, s.Root(), "d")
	dirs := []store.Handle{at.Handle}
	for range 20 {
		at = lookup(t, s, at.Handle, "x")
		dirs = append(dirs, at.Handle)
	}
	c := me()
	if err := os.Rename(filepath.Join(served, "d"), filepath.Join(secret, "d")); err != nil {
		t.Fatal(err)
	}
	moved := time.Now()
	if err := os.WriteFile(filepath.Join(secret, deep, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for {
		begun := time.Now()
		reached := false
		for _, d := range dirs {
			reached = s.ReadDir(&c, d, 0, 0, &store.DirList{Max: 10}) == nil || reached
		}
		if !reached {
			break
		}
		if begun.Sub(moved) > recheck {
			t.Fatalf("still reached after %v", begun.Sub(moved))
		}
	}
}

// What somebody moves within the directory is found again as long as it is open.
func TestMovedWithin(t *testing.T) {
	for _, move := range []struct{ from, to string }{{"d/f", "d/g"}, {"d", "e"}, {"d/f", "f"}, {"d", "inner/d"}} {
		t.Run(move.from+" "+move.to, func(t *testing.T) {
			served, _ := tree(t)
			if err := os.Mkdir(filepath.Join(served, "inner"), 0o755); err != nil {
				t.Fatal(err)
			}
			s := open(t, served, Options{Writable: true, Recheck: time.Nanosecond})
			f := lookup(t, s, lookup(t, s, s.Root(), "d").Handle, "f")
			if got, err := readFile(s, f.Handle); err != nil || got != "public" {
				t.Fatalf("%q, %v", got, err)
			}
			if err := os.Rename(filepath.Join(served, move.from), filepath.Join(served, move.to)); err != nil {
				t.Fatal(err)
			}
			if got, err := readFile(s, f.Handle); err != nil || got != "public" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Files that are open and removed need a descriptor each; there are not too
// many of them.
func TestOrphans(t *testing.T) {
	served, _ := tree(t)
	s := open(t, served, Options{Writable: true, Orphans: 2, Files: 1, Recheck: time.Nanosecond})
	c := me()
	var w store.Wcc
	var files []store.Attr
	for i := range 4 {
		name := fmt.Sprint(i)
		if err := os.WriteFile(filepath.Join(served, name), []byte("text "+name), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, lookup(t, s, s.Root(), name))
		if err := s.Hold(files[i].Handle); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(&c, s.Root(), []byte("0"), &w); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(&c, s.Root(), []byte("2"), s.Root(), []byte("1"), &w, &w); err != nil { // 1 goes
		t.Fatal(err)
	}
	if err := s.Remove(&c, s.Root(), []byte("3"), &w); err != store.ErrFileOpen {
		t.Errorf("a third one: %v", err)
	}
	if err := s.Rename(&c, s.Root(), []byte("3"), s.Root(), []byte("1"), &w, &w); err != store.ErrFileOpen {
		t.Errorf("a third one, replaced: %v", err)
	}
	for i, f := range files {
		if got, err := readFile(s, f.Handle); err != nil || got != fmt.Sprint("text ", i) {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	s.Unhold(files[0].Handle)
	if _, err := readFile(s, files[0].Handle); err != store.ErrStale {
		t.Errorf("closed: %v", err)
	}
	if err := s.Remove(&c, s.Root(), []byte("3"), &w); err != nil {
		t.Errorf("after a close: %v", err)
	}
	for _, f := range files[1:] {
		s.Unhold(f.Handle)
	}
	if n := s.orphans.Load(); n != 0 {
		t.Errorf("%d orphans", n)
	}
	if got, err := readFile(s, files[2].Handle); err != nil || got != "text 2" {
		t.Errorf("%q, %v", got, err)
	}
}

// helper runs a test again as a process of its own, in which env is set.
func helper(t *testing.T, env string, attr *syscall.SysProcAttr, args ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	if len(args) > 0 {
		cmd = exec.Command(args[0], append(args[1:], cmd.Args...)...)
	}
	cmd.Env = append(os.Environ(), env+"="+t.TempDir())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Under a limit of 128 descriptors a client has 1,000 files open. The process
// can still open others, and the files can be read and written.
func TestDescriptors(t *testing.T) {
	const env = "DIR_TEST_DESCRIPTORS"
	base := os.Getenv(env)
	if base == "" {
		helper(t, env, nil, "/bin/sh", "-c", `ulimit -n 128 && exec "$0" "$@"`)
		return
	}
	if n := descriptors(); n != 128 {
		t.Fatalf("limit %d", n)
	}
	s := open(t, base, Options{Writable: true})
	c := me()
	var handles []store.Handle
	var w store.Wcc
	for i := range 1000 {
		var a store.Attr
		if _, err := s.Create(&c, s.Root(), []byte(fmt.Sprint(i)), &store.Create{}, &a, &w); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if err := s.Hold(a.Handle); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if err := s.Write(&c, a.Handle, 0, []byte(fmt.Sprint(i)), false, &w); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		handles = append(handles, a.Handle)
	}
	var fds []int
	for {
		fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		fds = append(fds, fd)
	}
	if len(fds) < 64 {
		t.Errorf("only %d descriptors are left for connections", len(fds))
	}
	// There are none at all now: what is kept open makes room.
	for i, h := range handles {
		if got, err := readFile(s, h); err != nil || got != fmt.Sprint(i) {
			t.Fatalf("%d: %q, %v", i, got, err)
		}
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	// Removed while they are open, as many as may be: none is lost.
	removed := 0
	for i := range handles {
		switch err := s.Remove(&c, s.Root(), []byte(fmt.Sprint(i)), &w); err {
		case nil:
			removed++
		case store.ErrFileOpen:
		default:
			t.Fatalf("%d: %v", i, err)
		}
	}
	if removed != 128/8 {
		t.Errorf("%d removed", removed)
	}
	for i, h := range handles {
		if got, err := readFile(s, h); err != nil || got != fmt.Sprint(i) {
			t.Fatalf("%d: %q, %v", i, got, err)
		}
		s.Unhold(h)
	}
}
