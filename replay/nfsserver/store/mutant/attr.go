package mutant

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

// attributes changes those of regular files, where they are asked for.
type attributes struct {
	store.ACLStore
	change func(*store.Attr)
}

func (m *attributes) file(a *store.Attr) {
	if a.Type == store.Regular {
		m.change(a)
	}
}

// GetAttr implements store.Store.
func (m *attributes) GetAttr(h store.Handle, a *store.Attr) error {
	err := m.ACLStore.GetAttr(h, a)
	m.file(a)
	return err
}

// Lookup implements store.Store.
func (m *attributes) Lookup(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
	err := m.ACLStore.Lookup(c, dir, name, a)
	m.file(a)
	return err
}
