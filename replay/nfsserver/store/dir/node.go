//go:build linux

package dir

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// place is a name in a directory.
type place struct {
	parent *node
	name   string
}

// node is an object that the store has seen.
type node struct {
	handle store.Handle
	kind   store.Type

	mu     sync.Mutex
	at     place              // where it was seen last; parent is nil if nowhere
	others map[place]struct{} // other names of it
	moves  uint64             // counts what this store has found or done about names
	change uint64             // the last change attribute told
	pinned *file              // the root, and what is held but has no name any more
	holds  int
	// Of an exclusive create.
	verifier uint64
	exclude  bool
}

// maxDepth is how deep a directory may be below the root. It also ends a search
// in a circle, that others could make by moving directories.
const maxDepth = 4096

// status is the result of statx.
type status struct {
	attr     store.Attr
	dev, mnt uint64
}

// statAt returns the status of a name in a directory, or of the directory itself if the name
// is empty.
func statAt(fd int, name string) (status, error) {
	var x unix.Statx_t
	err := retry(func() error {
		return unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_BTIME|unix.STATX_MNT_ID, &x)
	})
	if err != nil {
		return status{}, err
	}
	t := func(t unix.StatxTimestamp) store.Time { return store.Time{Sec: t.Sec, Nsec: t.Nsec} }
	st := status{dev: unix.Mkdev(x.Dev_major, x.Dev_minor)}
	if x.Mask&unix.STATX_MNT_ID != 0 {
		st.mnt = x.Mnt_id
	}
	st.attr = store.Attr{
		Mode: uint32(x.Mode) & store.ModeMask, Nlink: x.Nlink, UID: x.Uid, GID: x.Gid, Size: x.Size, Used: x.Blocks * 512,
		Rdev:  store.Device{Major: x.Rdev_major, Minor: x.Rdev_minor},
		Atime: t(x.Atime), Mtime: t(x.Mtime), Ctime: t(x.Ctime),
	}
	switch x.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		st.attr.Type = store.Regular
	case unix.S_IFDIR:
		st.attr.Type = store.Directory
	case unix.S_IFBLK:
		st.attr.Type = store.Block
	case unix.S_IFCHR:
		st.attr.Type = store.Character
	case unix.S_IFLNK:
		st.attr.Type = store.Symlink
	case unix.S_IFSOCK:
		st.attr.Type = store.Socket
	case unix.S_IFIFO:
		st.attr.Type = store.FIFO
	}
	st.attr.Handle = store.Handle{ID: x.Ino, Generation: 1}
	if x.Mask&unix.STATX_BTIME != 0 {
		st.attr.Birth = t(x.Btime)
		// Never 0, so that the zero Handle names nothing.
		mixed := uint64(x.Btime.Sec)*1_000_000_007 ^ uint64(x.Btime.Nsec)*0x9e3779b97f4a7c15
		st.attr.Handle.Generation = uint32(mixed>>32) | 1
	}
	// As of now; see Store.attr for changes that the ctime does not show.
	st.attr.Change = uint64(x.Ctime.Sec)*1_000_000_000 + uint64(x.Ctime.Nsec)
	return st, nil
}

// node returns the object of a handle.
func (s *Store) node(h store.Handle) (*node, error) {
	s.mu.Lock()
	n := s.nodes[h]
	s.mu.Unlock()
	if n == nil {
		return s.find(h)
	}
	return n, nil
}

// dirNode is node for directories.
func (s *Store) dirNode(h store.Handle) (*node, error) {
	n, err := s.node(h)
	if err == nil {
		err = store.CheckDirectory(n.kind)
	}
	return n, err
}

// fileNode is node for regular files.
func (s *Store) fileNode(h store.Handle) (*node, error) {
	n, err := s.node(h)
	if err == nil {
		err = store.CheckRegular(n.kind)
	}
	return n, err
}

// seen notes that an object has a name, and returns it.
func (s *Store) seen(parent *node, name string, a *store.Attr) *node {
	s.mu.Lock()
	n := s.nodes[a.Handle]
	if n == nil || n.kind != a.Type {
		if len(s.nodes) >= s.opt.Handles {
			s.evict()
		}
		n = &node{handle: a.Handle, kind: a.Type}
		s.nodes[a.Handle] = n
	}
	s.mu.Unlock()
	if n == s.root {
		return n
	}
	p := place{parent, name}
	n.mu.Lock()
	switch {
	case n.at == p:
	case n.at.parent == nil || n.kind == store.Directory:
		n.at = p
		n.moves++
	default:
		if n.others == nil {
			n.others = map[place]struct{}{}
		}
		// Names that were used long ago may be forgotten.
		if len(n.others) < 1024 {
			n.others[p] = struct{}{}
		}
	}
	if a.Change < n.change {
		a.Change = n.change
	}
	n.change = a.Change
	n.mu.Unlock()
	return n
}

// evict forgets some objects. mu is held.
func (s *Store) evict() {
	left := 16
	for h, n := range s.nodes {
		n.mu.Lock()
		idle := n.holds == 0 && n != s.root
		n.mu.Unlock()
		if idle {
			delete(s.nodes, h)
			s.open.drop(n)
			if left--; left == 0 {
				return
			}
		}
	}
}

// unseen notes that an object has lost a name.
func (n *node) unseen(parent *node, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(place{parent, name})
	n.moves++
}

// forget takes away a name. mu is held.
func (n *node) forget(p place) {
	delete(n.others, p)
	if n.at != p {
		return
	}
	n.at = place{}
	for other := range n.others {
		n.at = other
		delete(n.others, other)
		break
	}
}

// gone forgets an object that has no name any more, unless it is held.
func (s *Store) gone(n *node) {
	n.mu.Lock()
	held := n.holds > 0
	n.mu.Unlock()
	if held {
		return
	}
	s.mu.Lock()
	if s.nodes[n.handle] == n {
		delete(s.nodes, n.handle)
	}
	s.mu.Unlock()
	s.open.drop(n)
	s.searches.removed(n.handle)
}

// where is a name of an object, the last one seen.
func (n *node) where() place {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at
}

// whereElse is a name of an object that is not among those tried; parent is nil
// if there is none. moves goes with it, for notThere.
func (n *node) whereElse(tried []place) (p place, moves uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at.parent != nil && !slices.Contains(tried, n.at) {
		return n.at, n.moves
	}
	for p := range n.others {
		if !slices.Contains(tried, p) {
			return p, n.moves
		}
	}
	return place{}, n.moves
}

// notThere notes that an object was not found under a name that whereElse has
// given, unless it was renamed since.
func (n *node) notThere(p place, moves uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.moves == moves {
		n.forget(p)
	}
}

// expect notes a name that the object is about to have, so that it can be found
// at any time while it is renamed.
func (n *node) expect(parent *node, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.others == nil {
		n.others = map[place]struct{}{}
	}
	n.others[place{parent, name}] = struct{}{}
	n.moves++
}

// maxTries bounds the search for an object that others keep renaming.
const maxTries = 64

// reach calls try for the names of an object until one of them is it: with the
// directory, open, and the name in it. try gives ErrStale if it is not.
func (s *Store) reach(n *node, depth int, try func(up *file, name string) error) error {
	var tried []place
	for range maxTries {
		p, moves := n.whereElse(tried)
		if p.parent == nil {
			return store.ErrStale
		}
		up, err := s.dir(p.parent, depth)
		if err == store.ErrStale {
			// The directory is not there, or not at the moment: this says
			// nothing about the name in it.
			tried = append(tried, p)
			continue
		}
		if err != nil {
			return err
		}
		err = try(up, p.name)
		up.put()
		if err != store.ErrStale {
			return err
		}
		n.notThere(p, moves)
	}
	return store.ErrDelay
}

// check compares what was found with the object that was looked for.
func (s *Store) check(n *node, st *status) error {
	if st.dev != s.dev || st.mnt != s.mnt || st.attr.Handle != n.handle || st.attr.Type != n.kind {
		return store.ErrStale
	}
	return nil
}

// stat returns the attributes of an object.
func (s *Store) stat(n *node, a *store.Attr) error {
	n.mu.Lock()
	pinned := n.pinned
	if pinned != nil {
		pinned.get()
	}
	n.mu.Unlock()
	var st status
	var err error
	if pinned != nil {
		st, err = statAt(pinned.fd, "")
		pinned.put()
		if err != nil {
			return convert(err)
		}
	} else if st, err = s.statNamed(n); err != nil {
		return err
	}
	s.attr(n, &st, a, false)
	return nil
}

// statNamed is stat under any name that the object has.
func (s *Store) statNamed(n *node) (st status, err error) {
	err = s.reach(n, 1, func(up *file, name string) error {
		var err error
		if st, err = statAt(up.fd, name); err != nil {
			return missing(err)
		}
		return s.check(n, &st)
	})
	return st, err
}

// missing turns an error about a name that was not found into ErrStale.
func missing(err error) error {
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP || err == unix.EXDEV {
		return store.ErrStale
	}
	return convert(err)
}

// attr fills a with a status. changed says that this store has just changed the
// object: the change attribute then grows, even if the ctime does not.
func (s *Store) attr(n *node, st *status, a *store.Attr, changed bool) {
	*a = st.attr
	n.mu.Lock()
	if changed {
		n.change++
	}
	n.change = max(n.change, a.Change)
	a.Change = n.change
	n.mu.Unlock()
}

// after fills a with the attributes after a change by this store.
func (s *Store) after(n *node, fd int, a *store.Attr) error {
	st, err := statAt(fd, "")
	if err != nil {
		return convert(err)
	}
	s.attr(n, &st, a, true)
	return nil
}
