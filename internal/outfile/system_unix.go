//go:build unix

package outfile

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// descriptor reports whether a path stands for an open descriptor of this
// process.
func descriptor(path string) (fd int, ok bool) {
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, prefix := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/"} {
		if rest, found := strings.CutPrefix(path, prefix); found {
			n, err := strconv.ParseUint(rest, 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}

func descriptorTarget(name string, fd int) (*target, error) {
	f, err := duplicate(fd, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &target{fd: fd, info: info}, nil
}

// duplicate makes a second descriptor of an open file: position and O_APPEND are
// shared, so that what a shell has redirected goes where it should.
func duplicate(fd int, name string) (*os.File, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return os.NewFile(uintptr(n), name), nil
}

// mayFollow applies the rule of Linux's fs.protected_symlinks, which the kernel
// cannot apply since the link is followed here.
func mayFollow(t *target, link fs.FileInfo) error {
	dir, err := os.Stat(t.folder())
	if err != nil {
		return err
	}
	if dir.Mode()&fs.ModeSticky == 0 || dir.Mode().Perm()&0o002 == 0 {
		return nil
	}
	l, ok := link.Sys().(*syscall.Stat_t)
	d, ok2 := dir.Sys().(*syscall.Stat_t)
	if ok && ok2 && (int(l.Uid) == os.Geteuid() || l.Uid == d.Uid) {
		return nil
	}
	return errors.New("a symbolic link of another user, in a directory that all may write to, is not followed")
}

// keepOwner gives a file the owner of the one that it replaces, if this user may
// do that.
func keepOwner(f *os.File, old fs.FileInfo) {
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}

func unlinkOpen(name string) error { return os.Remove(name) }
