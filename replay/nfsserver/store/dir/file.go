//go:build linux

package dir

import (
	"container/list"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// file is an open file. It is closed with the last reference.
type file struct {
	fd   int
	refs atomic.Int32
	// checked is when the names that lead to it from the root were last seen to
	// do so (Store.clock).
	checked atomic.Int64
}

func newFile(fd int) *file {
	f := &file{fd: fd}
	f.refs.Store(1)
	return f
}

func (f *file) get() { f.refs.Add(1) }

func (f *file) put() {
	if f.refs.Add(-1) == 0 {
		_ = unix.Close(f.fd)
	}
}

// openMode says what a file is opened for.
type openMode uint8

const (
	openPath openMode = iota // to name it
	openRead
	openWrite // and read
)

// fileCache keeps files open.
type fileCache struct {
	limit int

	mu    sync.Mutex
	files map[fileKey]*list.Element
	order list.List // of *cachedFile, the latest in front
}

type fileKey struct {
	node *node
	mode openMode
}

type cachedFile struct {
	key  fileKey
	file *file
}

// get returns an open file with a reference for the caller, or nil.
func (c *fileCache) get(n *node, mode openMode) *file {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.files[fileKey{n, mode}]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	f := e.Value.(*cachedFile).file
	f.get()
	return f
}

// add keeps f open, which has a reference for the caller already. It returns the
// file that another goroutine has added meanwhile, if one has.
func (c *fileCache) add(n *node, mode openMode, f *file) *file {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fileKey{n, mode}
	if e := c.files[key]; e != nil {
		f.put()
		f = e.Value.(*cachedFile).file
		f.get()
		return f
	}
	if c.files == nil {
		c.files = map[fileKey]*list.Element{}
	}
	f.get()
	c.files[key] = c.order.PushFront(&cachedFile{key, f})
	for c.order.Len() > c.limit {
		c.remove(c.order.Back())
	}
	return f
}

func (c *fileCache) remove(e *list.Element) {
	f := c.order.Remove(e).(*cachedFile)
	delete(c.files, f.key)
	f.file.put()
}

// drop closes the files of an object.
func (c *fileCache) drop(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for mode := openPath; mode <= openWrite; mode++ {
		if e := c.files[fileKey{n, mode}]; e != nil {
			c.remove(e)
		}
	}
}

// shrink closes half of the files, those used last excepted.
func (c *fileCache) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for left := c.order.Len() / 2; c.order.Len() > left; {
		c.remove(c.order.Back())
	}
}

func (c *fileCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.order.Len() > 0 {
		c.remove(c.order.Back())
	}
}

// dir opens a directory for the names in it.
func (s *Store) dir(n *node, depth int) (*file, error) {
	if depth > maxDepth {
		return nil, store.ErrStale
	}
	if f := s.pinnedFile(n); f != nil {
		return f, nil
	}
	if f := s.kept(n, openPath, depth); f != nil {
		return f, nil
	}
	var f *file
	err := s.reach(n, depth+1, func(up *file, name string) (err error) {
		f, err = s.openChecked(n, up, name, openPath, unix.O_PATH|unix.O_DIRECTORY)
		return err
	})
	return f, err
}

// pinnedFile is the file that is kept with the object, if there is one.
func (s *Store) pinnedFile(n *node) *file {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pinned == nil {
		return nil
	}
	n.pinned.get()
	return n.pinned
}

// openChecked opens a name in a directory, and keeps the file open if it is the
// object.
func (s *Store) openChecked(n *node, up *file, name string, mode openMode, flags int) (*file, error) {
	checked := s.checked(up)
	fd, err := s.openBeneath(up.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return nil, missing(err)
	}
	f := newFile(fd)
	f.checked.Store(checked)
	st, err := statAt(fd, "")
	if err == nil {
		err = s.check(n, &st)
	}
	if err != nil {
		f.put()
		return nil, convert(err)
	}
	return s.open.add(n, mode, f), nil
}

// file opens an object: by openPath any, by the others a regular file or a
// directory.
func (s *Store) file(n *node, mode openMode) (*file, error) {
	if n.kind == store.Directory && mode == openPath {
		return s.dir(n, 0)
	}
	if f := s.kept(n, mode, 0); f != nil {
		return f, nil
	}
	flags := unix.O_NONBLOCK | unix.O_NOCTTY
	switch mode {
	case openPath:
		flags = unix.O_PATH
	case openRead:
		flags |= unix.O_RDONLY
	case openWrite:
		flags |= unix.O_RDWR
	}
	if mode != openPath && n.kind != store.Regular && n.kind != store.Directory {
		return nil, store.ErrWrongType // opening a device or a FIFO does things
	}
	if pinned := s.pinnedFile(n); pinned != nil {
		defer pinned.put()
		if mode == openPath {
			pinned.get()
			return pinned, nil
		}
		if n.kind == store.Directory {
			return s.openChecked(n, pinned, ".", mode, flags|unix.O_DIRECTORY)
		}
		return s.reopen(n, pinned, mode, flags)
	}
	var f *file
	err := s.reach(n, 1, func(up *file, name string) (err error) {
		f, err = s.openChecked(n, up, name, mode, flags)
		return err
	})
	return f, err
}

// reopen opens what is held, which may have no name, in another mode.
func (s *Store) reopen(n *node, pinned *file, mode openMode, flags int) (*file, error) {
	fd := -1
	err := s.descriptor(func() (err error) {
		// The link of /proc leads to exactly this file.
		fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(pinned.fd), flags|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, convert(err)
	}
	return s.open.add(n, mode, newFile(fd)), nil
}

// Hold keeps an object after its last name was removed by this store. What others
// remove is kept as long as it happens to be open.
func (s *Store) Hold(h store.Handle) error {
	n, err := s.node(h)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.holds++
	n.mu.Unlock()
	return nil
}

// Unhold ends a Hold.
func (s *Store) Unhold(h store.Handle) {
	n, err := s.node(h)
	if err != nil {
		return
	}
	n.mu.Lock()
	if n.holds == 0 {
		n.mu.Unlock()
		return
	}
	n.holds--
	last := n.holds == 0 && n != s.root
	nameless := last && n.at.parent == nil
	var pinned *file
	if last {
		pinned, n.pinned = n.pinned, nil
	}
	n.mu.Unlock()
	s.unkeep(pinned)
	if nameless {
		s.gone(n)
	}
}

// keep opens an object that is held and is about to lose a name, if it may be
// its last one: nil if not. a is from before that.
func (s *Store) keep(n *node, p place, a *store.Attr) (*file, error) {
	n.mu.Lock()
	named := n.at.parent != nil && n.at != p
	for other := range n.others {
		named = named || other != p
	}
	needed := n.holds > 0 && n.pinned == nil && (a.Nlink <= 1 || !named)
	n.mu.Unlock()
	if !needed {
		return nil, nil
	}
	if s.orphans.Add(1) > int64(s.opt.Orphans) {
		s.orphans.Add(-1)
		return nil, store.ErrFileOpen
	}
	f, err := s.file(n, openPath)
	if err != nil {
		s.orphans.Add(-1)
		return nil, err
	}
	return f, nil
}

// unkeep closes what keep has opened.
func (s *Store) unkeep(f *file) {
	if f != nil {
		s.orphans.Add(-1)
		f.put()
	}
}

// orphan makes what keep has opened, if anything, the object's only file.
func (s *Store) orphan(n *node, f *file) {
	if f == nil {
		return
	}
	n.mu.Lock()
	if n.holds > 0 && n.pinned == nil {
		n.pinned, f = f, nil
	}
	n.mu.Unlock()
	s.unkeep(f)
}
