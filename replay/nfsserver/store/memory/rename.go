package memory

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

// Rename moves a name.
func (s *Store) Rename(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
	// Nobody else locks more than one directory now; so the order does not
	// matter.
	s.tree.Lock()
	defer s.tree.Unlock()
	f, err := s.lockDir(c, from, name)
	if err != nil {
		return err
	}
	defer f.mu.Unlock()
	t := f
	if from != to {
		if t, err = s.lockDir(c, to, newName); err != nil {
			return err
		}
		defer t.mu.Unlock()
	} else if err := store.CheckName(newName, s.info.MaxName); err != nil {
		return err
	}
	e := f.dir.lookup(name)
	if e == nil {
		return store.ErrNoEnt
	}
	n := e.inode
	old := t.dir.lookup(newName)
	wFrom.Before, wFrom.Atomic = f.attr, true
	wTo.Before, wTo.Atomic = t.attr, true
	defer func() { wFrom.After, wTo.After = f.attr, t.attr }()
	if n.dir != nil {
		for up := t; up != s.root; up = up.dir.parent {
			if up == n {
				return store.ErrInval
			}
		}
		if n == s.root {
			return store.ErrInval
		}
	}
	if old != nil && old.inode == n {
		return nil
	}
	var victim *inode
	if old != nil {
		victim = old.inode
	}
	defer lockMoved(n, victim, f, t)()
	if err := s.mayUnlink(c, f, n); err != nil {
		return err
	}
	if !s.permits(c, t, store.MayWrite|store.MayExecute) {
		return store.ErrAccess
	}
	if n.dir != nil && f != t && !s.permits(c, n, store.MayWrite) {
		return store.ErrAccess // its ".." changes
	}
	if old != nil {
		if err := s.replaceable(c, t, n, victim); err != nil {
			return err
		}
		s.detach(t, old, victim)
	} else if n.dir != nil && f != t && t.attr.Nlink >= s.info.MaxLink {
		return store.ErrMLink
	}
	// The name's own cost stays as it is but for the difference in length.
	s.used.Add(int64(len(newName) - len(name)))
	f.dir.remove(e)
	t.dir.add(string(newName), n)
	if n.dir != nil && f != t {
		f.attr.Nlink--
		t.attr.Nlink++
		n.dir.parent = t
	}
	s.touch(f, true)
	if f != t {
		s.touch(t, true)
	}
	s.touch(n, false)
	return nil
}

// lockMoved locks the object that is moved and the one that it replaces, which
// may be nil, in the order of Copy. f and t are locked already; either may be
// one of them.
func lockMoved(n, victim, f, t *inode) (unlock func()) {
	a, b := n, victim
	if b != nil && b.attr.Handle.ID < a.attr.Handle.ID {
		a, b = b, a
	}
	locked := make([]*inode, 0, 2)
	for _, x := range []*inode{a, b} {
		if x != nil && x != f && x != t {
			x.mu.Lock()
			locked = append(locked, x)
		}
	}
	return func() {
		for _, x := range locked {
			x.mu.Unlock()
		}
	}
}

// replaceable says whether n may take the place of victim in t.
func (s *Store) replaceable(c *store.Cred, t, n, victim *inode) error {
	switch {
	case (n.dir == nil) != (victim.dir == nil):
		return store.ErrExist
	case victim.dir != nil && len(victim.dir.names) > 0:
		return store.ErrNotEmpty
	}
	return s.mayUnlink(c, t, victim)
}
