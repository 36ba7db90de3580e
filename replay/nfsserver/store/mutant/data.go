package mutant

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

type lostWrite struct{ store.ACLStore }

// Write writes zeros.
func (m *lostWrite) Write(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
	return m.ACLStore.Write(c, h, offset, make([]byte, len(data)), stable, w)
}

type spoiltRead struct{ store.ACLStore }

// Read changes the last byte.
func (m *spoiltRead) Read(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
	err := m.ACLStore.Read(c, h, offset, count, r)
	if err == nil && len(r.Data) > 0 {
		r.Data = append([]byte(nil), r.Data...) // the store's own must not change
		r.Data[len(r.Data)-1] ^= 0x5a
	}
	return err
}

type lostDeallocate struct{ store.ACLStore }

// Deallocate does nothing.
func (m *lostDeallocate) Deallocate(_ *store.Cred, h store.Handle, _, _ uint64, w *store.Wcc) error {
	err := m.GetAttr(h, &w.Before)
	w.After = w.Before
	return err
}
