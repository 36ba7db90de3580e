package mutant

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

type lostName struct{ store.ACLStore }

// ReadDir leaves out the first name.
func (m *lostName) ReadDir(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error {
	err := m.ACLStore.ReadDir(c, dir, cookie, verifier, list)
	if err == nil && cookie == 0 && len(list.Entries) > 0 {
		list.Entries = list.Entries[1:]
	}
	return err
}
