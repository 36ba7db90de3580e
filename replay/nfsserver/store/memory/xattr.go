package memory

import (
	"bytes"
	"slices"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// xattr is an extended attribute.
type xattr struct{ name, value []byte }

func (x *xattr) cost() int { return nameCost + len(x.name) + len(x.value) }

// The names of an object take as many bytes at most, as in Linux
// (XATTR_LIST_MAX), so that a search of them stays short.
const maxXattrNames = 64 << 10

func (n *inode) xattr(name []byte) int {
	return slices.IndexFunc(n.xattrs, func(x xattr) bool { return bytes.Equal(x.name, name) })
}

// findXattrs finds an object that may have extended attributes, and locks it.
func (s *Store) findXattrs(c *store.Cred, h store.Handle, write bool) (*inode, func(), error) {
	n, err := s.find(h)
	if err != nil {
		return nil, nil, err
	}
	if n.dir == nil && n.kind != store.Regular {
		return nil, nil, store.ErrPerm // user attributes: files and directories only
	}
	unlock, want := n.mu.RUnlock, uint32(store.MayRead)
	if write {
		n.mu.Lock()
		unlock, want = n.mu.Unlock, store.MayWrite
	} else {
		n.mu.RLock()
	}
	switch {
	case n.gone:
		err = store.ErrStale
	case !s.rules.Permits(c, &n.attr, want):
		err = store.ErrAccess
	default:
		return n, unlock, nil
	}
	unlock()
	return nil, nil, err
}

// GetXattr appends a value to b.
func (s *Store) GetXattr(c *store.Cred, h store.Handle, name, b []byte) ([]byte, error) {
	if err := s.rules.CheckXattr(name, nil); err != nil {
		return b, err
	}
	n, unlock, err := s.findXattrs(c, h, false)
	if err != nil {
		return b, err
	}
	defer unlock()
	i := n.xattr(name)
	if i < 0 {
		return b, store.ErrNoXattr
	}
	return append(b, n.xattrs[i].value...), nil
}

// SetXattr sets a value.
func (s *Store) SetXattr(c *store.Cred, h store.Handle, name, value []byte, how store.XattrMode, w *store.Wcc) error {
	if err := s.rules.CheckXattr(name, value); err != nil {
		return err
	}
	n, unlock, err := s.findXattrs(c, h, true)
	if err != nil {
		return err
	}
	defer unlock()
	i := n.xattr(name)
	switch {
	case i >= 0 && how == store.XattrCreate:
		return store.ErrExist
	case i < 0 && how == store.XattrReplace:
		return store.ErrNoXattr
	}
	w.Before, w.Atomic = n.attr, true
	x := xattr{bytes.Clone(name), append([]byte{}, value...)}
	cost := x.cost()
	if i >= 0 {
		cost -= n.xattrs[i].cost()
	} else {
		names := len(name)
		for k := range n.xattrs {
			names += len(n.xattrs[k].name)
		}
		if names > maxXattrNames {
			return store.ErrNoSpace
		}
	}
	if cost > 0 && !s.space.charge(cost) {
		return store.ErrNoSpace
	} else if cost < 0 {
		s.space.refund(-cost)
	}
	if i >= 0 {
		n.xattrs[i] = x
	} else {
		n.xattrs = append(n.xattrs, x)
	}
	s.touch(n, false)
	w.After = n.attr
	return nil
}

// RemoveXattr removes an attribute.
func (s *Store) RemoveXattr(c *store.Cred, h store.Handle, name []byte, w *store.Wcc) error {
	if err := s.rules.CheckXattr(name, nil); err != nil {
		return err
	}
	n, unlock, err := s.findXattrs(c, h, true)
	if err != nil {
		return err
	}
	defer unlock()
	i := n.xattr(name)
	if i < 0 {
		return store.ErrNoXattr
	}
	w.Before, w.Atomic = n.attr, true
	s.space.refund(n.xattrs[i].cost())
	n.xattrs = slices.Delete(n.xattrs, i, i+1)
	s.touch(n, false)
	w.After = n.attr
	return nil
}

// ListXattrs calls f for each name.
func (s *Store) ListXattrs(c *store.Cred, h store.Handle, f func(name []byte) bool) error {
	n, unlock, err := s.findXattrs(c, h, false)
	if err != nil {
		return err
	}
	defer unlock()
	for i := range n.xattrs {
		if !f(n.xattrs[i].name) {
			break
		}
	}
	return nil
}
