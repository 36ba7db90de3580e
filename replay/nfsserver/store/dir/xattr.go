//go:build linux

package dir

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// prefix is missing in the names that clients use (RFC 8276, section 5).
const prefix = "user."

// openXattrs opens an object for its extended attributes.
func (s *Store) openXattrs(c *store.Cred, h store.Handle, want uint32, a *store.Attr) (*node, *file, error) {
	n, err := s.node(h)
	if err != nil {
		return nil, nil, err
	}
	if n.kind != store.Regular && n.kind != store.Directory {
		return nil, nil, store.ErrPerm
	}
	if want == store.MayWrite {
		if err := s.rules.Writable(); err != nil {
			return nil, nil, err
		}
	}
	if err := s.stat(n, a); err != nil {
		return nil, nil, err
	}
	if !s.rules.Permits(c, a, want) {
		return nil, nil, store.ErrAccess
	}
	f, err := s.file(n, openRead)
	return n, f, err
}

// GetXattr appends a value to b.
func (s *Store) GetXattr(c *store.Cred, h store.Handle, name, b []byte) ([]byte, error) {
	if err := s.rules.CheckXattr(name, nil); err != nil {
		return b, err
	}
	var a store.Attr
	_, f, err := s.openXattrs(c, h, store.MayRead, &a)
	if err != nil {
		return b, err
	}
	defer f.put()
	value := make([]byte, s.info.MaxXattr)
	n, err := unix.Fgetxattr(f.fd, prefix+string(name), value)
	if err != nil {
		return b, convert(err)
	}
	return append(b, value[:n]...), nil
}

// SetXattr sets a value.
func (s *Store) SetXattr(c *store.Cred, h store.Handle, name, value []byte, how store.XattrMode, w *store.Wcc) error {
	if err := s.rules.CheckXattr(name, value); err != nil {
		return err
	}
	n, f, err := s.openXattrs(c, h, store.MayWrite, &w.Before)
	if err != nil {
		return err
	}
	defer f.put()
	flags := 0
	switch how {
	case store.XattrCreate:
		flags = unix.XATTR_CREATE
	case store.XattrReplace:
		flags = unix.XATTR_REPLACE
	}
	if err := unix.Fsetxattr(f.fd, prefix+string(name), value, flags); err != nil {
		return convert(err)
	}
	w.Atomic = false
	return s.after(n, f.fd, &w.After)
}

// RemoveXattr removes an attribute.
func (s *Store) RemoveXattr(c *store.Cred, h store.Handle, name []byte, w *store.Wcc) error {
	if err := s.rules.CheckXattr(name, nil); err != nil {
		return err
	}
	n, f, err := s.openXattrs(c, h, store.MayWrite, &w.Before)
	if err != nil {
		return err
	}
	defer f.put()
	if err := unix.Fremovexattr(f.fd, prefix+string(name)); err != nil {
		return convert(err)
	}
	w.Atomic = false
	return s.after(n, f.fd, &w.After)
}

// ListXattrs calls f for each name.
func (s *Store) ListXattrs(c *store.Cred, h store.Handle, f func(name []byte) bool) error {
	var a store.Attr
	_, file, err := s.openXattrs(c, h, store.MayRead, &a)
	if err != nil {
		return err
	}
	defer file.put()
	names := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Flistxattr(file.fd, names)
	if err != nil {
		return convert(err)
	}
	for name := range bytes.SplitSeq(names[:n], []byte{0}) {
		if own, ok := bytes.CutPrefix(name, []byte(prefix)); ok && !f(own) {
			break
		}
	}
	return nil
}
