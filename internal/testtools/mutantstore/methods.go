package mutantstore

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

func (m *Store) on() bool { return m.armed.Load() }

// seen changes attributes on their way out.
func (m *Store) seen(a *store.Attr, err error) error {
	if err == nil && m.on() && m.attr != nil {
		m.attr(a)
	}
	return err
}

func (m *Store) wcc(w *store.Wcc, err error) error { return m.seen(&w.After, err) }

// GetAttr implements store.Store, as do the methods that follow.
func (m *Store) GetAttr(h store.Handle, a *store.Attr) error {
	return m.seen(a, m.ACLStore.GetAttr(h, a))
}

// SetAttr may set something else.
func (m *Store) SetAttr(c *store.Cred, h store.Handle, s *store.SetAttr, w *store.Wcc) error {
	t := *s
	if m.on() && m.set != nil {
		var a store.Attr
		if m.ACLStore.GetAttr(h, &a) == nil {
			m.set(&a, &t)
		}
	}
	return m.wcc(w, m.ACLStore.SetAttr(c, h, &t, w))
}

// Access may give other rights.
func (m *Store) Access(c *store.Cred, h store.Handle, want store.AccessMask) (store.AccessMask, error) {
	given, err := m.ACLStore.Access(c, h, want)
	if m.on() && m.access != nil && err == nil {
		given = m.access(want, given)
	}
	return given, err
}

// Readlink may tell another text.
func (m *Store) Readlink(c *store.Cred, h store.Handle, b []byte) ([]byte, error) {
	b, err := m.ACLStore.Readlink(c, h, b)
	if m.on() && m.text != nil && err == nil {
		b = m.text(b)
	}
	return b, err
}

// Seek may find another place.
func (m *Store) Seek(c *store.Cred, h store.Handle, offset uint64, what store.Whence) (uint64, error) {
	n, err := m.ACLStore.Seek(c, h, offset, what)
	if m.on() && m.seek != nil && err == nil {
		n = m.seek(offset, n)
	}
	return n, err
}

// GetXattr may return another value.
func (m *Store) GetXattr(c *store.Cred, h store.Handle, name []byte, b []byte) ([]byte, error) {
	b, err := m.ACLStore.GetXattr(c, h, name, b)
	if m.on() && m.xget != nil && err == nil {
		b = m.xget(b)
	}
	return b, err
}

// ListXattrs may list others.
func (m *Store) ListXattrs(c *store.Cred, h store.Handle, f func(name []byte) bool) error {
	if m.on() && m.xlist != nil {
		f = m.xlist(f)
	}
	return m.ACLStore.ListXattrs(c, h, f)
}

// Verifier may be new each time.
func (m *Store) Verifier() uint64 {
	if m.on() && m.restart {
		m.hit()
		return m.verifier.Add(1)
	}
	return m.ACLStore.Verifier()
}

// Lookup may do something else.
func (m *Store) Lookup(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
	if m.on() && m.lookup != nil {
		return m.seen(a, m.lookup(c, dir, name, a))
	}
	return m.seen(a, m.ACLStore.Lookup(c, dir, name, a))
}

// ReadDir may do something else.
func (m *Store) ReadDir(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error {
	if m.on() && m.readdir != nil {
		return m.readdir(c, dir, cookie, verifier, list)
	}
	return m.ACLStore.ReadDir(c, dir, cookie, verifier, list)
}

// Mkdir may do something else.
func (m *Store) Mkdir(c *store.Cred, dir store.Handle, name []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	if m.on() && m.mkdir != nil {
		return m.wcc(w, m.mkdir(c, dir, name, s, a, w))
	}
	return m.wcc(w, m.ACLStore.Mkdir(c, dir, name, s, a, w))
}

// Symlink may do something else.
func (m *Store) Symlink(c *store.Cred, dir store.Handle, name, text []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	if m.on() && m.symlink != nil {
		return m.wcc(w, m.symlink(c, dir, name, text, s, a, w))
	}
	return m.wcc(w, m.ACLStore.Symlink(c, dir, name, text, s, a, w))
}

// Mknod may do something else.
func (m *Store) Mknod(c *store.Cred, dir store.Handle, name []byte, t store.Type, dev store.Device, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	if m.on() && m.mknod != nil {
		return m.wcc(w, m.mknod(c, dir, name, t, dev, s, a, w))
	}
	return m.wcc(w, m.ACLStore.Mknod(c, dir, name, t, dev, s, a, w))
}

// Link may do something else.
func (m *Store) Link(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error {
	if m.on() && m.link != nil {
		return m.wcc(w, m.link(c, h, dir, name, a, w))
	}
	return m.wcc(w, m.ACLStore.Link(c, h, dir, name, a, w))
}

// Remove may do something else.
func (m *Store) Remove(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	if m.on() && m.remove != nil {
		return m.wcc(w, m.remove(c, dir, name, w))
	}
	return m.wcc(w, m.ACLStore.Remove(c, dir, name, w))
}

// Rmdir may do something else.
func (m *Store) Rmdir(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	if m.on() && m.rmdir != nil {
		return m.wcc(w, m.rmdir(c, dir, name, w))
	}
	return m.wcc(w, m.ACLStore.Rmdir(c, dir, name, w))
}

// Write may do something else.
func (m *Store) Write(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
	if m.on() && m.write != nil {
		return m.wcc(w, m.write(c, h, offset, data, stable, w))
	}
	return m.wcc(w, m.ACLStore.Write(c, h, offset, data, stable, w))
}

// Commit may do something else.
func (m *Store) Commit(c *store.Cred, h store.Handle, offset, count uint64, w *store.Wcc) error {
	if m.on() && m.commit != nil {
		return m.wcc(w, m.commit(c, h, offset, count, w))
	}
	return m.wcc(w, m.ACLStore.Commit(c, h, offset, count, w))
}

// Allocate may do something else.
func (m *Store) Allocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	if m.on() && m.alloc != nil {
		return m.wcc(w, m.alloc(c, h, offset, length, w))
	}
	return m.wcc(w, m.ACLStore.Allocate(c, h, offset, length, w))
}

// Deallocate may do something else.
func (m *Store) Deallocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	if m.on() && m.dealloc != nil {
		return m.wcc(w, m.dealloc(c, h, offset, length, w))
	}
	return m.wcc(w, m.ACLStore.Deallocate(c, h, offset, length, w))
}

// Clone may do something else.
func (m *Store) Clone(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) error {
	if m.on() && m.clone != nil {
		return m.wcc(w, m.clone(c, src, srcOffset, dst, dstOffset, length, w))
	}
	return m.wcc(w, m.ACLStore.Clone(c, src, srcOffset, dst, dstOffset, length, w))
}

// Copy may do something else.
func (m *Store) Copy(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) (uint64, error) {
	if m.on() && m.copy != nil {
		return m.copy(c, src, srcOffset, dst, dstOffset, length, w)
	}
	return m.ACLStore.Copy(c, src, srcOffset, dst, dstOffset, length, w)
}

// SetXattr may do something else.
func (m *Store) SetXattr(c *store.Cred, h store.Handle, name, value []byte, how store.XattrMode, w *store.Wcc) error {
	if m.on() && m.xset != nil {
		return m.wcc(w, m.xset(c, h, name, value, how, w))
	}
	return m.wcc(w, m.ACLStore.SetXattr(c, h, name, value, how, w))
}

// RemoveXattr may do something else.
func (m *Store) RemoveXattr(c *store.Cred, h store.Handle, name []byte, w *store.Wcc) error {
	if m.on() && m.xremove != nil {
		return m.wcc(w, m.xremove(c, h, name, w))
	}
	return m.wcc(w, m.ACLStore.RemoveXattr(c, h, name, w))
}

// SetACL may do something else.
func (m *Store) SetACL(c *store.Cred, h store.Handle, access, def *store.ACL, w *store.Wcc) error {
	if m.on() && m.acl != nil {
		return m.wcc(w, m.acl(c, h, access, def, w))
	}
	return m.wcc(w, m.ACLStore.SetACL(c, h, access, def, w))
}

// Create may do something else.
func (m *Store) Create(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
	f := m.ACLStore.Create
	if m.on() && m.create != nil {
		f = m.create
	}
	made, err := f(c, dir, name, how, a, w)
	return made, m.wcc(w, m.seen(a, err))
}

// Read may return something else.
func (m *Store) Read(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
	f := m.ACLStore.Read
	if m.on() && m.read != nil {
		f = m.read
	}
	return m.seen(&r.Attr, f(c, h, offset, count, r))
}

// Rename may do something else.
func (m *Store) Rename(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
	f := m.ACLStore.Rename
	if m.on() && m.rename != nil {
		f = m.rename
	}
	return m.wcc(wTo, m.wcc(wFrom, f(c, from, name, to, newName, wFrom, wTo)))
}
