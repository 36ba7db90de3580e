//go:build live && linux

package outfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPlantedLink makes a link of another user, which needs root: in a directory like /tmp, a link of somebody else is not
// followed.
func TestPlantedLink(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777|fs.ModeSticky))
	put(t, dir+"/precious", "x")
	must(t, os.Symlink("precious", dir+"/planted"))
	must(t, os.Symlink("precious", dir+"/mine"))
	must(t, os.Lchown(dir+"/planted", 65534, 65534))
	for _, f := range []func(string) (*File, error){(&Files{}).Create, (&Files{}).Stream} {
		if _, err := f(dir + "/planted"); err == nil {
			t.Error("a planted link was followed")
		}
	}
	f, err := (&Files{}).Create(dir + "/mine")
	must(t, err)
	f.Discard()
	if content(t, dir+"/precious") != "x" {
		t.Error("written")
	}
}

// TestFull mounts a small file system, which needs root: a disk without room leaves the old file.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	defer unix.Unmount(dir, 0)
	put(t, dir+"/out", "old")
	f, err := (&Files{}).Create(dir + "/out")
	must(t, err)
	block := bytes.Repeat([]byte("x"), 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Commit(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the end: %v", err)
	}
	if content(t, dir+"/out") != "old" || len(names(t, dir)) != 1 {
		t.Errorf("%q", names(t, dir))
	}
}
