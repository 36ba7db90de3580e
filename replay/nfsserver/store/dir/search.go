//go:build linux

package dir

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// searches looks for objects of which only the handle is known: clients have them from
// an earlier Store. One walk through all directories looks for all that are wanted when
// it begins, and unless there are too many remembers where it saw what, so that the next
// one that is wanted needs no walk. Handles cannot be made up (store.Seal), so that there
// are no more walks than old handles; and walks take at most half of the time.
type searches struct {
	mu      sync.Mutex
	wanted  map[store.Handle]struct{} // by the next walk
	missing map[store.Handle]struct{} // not found
	walk    *walk                     // under way
	walks   int                       // so far
	rest    time.Time                 // no walk begins before
	index   map[uint64]entry          // by inode number, of the last walk; nil if there are too many
	large   bool                      // there are
	closed  atomic.Bool

	places sync.Mutex // guards the visited directories of index
}

type walk struct {
	wanted map[uint64]store.Handle // by inode number
	left   int
	index  map[uint64]entry
	done   chan struct{}
}

// entry is where a walk saw an object.
type entry struct {
	up   *visited
	name string
}

// more reports whether the walk has to go on.
func (w *walk) more() bool { return w.left > 0 || w.index != nil }

const (
	// How many handles that were not found are remembered.
	maxMissing = 1 << 16
	// The most objects that a walk looks for.
	maxWanted = 1 << 16
	// So many objects are remembered at most: some 20 MB.
	maxIndex = 1 << 17
	// An operation waits so long for a walk before it fails with ErrDelay. Walks through
	// ten thousand directories take less.
	walkWait = 500 * time.Millisecond
)

// close ends a walk.
func (f *searches) close() {
	f.closed.Store(true)
	f.mu.Lock()
	w := f.walk
	f.mu.Unlock()
	if w != nil {
		<-w.done
	}
}

// removed notes that there is no such object any more.
func (f *searches) removed(h store.Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.miss(h)
}

func (f *searches) miss(h store.Handle) {
	if len(f.missing) >= maxMissing || f.missing == nil {
		f.missing = map[store.Handle]struct{}{}
	}
	f.missing[h] = struct{}{}
}

// find looks for an object that is not known.
func (s *Store) find(h store.Handle) (*node, error) {
	if !s.opt.Search {
		return nil, store.ErrStale
	}
	deadline := time.NewTimer(walkWait)
	defer deadline.Stop()
	f := &s.searches
	for {
		s.mu.Lock()
		n := s.nodes[h]
		s.mu.Unlock()
		if n != nil {
			return n, nil
		}
		f.mu.Lock()
		if f.closed.Load() {
			f.mu.Unlock()
			return nil, store.ErrDelay
		}
		if _, missing := f.missing[h]; missing {
			f.mu.Unlock()
			return nil, store.ErrStale
		}
		if e, ok := f.index[h.ID]; ok {
			delete(f.index, h.ID)
			f.mu.Unlock()
			s.remembered(e, h)
			continue
		}
		if f.wanted == nil {
			f.wanted = map[store.Handle]struct{}{}
		}
		if len(f.wanted) < maxWanted && (f.walk == nil || f.walk.wanted[h.ID] != h) {
			f.wanted[h] = struct{}{}
		}
		if f.walk == nil && time.Now().After(f.rest) {
			f.start(s)
		}
		var done <-chan struct{}
		var rested <-chan time.Time
		if w := f.walk; w != nil {
			done = w.done
		} else {
			rested = time.After(time.Until(f.rest))
		}
		f.mu.Unlock()
		select {
		case <-done:
		case <-rested:
		case <-deadline.C:
			return nil, store.ErrDelay
		}
	}
}

// start begins a walk. mu is held.
func (f *searches) start(s *Store) {
	w := &walk{wanted: map[uint64]store.Handle{}, done: make(chan struct{})}
	for h := range f.wanted {
		w.wanted[h.ID] = h
	}
	w.left = len(w.wanted)
	if !f.large {
		w.index = map[uint64]entry{}
	}
	f.wanted, f.walk = nil, w
	f.walks++
	go func() {
		begun := time.Now()
		s.walkDir(w, &visited{node: s.root}, 0)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, h := range w.wanted {
			if f.closed.Load() {
				break // it was not finished
			}
			s.mu.Lock()
			found := s.nodes[h] != nil
			s.mu.Unlock()
			if !found {
				f.miss(h)
			}
		}
		f.walk, f.index, f.large = nil, w.index, w.index == nil
		f.rest = time.Now().Add(time.Since(begun))
		close(w.done)
	}()
}

// visited is a directory on the way of a walk. Its node is made when something is found
// below.
type visited struct {
	up   *visited
	name string
	node *node
}

// walkDir looks at the names in a directory and below. What cannot be read is left out.
func (s *Store) walkDir(w *walk, d *visited, fd int) {
	if d.up == nil {
		f, err := s.dir(s.root, 0)
		if err != nil {
			return
		}
		defer f.put()
		fd = f.fd
	}
	list, err := s.openBeneath(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(list) //nolint:errcheck // nothing was written
	// Each level takes two descriptors.
	deepest, depth := min(maxDepth, descriptors()/16), 0
	for up := d; up != nil; up = up.up {
		depth++
	}
	b := make([]byte, 32<<10)
	var below []string
	for w.more() && !s.searches.closed.Load() {
		n, err := unix.Getdents(list, b)
		if err != nil || n <= 0 {
			break
		}
		eachEntry(b[:n], func(ino uint64, kind byte, name string) {
			if h, wanted := w.wanted[ino]; wanted {
				s.found(w, d, list, name, h)
			}
			switch {
			case w.index == nil:
			case len(w.index) == maxIndex:
				w.index = nil
			default:
				w.index[ino] = entry{d, name}
			}
			if kind == unix.DT_DIR || kind == unix.DT_UNKNOWN {
				below = append(below, name)
			}
		})
	}
	for _, name := range below {
		if !w.more() || depth >= deepest || s.searches.closed.Load() {
			return
		}
		st, err := statAt(list, name)
		if err != nil || st.attr.Type != store.Directory || st.dev != s.dev || st.mnt != s.mnt {
			continue
		}
		sub, err := s.openBeneath(list, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
		if err != nil {
			continue
		}
		s.walkDir(w, &visited{up: d, name: name}, sub)
		_ = unix.Close(sub)
	}
}

// found notes the name of an object with a wanted inode number, and of the directories
// above it, if it is the object.
func (s *Store) found(w *walk, d *visited, list int, name string, h store.Handle) {
	st, err := statAt(list, name)
	if err != nil || st.attr.Handle != h || st.dev != s.dev || st.mnt != s.mnt {
		return
	}
	up := s.materialize(d)
	if up == nil {
		return
	}
	s.mu.Lock()
	known := s.nodes[h] != nil
	s.mu.Unlock()
	s.seen(up, name, &st.attr)
	if !known {
		w.left--
	}
}

// remembered looks for an object where the last walk saw it.
func (s *Store) remembered(e entry, h store.Handle) {
	s.searches.places.Lock()
	up := s.materialize(e.up)
	s.searches.places.Unlock()
	if up == nil {
		return
	}
	f, err := s.dir(up, 0)
	if err != nil {
		return
	}
	defer f.put()
	st, err := statAt(f.fd, e.name)
	if err == nil && st.attr.Handle == h && st.dev == s.dev && st.mnt == s.mnt {
		s.seen(up, e.name, &st.attr)
	}
}

// prepare begins to look for all objects, so that old handles are known when clients come.
func (f *searches) prepare(s *Store) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start(s)
}

// materialize makes the node of a directory on the way; nil if it is there no more.
func (s *Store) materialize(d *visited) *node {
	if d.node != nil {
		return d.node
	}
	up := s.materialize(d.up)
	if up == nil {
		return nil
	}
	f, err := s.dir(up, 0)
	if err != nil {
		return nil
	}
	defer f.put()
	var a store.Attr
	n, err := s.lookup(up, f, d.name, &a)
	if err != nil || n.kind != store.Directory {
		return nil
	}
	d.node = n
	return n
}

// eachEntry calls f for the entries in the form of linux_dirent64 but "." and "..".
func eachEntry(b []byte, f func(ino uint64, kind byte, name string)) {
	const header = 8 + 8 + 2 + 1
	for len(b) > header {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size < header || size > len(b) {
			return
		}
		name := b[header:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if string(name) != "." && string(name) != ".." {
			f(binary.NativeEndian.Uint64(b), b[18], string(name))
		}
		b = b[size:]
	}
}
