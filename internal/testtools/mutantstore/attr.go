package mutantstore

import "github.com/rpcrdma/toolkit/replay/nfsserver/store"

// shows makes a kind of attributes of regular files.
func shows(name, what string, f func(a *store.Attr)) Kind {
	return Kind{name, what, func(m *Store) {
		m.attr = func(a *store.Attr) {
			if a.Type == store.Regular {
				m.hit()
				f(a)
			}
		}
	}}
}

// still makes a kind that shows an attribute as it was when it was first shown.
func still(name, what string, t store.Type, f func(a, first *store.Attr) bool) Kind {
	return Kind{name, what, func(m *Store) {
		m.attr = func(a *store.Attr) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if a.Type != t {
				return
			}
			first, ok := m.old[a.Handle]
			if !ok {
				m.old[a.Handle] = *a
				return
			}
			if f(a, &first) {
				m.hit()
			}
		}
	}}
}

// ignores makes a kind that does not set what is to be set.
func ignores(name, what string, mask store.AttrMask) Kind {
	return Kind{name, what, func(m *Store) {
		m.set = func(_ *store.Attr, s *store.SetAttr) {
			if s.Mask&mask != 0 {
				m.hit()
				s.Mask &^= mask
			}
		}
	}}
}

func replaced[T comparable](at *T, by T) bool {
	was := *at
	*at = by
	return was != by
}

var attrKinds = []Kind{
	shows("wrong-size", "files are one byte longer than they are", func(a *store.Attr) { a.Size++ }),
	shows("wrong-mode", "files are shown with a wrong mode", func(a *store.Attr) { a.Mode ^= 0o100 }),
	shows("wrong-owner", "files belong to another user", func(a *store.Attr) { a.UID += 7 }),
	shows("wrong-group", "files belong to another group", func(a *store.Attr) { a.GID += 7 }),
	shows("wrong-nlink", "files are shown with one link too many", func(a *store.Attr) { a.Nlink++ }),
	shows("wrong-fileid", "the numbers of files change each time", nil),
	shows("wrong-used", "files are shown with a wrong amount of used space", func(a *store.Attr) { a.Used += 1 << 20 }),
	{"wrong-type", "files are FIFOs", func(m *Store) {
		m.attr = func(a *store.Attr) {
			if a.Type == store.Regular {
				m.hit()
				a.Type = store.FIFO
			}
		}
	}},
	{"wrong-rdev", "devices have another number", func(m *Store) {
		m.attr = func(a *store.Attr) {
			if a.Type == store.Block || a.Type == store.Character {
				m.hit()
				a.Rdev.Minor++
			}
		}
	}},
	still("still-change", "the change attribute of files stands still", store.Regular, func(a, f *store.Attr) bool { return replaced(&a.Change, f.Change) }),
	still("still-dir-change", "the change attribute of directories stands still", store.Directory, func(a, f *store.Attr) bool { return replaced(&a.Change, f.Change) }),
	still("still-ctime", "the ctime of files stands still", store.Regular, func(a, f *store.Attr) bool { return replaced(&a.Ctime, f.Ctime) }),
	still("still-mtime", "the mtime of files stands still", store.Regular, func(a, f *store.Attr) bool { return replaced(&a.Mtime, f.Mtime) }),
	still("still-dir-mtime", "the mtime of directories stands still", store.Directory, func(a, f *store.Attr) bool { return replaced(&a.Mtime, f.Mtime) }),
	still("still-dir-ctime", "the ctime of directories stands still", store.Directory, func(a, f *store.Attr) bool { return replaced(&a.Ctime, f.Ctime) }),
	still("still-size", "the size of files stands still", store.Regular, func(a, f *store.Attr) bool { return replaced(&a.Size, f.Size) }),
	ignores("lost-mode", "setting a mode does nothing", store.SetMode),
	ignores("lost-owner", "setting an owner or group does nothing", store.SetUID|store.SetGID),
	ignores("lost-mtime", "setting an mtime does nothing", store.SetMtime),
	ignores("lost-atime", "setting an atime does nothing", store.SetAtime),
	{"rounded-mtime", "an mtime that a client sets is an hour off", func(m *Store) {
		m.set = func(_ *store.Attr, s *store.SetAttr) {
			if s.Mask&store.SetMtime != 0 {
				m.hit()
				s.Mtime.Sec -= 3600
			}
		}
	}},
}

func init() {
	k := Find("wrong-fileid")
	k.spoil = func(m *Store) {
		m.attr = func(a *store.Attr) {
			if a.Type == store.Regular {
				m.hit()
				m.mu.Lock()
				m.calls++
				a.Handle.ID += uint64(m.calls) << 32
				m.mu.Unlock()
			}
		}
	}
}
