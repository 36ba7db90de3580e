//go:build linux

package dir

import (
	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Lookup finds a name.
func (s *Store) Lookup(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
	d, err := s.dirNode(dir)
	if err != nil {
		return err
	}
	if err := s.rules.CheckName(name); err != nil {
		return err
	}
	f, err := s.dir(d, 0)
	if err != nil {
		return err
	}
	defer f.put()
	if err := s.search(c, f); err != nil {
		return err
	}
	_, err = s.lookup(d, f, string(name), a)
	return err
}

// search says whether c may look for names in a directory that is still there.
func (s *Store) search(c *store.Cred, f *file) error {
	st, err := statAt(f.fd, "")
	switch {
	case err != nil:
		return convert(err)
	case st.attr.Nlink == 0:
		return store.ErrStale
	case !s.rules.Permits(c, &st.attr, store.MayExecute):
		return store.ErrAccess
	}
	return nil
}

// lookup finds a name in an open directory. What is mounted there is not found.
func (s *Store) lookup(d *node, f *file, name string, a *store.Attr) (*node, error) {
	st, err := statAt(f.fd, name)
	if err != nil {
		return nil, convert(err)
	}
	if st.dev != s.dev || st.mnt != s.mnt {
		return nil, store.ErrNoEnt
	}
	*a = st.attr
	return s.seen(d, name, a), nil
}

// Parent returns the directory above a directory, if the store has seen it.
func (s *Store) Parent(c *store.Cred, dir store.Handle) (store.Handle, error) {
	d, err := s.dirNode(dir)
	if err != nil {
		return store.Handle{}, err
	}
	f, err := s.dir(d, 0)
	if err != nil {
		return store.Handle{}, err
	}
	defer f.put()
	if err := s.search(c, f); err != nil {
		return store.Handle{}, err
	}
	if d == s.root {
		return d.handle, nil
	}
	p := d.where().parent
	if p == nil {
		return store.Handle{}, store.ErrStale
	}
	return p.handle, nil
}

// change is a change of names in a directory: it holds Store.names.
type change struct {
	s *Store
	d *node
	f *file
	w *store.Wcc
}

// begin prepares a change of names in a directory, of which name is one.
func (s *Store) begin(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) (change, error) {
	d, err := s.dirNode(dir)
	if err != nil {
		return change{}, err
	}
	if err := s.rules.CheckName(name); err != nil {
		return change{}, err
	}
	s.names.Lock()
	ch := change{s: s, d: d, w: w}
	if ch.f, err = s.openDir(c, d, w); err != nil {
		s.names.Unlock()
		return change{}, err
	}
	return ch, nil
}

// openDir opens a directory to change it, and tells its attributes.
func (s *Store) openDir(c *store.Cred, d *node, w *store.Wcc) (*file, error) {
	f, err := s.dir(d, 0)
	if err != nil {
		return nil, err
	}
	if err = s.search(c, f); err == nil {
		err = s.stat(d, &w.Before)
	}
	if err != nil {
		f.put()
		return nil, err
	}
	w.Atomic = false
	return f, nil
}

// mayAdd says whether c may make names in the directory.
func (ch *change) mayAdd(c *store.Cred) error {
	if !ch.s.rules.Permits(c, &ch.w.Before, store.MayWrite|store.MayExecute) {
		return store.ErrAccess
	}
	return ch.s.rules.Writable()
}

// end releases what begin took.
func (ch *change) end() {
	ch.f.put()
	ch.s.names.Unlock()
}

// changed returns the directory's attributes after the change.
func (ch *change) changed() error { return ch.s.after(ch.d, ch.f.fd, &ch.w.After) }

// make makes an object by create and gives it its attributes.
func (ch *change) make(c *store.Cred, name string, t store.Type, mode uint32, set *store.SetAttr, a *store.Attr, create func() error) (*node, error) {
	if err := ch.mayAdd(c); err != nil {
		return nil, err
	}
	var want store.Attr
	if err := store.NewObject(c, &ch.w.Before, t, mode, set, &want); err != nil {
		return nil, err
	}
	if err := retry(create); err != nil {
		return nil, convert(err)
	}
	n, err := ch.dress(name, &want, set, a)
	if err != nil {
		flags := 0
		if t == store.Directory {
			flags = unix.AT_REMOVEDIR
		}
		_ = unix.Unlinkat(ch.f.fd, name, flags)
		return nil, err
	}
	return n, ch.changed()
}

// dress sets the attributes of a new object.
func (ch *change) dress(name string, want *store.Attr, set *store.SetAttr, a *store.Attr) (*node, error) {
	s := ch.s
	n, err := s.lookup(ch.d, ch.f, name, a)
	if err != nil {
		return nil, err
	}
	f, err := s.file(n, openPath)
	if err != nil {
		return nil, err
	}
	defer f.put()
	if s.isRoot {
		if err := unix.Fchownat(f.fd, "", int(want.UID), int(want.GID), unix.AT_EMPTY_PATH); err != nil {
			return nil, convert(err)
		}
	}
	if want.Type != store.Symlink {
		if err := unix.Chmod(proc(f.fd), want.Mode); err != nil {
			return nil, convert(err)
		}
	}
	if set != nil {
		if set.Mask&store.SetSize != 0 && want.Type == store.Regular && set.Size > 0 {
			if err := s.truncate(n, set.Size); err != nil {
				return nil, err
			}
		}
		if err := s.applyTimes(f.fd, set); err != nil {
			return nil, err
		}
	}
	return n, s.stat(n, a)
}

// Create makes or finds a regular file.
func (s *Store) Create(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
	ch, err := s.begin(c, dir, name, w)
	if err != nil {
		return false, err
	}
	defer ch.end()
	switch n, err := s.lookup(ch.d, ch.f, string(name), a); err {
	case nil:
		w.After = w.Before
		return false, s.exists(c, n, how, a)
	case store.ErrNoEnt:
	default:
		return false, err
	}
	n, err := ch.make(c, string(name), store.Regular, 0o600, &how.Set, a, func() error {
		fd, err := unix.Openat(ch.f.fd, string(name), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if how.Mode == store.Exclusive {
		n.mu.Lock()
		n.verifier, n.exclude = how.Verifier, true
		n.mu.Unlock()
	}
	return true, nil
}

// exists is Create if the name is there.
func (s *Store) exists(c *store.Cred, n *node, how *store.Create, a *store.Attr) error {
	n.mu.Lock()
	exclusive := n.exclude && n.verifier == how.Verifier
	n.mu.Unlock()
	cut, err := s.rules.CheckFound(c, a, how, exclusive)
	if err != nil || !cut {
		return err
	}
	if err := s.truncate(n, how.Set.Size); err != nil {
		return err
	}
	f, err := s.file(n, openPath)
	if err != nil {
		return err
	}
	defer f.put()
	return s.after(n, f.fd, a)
}

// makeNew makes an object with a name that must not exist.
func (s *Store) makeNew(c *store.Cred, dir store.Handle, name []byte, t store.Type, mode uint32, set *store.SetAttr, a *store.Attr, w *store.Wcc, create func(fd int, name string) error) error {
	ch, err := s.begin(c, dir, name, w)
	if err != nil {
		return err
	}
	defer ch.end()
	if _, err := statAt(ch.f.fd, string(name)); err == nil {
		return store.ErrExist
	}
	_, err = ch.make(c, string(name), t, mode, set, a, func() error { return create(ch.f.fd, string(name)) })
	return err
}

// Mkdir makes a directory.
func (s *Store) Mkdir(c *store.Cred, dir store.Handle, name []byte, set *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	return s.makeNew(c, dir, name, store.Directory, 0o700, set, a, w, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o700) })
}

// Symlink makes a symbolic link.
func (s *Store) Symlink(c *store.Cred, dir store.Handle, name, text []byte, set *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	if err := s.rules.CheckText(text); err != nil {
		return err
	}
	return s.makeNew(c, dir, name, store.Symlink, 0o777, set, a, w, func(fd int, name string) error { return unix.Symlinkat(string(text), fd, name) })
}

// Mknod makes a device, a socket or a FIFO.
func (s *Store) Mknod(c *store.Cred, dir store.Handle, name []byte, t store.Type, dev store.Device, set *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	if err := s.rules.CheckNode(c, t); err != nil {
		return err
	}
	var format uint32
	switch t {
	case store.Block:
		format = unix.S_IFBLK
	case store.Character:
		format = unix.S_IFCHR
	case store.Socket:
		format = unix.S_IFSOCK
	case store.FIFO:
		format = unix.S_IFIFO
	}
	number := uint64(0)
	if t == store.Block || t == store.Character {
		number = unix.Mkdev(dev.Major, dev.Minor)
	}
	return s.makeNew(c, dir, name, t, 0o600, set, a, w, func(fd int, name string) error { return unix.Mknodat(fd, name, format|0o600, int(number)) })
}

// Readlink appends the text of a link to b.
func (s *Store) Readlink(_ *store.Cred, h store.Handle, b []byte) ([]byte, error) {
	n, err := s.node(h)
	if err != nil {
		return b, err
	}
	if n.kind != store.Symlink {
		var a store.Attr
		if err := s.stat(n, &a); err != nil {
			return b, err
		}
		return b, store.ErrInval
	}
	f, err := s.file(n, openPath)
	if err != nil {
		return b, err
	}
	defer f.put()
	buf := make([]byte, 4096)
	size, err := unix.Readlinkat(f.fd, "", buf)
	if err != nil {
		return b, convert(err)
	}
	return append(b, buf[:size]...), nil
}

// Link gives an object another name.
func (s *Store) Link(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error {
	n, err := s.node(h)
	if err != nil {
		return err
	}
	if err := s.stat(n, a); err != nil {
		return err
	}
	if n.kind == store.Directory {
		return store.ErrIsDir
	}
	ch, err := s.begin(c, dir, name, w)
	if err != nil {
		return err
	}
	defer ch.end()
	if _, err := statAt(ch.f.fd, string(name)); err == nil {
		return store.ErrExist
	}
	if err := ch.mayAdd(c); err != nil {
		return err
	}
	if _, err := s.statNamed(n); err != nil { // under a name that it has now
		return err
	}
	p := n.where()
	if p.parent == nil {
		return store.ErrStale
	}
	up, err := s.dir(p.parent, 0)
	if err != nil {
		return err
	}
	defer up.put()
	if err := unix.Linkat(up.fd, p.name, ch.f.fd, string(name), 0); err != nil {
		return convert(err)
	}
	linked, err := s.lookup(ch.d, ch.f, string(name), a)
	if err != nil {
		return err
	}
	if linked != n { // others were faster: this is not what was asked for
		_ = unix.Unlinkat(ch.f.fd, string(name), 0)
		return store.ErrDelay
	}
	st := status{attr: *a}
	s.attr(n, &st, a, true)
	return ch.changed()
}

// Remove takes away a name that is not a directory's.
func (s *Store) Remove(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	return s.unlink(c, dir, name, false, w)
}

// Rmdir removes an empty directory.
func (s *Store) Rmdir(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	return s.unlink(c, dir, name, true, w)
}

func (s *Store) unlink(c *store.Cred, dir store.Handle, name []byte, rmdir bool, w *store.Wcc) error {
	ch, err := s.begin(c, dir, name, w)
	if err != nil {
		return err
	}
	defer ch.end()
	var a store.Attr
	n, err := s.lookup(ch.d, ch.f, string(name), &a)
	if err != nil {
		return err
	}
	if err := s.rules.MayRemove(c, &w.Before, &a, rmdir); err != nil {
		return err
	}
	flags := 0
	if rmdir {
		flags = unix.AT_REMOVEDIR
	}
	kept, err := s.keep(n, place{ch.d, string(name)}, &a)
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(ch.f.fd, string(name), flags); err != nil {
		s.unkeep(kept)
		return convert(err)
	}
	s.orphan(n, kept)
	s.lost(n, ch.d, string(name), &a)
	return ch.changed()
}

// lost notes that a name of an object was removed; a is from before that.
func (s *Store) lost(n, d *node, name string, a *store.Attr) {
	n.unseen(d, name)
	if n.kind == store.Directory || a.Nlink <= 1 {
		s.gone(n)
	}
}

// Rename moves a name.
func (s *Store) Rename(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
	ch, err := s.begin(c, from, name, wFrom)
	if err != nil {
		return err
	}
	defer ch.end()
	t, err := s.dirNode(to)
	if err != nil {
		return err
	}
	if err := s.rules.CheckName(newName); err != nil {
		return err
	}
	tf, err := s.openDir(c, t, wTo)
	if err != nil {
		return err
	}
	defer tf.put()
	var a, b store.Attr
	n, err := s.lookup(ch.d, ch.f, string(name), &a)
	if err != nil {
		return err
	}
	for up, depth := t, 0; n.kind == store.Directory && up != nil && up != s.root && depth < maxDepth; depth++ {
		if up == n {
			return store.ErrInval
		}
		up = up.where().parent
	}
	old, err := s.lookup(t, tf, string(newName), &b)
	switch {
	case err == store.ErrNoEnt:
		old = nil
	case err != nil:
		return err
	case old == n:
		wFrom.After, wTo.After = wFrom.Before, wTo.Before
		return nil
	}
	replaced := &b
	if old == nil {
		replaced = nil
	}
	if err := s.rules.MayRename(c, &wFrom.Before, &wTo.Before, &a, replaced); err != nil {
		return err
	}
	var kept *file
	if old != nil {
		if kept, err = s.keep(old, place{t, string(newName)}, &b); err != nil {
			return err
		}
	}
	n.expect(t, string(newName))
	if err := unix.Renameat(ch.f.fd, string(name), tf.fd, string(newName)); err != nil {
		n.unseen(t, string(newName))
		s.unkeep(kept)
		return convert(err)
	}
	if old != nil {
		s.orphan(old, kept)
		s.lost(old, t, string(newName), &b)
	}
	n.unseen(ch.d, string(name))
	if _, err := s.lookup(t, tf, string(newName), &a); err != nil {
		return err
	}
	if err := s.after(t, tf.fd, &wTo.After); err != nil {
		return err
	}
	return ch.changed()
}
