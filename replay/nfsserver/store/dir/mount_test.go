//go:build live && linux

package dir

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// TestBindMount mounts, which needs root. What is mounted in the directory is hidden, also if it is a
// part of the same file system.
func TestBindMount(t *testing.T) {
	const env = "DIR_TEST_BIND"
	base := os.Getenv(env)
	if base == "" {
		helper(t, env, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	served, secret := filepath.Join(base, "served"), filepath.Join(base, "secret")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(served, "d"), 0o755), os.Mkdir(secret, 0o755),
		os.WriteFile(filepath.Join(secret, "f"), []byte("secret"), 0o644),
		os.WriteFile(filepath.Join(served, "f"), []byte("public"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, served, Options{Writable: true, Recheck: time.Nanosecond})
	d, f := lookup(t, s, s.Root(), "d"), lookup(t, s, s.Root(), "f")
	for _, m := range [][2]string{{secret, filepath.Join(served, "d")}, {filepath.Join(secret, "f"), filepath.Join(served, "f")}} {
		if err := unix.Mount(m[0], m[1], "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	c := me()
	var a store.Attr
	for _, name := range []string{"d", "f"} {
		if err := s.Lookup(&c, s.Root(), []byte(name), &a); err != store.ErrNoEnt {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Lookup(&c, d.Handle, []byte("f"), &a); err != store.ErrStale {
		t.Errorf("d/f: %v", err)
	}
	if got, err := readFile(s, f.Handle); err != store.ErrStale {
		t.Errorf("%q, %v", got, err)
	}
	list := &store.DirList{Max: 10}
	if err := s.ReadDir(&c, s.Root(), 0, 0, list); err != nil || len(list.Entries) != 0 {
		t.Errorf("%d entries, %v", len(list.Entries), err)
	}
}
