//go:build linux

package dir

import (
	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Seek finds the next hole or data, as reported by the file system.
func (s *Store) Seek(c *store.Cred, h store.Handle, offset uint64, what store.Whence) (uint64, error) {
	var a store.Attr
	_, f, err := s.openData(c, h, store.MayRead, &a)
	if err != nil {
		return 0, err
	}
	defer f.put()
	if offset >= a.Size {
		return 0, store.ErrNXIO
	}
	whence := unix.SEEK_DATA
	if what == store.SeekHole {
		whence = unix.SEEK_HOLE
	}
	// The place of the file, which others may move, is of no use to anyone.
	at, err := unix.Seek(f.fd, int64(offset), whence)
	return uint64(at), convert(err)
}

// Allocate reserves space.
func (s *Store) Allocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	return s.fallocate(c, h, 0, offset, length, w)
}

// Deallocate makes a hole.
func (s *Store) Deallocate(c *store.Cred, h store.Handle, offset, length uint64, w *store.Wcc) error {
	return s.fallocate(c, h, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length, w)
}

func (s *Store) fallocate(c *store.Cred, h store.Handle, mode uint32, offset, length uint64, w *store.Wcc) error {
	n, f, err := s.openData(c, h, store.MayWrite, &w.Before)
	if err != nil {
		return err
	}
	defer f.put()
	if length == 0 {
		return store.ErrInval
	}
	if err := s.rules.Fits(offset, length); err != nil {
		return err
	}
	if err := retry(func() error { return unix.Fallocate(f.fd, mode, int64(offset), int64(length)) }); err != nil {
		return convert(err)
	}
	return s.changed(c, n, f, w)
}

// maxCopy is how many bytes one Copy copies.
const maxCopy = 64 << 20

// copyOf is the common part of Copy and Clone.
type copyOf struct {
	src, dst       *node
	from, to       *file
	length, source uint64 // to copy; size of the source
}

func (s *Store) openCopy(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) (cp copyOf, err error) {
	var a store.Attr
	if cp.src, cp.from, err = s.openData(c, src, store.MayRead, &a); err != nil {
		return cp, err
	}
	if cp.dst, cp.to, err = s.openData(c, dst, store.MayWrite, &w.Before); err != nil {
		cp.from.put()
		return cp, err
	}
	cp.source = a.Size
	cp.length, err = s.rules.CopyLength(a.Size, srcOffset, dstOffset, length, cp.src == cp.dst)
	if err != nil {
		cp.put()
	}
	return cp, err
}

func (cp *copyOf) put() {
	cp.from.put()
	cp.to.put()
}

// Copy copies at most maxCopy bytes.
func (s *Store) Copy(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) (uint64, error) {
	cp, err := s.openCopy(c, src, srcOffset, dst, dstOffset, length, w)
	if err != nil {
		return 0, err
	}
	defer cp.put()
	if cp.length == 0 {
		w.After = w.Before
		return 0, nil
	}
	want := min(cp.length, maxCopy)
	done := uint64(0)
	for done < want {
		n, err := s.copyPart(&cp, int64(srcOffset+done), int64(dstOffset+done), int(want-done))
		if err != nil {
			if done > 0 {
				break
			}
			return 0, convert(err)
		}
		if n == 0 {
			break
		}
		done += uint64(n)
	}
	return done, s.changed(c, cp.dst, cp.to, w)
}

// copyPart copies some bytes: in the kernel, or by hand if it cannot.
func (s *Store) copyPart(cp *copyOf, from, to int64, length int) (int, error) {
	a, b := from, to
	n, err := unix.CopyFileRange(cp.from.fd, &a, cp.to.fd, &b, length, 0)
	switch err {
	case nil:
		return n, nil
	case unix.EINTR, unix.ENOSYS, unix.EOPNOTSUPP, unix.EXDEV, unix.EINVAL:
	default:
		return 0, err
	}
	buf := s.buffer(min(length, 1<<20))
	defer s.pool.Put(buf)
	err = retry(func() (err error) {
		n, err = unix.Pread(cp.from.fd, buf.data[:min(length, 1<<20)], from)
		return err
	})
	if err == nil && n > 0 {
		err = writeAt(cp.to.fd, buf.data[:n], to)
	}
	return n, err
}

// Clone makes files share storage, if the file system can.
func (s *Store) Clone(c *store.Cred, src store.Handle, srcOffset uint64, dst store.Handle, dstOffset, length uint64, w *store.Wcc) error {
	cp, err := s.openCopy(c, src, srcOffset, dst, dstOffset, length, w)
	if err != nil {
		return err
	}
	defer cp.put()
	if err := s.rules.CheckClone(cp.source, srcOffset, dstOffset, length); err != nil {
		return err
	}
	if cp.length == 0 {
		w.After = w.Before
		return nil
	}
	err = unix.IoctlFileCloneRange(cp.to.fd, &unix.FileCloneRange{
		Src_fd: int64(cp.from.fd), Src_offset: srcOffset, Src_length: cp.length, Dest_offset: dstOffset,
	})
	if err != nil {
		if err == unix.EXDEV || err == unix.EINVAL {
			return store.ErrNotSupp // file systems that have no clones say these, too
		}
		return convert(err)
	}
	return s.changed(c, cp.dst, cp.to, w)
}
