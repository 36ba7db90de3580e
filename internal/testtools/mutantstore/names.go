package mutantstore

import (
	"bytes"
	"errors"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// lists makes a kind of READDIR.
func lists(name, what string, f func(m *Store, dir store.Handle, cookie uint64, list *store.DirList) bool) Kind {
	return Kind{name, what, func(m *Store) {
		m.readdir = func(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error {
			err := m.ACLStore.ReadDir(c, dir, cookie, verifier, list)
			if err == nil && len(list.Entries) > 0 && f(m, dir, cookie, list) {
				m.hit()
			}
			return err
		}
	}}
}

var nameKinds = []Kind{
	lists("lost-name", "the first name of each directory is not listed", func(_ *Store, _ store.Handle, cookie uint64, l *store.DirList) bool {
		if cookie != 0 {
			return false
		}
		l.Entries = l.Entries[1:]
		return true
	}),
	lists("name-twice", "the last name of each directory is listed twice", func(_ *Store, _ store.Handle, _ uint64, l *store.DirList) bool {
		if l.EOF {
			l.Entries = append(l.Entries, l.Entries[len(l.Entries)-1])
		}
		return l.EOF
	}),
	lists("added-name", "a name is listed that is not there", func(_ *Store, _ store.Handle, _ uint64, l *store.DirList) bool {
		if l.EOF {
			e := l.Entries[len(l.Entries)-1]
			e.Name = []byte("ghost")
			l.Entries = append(l.Entries, e)
		}
		return l.EOF
	}),
	lists("misspelt-name", "the first name of each directory is misspelt in listings", func(_ *Store, _ store.Handle, cookie uint64, l *store.DirList) bool {
		if cookie != 0 {
			return false
		}
		l.Entries[0].Name = append(bytes.Clone(l.Entries[0].Name), '~')
		return true
	}),
	lists("early-list-end", "a listing ends with its first half", func(_ *Store, _ store.Handle, _ uint64, l *store.DirList) bool {
		if len(l.Entries) < 2 {
			return false
		}
		l.Entries, l.EOF = l.Entries[:len(l.Entries)/2], true
		return true
	}),
	lists("rotated-entries", "listings give each name the object of the next one", func(_ *Store, _ store.Handle, _ uint64, l *store.DirList) bool {
		if len(l.Entries) < 2 {
			return false
		}
		first := l.Entries[0]
		for i := range l.Entries {
			e := &l.Entries[i]
			next := first
			if i+1 < len(l.Entries) {
				next = l.Entries[i+1]
			}
			e.Handle, e.Type, e.Attr, e.HasAttr = next.Handle, next.Type, next.Attr, next.HasAttr
		}
		return true
	}),
	{"repeated-list", "a continued listing begins with names already listed", func(m *Store) {
		m.readdir = func(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error {
			if cookie > store.FirstCookie {
				m.hit()
				cookie -= 2
			}
			return m.ACLStore.ReadDir(c, dir, cookie, verifier, list)
		}
	}},
	{"gapped-list", "a continued listing omits a name", func(m *Store) {
		m.readdir = func(c *store.Cred, dir store.Handle, cookie, verifier uint64, list *store.DirList) error {
			if cookie > store.FirstCookie {
				m.hit()
				cookie++
			}
			return m.ACLStore.ReadDir(c, dir, cookie, verifier, list)
		}
	}},

	{"found-name", "LOOKUP of a name that is not there finds the directory itself", func(m *Store) {
		m.lookup = func(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
			err := m.ACLStore.Lookup(c, dir, name, a)
			if errors.Is(err, store.ErrNoEnt) && dir != m.Root() {
				m.hit()
				return m.ACLStore.GetAttr(dir, a)
			}
			return err
		}
	}},
	{"lost-lookup", "every third LOOKUP does not find its name", func(m *Store) {
		m.lookup = func(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
			err := m.ACLStore.Lookup(c, dir, name, a)
			if err == nil && dir != m.Root() && a.Type == store.Regular && m.nth(3) {
				m.hit()
				return store.ErrNoEnt
			}
			return err
		}
	}},
	{"other-lookup", "LOOKUP finds the file of the previous LOOKUP", func(m *Store) {
		m.lookup = func(c *store.Cred, dir store.Handle, name []byte, a *store.Attr) error {
			err := m.ACLStore.Lookup(c, dir, name, a)
			if err != nil || a.Type != store.Regular {
				return err
			}
			m.mu.Lock()
			was := m.last
			m.last = a.Handle
			m.mu.Unlock()
			var b store.Attr
			if was != (store.Handle{}) && was != a.Handle && m.ACLStore.GetAttr(was, &b) == nil {
				m.hit()
				*a = b
			}
			return nil
		}
	}},
	{"lost-remove", "REMOVE does nothing", func(m *Store) {
		m.remove = func(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
			var a store.Attr
			if err := m.ACLStore.Lookup(c, dir, name, &a); err != nil {
				return err
			}
			m.hit()
			return m.unchanged(dir, w)
		}
	}},
	{"lost-rmdir", "RMDIR does nothing", func(m *Store) {
		m.rmdir = func(c *store.Cred, dir store.Handle, name []byte, w *store.Wcc) error {
			var l store.DirList
			var a store.Attr
			if err := m.ACLStore.Lookup(c, dir, name, &a); err != nil || a.Type != store.Directory {
				return m.ACLStore.Rmdir(c, dir, name, w)
			}
			if l.Max = 1; m.ACLStore.ReadDir(c, a.Handle, 0, 0, &l) != nil || len(l.Entries) > 0 {
				return m.ACLStore.Rmdir(c, dir, name, w)
			}
			m.hit()
			return m.unchanged(dir, w)
		}
	}},
	{"lost-rename", "RENAME does nothing", func(m *Store) {
		m.rename = func(c *store.Cred, from store.Handle, name []byte, to store.Handle, _ []byte, wFrom, wTo *store.Wcc) error {
			var a store.Attr
			if err := m.ACLStore.Lookup(c, from, name, &a); err != nil {
				return err
			}
			m.hit()
			return errors.Join(m.unchanged(from, wFrom), m.unchanged(to, wTo))
		}
	}},
	{"half-rename", "RENAME of a file makes the new name and keeps the old one", func(m *Store) {
		m.rename = func(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
			var a store.Attr
			if err := m.ACLStore.Lookup(c, from, name, &a); err != nil || a.Type == store.Directory {
				return m.ACLStore.Rename(c, from, name, to, newName, wFrom, wTo)
			}
			if err := m.ACLStore.Rename(c, from, name, to, newName, wFrom, wTo); err != nil {
				return err
			}
			m.hit()
			return m.ACLStore.Link(&store.Cred{}, a.Handle, from, name, &a, wFrom)
		}
	}},
	{"lost-target", "RENAME of a file removes the old name and makes no new one", func(m *Store) {
		m.rename = func(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
			if err := m.ACLStore.Rename(c, from, name, to, newName, wFrom, wTo); err != nil {
				return err
			}
			var w store.Wcc
			if m.ACLStore.Remove(&store.Cred{}, to, newName, &w) == nil {
				m.hit()
			}
			return nil
		}
	}},
	{"other-rename", "RENAME gives another name than the one wanted", func(m *Store) {
		m.rename = func(c *store.Cred, from store.Handle, name []byte, to store.Handle, newName []byte, wFrom, wTo *store.Wcc) error {
			err := m.ACLStore.Rename(c, from, name, to, append(bytes.Clone(newName), '~'), wFrom, wTo)
			if err == nil {
				m.hit()
			}
			return err
		}
	}},
	{"lost-link", "LINK makes no name", func(m *Store) {
		m.link = func(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error {
			if err := m.ACLStore.Lookup(c, dir, name, a); !errors.Is(err, store.ErrNoEnt) {
				return m.ACLStore.Link(c, h, dir, name, a, w)
			}
			m.hit()
			return errors.Join(m.ACLStore.GetAttr(h, a), m.unchanged(dir, w))
		}
	}},
	{"copied-link", "LINK makes a new file", func(m *Store) {
		m.link = func(c *store.Cred, h, dir store.Handle, name []byte, a *store.Attr, w *store.Wcc) error {
			var b store.Attr
			if err := m.ACLStore.Lookup(c, dir, name, &b); !errors.Is(err, store.ErrNoEnt) {
				return m.ACLStore.Link(c, h, dir, name, a, w)
			}
			m.hit()
			_, err := m.ACLStore.Create(c, dir, name, &store.Create{Mode: store.Guarded}, &b, w)
			return errors.Join(err, m.ACLStore.GetAttr(h, a))
		}
	}},
	{"wrong-symlink", "the text of a symbolic link is stored wrongly", func(m *Store) {
		m.symlink = func(c *store.Cred, dir store.Handle, name, text []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
			m.hit()
			return m.ACLStore.Symlink(c, dir, name, changed(text, func(b []byte) { b[0] ^= 1 }), s, a, w)
		}
	}},
	{"wrong-readlink", "READLINK returns a text that ends otherwise", func(m *Store) {
		m.text = func(b []byte) []byte {
			m.hit()
			b[len(b)-1] ^= 1
			return b
		}
	}},
	{"lost-create", "CREATE makes a file without a name", func(m *Store) {
		m.create = func(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
			made, err := m.ACLStore.Create(c, dir, name, how, a, w)
			if err == nil && made {
				m.hit()
				_ = m.ACLStore.Hold(a.Handle)
				err = m.ACLStore.Remove(&store.Cred{}, dir, name, w)
			}
			return made, err
		}
	}},
	{"taken-create", "CREATE takes a file that exists, whatever was wanted", func(m *Store) {
		m.create = func(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
			made, err := m.ACLStore.Create(c, dir, name, how, a, w)
			if errors.Is(err, store.ErrExist) && m.ACLStore.Lookup(&store.Cred{}, dir, name, a) == nil {
				m.hit()
				return false, m.unchanged(dir, w)
			}
			return made, err
		}
	}},
	{"open-create", "files are made with mode 666", func(m *Store) {
		m.create = func(c *store.Cred, dir store.Handle, name []byte, how *store.Create, a *store.Attr, w *store.Wcc) (bool, error) {
			h := *how
			h.Set.Mask |= store.SetMode
			h.Set.Mode = 0o666
			made, err := m.ACLStore.Create(c, dir, name, &h, a, w)
			if err == nil && made {
				m.hit()
			}
			return made, err
		}
	}},
	{"open-mkdir", "directories are made with mode 777", func(m *Store) {
		m.mkdir = func(c *store.Cred, dir store.Handle, name []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
			t := *s
			t.Mask, t.Mode = t.Mask|store.SetMode, 0o777
			m.hit()
			return m.ACLStore.Mkdir(c, dir, name, &t, a, w)
		}
	}},
	{"taken-mkdir", "MKDIR takes a directory that exists", func(m *Store) {
		m.mkdir = func(c *store.Cred, dir store.Handle, name []byte, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
			err := m.ACLStore.Mkdir(c, dir, name, s, a, w)
			if errors.Is(err, store.ErrExist) && m.ACLStore.Lookup(&store.Cred{}, dir, name, a) == nil {
				m.hit()
				return m.unchanged(dir, w)
			}
			return err
		}
	}},
	{"wrong-mknod", "MKNOD makes a socket, whatever was wanted", func(m *Store) {
		m.mknod = func(c *store.Cred, dir store.Handle, name []byte, t store.Type, dev store.Device, s *store.SetAttr, a *store.Attr, w *store.Wcc) error {
			if t != store.Socket {
				m.hit()
			}
			return m.ACLStore.Mknod(c, dir, name, store.Socket, store.Device{}, s, a, w)
		}
	}},
}
