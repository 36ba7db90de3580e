//go:build linux

package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/internal/testtools/storetest"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// me is the user who runs the test.
func me() store.Cred { return store.Cred{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())} }

func open(t testing.TB, path string, opt Options) *Store {
	t.Helper()
	s, err := Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			// Few files are kept open, so that they are opened again all the time.
			s := open(t, t.TempDir(), Options{Writable: true, Files: 3})
			storetest.Model(t, s, storetest.Options{Cred: me(), Seed: seed, Steps: modelSteps})
		})
	}
}

func TestConcurrent(t *testing.T) {
	s := open(t, t.TempDir(), Options{Writable: true, Files: 20})
	storetest.Concurrent(t, s, storetest.Options{Cred: me(), Seed: 1, Steps: 150})
}

// tree makes a directory with a neighbour that must not be reached.
func tree(t *testing.T) (served, secret string) {
	t.Helper()
	base := t.TempDir()
	served, secret = filepath.Join(base, "served"), filepath.Join(base, "secret")
	for _, err := range []error{
		os.Mkdir(served, 0o755), os.Mkdir(filepath.Join(served, "d"), 0o755), os.Mkdir(secret, 0o755),
		os.WriteFile(filepath.Join(secret, "f"), []byte("secret"), 0o644),
		os.WriteFile(filepath.Join(served, "d", "f"), []byte("public"), 0o644),
		os.Symlink("../secret", filepath.Join(served, "relative")),
		os.Symlink(secret, filepath.Join(served, "absolute")),
		os.Symlink("d", filepath.Join(served, "inside")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return served, secret
}

func lookup(t *testing.T, s *Store, dir store.Handle, name string) store.Attr {
	t.Helper()
	var a store.Attr
	c := me()
	if err := s.Lookup(&c, dir, []byte(name), &a); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return a
}

func TestNeverLeaves(t *testing.T) {
	served, secret := tree(t)
	s := open(t, served, Options{Writable: true})
	c := me()
	var a store.Attr
	var w store.Wcc
	for _, name := range []string{"..", "../secret", "/etc", "d/f", ".", "", "d/../../secret"} {
		if err := s.Lookup(&c, s.Root(), []byte(name), &a); err != store.ErrBadName {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := s.Create(&c, s.Root(), []byte(name), &store.Create{}, &a, &w); err != store.ErrBadName {
			t.Errorf("create %q: %v", name, err)
		}
		if err := s.Rename(&c, s.Root(), []byte("d"), s.Root(), []byte(name), &w, &w); err != store.ErrBadName {
			t.Errorf("rename to %q: %v", name, err)
		}
	}
	for name, text := range map[string]string{"relative": "../secret", "absolute": secret, "inside": "d"} {
		l := lookup(t, s, s.Root(), name)
		if l.Type != store.Symlink {
			t.Errorf("%s is followed", name)
		}
		if got, err := s.Readlink(&c, l.Handle, nil); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := s.Lookup(&c, l.Handle, []byte("f"), &a); err != store.ErrNotDir {
			t.Errorf("%s/f: %v", name, err)
		}
		var r store.ReadResult
		if err := s.Read(&c, l.Handle, 0, 10, &r); err != store.ErrWrongType {
			t.Errorf("read %s: %v", name, err)
		}
		if err := s.SetAttr(&c, l.Handle, &store.SetAttr{Mask: store.SetAtime | store.SetMtime, Mtime: store.Time{Sec: 5}}, &w); err != nil {
			t.Errorf("times of %s: %v", name, err)
		}
	}
	if st, err := os.Stat(secret); err != nil || st.ModTime().Unix() == 5 {
		t.Error("a link was followed")
	}
	// Others put a link where a directory was: what is behind it is not reached.
	d := lookup(t, s, s.Root(), "d")
	f := lookup(t, s, d.Handle, "f")
	s.open.clear()
	if err := os.Rename(filepath.Join(served, "d"), filepath.Join(served, "e")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(served, "d")); err != nil {
		t.Fatal(err)
	}
	var r store.ReadResult
	if err := s.Read(&c, f.Handle, 0, 10, &r); err != store.ErrStale {
		t.Errorf("%q, %v", r.Data, err)
	}
	if err := s.Lookup(&c, d.Handle, []byte("f"), &a); err != store.ErrStale {
		t.Errorf("got %v", err)
	}
	// Found again under their new names, they have their old handles.
	if e := lookup(t, s, s.Root(), "e"); e.Handle != d.Handle || lookup(t, s, e.Handle, "f").Handle != f.Handle {
		t.Error("other handles")
	}
	if err := s.Read(&c, f.Handle, 0, 10, &r); err != nil || string(r.Data) != "public" {
		t.Errorf("%q, %v", r.Data, err)
	}
	r.Release()
	// Another object under an old name is not taken for the old one.
	s.open.clear()
	if err := os.WriteFile(filepath.Join(served, "new"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(served, "new"), filepath.Join(served, "e", "f")); err != nil {
		t.Fatal(err)
	}
	if err := s.Read(&c, f.Handle, 0, 10, &r); err != store.ErrStale {
		t.Errorf("%q, %v", r.Data, err)
	}
}

func TestReadOnly(t *testing.T) {
	served, _ := tree(t)
	s := open(t, served, Options{})
	c := me()
	var a store.Attr
	var w, w2 store.Wcc
	d := lookup(t, s, s.Root(), "d")
	f := lookup(t, s, d.Handle, "f")
	name := []byte("x")
	_, createErr := s.Create(&c, s.Root(), name, &store.Create{}, &a, &w)
	_, truncErr := s.Create(&c, d.Handle, []byte("f"), &store.Create{Set: store.SetAttr{Mask: store.SetSize}}, &a, &w)
	_, copyErr := s.Copy(&c, f.Handle, 0, f.Handle, 10, 5, &w)
	for what, err := range map[string]error{
		"create": createErr, "truncate": truncErr, "copy": copyErr,
		"mkdir":      s.Mkdir(&c, s.Root(), name, nil, &a, &w),
		"symlink":    s.Symlink(&c, s.Root(), name, name, nil, &a, &w),
		"mknod":      s.Mknod(&c, s.Root(), name, store.FIFO, store.Device{}, nil, &a, &w),
		"link":       s.Link(&c, f.Handle, s.Root(), name, &a, &w),
		"remove":     s.Remove(&c, d.Handle, []byte("f"), &w),
		"rmdir":      s.Rmdir(&c, s.Root(), []byte("d"), &w),
		"rename":     s.Rename(&c, s.Root(), []byte("d"), s.Root(), name, &w, &w2),
		"write":      s.Write(&c, f.Handle, 0, name, true, &w),
		"setattr":    s.SetAttr(&c, f.Handle, &store.SetAttr{Mask: store.SetMode}, &w),
		"allocate":   s.Allocate(&c, f.Handle, 0, 5, &w),
		"deallocate": s.Deallocate(&c, f.Handle, 0, 5, &w),
		"clone":      s.Clone(&c, f.Handle, 0, f.Handle, 4096, 0, &w),
		"setxattr":   s.SetXattr(&c, f.Handle, name, name, 0, &w),
		"rmxattr":    s.RemoveXattr(&c, f.Handle, name, &w),
	} {
		if err != store.ErrROFS {
			t.Errorf("%s: %v", what, err)
		}
	}
	if m, err := s.Access(&c, f.Handle, store.AccessAll); err != nil || m&store.AccessModify != 0 || m&store.AccessRead == 0 {
		t.Errorf("%#x, %v", m, err)
	}
	if err := s.Commit(&c, f.Handle, 0, 0, &w); err != nil {
		t.Error(err)
	}
	var st store.Statfs
	if err := s.Statfs(&st); err != nil || st.TotalBytes == 0 || !s.Info().ReadOnly {
		t.Errorf("%+v, %v", st, err)
	}
	list := store.DirList{Max: 100}
	if err := s.ReadDir(&c, s.Root(), 0, 0, &list); err != nil || len(list.Entries) != 4 || !list.EOF {
		t.Errorf("%v, %d entries", err, len(list.Entries))
	}
}

// TestHold writes to and reads a file that has no name any more.
func TestHold(t *testing.T) {
	s := open(t, t.TempDir(), Options{Writable: true, Files: 1})
	c := me()
	var a store.Attr
	var w store.Wcc
	if _, err := s.Create(&c, s.Root(), []byte("f"), &store.Create{}, &a, &w); err != nil {
		t.Fatal(err)
	}
	f := a.Handle
	if err := s.Hold(f); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(&c, s.Root(), []byte("f"), &w); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(&c, f, 0, []byte("held"), false, &w); err != nil {
		t.Fatal(err)
	}
	var r store.ReadResult
	if err := s.Read(&c, f, 0, 10, &r); err != nil || string(r.Data) != "held" || r.Attr.Nlink != 0 {
		t.Errorf("%q, %v", r.Data, err)
	}
	r.Release()
	s.Unhold(f)
	s.Unhold(f)
	if err := s.GetAttr(f, &a); err != store.ErrStale {
		t.Errorf("got %v", err)
	}
}

func TestAttributes(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, Options{Writable: true})
	c := me()
	var a store.Attr
	var w store.Wcc
	how := store.Create{Mode: store.Exclusive, Verifier: 7}
	if created, err := s.Create(&c, s.Root(), []byte("f"), &how, &a, &w); err != nil || !created || a.Mode != 0o600 || a.UID != c.UID {
		t.Fatalf("%v, %+v", err, a)
	}
	if created, err := s.Create(&c, s.Root(), []byte("f"), &how, &a, &w); err != nil || created {
		t.Errorf("again: %v, %v", created, err)
	}
	how.Verifier++
	if _, err := s.Create(&c, s.Root(), []byte("f"), &how, &a, &w); err != store.ErrExist {
		t.Errorf("another verifier: %v", err)
	}
	when := store.Time{Sec: 1_000_000_000, Nsec: 123_456_789}
	set := &store.SetAttr{Mask: store.SetMode | store.SetSize | store.SetMtime | store.SetAtimeNow, Mode: 0o4751, Size: 100, Mtime: when}
	if err := s.SetAttr(&c, a.Handle, set, &w); err != nil {
		t.Fatal(err)
	}
	if got := w.After; got.Mode != 0o4751 || got.Size != 100 || got.Mtime != when || got.Change <= w.Before.Change || w.Atomic {
		t.Errorf("%+v", w)
	}
	st, err := os.Stat(filepath.Join(path, "f"))
	if err != nil || st.Size() != 100 || !st.ModTime().Equal(when.Time()) {
		t.Errorf("%v, %v", st, err)
	}
	set = &store.SetAttr{Mask: store.SetMode, Guard: &store.Time{Sec: 1}}
	if err := s.SetAttr(&c, a.Handle, set, &w); err != store.ErrNotSync {
		t.Errorf("got %v", err)
	}
	// What others make, and a FIFO, which must not be opened.
	if err := unix.Mkfifo(filepath.Join(path, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := lookup(t, s, s.Root(), "fifo")
	var r store.ReadResult
	if err := s.Read(&c, fifo.Handle, 0, 1, &r); err != store.ErrWrongType {
		t.Errorf("got %v", err)
	}
	if err := s.SetAttr(&c, fifo.Handle, &store.SetAttr{Mask: store.SetMode, Mode: 0o622}, &w); err != nil || w.After.Mode != 0o622 {
		t.Errorf("%v, mode %o", err, w.After.Mode)
	}
	if err := s.Mknod(&c, s.Root(), []byte("fifo2"), store.FIFO, store.Device{}, &store.SetAttr{Mask: store.SetMode, Mode: 0o666}, &a, &w); err != nil || a.Mode != 0o666 || a.Type != store.FIFO {
		t.Errorf("%v, %+v", err, a)
	}
	// Permissions of others, whatever this process may do.
	other := &store.Cred{UID: c.UID + 1, GID: c.GID + 1}
	if err := s.SetAttr(other, fifo.Handle, &store.SetAttr{Mask: store.SetMode}, &w); err != store.ErrPerm {
		t.Errorf("got %v", err)
	}
	if err := s.Remove(other, s.Root(), []byte("fifo"), &w); err != store.ErrAccess {
		t.Errorf("got %v", err)
	}
}

// TestManyHandles sees more objects than are remembered.
func TestManyHandles(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, Options{Handles: 50, Files: 5})
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(path, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := me()
	list := store.DirList{Max: 7, Attrs: true}
	seen, cookie := 0, uint64(0)
	for !list.EOF {
		if err := s.ReadDir(&c, s.Root(), cookie, 0, &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Entries {
			seen, cookie = seen+1, e.Cookie
		}
	}
	if seen != 300 || len(s.nodes) > 50 {
		t.Errorf("%d entries, %d objects remembered", seen, len(s.nodes))
	}
}

func TestOpenErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + "/nothing", ""} {
		if _, err := Open(p, Options{}); err == nil || !strings.HasPrefix(err.Error(), p) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// TestClosesFiles counts the open files of the process.
func TestClosesFiles(t *testing.T) {
	count := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(e)
	}
	before := count()
	s, err := Open(t.TempDir(), Options{Writable: true, Files: 10})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Model(t, s, storetest.Options{Cred: me(), Seed: 9, Steps: modelSteps / 2})
	if n := count() - before; n > 12 {
		t.Errorf("%d files are open", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := count() - before; n > 0 {
		t.Errorf("%d files are left open", n)
	}
}

// TestRenamedMeanwhile looks at objects by their handles while they, and the
// directories above them, are renamed.
func TestRenamedMeanwhile(t *testing.T) {
	s := open(t, t.TempDir(), Options{Writable: true, Files: 1})
	c := me()
	var dirs [3]store.Handle
	at := s.Root()
	for i := range dirs {
		var a store.Attr
		var w store.Wcc
		if err := s.Mkdir(&c, at, []byte("a"), &store.SetAttr{Mask: store.SetMode, Mode: 0o755}, &a, &w); err != nil {
			t.Fatal(err)
		}
		dirs[i], at = a.Handle, a.Handle
	}
	var a store.Attr
	var w store.Wcc
	if _, err := s.Create(&c, at, []byte("f"), &store.Create{}, &a, &w); err != nil {
		t.Fatal(err)
	}
	f := a.Handle
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, parent := range []store.Handle{s.Root(), dirs[0], dirs[1]} {
		wg.Go(func() {
			c := me()
			var w, w2 store.Wcc
			for i := range 300 {
				from, to := []byte("a"), []byte("b")
				if i%2 == 1 {
					from, to = to, from
				}
				if err := s.Rename(&c, parent, from, parent, to, &w, &w2); err != nil {
					t.Errorf("rename: %v", err)
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	for n := 0; ; n++ {
		var a store.Attr
		var r store.ReadResult
		c := me()
		if err := s.GetAttr(f, &a); err != nil {
			t.Fatalf("after %d times: %v", n, err)
		}
		if err := s.Read(&c, f, 0, 10, &r); err != nil {
			t.Fatalf("after %d times: %v", n, err)
		}
		r.Release()
		if _, err := s.Parent(&c, dirs[2]); err != nil {
			t.Fatalf("after %d times: %v", n, err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
