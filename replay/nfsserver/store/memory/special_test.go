package memory

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func write(t *testing.T, s *Store, h store.Handle, offset uint64, data []byte) {
	t.Helper()
	var w store.Wcc
	if err := s.Write(root, h, offset, data, false, &w); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshot holds results of Read while everything else happens to the file.
func TestSnapshot(t *testing.T) {
	s := New(Options{})
	f := newFile(t, s, "f")
	old := bytes.Repeat([]byte("old!"), BlockSize/4)
	write(t, s, f, 0, old)
	var whole, part, crossing store.ReadResult
	for _, c := range []struct {
		r      *store.ReadResult
		offset uint64
		count  uint32
	}{{&whole, 0, BlockSize}, {&part, 100, 1000}, {&crossing, BlockSize - 100, 1000}} {
		if err := s.Read(root, f, c.offset, c.count, c.r); err != nil {
			t.Fatal(err)
		}
	}
	var w store.Wcc
	write(t, s, f, 50, bytes.Repeat([]byte{1}, 5000))
	write(t, s, f, 0, bytes.Repeat([]byte{2}, 2*BlockSize))
	if err := s.SetAttr(root, f, &store.SetAttr{Mask: store.SetSize, Size: 3}, &w); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(root, s.Root(), []byte("f"), &w); err != nil {
		t.Fatal(err)
	}
	g := newFile(t, s, "g")
	write(t, s, g, 0, bytes.Repeat([]byte{3}, 3*BlockSize))
	if !bytes.Equal(whole.Data, old) || !bytes.Equal(part.Data, old[100:1100]) || !bytes.Equal(crossing.Data, old[:100]) {
		t.Error("what was read has changed")
	}
	used := s.space.used.Load()
	whole.Release()
	whole.Release()
	crossing.Release()
	if part.Release(); s.space.used.Load() != used-BlockSize {
		t.Errorf("%d bytes given back", used-s.space.used.Load())
	}
}

// TestHold keeps a file without names.
func TestHold(t *testing.T) {
	s := New(Options{})
	empty := s.space.used.Load()
	f := newFile(t, s, "f")
	write(t, s, f, 0, []byte("data"))
	for range 2 {
		if err := s.Hold(f); err != nil {
			t.Fatal(err)
		}
	}
	var w store.Wcc
	if err := s.Remove(root, s.Root(), []byte("f"), &w); err != nil {
		t.Fatal(err)
	}
	s.Unhold(f)
	var r store.ReadResult
	if err := s.Read(root, f, 0, 10, &r); err != nil || string(r.Data) != "data" || r.Attr.Nlink != 0 {
		t.Errorf("%q, %v", r.Data, err)
	}
	r.Release()
	var a store.Attr
	if err := s.Link(root, f, s.Root(), []byte("g"), &a, &w); err != store.ErrStale {
		t.Errorf("a name for what has none: %v", err)
	}
	s.Unhold(f)
	s.Unhold(f)
	if err := s.GetAttr(f, &a); err != store.ErrStale {
		t.Errorf("got %v", err)
	}
	if err := s.Hold(f); err != store.ErrStale {
		t.Errorf("got %v", err)
	}
	if used := s.space.used.Load(); used != empty {
		t.Errorf("%d bytes are left", used-empty)
	}
}

func TestNoSpace(t *testing.T) {
	s := New(Options{Size: 3 << 20})
	f := newFile(t, s, "f")
	write(t, s, f, 0, bytes.Repeat([]byte{7}, BlockSize))
	var w store.Wcc
	if err := s.Write(root, f, BlockSize-10, make([]byte, 3*BlockSize), false, &w); err != store.ErrNoSpace {
		t.Fatalf("got %v", err)
	}
	if err := s.Allocate(root, f, 0, 1<<50, &w); err != store.ErrNoSpace {
		t.Errorf("got %v", err)
	}
	var a store.Attr
	if err := s.GetAttr(f, &a); err != nil || a.Size != BlockSize {
		t.Errorf("size %d after a write that failed", a.Size)
	}
	var r store.ReadResult
	if err := s.Read(root, f, BlockSize-20, 100, &r); err != nil || !bytes.Equal(r.Data, bytes.Repeat([]byte{7}, 20)) {
		t.Errorf("%v, %v", r.Data, err)
	}
	// Taking away works even then, though the block must be copied for it.
	if err := s.Deallocate(root, f, 5, 100, &w); err != nil {
		t.Errorf("got %v", err)
	}
	r.Release()
	// Far away: a file of 8 EiB that holds one page.
	if err := s.SetAttr(root, f, &store.SetAttr{Mask: store.SetSize, Size: 0}, &w); err != nil {
		t.Fatal(err)
	}
	write(t, s, f, 1<<63-2, []byte{1})
	if err := s.GetAttr(f, &a); err != nil || a.Size != 1<<63-1 || a.Used != pageSize {
		t.Errorf("%+v, %v", a, err)
	}
	if at, err := s.Seek(root, f, 5, store.SeekData); err != nil || at != 1<<63-pageSize {
		t.Errorf("data at %#x, %v", at, err)
	}
	if err := s.Deallocate(root, f, 0, 1<<63-1, &w); err != nil {
		t.Error(err)
	}
	if err := s.Deallocate(root, f, 1, 1<<63-1, &w); err != store.ErrFBig {
		t.Errorf("got %v", err)
	}
	if n, err := s.Copy(root, f, 1, f, 0, 1, &w); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestNames(t *testing.T) {
	s := New(Options{})
	var a store.Attr
	for name, want := range map[string]error{
		"": store.ErrBadName, ".": store.ErrBadName, "..": store.ErrBadName, "a/b": store.ErrBadName, "a\x00": store.ErrBadName,
		string(make([]byte, 256)): store.ErrNameTooLong, "...": store.ErrNoEnt, "\xff": store.ErrNoEnt,
	} {
		if err := s.Lookup(root, s.Root(), []byte(name), &a); err != want {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
}

// TestSetID checks when a file loses its set-ID bits.
func TestSetID(t *testing.T) {
	s := New(Options{})
	user := &store.Cred{UID: 5, GID: 5}
	var a store.Attr
	var w store.Wcc
	make := func() store.Handle {
		h := newFile(t, s, "f")
		if err := s.SetAttr(root, h, &store.SetAttr{Mask: store.SetMode | store.SetUID | store.SetGID, Mode: 0o6775, UID: 5, GID: 5}, &w); err != nil {
			t.Fatal(err)
		}
		return h
	}
	for name, c := range map[string]struct {
		do   func(h store.Handle) error
		want uint32
	}{
		"write":         {func(h store.Handle) error { return s.Write(user, h, 0, []byte("x"), false, &w) }, 0o775},
		"write by root": {func(h store.Handle) error { return s.Write(root, h, 0, []byte("x"), false, &w) }, 0o6775},
		"chown": {func(h store.Handle) error {
			return s.SetAttr(root, h, &store.SetAttr{Mask: store.SetUID, UID: 6}, &w)
		}, 0o775},
		"chmod": {func(h store.Handle) error {
			return s.SetAttr(user, h, &store.SetAttr{Mask: store.SetMode, Mode: 0o4700}, &w)
		}, 0o4700},
		"truncate": {func(h store.Handle) error {
			return s.SetAttr(user, h, &store.SetAttr{Mask: store.SetSize}, &w)
		}, 0o775},
	} {
		h := make()
		if err := c.do(h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.GetAttr(h, &a); err != nil || a.Mode != c.want {
			t.Errorf("%s: mode %o, want %o", name, a.Mode, c.want)
		}
		if err := s.Remove(root, s.Root(), []byte("f"), &w); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPermissions(t *testing.T) {
	s := New(Options{RootMode: 0o755})
	open := New(Options{RootMode: 0o755, NoPermissions: true})
	user := &store.Cred{UID: 5, GID: 5}
	var a store.Attr
	var w store.Wcc
	if _, err := s.Create(user, s.Root(), []byte("f"), &store.Create{}, &a, &w); err != store.ErrAccess {
		t.Errorf("got %v", err)
	}
	if _, err := open.Create(user, open.Root(), []byte("f"), &store.Create{}, &a, &w); err != nil {
		t.Errorf("without permissions: %v", err)
	}
	f := newFile(t, s, "f") // 0600, root's
	var r store.ReadResult
	if err := s.Read(user, f, 0, 1, &r); err != store.ErrAccess {
		t.Errorf("got %v", err)
	}
	if err := s.Read(&store.Cred{UID: 5, Bypass: true}, f, 0, 1, &r); err != nil {
		t.Errorf("an open file: %v", err)
	}
	// The owner may read and write whatever the mode.
	if err := s.SetAttr(root, f, &store.SetAttr{Mask: store.SetMode | store.SetUID, UID: 5}, &w); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(user, f, 0, []byte("x"), false, &w); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if m, err := s.Access(user, f, store.AccessAll); m != 0 || err != nil {
		t.Errorf("%#x, %v", m, err)
	}
	// Who may execute may read.
	if err := s.SetAttr(root, f, &store.SetAttr{Mask: store.SetMode, Mode: 0o001}, &w); err != nil {
		t.Fatal(err)
	}
	if err := s.Read(&store.Cred{UID: 6, GID: 6}, f, 0, 1, &r); err != nil {
		t.Errorf("executable: %v", err)
	}
	// A directory with the set-GID bit hands down its group.
	if err := s.SetAttr(root, s.Root(), &store.SetAttr{Mask: store.SetMode | store.SetGID, Mode: 0o2777, GID: 77}, &w); err != nil {
		t.Fatal(err)
	}
	if err := s.Mkdir(user, s.Root(), []byte("d"), nil, &a, &w); err != nil || a.GID != 77 || a.Mode&store.ModeSetGID == 0 {
		t.Errorf("%v: group %d, mode %o", err, a.GID, a.Mode)
	}
}
