package mutantstore

import (
	"bytes"
	"errors"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Kinds that are wrong rarely, beside what they were asked for, or in one place of several that
// show the same.

// size is the size of a file.
func (m *Store) size(h store.Handle) uint64 {
	var a store.Attr
	if m.ACLStore.GetAttr(h, &a) != nil {
		return 0
	}
	return a.Size
}

const page = 4096

var subtleData = []Kind{
	{"rare-write", "every tenth WRITE sets the size and stores nothing", func(m *Store) {
		m.write = func(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
			if !m.nth(10) || len(data) == 0 {
				return m.ACLStore.Write(c, h, offset, data, stable, w)
			}
			m.hit()
			return part(m, c, h, offset, data, stable, w, 0, 0)
		}
	}},
	{"zeroed-page", "WRITE empties the bytes before it in its page", func(m *Store) {
		m.write = func(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
			var before store.ReadResult
			if n := offset % page; n != 0 && len(data) > 0 && m.ACLStore.Read(&store.Cred{}, h, offset-n, uint32(n), &before) == nil {
				if len(bytes.Trim(before.Data, "\x00")) > 0 {
					m.hit()
				}
				before.Release()
				offset, data = offset-n, append(make([]byte, n), data...)
			}
			return m.ACLStore.Write(c, h, offset, data, stable, w)
		}
	}},
	{"wrapped-write", "WRITE knows only the lower 16 bits of an offset", func(m *Store) {
		m.write = func(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
			if offset>>16 == 0 || len(data) == 0 {
				return m.ACLStore.Write(c, h, offset, data, stable, w)
			}
			m.hit()
			if err := m.ACLStore.Write(&store.Cred{}, h, offset&0xffff, data, stable, w); err != nil {
				return err
			}
			return part(m, c, h, offset, data, stable, w, 0, 0)
		}
	}},
	{"appending-write", "WRITE into a file goes to its end", func(m *Store) {
		m.write = func(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
			if n := m.size(h); n > offset && len(data) > 0 {
				m.hit()
				offset = n
			}
			return m.ACLStore.Write(c, h, offset, data, stable, w)
		}
	}},
	{"dirty-hole", "what WRITE skips behind the end of a file is not empty", func(m *Store) {
		m.write = func(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
			if n := m.size(h); n < offset && len(data) > 0 {
				m.hit()
				if err := m.ACLStore.Write(c, h, offset-1, []byte{'x'}, stable, w); err != nil {
					return err
				}
			}
			return m.ACLStore.Write(c, h, offset, data, stable, w)
		}
	}},
	{"crossed-read", "every fourth READ returns bytes of the READ before it", func(m *Store) {
		var last []byte
		m.read = func(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
			err := m.ACLStore.Read(c, h, offset, count, r)
			if err != nil || len(r.Data) == 0 {
				return err
			}
			turn := m.nth(4)
			m.mu.Lock()
			defer m.mu.Unlock()
			own := bytes.Clone(r.Data)
			if n := min(len(last), len(r.Data)); turn && !bytes.Equal(last[:n], own[:n]) {
				m.hit()
				r.Data = append(bytes.Clone(last[:n]), own[n:]...)
			}
			last = own
			return nil
		}
	}},
	{"emptying-chmod", "setting a mode empties the file", func(m *Store) {
		m.set = func(a *store.Attr, s *store.SetAttr) {
			if s.Mask&store.SetMode != 0 && s.Mask&store.SetSize == 0 && a.Type == store.Regular && a.Size > 0 {
				m.hit()
				s.Mask, s.Size = s.Mask|store.SetSize, 0
			}
		}
	}},
}

var subtleKinds = []Kind{
	{"cut-mode", "setting a mode loses the rights of others", func(m *Store) {
		m.set = func(_ *store.Attr, s *store.SetAttr) {
			if s.Mask&store.SetMode != 0 && s.Mode&7 != 0 {
				m.hit()
				s.Mode &^= 7
			}
		}
	}},
	{"backward-ctime", "the ctime of files goes backward", func(m *Store) {
		m.attr = func(a *store.Attr) {
			if a.Type == store.Regular {
				m.hit()
				a.Ctime.Sec = 2<<30 - a.Ctime.Sec
				a.Ctime.Nsec = 999_999_999 - a.Ctime.Nsec
			}
		}
	}},
	{"backward-change", "the change attribute of files goes backward", func(m *Store) {
		m.attr = func(a *store.Attr) {
			if a.Type == store.Regular {
				m.hit()
				a.Change = 1<<62 - a.Change
			}
		}
	}},
	{"shared-fileid", "all files have one number", func(m *Store) {
		m.attr = func(a *store.Attr) {
			if a.Type == store.Regular {
				m.hit()
				a.Handle.ID = 4711
			}
		}
	}},
	lists("listed-size", "attributes in listings have another size", func(_ *Store, _ store.Handle, _ uint64, l *store.DirList) bool {
		hit := false
		for i := range l.Entries {
			if e := &l.Entries[i]; e.HasAttr && e.Attr.Type == store.Regular {
				e.Attr.Size++
				hit = true
			}
		}
		return hit
	}),
	lists("listed-type", "listings say that files are directories", func(_ *Store, _ store.Handle, _ uint64, l *store.DirList) bool {
		hit := false
		for i := range l.Entries {
			if e := &l.Entries[i]; e.HasAttr && e.Attr.Type == store.Regular {
				e.Type, e.Attr.Type = store.Directory, store.Directory
				hit = true
			}
		}
		return hit
	}),
	{"kept-target", "RENAME to a name that is taken removes the old name only", func(m *Store) {
		m.rename = func(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
			var a, b store.Attr
			if m.ACLStore.Lookup(c, from, name, &a) != nil || m.ACLStore.Lookup(c, to, newName, &b) != nil || a.Type != store.Regular || b.Type != store.Regular || a.Handle == b.Handle {
				return m.ACLStore.Rename(c, from, name, to, newName, wFrom, wTo)
			}
			m.hit()
			return errors.Join(m.ACLStore.Remove(c, from, name, wFrom), m.unchanged(to, wTo))
		}
	}},
	{"other-remove", "REMOVE removes another name, too", func(m *Store) {
		m.remove = func(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
			if err := m.ACLStore.Remove(c, dir, name, w); err != nil {
				return err
			}
			l := store.DirList{Max: 64}
			if m.ACLStore.ReadDir(c, dir, 0, 0, &l) != nil {
				return nil
			}
			for i := range l.Entries {
				if l.Entries[i].Type == store.Regular {
					if m.ACLStore.Remove(&store.Cred{}, dir, bytes.Clone(l.Entries[i].Name), w) == nil {
						m.hit()
					}
					break
				}
			}
			return nil
		}
	}},
	{"cut-name", "CREATE keeps 64 bytes of a name", func(m *Store) {
		m.create = func(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
			if len(name) > 64 {
				m.hit()
				name = name[:64]
			}
			return m.ACLStore.Create(c, dir, name, how, a, w)
		}
	}},
}
