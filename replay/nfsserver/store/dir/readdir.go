//go:build linux

package dir

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// ReadDir reads entries. Cookies come from the file system: they stay good
// as long as it says so.
func (s *Store) ReadDir(c *store.Cred, dir store.Handle, cookie, _ uint64, list *store.DirList) error {
	list.Reset()
	d, err := s.dirNode(dir)
	if err != nil {
		return err
	}
	if cookie != 0 && cookie < store.FirstCookie {
		return store.ErrBadCookie
	}
	f, err := s.dir(d, 0)
	if err != nil {
		return err
	}
	defer f.put()
	if err := s.stat(d, &list.Dir); err != nil {
		return err
	}
	if list.Dir.Nlink == 0 {
		return store.ErrStale
	}
	if !s.rules.Permits(c, &list.Dir, store.MayRead) {
		return store.ErrAccess
	}
	// A file of its own: its place is ours.
	fd := -1
	err = retry(func() (err error) {
		fd, err = unix.Openat(f.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return convert(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if cookie != 0 {
		if _, err := unix.Seek(fd, int64(cookie-store.FirstCookie), unix.SEEK_SET); err != nil {
			return store.ErrBadCookie
		}
	}
	b := s.buffer(32 << 10)
	defer s.pool.Put(b)
	for {
		size := 0
		err := retry(func() (err error) {
			size, err = unix.Getdents(fd, b.data[:32<<10])
			return err
		})
		if err != nil {
			return convert(err)
		}
		if size == 0 {
			list.EOF = true
			return nil
		}
		if s.entries(d, f, b.data[:size], list) {
			return nil
		}
	}
}

// entries adds entries in the form of linux_dirent64, and reports whether there
// are more of them than wanted.
func (s *Store) entries(d *node, f *file, b []byte, list *store.DirList) (full bool) {
	const header = 8 + 8 + 2 + 1
	for len(b) > header {
		next := binary.NativeEndian.Uint64(b[8:])
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size < header || size > len(b) {
			return false
		}
		name := b[header:size]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		b = b[size:]
		if string(name) == "." || string(name) == ".." {
			continue
		}
		if list.Full() {
			return true
		}
		var a store.Attr
		if _, err := s.lookup(d, f, string(name), &a); err != nil {
			continue // gone, or something is mounted there
		}
		e := list.Add(name, next+store.FirstCookie)
		e.Handle, e.Type = a.Handle, a.Type
		if list.Attrs {
			e.Attr, e.HasAttr = a, true
		}
	}
	return false
}
