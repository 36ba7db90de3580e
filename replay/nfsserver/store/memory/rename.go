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
	} else if err := s.rules.CheckName(newName); err != nil {
		return err
	}
	e := f.dir.lookup(name)
	if e == nil {
		return store.ErrNoEnt
	}
	m := move{from: f, to: t, entry: e, inode: e.inode, old: t.dir.lookup(newName)}
	wFrom.Before, wFrom.Atomic = f.attr, true
	wTo.Before, wTo.Atomic = t.attr, true
	defer func() { wFrom.After, wTo.After = f.attr, t.attr }()
	if s.intoItself(&m) {
		return store.ErrInval
	}
	if m.old != nil && m.old.inode == m.inode {
		return nil
	}
	defer lockMoved(m.inode, m.victim(), f, t)()
	if err := s.mayMove(c, &m); err != nil {
		return err
	}
	s.move(&m, newName)
	return nil
}

// move is a name that is to be moved. Both directories are locked.
type move struct {
	from, to *inode
	entry    *entry
	inode    *inode // what the name stands for
	old      *entry // the name that it replaces; nil if there is none
}

// directory reports whether a directory gets another parent.
func (m *move) directory() bool { return m.inode.dir != nil && m.from != m.to }

// victim is the object that loses its name; nil if there is none.
func (m *move) victim() *inode {
	if m.old == nil {
		return nil
	}
	return m.old.inode
}

// intoItself reports whether a directory would become part of itself.
func (s *Store) intoItself(m *move) bool {
	if m.inode.dir == nil {
		return false
	}
	for up := m.to; up != s.root; up = up.dir.parent {
		if up == m.inode {
			return true
		}
	}
	return m.inode == s.root
}

// mayMove says whether the caller may do it, and the place is free.
func (s *Store) mayMove(c *store.Cred, m *move) error {
	var old *store.Attr
	if m.old != nil {
		old = &m.victim().attr
	}
	if err := s.rules.MayRename(c, &m.from.attr, &m.to.attr, &m.inode.attr, old); err != nil {
		return err
	}
	if old != nil {
		if dir := m.victim().dir; dir != nil && len(dir.names) > 0 {
			return store.ErrNotEmpty
		}
		return nil
	}
	if m.directory() && m.to.attr.Nlink >= s.info.MaxLink {
		return store.ErrMLink
	}
	return nil
}

// move moves a name that may be moved.
func (s *Store) move(m *move, newName []byte) {
	if m.old != nil {
		s.detach(m.to, m.old, m.victim())
	}
	// The name's own cost stays as it is but for the difference in length.
	s.space.used.Add(int64(len(newName) - len(m.entry.name)))
	m.from.dir.remove(m.entry)
	m.to.dir.add(string(newName), m.inode)
	if m.directory() {
		m.from.attr.Nlink--
		m.to.attr.Nlink++
		m.inode.dir.parent = m.to
	}
	s.touch(m.from, true)
	if m.from != m.to {
		s.touch(m.to, true)
	}
	s.touch(m.inode, false)
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
