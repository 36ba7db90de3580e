package mutant

import (
	"errors"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

type lostName struct{ store.ACLStore }

// ReadDir leaves out the first name.
func (m *lostName) ReadDir(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error {
	err := m.ACLStore.ReadDir(c, dir, cookie, verifier, list)
	if err == nil && cookie == 0 && len(list.Entries) > 0 {
		list.Entries = list.Entries[1:]
	}
	return err
}

type foundName struct{ store.ACLStore }

// Lookup finds every name but those in the root, where tests look for their directory.
func (m *foundName) Lookup(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
	err := m.ACLStore.Lookup(c, dir, name, a)
	if errors.Is(err, store.ErrNoEnt) && dir != m.Root() {
		return m.GetAttr(dir, a)
	}
	return err
}

type nameTwice struct{ store.ACLStore }

// ReadDir adds the last name once more.
func (m *nameTwice) ReadDir(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error {
	err := m.ACLStore.ReadDir(c, dir, cookie, verifier, list)
	if n := len(list.Entries); err == nil && n > 0 && list.EOF {
		list.Entries = append(list.Entries, list.Entries[n-1])
	}
	return err
}
