//go:build linux

package dir

import (
	"io"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// buffer is memory for reads.
type buffer struct{ data []byte }

// buffer returns memory of at least n bytes.
func (s *Store) buffer(n int) *buffer {
	b, _ := s.pool.Get().(*buffer)
	if b == nil {
		b = &buffer{}
	}
	if len(b.data) < n {
		b.data = make([]byte, n)
	}
	return b
}

// ReleaseRead takes back the memory of Read.
func (s *Store) ReleaseRead(token any) { s.pool.Put(token) }

// openData opens a file for its data, and checks permissions.
func (s *Store) openData(c *store.Cred, h store.Handle, want uint32, a *store.Attr) (*node, *file, error) {
	n, err := s.fileNode(h)
	if err != nil {
		return nil, nil, err
	}
	mode := openRead
	if want == store.MayWrite {
		if err := s.rules.Writable(); err != nil {
			return nil, nil, err
		}
		mode = openWrite
	}
	f, err := s.file(n, mode)
	if err != nil {
		return nil, nil, err
	}
	st, err := statAt(f.fd, "")
	if err == nil {
		s.attr(n, &st, a, false)
		switch {
		case a.Nlink == 0 && !n.held():
			err = store.ErrStale
			s.gone(n)
		case !s.rules.PermitsData(c, a, want):
			err = store.ErrAccess
		}
	}
	if err != nil {
		f.put()
		return nil, nil, convert(err)
	}
	return n, f, nil
}

func (n *node) held() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.holds > 0
}

// Read reads into memory of its own.
func (s *Store) Read(c *store.Cred, h store.Handle, offset uint64, count uint32, r *store.ReadResult) error {
	n, f, err := s.openData(c, h, store.MayRead, &r.Attr)
	if err != nil {
		return err
	}
	defer f.put()
	if offset >= r.Attr.Size || count == 0 {
		r.Data, r.EOF = nil, offset >= r.Attr.Size
		r.Keep(nil, nil)
		return nil
	}
	size := int(min(uint64(count), r.Attr.Size-offset))
	b := s.buffer(size)
	got := 0
	for got < size {
		part := 0
		err := retry(func() (err error) {
			part, err = unix.Pread(f.fd, b.data[got:size], int64(offset)+int64(got))
			return err
		})
		if err != nil {
			s.pool.Put(b)
			return convert(err)
		}
		if part == 0 {
			break // others have cut it
		}
		got += part
	}
	if got < size {
		if err := s.stat(n, &r.Attr); err != nil {
			s.pool.Put(b)
			return err
		}
	}
	r.Data = b.data[:got:got]
	r.EOF = offset+uint64(got) >= r.Attr.Size
	r.Keep(s, b)
	return nil
}

// changed ends a change of data: it takes set-ID bits away, as the kernel does
// for processes of others than root, and tells the attributes.
func (s *Store) changed(c *store.Cred, n *node, f *file, w *store.Wcc) error {
	if s.isRoot && c.UID != 0 {
		if mode := store.WithoutSetID(w.Before.Mode); mode != w.Before.Mode {
			if err := unix.Fchmod(f.fd, mode); err != nil {
				return convert(err)
			}
		}
	}
	w.Atomic = false
	return s.after(n, f.fd, &w.After)
}

// Write writes.
func (s *Store) Write(c *store.Cred, h store.Handle, offset uint64, data []byte, stable bool, w *store.Wcc) error {
	n, f, err := s.openData(c, h, store.MayWrite, &w.Before)
	if err != nil {
		return err
	}
	defer f.put()
	if err := s.rules.Fits(offset, uint64(len(data))); err != nil {
		return err
	}
	if len(data) == 0 {
		w.After = w.Before
		return nil
	}
	if err := writeAt(f.fd, data, int64(offset)); err != nil {
		return convert(err)
	}
	if stable {
		if err := retry(func() error { return unix.Fdatasync(f.fd) }); err != nil {
			return convert(err)
		}
	}
	return s.changed(c, n, f, w)
}

func writeAt(fd int, data []byte, offset int64) error {
	for len(data) > 0 {
		done := 0
		err := retry(func() (err error) {
			done, err = unix.Pwrite(fd, data, offset)
			return err
		})
		if err != nil {
			return err
		}
		if done == 0 {
			return io.ErrShortWrite
		}
		data, offset = data[done:], offset+int64(done)
	}
	return nil
}

// Commit writes all of the file to the disk, whatever the range.
func (s *Store) Commit(c *store.Cred, h store.Handle, _, _ uint64, w *store.Wcc) error {
	n, err := s.fileNode(h)
	if err != nil {
		return err
	}
	if err := s.stat(n, &w.Before); err != nil {
		return err
	}
	w.Atomic = false
	if !s.opt.Writable {
		w.After = w.Before
		return nil // nothing was written
	}
	f, err := s.file(n, openWrite)
	if err != nil {
		return err
	}
	defer f.put()
	if err := retry(func() error { return unix.Fsync(f.fd) }); err != nil {
		return convert(err)
	}
	return s.stat(n, &w.After)
}
