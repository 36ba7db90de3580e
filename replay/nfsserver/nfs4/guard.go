package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// guard is a store whose files are used only as delegations allow. Conflicting delegations of
// others are recalled, and the operation fails with ErrDelay: the caller tries again.
type guard struct {
	store.Store
	table *state.Table
	by    *state.Client // who uses it; nil if that is not known
}

// aclGuard is a guard of a store with ACLs.
type aclGuard struct {
	guard
	acls store.ACLStore
}

var (
	_ store.Store    = (*guard)(nil)
	_ store.ACLStore = (*aclGuard)(nil)
)

// Guarded is the store for programs without state here: NFSv3 and NFSACL. They may have to wait
// for delegations to be returned.
func (s *Server) Guarded() store.Store {
	if s.opt.NoDelegations {
		return s.store
	}
	g := guard{Store: s.store, table: s.table}
	if acls, ok := s.store.(store.ACLStore); ok {
		return &aclGuard{g, acls}
	}
	return &g
}

func (g *guard) begin(h store.Handle, write bool) error {
	if g.table.Delegations.BeginChange(g.by, h, write) != nfs4.NFS4_OK {
		return store.ErrDelay
	}
	return nil
}

// change calls f while a file is not delegated to others.
func (g *guard) change(h store.Handle, f func() error) error {
	if err := g.begin(h, true); err != nil {
		return err
	}
	defer g.table.Delegations.EndChange(h)
	return f()
}

// changeNamed calls f while neither a directory nor what a name in it stands for is delegated to others.
func (g *guard) changeNamed(c *store.Cred, dir store.Handle, name []byte, f func() error) error {
	return g.change(dir, func() error {
		var a store.Attr
		if !g.table.Delegations.Any() || g.Lookup(c, dir, name, &a) != nil || a.Type != store.Regular && a.Type != store.Directory {
			return f() // which tells what is wrong
		}
		return g.change(a.Handle, f)
	})
}

// SetAttr implements store.Store.
func (g *guard) SetAttr(c *store.Cred, h store.Handle, s *store.SetAttr, w *store.Wcc) error {
	return g.change(h, func() error { return g.Store.SetAttr(c, h, s, w) })
}

// Create implements store.Store. It may cut a file that exists.
func (g *guard) Create(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (created bool, err error) {
	create := func() error {
		created, err = g.Store.Create(c, dir, name, how, a, w)
		return err
	}
	switch {
	case g.table.Delegations.Any() && g.Lookup(c, dir, name, a) == nil: // the directory does not change
		if how.Mode == store.Unchecked && how.Set.Mask&store.SetSize != 0 && a.Type == store.Regular {
			err = g.change(a.Handle, create)
		} else {
			err = create()
		}
	default:
		err = g.change(dir, create)
	}
	return created, err
}

// Mkdir implements store.Store.
func (g *guard) Mkdir(c *store.Cred, dir store.Handle, name []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	return g.change(dir, func() error { return g.Store.Mkdir(c, dir, name, s, a, w) })
}

// Symlink implements store.Store.
func (g *guard) Symlink(c *store.Cred, dir store.Handle, name, text []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	return g.change(dir, func() error { return g.Store.Symlink(c, dir, name, text, s, a, w) })
}

// Mknod implements store.Store.
func (g *guard) Mknod(c *store.Cred, dir store.Handle, name []byte, t store.Type, dev store.Device, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
	return g.change(dir, func() error { return g.Store.Mknod(c, dir, name, t, dev, s, a, w) })
}

// Rmdir implements store.Store.
func (g *guard) Rmdir(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	return g.changeNamed(c, dir, name, func() error { return g.Store.Rmdir(c, dir, name, w) })
}

// Link implements store.Store.
func (g *guard) Link(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error {
	return g.change(h, func() error {
		return g.change(dir, func() error { return g.Store.Link(c, h, dir, name, a, w) })
	})
}

// Remove implements store.Store.
func (g *guard) Remove(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
	return g.changeNamed(c, dir, name, func() error { return g.Store.Remove(c, dir, name, w) })
}

// Rename implements store.Store.
func (g *guard) Rename(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
	return g.changeNamed(c, from, name, func() error {
		return g.changeNamed(c, to, newName, func() error { return g.Store.Rename(c, from, name, to, newName, wFrom, wTo) })
	})
}

// Read implements store.Store.
func (g *guard) Read(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
	if err := g.begin(h, false); err != nil {
		return err
	}
	return g.Store.Read(c, h, offset, count, r)
}

// Seek implements store.Store.
func (g *guard) Seek(c *store.Cred, h store.Handle, offset uint64, what store.Whence) (uint64, error) {
	if err := g.begin(h, false); err != nil {
		return 0, err
	}
	return g.Store.Seek(c, h, offset, what)
}

// Write implements store.Store.
func (g *guard) Write(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
	return g.change(h, func() error { return g.Store.Write(c, h, offset, data, stable, w) })
}

// Allocate implements store.Store.
func (g *guard) Allocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	return g.change(h, func() error { return g.Store.Allocate(c, h, offset, length, w) })
}

// Deallocate implements store.Store.
func (g *guard) Deallocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	return g.change(h, func() error { return g.Store.Deallocate(c, h, offset, length, w) })
}

// Copy implements store.Store.
func (g *guard) Copy(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) (n uint64, err error) {
	if err = g.begin(src, false); err != nil {
		return 0, err
	}
	err = g.change(dst, func() error {
		n, err = g.Store.Copy(c, src, srcOffset, dst, dstOffset, length, w)
		return err
	})
	return n, err
}

// Clone implements store.Store.
func (g *guard) Clone(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) error {
	if err := g.begin(src, false); err != nil {
		return err
	}
	return g.change(dst, func() error { return g.Store.Clone(c, src, srcOffset, dst, dstOffset, length, w) })
}

// SetXattr implements store.Store.
func (g *guard) SetXattr(c *store.Cred, h store.Handle, name, value []byte, how store.XattrMode, w *store.Wcc) error {
	return g.change(h, func() error { return g.Store.SetXattr(c, h, name, value, how, w) })
}

// RemoveXattr implements store.Store.
func (g *guard) RemoveXattr(c *store.Cred, h store.Handle, name []byte, w *store.Wcc) error {
	return g.change(h, func() error { return g.Store.RemoveXattr(c, h, name, w) })
}

// SetACL implements store.ACLStore.
func (g *aclGuard) SetACL(c *store.Cred, h store.Handle, access, def *store.ACL, w *store.Wcc) error {
	return g.change(h, func() error { return g.acls.SetACL(c, h, access, def, w) })
}
