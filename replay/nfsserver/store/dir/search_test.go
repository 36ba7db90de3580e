//go:build linux

package dir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// eventually repeats what fails with ErrDelay.
func eventually(t *testing.T, f func() error) error {
	t.Helper()
	for range 60000 {
		if err := f(); !errors.Is(err, store.ErrDelay) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("still searching")
	return nil
}

// Handles of an earlier store are good in the next one: for files, directories, and
// names that have changed meanwhile. Those of what is gone, of what is outside, and of
// other keys are stale.
func TestSearch(t *testing.T) {
	top := t.TempDir()
	served := filepath.Join(top, "served")
	for i := range 30 {
		d := filepath.Join(served, fmt.Sprint("a", i), "b", "c")
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "f"), []byte(d), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opt := Options{Writable: true, HandleKey: store.NewKey(), Search: true}
	s := open(t, served, opt)
	cred := me()
	at := func(s *Store, names ...string) store.Handle {
		h := s.Root()
		for _, n := range names {
			var a store.Attr
			if err := s.Lookup(&cred, h, []byte(n), &a); err != nil {
				t.Fatal(n, err)
			}
			h = a.Handle
		}
		return h
	}
	handles := map[string]store.Handle{}
	for i := range 30 {
		handles[fmt.Sprint("a", i)] = at(s, fmt.Sprint("a", i), "b", "c", "f")
	}
	dir := at(s, "a7", "b")
	sealed := s.Info().Handles.Append(nil, handles["a3"])
	for _, err := range []error{
		os.Remove(filepath.Join(served, "a1", "b", "c", "f")),
		os.Rename(filepath.Join(served, "a2", "b", "c", "f"), filepath.Join(top, "outside")),
		os.Rename(filepath.Join(served, "a4", "b"), filepath.Join(served, "a5", "moved")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	next := open(t, served, opt)
	if h, err := next.Info().Handles.Open(sealed); err != nil || h != handles["a3"] {
		t.Errorf("%v, %v", h, err)
	}
	var wg sync.WaitGroup
	for name, h := range handles {
		wg.Go(func() {
			var r store.ReadResult
			err := eventually(t, func() error { return next.Read(&cred, h, 0, 1000, &r) })
			defer r.Release()
			switch name {
			case "a1", "a2":
				if !errors.Is(err, store.ErrStale) {
					t.Errorf("%s: %v", name, err)
				}
			default:
				if err != nil || string(r.Data) != filepath.Join(served, name, "b", "c") {
					t.Errorf("%s: %q, %v", name, r.Data, err)
				}
			}
		})
	}
	wg.Wait()
	var a store.Attr
	if err := eventually(t, func() error { return next.Lookup(&cred, dir, []byte("c"), &a) }); err != nil {
		t.Error(err)
	}
	if p, err := next.Parent(&cred, dir); err != nil || p != at(next, "a7") {
		t.Errorf("parent %v, %v", p, err)
	}
	// A handle that was not found costs no further search, nor does one that was removed.
	var w store.Wcc
	f := at(next, "a9", "b", "c", "f")
	if err := next.Remove(&cred, at(next, "a9", "b", "c"), []byte("f"), &w); err != nil {
		t.Fatal(err)
	}
	for _, h := range []store.Handle{f, handles["a1"], handles["a2"]} {
		if err := next.GetAttr(h, &a); !errors.Is(err, store.ErrStale) {
			t.Errorf("%v", err)
		}
	}
	plain := open(t, served, Options{})
	if err := plain.GetAttr(handles["a3"], &a); !errors.Is(err, store.ErrStale) {
		t.Errorf("without a search: %v", err)
	}
}

// TestSearchOnce: one walk finds all handles that clients present one after the other. What has
// moved since takes another walk.
func TestSearchOnce(t *testing.T) {
	served := t.TempDir()
	opt := Options{HandleKey: store.NewKey(), Search: true}
	cred := me()
	var handles []store.Handle
	s := open(t, served, opt)
	for i := range 100 {
		d := filepath.Join(served, fmt.Sprint("d", i%10))
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("f", i)
		if err := os.WriteFile(filepath.Join(d, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		var a store.Attr
		if err := errors.Join(s.Lookup(&cred, s.Root(), []byte(filepath.Base(d)), &a), s.Lookup(&cred, a.Handle, []byte(name), &a)); err != nil {
			t.Fatal(err)
		}
		handles = append(handles, a.Handle)
	}
	next := open(t, served, opt)
	find := func(i int) {
		t.Helper()
		var r store.ReadResult
		err := eventually(t, func() error { return next.Read(&cred, handles[i], 0, 100, &r) })
		defer r.Release()
		if err != nil || string(r.Data) != fmt.Sprint("f", i) {
			t.Errorf("f%d: %q, %v", i, r.Data, err)
		}
	}
	for i := range 99 {
		find(i)
	}
	next.searches.mu.Lock()
	walks := next.searches.walks
	next.searches.mu.Unlock()
	if walks != 1 {
		t.Errorf("%d walks", walks)
	}
	if err := os.Rename(filepath.Join(served, "d9", "f99"), filepath.Join(served, "d3", "moved")); err != nil {
		t.Fatal(err)
	}
	find(99)
}
