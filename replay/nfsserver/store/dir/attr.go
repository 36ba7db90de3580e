//go:build linux

package dir

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// GetAttr returns the attributes of an object.
func (s *Store) GetAttr(h store.Handle, a *store.Attr) error {
	n, err := s.node(h)
	if err != nil {
		return err
	}
	return s.stat(n, a)
}

// Access returns which permissions are given, as far as this store checks them.
func (s *Store) Access(c *store.Cred, h store.Handle, want store.AccessMask) (store.AccessMask, error) {
	var a store.Attr
	if err := s.GetAttr(h, &a); err != nil {
		return 0, err
	}
	return s.rules.Allowed(c, &a, want), nil
}

// SetAttr changes attributes.
func (s *Store) SetAttr(c *store.Cred, h store.Handle, set *store.SetAttr, w *store.Wcc) error {
	n, err := s.node(h)
	if err != nil {
		return err
	}
	if err := s.rules.Writable(); err != nil {
		return err
	}
	s.names.Lock()
	defer s.names.Unlock()
	if err := s.stat(n, &w.Before); err != nil {
		return err
	}
	a := &w.Before
	if err := s.rules.CheckSetAttr(c, a, set); err != nil {
		return err
	}
	if set.Mask&store.SetSize != 0 {
		if err := s.truncate(n, set.Size); err != nil {
			return err
		}
	}
	f, err := s.file(n, openPath)
	if err != nil {
		return err
	}
	defer f.put()
	if err := s.apply(c, f.fd, a, set); err != nil {
		return err
	}
	w.Atomic = false
	return s.after(n, f.fd, &w.After)
}

func (s *Store) truncate(n *node, size uint64) error {
	if err := s.rules.Fits(size, 0); err != nil {
		return err
	}
	f, err := s.file(n, openWrite)
	if err != nil {
		return err
	}
	defer f.put()
	return convert(retry(func() error { return unix.Ftruncate(f.fd, int64(size)) }))
}

// proc is a path of an open file, for the calls that take no O_PATH files.
func proc(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// apply sets all but the size of what a was told of.
func (s *Store) apply(c *store.Cred, fd int, a *store.Attr, set *store.SetAttr) error {
	uid, gid := -1, -1
	if set.Mask&store.SetUID != 0 && set.UID != a.UID {
		uid = int(set.UID)
	}
	if set.Mask&store.SetGID != 0 && set.GID != a.GID {
		gid = int(set.GID)
	}
	if uid >= 0 || gid >= 0 {
		if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
			return convert(err)
		}
	}
	mode := set.NewMode(c, a)
	if a.Type != store.Symlink && (mode != a.Mode || set.Mask&store.SetMode != 0 || uid >= 0 || gid >= 0) {
		if err := unix.Chmod(proc(fd), mode); err != nil {
			return convert(err)
		}
	}
	return s.applyTimes(fd, set)
}

func (s *Store) applyTimes(fd int, set *store.SetAttr) error {
	pick := func(client, server store.AttrMask, t store.Time) unix.Timespec {
		switch {
		case set.Mask&client != 0:
			ts, err := unix.TimeToTimespec(time.Unix(t.Sec, int64(t.Nsec)))
			if err != nil { // past 2038 on a 32-bit system
				return unix.Timespec{Nsec: unix.UTIME_NOW}
			}
			return ts
		case set.Mask&server != 0:
			return unix.Timespec{Nsec: unix.UTIME_NOW}
		}
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	ts := []unix.Timespec{
		pick(store.SetAtime, store.SetAtimeNow, set.Atime),
		pick(store.SetMtime, store.SetMtimeNow, set.Mtime),
	}
	if ts[0].Nsec == unix.UTIME_OMIT && ts[1].Nsec == unix.UTIME_OMIT {
		return nil
	}
	return convert(unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH))
}
