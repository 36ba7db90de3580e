package memory

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

var _ store.ACLStore = (*Store)(nil)

// SetACL sets access control lists.
func (s *Store) SetACL(c *store.Cred, h store.Handle, access, def *store.ACL, w *store.Wcc) error {
	for _, l := range []*store.ACL{access, def} {
		if l == nil || len(*l) == 0 {
			continue
		}
		if err := l.Normal(); err != nil {
			return err
		}
	}
	n, err := locked(s.find(h))
	if err != nil {
		return err
	}
	defer n.mu.Unlock()
	switch {
	case n.kind == store.Symlink:
		return store.ErrNotSupp
	case c.UID != 0 && c.UID != n.attr.UID && !s.opt.NoPermissions:
		return store.ErrPerm
	case n.dir == nil && def != nil && len(*def) > 0:
		return store.ErrAccess // as Linux
	}
	a := n.attr
	if access != nil {
		setAccess(c, &a, *access)
	}
	if def != nil {
		a.ACLs = a.ACLs.WithDefault(*def)
	}
	if cost := a.ACLs.Size() - n.attr.ACLs.Size(); cost > 0 && !s.space.charge(cost) {
		return store.ErrNoSpace
	} else if cost < 0 {
		s.space.refund(-cost)
	}
	w.Before, w.Atomic = n.attr, true
	n.attr = a
	s.touch(n, false)
	w.After = n.attr
	return nil
}

// setAccess gives a its access list. The mode follows; without a list it stays.
func setAccess(c *store.Cred, a *store.Attr, l store.ACL) {
	if len(l) == 0 {
		a.ACLs = a.ACLs.WithAccess(nil)
		return
	}
	mode, all := l.Mode(a.Mode)
	set := store.SetAttr{Mask: store.SetMode, Mode: mode}
	a.Mode = set.NewMode(c, a) // which may lose the set-GID bit
	if all {
		l = nil
	}
	a.ACLs = a.ACLs.WithAccess(l)
}
