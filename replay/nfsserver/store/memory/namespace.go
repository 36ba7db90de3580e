package memory

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

// lookup finds a name in a directory whose lock is held.
func (d *directory) lookup(name []byte) *entry { return d.names[string(name)] }

// add puts a name into a directory whose lock is held.
func (d *directory) add(name string, n *inode) {
	d.cookie++
	e := &entry{name: name, cookie: d.cookie, inode: n}
	d.names[name] = e
	d.entries = append(d.entries, e)
}

// remove takes a name out of a directory whose lock is held.
func (d *directory) remove(e *entry) {
	delete(d.names, e.name)
	e.inode = nil
	if d.removed++; d.removed < 32 || d.removed < len(d.entries)/2 {
		return
	}
	left := d.entries[:0]
	for _, e := range d.entries {
		if e.inode != nil {
			left = append(left, e)
		}
	}
	clear(d.entries[len(left):])
	d.entries, d.removed = left, 0
}

// Lookup finds a name.
func (s *Store) Lookup(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
	d, err := s.findDir(dir)
	if err != nil {
		return err
	}
	if err := s.rules.CheckName(name); err != nil {
		return err
	}
	d.mu.RLock()
	if !s.rules.Permits(c, &d.attr, store.MayExecute) {
		d.mu.RUnlock()
		return store.ErrAccess
	}
	e := d.dir.lookup(name)
	var n *inode
	if e != nil {
		n = e.inode
	}
	d.mu.RUnlock()
	if n == nil {
		return store.ErrNoEnt
	}
	n.mu.RLock()
	*a = n.attr
	n.mu.RUnlock()
	return nil
}

// Parent is the directory above a directory.
func (s *Store) Parent(c *store.Cred, dir store.Handle) (store.Handle, error) {
	s.tree.RLock()
	defer s.tree.RUnlock()
	d, err := s.findDir(dir)
	if err != nil {
		return store.Handle{}, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.gone {
		return store.Handle{}, store.ErrStale
	}
	if !s.rules.Permits(c, &d.attr, store.MayExecute) {
		return store.Handle{}, store.ErrAccess
	}
	return d.dir.parent.attr.Handle, nil
}

// lockDir finds a directory that c may change, and locks it. tree is held.
func (s *Store) lockDir(c *store.Cred, dir store.Handle, name []byte) (*inode, error) {
	d, err := s.findDir(dir)
	if err != nil {
		return nil, err
	}
	if err := s.rules.CheckName(name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	err = s.mayChange(c, d)
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	return d, nil
}

// mayChange says whether c may look up names in d, and whether d is still there.
func (s *Store) mayChange(c *store.Cred, d *inode) error {
	if d.gone {
		return store.ErrStale
	}
	if !s.rules.Permits(c, &d.attr, store.MayExecute) {
		return store.ErrAccess
	}
	return nil
}

// make puts a new object into a directory whose lock is held.
func (s *Store) make(c *store.Cred, d *inode, name []byte, t store.Type, defaultMode uint32, set *store.SetAttr, text []byte) (*inode, error) {
	if !s.rules.Permits(c, &d.attr, store.MayWrite|store.MayExecute) {
		return nil, store.ErrAccess
	}
	if d.attr.Nlink >= s.info.MaxLink && t == store.Directory {
		return nil, store.ErrMLink
	}
	var a store.Attr
	if err := store.NewObject(c, &d.attr, t, defaultMode, set, &a); err != nil {
		return nil, err
	}
	if set != nil && set.Mask&store.SetSize != 0 && t == store.Regular {
		if err := s.rules.Fits(set.Size, 0); err != nil {
			return nil, err
		}
	}
	if err := s.reserve(nameCost + len(name) + len(text) + a.ACLs.Size()); err != nil {
		return nil, err
	}
	n := s.newInode(&a)
	n.text = text
	if t == store.Symlink {
		n.attr.Size = uint64(len(text))
	}
	if set != nil {
		if set.Mask&store.SetSize != 0 && t == store.Regular {
			n.attr.Size = set.Size
		}
		s.applyTimes(n, set)
	}
	if n.dir != nil {
		n.dir.parent = d
		d.attr.Nlink++
	}
	s.insert(n)
	d.dir.add(string(name), n)
	s.touch(d, true)
	return n, nil
}

// Create makes or finds a regular file.
func (s *Store) Create(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
	s.tree.RLock()
	defer s.tree.RUnlock()
	d, err := s.lockDir(c, dir, name)
	if err != nil {
		return false, err
	}
	defer d.mu.Unlock()
	w.Before, w.Atomic = d.attr, true
	if e := d.dir.lookup(name); e != nil {
		err := s.exists(c, e.inode, how, a)
		w.After = d.attr
		return false, err
	}
	n, err := s.make(c, d, name, store.Regular, 0o600, &how.Set, nil)
	if err != nil {
		return false, err
	}
	if how.Mode == store.Exclusive {
		n.mu.Lock()
		n.verifier, n.exclude = how.Verifier, true
		n.mu.Unlock()
	}
	n.mu.RLock()
	*a, w.After = n.attr, d.attr
	n.mu.RUnlock()
	return true, nil
}

// exists is Create if the name is there.
func (s *Store) exists(c *store.Cred, n *inode, how *store.Create, a *store.Attr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	cut, err := s.rules.CheckFound(c, &n.attr, how, n.exclude && n.verifier == how.Verifier)
	if err != nil {
		return err
	}
	if cut {
		s.space.resize(n, how.Set.Size)
		s.written(c, n)
	}
	*a = n.attr
	return nil
}

// makeNew is make for what must not exist.
func (s *Store) makeNew(c *store.Cred, dir store.Handle, name []byte, t store.Type, mode uint32, set *store.SetAttr, text []byte, dev store.Device, a *store.Attr, w *store.Wcc) error {
	s.tree.RLock()
	defer s.tree.RUnlock()
	d, err := s.lockDir(c, dir, name)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	if d.dir.lookup(name) != nil {
		return store.ErrExist
	}
	w.Before, w.Atomic = d.attr, true
	n, err := s.make(c, d, name, t, mode, set, text)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.attr.Rdev = dev
	*a, w.After = n.attr, d.attr
	n.mu.Unlock()
	return nil
}

// Mkdir makes a directory.
func (s *Store) Mkdir(c *store.Cred, dir store.Handle, name []byte, set *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	return s.makeNew(c, dir, name, store.Directory, 0o700, set, nil, store.Device{}, a, w)
}

// Symlink makes a symbolic link.
func (s *Store) Symlink(c *store.Cred, dir store.Handle, name, text []byte, set *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	if err := s.rules.CheckText(text); err != nil {
		return err
	}
	return s.makeNew(c, dir, name, store.Symlink, 0o777, set, append([]byte(nil), text...), store.Device{}, a, w)
}

// Mknod makes a device, a socket or a FIFO.
func (s *Store) Mknod(c *store.Cred, dir store.Handle, name []byte, t store.Type, dev store.Device, set *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	if err := s.rules.CheckNode(c, t); err != nil {
		return err
	}
	if t == store.Socket || t == store.FIFO {
		dev = store.Device{}
	}
	return s.makeNew(c, dir, name, t, 0o600, set, nil, dev, a, w)
}

// Readlink appends the text of a link to b.
func (s *Store) Readlink(_ *store.Cred, h store.Handle, b []byte) ([]byte, error) {
	n, err := s.find(h)
	if err != nil {
		return b, err
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.kind != store.Symlink {
		return b, store.ErrInval
	}
	return append(b, n.text...), nil
}

// Link gives an object another name.
func (s *Store) Link(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error {
	s.tree.RLock()
	defer s.tree.RUnlock()
	n, err := s.find(h)
	if err != nil {
		return err
	}
	if n.dir != nil {
		return store.ErrIsDir
	}
	d, err := s.lockDir(c, dir, name)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	if d.dir.lookup(name) != nil {
		return store.ErrExist
	}
	if !s.rules.Permits(c, &d.attr, store.MayWrite|store.MayExecute) {
		return store.ErrAccess
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.gone || n.attr.Nlink == 0:
		return store.ErrStale
	case n.attr.Nlink >= s.info.MaxLink:
		return store.ErrMLink
	case !s.space.charge(nameCost + len(name)):
		return store.ErrNoSpace
	}
	w.Before, w.Atomic = d.attr, true
	n.attr.Nlink++
	s.touch(n, false)
	d.dir.add(string(name), n)
	s.touch(d, true)
	*a, w.After = n.attr, d.attr
	return nil
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
	s.tree.RLock()
	defer s.tree.RUnlock()
	d, err := s.lockDir(c, dir, name)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	e := d.dir.lookup(name)
	if e == nil {
		return store.ErrNoEnt
	}
	n := e.inode
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := s.rules.MayRemove(c, &d.attr, &n.attr, rmdir); err != nil {
		return err
	}
	if rmdir && len(n.dir.names) > 0 {
		return store.ErrNotEmpty
	}
	w.Before, w.Atomic = d.attr, true
	s.detach(d, e, n)
	w.After = d.attr
	return nil
}

// detach takes a name off an object, for good. Both locks are held.
func (s *Store) detach(d *inode, e *entry, n *inode) {
	d.dir.remove(e)
	s.space.refund(nameCost + len(e.name))
	if n.dir != nil {
		d.attr.Nlink--
	}
	s.touch(d, true)
	s.unlinked(n)
}
