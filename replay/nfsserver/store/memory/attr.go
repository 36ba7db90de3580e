package memory

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

// GetAttr tells the attributes of an object.
func (s *Store) GetAttr(h store.Handle, a *store.Attr) error {
	n, err := s.find(h)
	if err != nil {
		return err
	}
	n.mu.RLock()
	*a = n.attr
	n.mu.RUnlock()
	return nil
}

// Access tells which permissions are given.
func (s *Store) Access(c *store.Cred, h store.Handle, want store.AccessMask) (store.AccessMask, error) {
	n, err := s.find(h)
	if err != nil {
		return 0, err
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return s.rules.Allowed(c, &n.attr, want), nil
}

// SetAttr changes attributes.
func (s *Store) SetAttr(c *store.Cred, h store.Handle, set *store.SetAttr, w *store.Wcc) error {
	n, err := locked(s.find(h))
	if err != nil {
		return err
	}
	defer n.mu.Unlock()
	if err := s.rules.CheckSetAttr(c, &n.attr, set); err != nil {
		return err
	}
	w.Before, w.Atomic = n.attr, true
	if set.Mask&store.SetSize != 0 {
		s.space.resize(n, set.Size)
	}
	if set.Mask != 0 {
		s.apply(c, n, set)
	}
	w.After = n.attr
	return nil
}

// apply sets all attributes but the size.
func (s *Store) apply(c *store.Cred, n *inode, set *store.SetAttr) {
	s.touch(n, set.Mask&store.SetSize != 0)
	a := &n.attr
	old := a.Mode
	a.Mode = set.NewMode(c, a)
	if (a.Mode^old)&0o777 != 0 && a.ACLs != nil && a.ACLs.Access != nil {
		a.ACLs = a.ACLs.WithAccess(a.ACLs.Access.WithMode(a.Mode))
	}
	if set.Mask&store.SetUID != 0 {
		a.UID = set.UID
	}
	if set.Mask&store.SetGID != 0 {
		a.GID = set.GID
	}
	s.applyTimes(n, set)
}

func (s *Store) applyTimes(n *inode, set *store.SetAttr) {
	a := &n.attr
	switch {
	case set.Mask&store.SetAtime != 0:
		a.Atime = set.Atime
	case set.Mask&store.SetAtimeNow != 0:
		a.Atime = a.Ctime
	}
	switch {
	case set.Mask&store.SetMtime != 0:
		a.Mtime = set.Mtime
	case set.Mask&store.SetMtimeNow != 0:
		a.Mtime = a.Ctime
	}
}
