package memory

import (
	"sync"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// inode is an object. kind and dir never change.
type inode struct {
	kind store.Type
	dir  *directory // of directories

	mu    sync.RWMutex
	attr  store.Attr
	gone  bool // removed and freed, or a directory that was removed
	holds int
	// Of regular files.
	extents  []extent // sorted by index
	verifier uint64   // of the exclusive create
	exclude  bool     // verifier is set
	text     []byte   // of symbolic links
	xattrs   []xattr  // in order of their making
}

// directory is what a directory has in it, guarded by the inode's lock.
type directory struct {
	names   map[string]*entry
	entries []*entry // sorted by cookie; those removed have no inode
	removed int      // of entries
	cookie  uint64   // of the last entry
	// parent is guarded by Store.tree.
	parent *inode
}

type entry struct {
	name   string
	cookie uint64
	inode  *inode
}

// newInode makes an object with the type, mode and owner of a. Nobody else
// knows it yet. The caller has reserved it.
func (s *Store) newInode(a *store.Attr) *inode {
	now := s.opt.Clock()
	n := &inode{kind: a.Type, attr: *a}
	n.attr.Handle = store.Handle{ID: s.nextID.Add(1), Generation: s.opt.Generation}
	n.attr.Nlink = 1
	n.attr.Atime, n.attr.Mtime, n.attr.Ctime, n.attr.Birth = now, now, now, now
	n.attr.Change = 1
	if a.Type == store.Directory {
		n.attr.Nlink, n.attr.Size, n.attr.Used = 2, pageSize, pageSize
		n.dir = &directory{names: map[string]*entry{}, cookie: store.FirstCookie - 1}
	}
	return n
}

// reserve counts an object and a name of the given number of bytes, and other bytes.
func (s *Store) reserve(bytes int) error {
	if s.files.Add(1) > int64(s.opt.Files) {
		s.files.Add(-1)
		return store.ErrNoSpace
	}
	if !s.space.charge(inodeCost + bytes) {
		s.files.Add(-1)
		return store.ErrNoSpace
	}
	return nil
}

// touch notes a change of attributes, or of the data too.
func (s *Store) touch(n *inode, data bool) {
	now := s.opt.Clock()
	n.attr.Ctime = now
	if data {
		n.attr.Mtime = now
	}
	n.attr.Change++
}

// unlinked takes one name off an object, whose lock is held, and frees it if
// that was the last and nobody holds it.
func (s *Store) unlinked(n *inode) {
	if n.dir != nil {
		n.attr.Nlink = 0
		n.gone = true
	} else {
		n.attr.Nlink--
	}
	s.touch(n, false)
	s.dispose(n)
}

// dispose frees an object without names that nobody holds. Its lock is held.
func (s *Store) dispose(n *inode) {
	if n.attr.Nlink > 0 || n.holds > 0 {
		return
	}
	n.gone = true
	sh := &s.shards[n.attr.Handle.ID%shards]
	sh.mu.Lock()
	_, there := sh.inodes[n.attr.Handle.ID]
	delete(sh.inodes, n.attr.Handle.ID)
	sh.mu.Unlock()
	if !there {
		return
	}
	for i := range n.extents {
		s.space.drop(n.extents[i].block)
	}
	s.space.refund(len(n.extents) * extentCost)
	n.extents = nil
	bytes := inodeCost + len(n.text) + n.attr.ACLs.Size()
	for i := range n.xattrs {
		bytes += n.xattrs[i].cost()
	}
	n.xattrs = nil
	s.space.refund(bytes)
	s.files.Add(-1)
}

// Hold keeps an object after its last name was removed.
func (s *Store) Hold(h store.Handle) error {
	n, err := locked(s.find(h))
	if err != nil {
		return err
	}
	defer n.mu.Unlock()
	n.holds++
	return nil
}

// Unhold ends a Hold.
func (s *Store) Unhold(h store.Handle) {
	n, err := s.find(h)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holds > 0 {
		n.holds--
		s.dispose(n)
	}
}
