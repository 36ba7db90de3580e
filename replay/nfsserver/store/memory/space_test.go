package memory

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// TestClonesTakeSpace: a file whose clone of itself is appended again and again has twice as many blocks each time. They are
// the same block, but the list of them takes memory, too.
func TestClonesTakeSpace(t *testing.T) {
	for name, double := range map[string]func(s *Store, f store.Handle, size uint64, w *store.Wcc) error{
		"CLONE": func(s *Store, f store.Handle, size uint64, w *store.Wcc) error {
			return s.Clone(root, f, 0, f, size, size, w)
		},
		"COPY": func(s *Store, f store.Handle, size uint64, w *store.Wcc) error {
			for done := uint64(0); done < size; {
				n, err := s.Copy(root, f, done, f, size+done, size-done, w)
				if err != nil {
					return err
				}
				done += n
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Size: 4 << 20})
			empty := s.space.used.Load()
			f := newFile(t, s, "f")
			write(t, s, f, 0, make([]byte, BlockSize))
			var w store.Wcc
			size, err := uint64(BlockSize), error(nil)
			for ; err == nil && size < 1<<40; size *= 2 {
				err = double(s, f, size, &w)
			}
			if err != store.ErrNoSpace {
				t.Errorf("a file of %d blocks in a store of 4 MiB: %v", size/BlockSize, err)
			}
			s.invariants(t)
			if err := s.Remove(root, s.Root(), []byte("f"), &w); err != nil {
				t.Fatal(err)
			}
			if used := s.space.used.Load(); used != empty {
				t.Errorf("%d bytes are used by nothing", used-empty)
			}
		})
	}
}

// TestFailuresTakeNoSpace: what fails for want of space takes none.
func TestFailuresTakeNoSpace(t *testing.T) {
	const size = 4 * BlockSize
	var w store.Wcc
	for name, do := range map[string]func(s *Store, f store.Handle) error{
		"Allocate": func(s *Store, f store.Handle) error { return s.Allocate(root, f, 0, size, &w) },
		"Allocate around data": func(s *Store, f store.Handle) error {
			write(t, s, f, BlockSize, []byte("data"))
			return s.Allocate(root, f, 100, size-200, &w)
		},
		"Write": func(s *Store, f store.Handle) error {
			return s.Write(root, f, BlockSize-100, make([]byte, 3*BlockSize), false, &w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Size: size})
			f := newFile(t, s, "f")
			g := newFile(t, s, "g")
			write(t, s, g, 0, make([]byte, BlockSize))
			before := s.space.used.Load()
			if err := do(s, f); err != store.ErrNoSpace {
				t.Errorf("more than there is: %v", err)
			}
			if used := s.space.used.Load(); used > before+pageSize+extentCost {
				t.Errorf("%d bytes less than before", used-before)
			}
			s.invariants(t)
			write(t, s, f, 0, make([]byte, BlockSize))
		})
	}
}
