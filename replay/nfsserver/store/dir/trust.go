//go:build linux

package dir

import (
	"bytes"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// clock is a time that only goes forward, in nanoseconds.
func (s *Store) clock() int64 { return int64(time.Since(s.started)) }

// checked is when an open directory was last known to be where its names say. The
// root is wherever it is.
func (s *Store) checked(up *file) int64 {
	if up == s.top {
		return s.clock()
	}
	return up.checked.Load()
}

// kept returns the open file of an object if it can still be reached from the root by names;
// nil otherwise.
func (s *Store) kept(n *node, mode openMode, depth int) *file {
	f := s.open.get(n, mode)
	if f == nil || s.clock()-f.checked.Load() < int64(s.opt.Recheck) {
		return f
	}
	if s.recheck(n, f, depth) == nil || s.follow(n, f) == nil && s.recheck(n, f, depth) == nil {
		return f
	}
	if s.adopt(n, f) {
		return f
	}
	f.put()
	s.open.drop(n)
	return nil
}

// adopt keeps an object that is held, of which a file happens to be open, and
// which others have removed.
func (s *Store) adopt(n *node, f *file) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holds == 0 || n.pinned != nil || n.kind == store.Directory {
		return false
	}
	if st, err := statAt(f.fd, ""); err != nil || st.attr.Nlink > 0 {
		return false
	}
	if s.orphans.Add(1) > int64(s.opt.Orphans) {
		s.orphans.Add(-1)
		return false
	}
	f.get()
	n.pinned, n.at, n.others = f, place{}, nil
	return true
}

// recheck checks the name of an object of which a file is open, and the names above it unless
// they were checked recently.
func (s *Store) recheck(n *node, f *file, depth int) error {
	p := n.where()
	if p.parent == nil {
		return store.ErrStale
	}
	up, err := s.dir(p.parent, depth+1)
	if err != nil {
		return err
	}
	defer up.put()
	checked := s.checked(up)
	st, err := statAt(up.fd, p.name)
	if err != nil {
		return missing(err)
	}
	if err := s.check(n, &st); err != nil {
		return err
	}
	f.checked.Store(checked)
	return nil
}

// follow finds the new name of an object that others have moved within the
// root, and notes it. The kernel tells where the open file is now; what it says
// counts only as far as the names lead there from the root.
func (s *Store) follow(n *node, f *file) error {
	top, err := readLink(s.top.fd)
	if err != nil {
		return err
	}
	at, err := readLink(f.fd)
	if err != nil {
		return err
	}
	rest, inside := strings.CutPrefix(at, strings.TrimSuffix(top, "/")+"/")
	if !inside || strings.Count(rest, "/") > maxDepth {
		return store.ErrStale
	}
	d := s.root
	for {
		name, more, dir := strings.Cut(rest, "/")
		up, err := s.dir(d, 0)
		if err != nil {
			return err
		}
		var a store.Attr
		found, err := s.lookup(d, up, name, &a)
		up.put()
		switch {
		case err != nil:
			return err
		case dir && found.kind == store.Directory:
			d, rest = found, more
		case dir || found != n:
			return store.ErrStale
		default:
			n.mu.Lock()
			n.at = place{d, name}
			delete(n.others, n.at)
			n.moves++
			n.mu.Unlock()
			return nil
		}
	}
}

func readLink(fd int) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlink(proc(fd), b)
	if err != nil {
		return "", convert(err)
	}
	if n == len(b) || bytes.IndexByte(b[:n], '/') != 0 {
		return "", store.ErrStale
	}
	return string(b[:n]), nil
}

// withoutOpenat2 says that the kernel does not have openat2, or forbids it.
var withoutOpenat2 atomic.Bool

// openBeneath opens a name in a directory. Names have no slashes, and links are not followed.
// The kernel is also asked to refuse ways out of the directory and to other mounts.
func (s *Store) openBeneath(up int, name string, flags int) (fd int, err error) {
	err = s.descriptor(func() (err error) {
		if !withoutOpenat2.Load() {
			fd, err = unix.Openat2(up, name, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH |
				unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV})
			if err != unix.ENOSYS && err != unix.EPERM {
				return err
			}
			if err == unix.ENOSYS {
				withoutOpenat2.Store(true)
			}
		}
		fd, err = unix.Openat(up, name, flags, 0)
		return err
	})
	return fd, err
}

// descriptor calls open, which makes a descriptor, and once more after some that
// are kept were closed if the process may have no more.
func (s *Store) descriptor(open func() error) error {
	err := retry(open)
	if err == unix.EMFILE || err == unix.ENFILE {
		s.open.shrink()
		err = retry(open)
	}
	return err
}
