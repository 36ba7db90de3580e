//go:build linux

// Package dir is a store that serves a directory of the machine.
//
// # What is served
//
// Everything below the directory on the same mount. Other mounts there are hidden, even of
// the same file system. Symbolic links are data. Nothing that a client sends leads out of
// the directory: names are opened one by one, relative to their directory, without following
// links, and ".." is never among them.
//
// An object that is moved out of the directory on this machine becomes unreachable for
// clients within Options.Recheck, even if they have its handle or have it open: the handle is
// stale. An open file is not used for longer than that without a check of the names that lead
// to it from the root. An object that is moved within the directory is found again as long as
// it is kept open, and otherwise when it is looked up under its new name.
//
// Other processes may change objects at any time, so the attributes before and after an
// operation are not reported as atomic. The change attribute is derived from the ctime, and
// also counts changes by this store that the ctime is too coarse for.
//
// # Handles
//
// A handle is the inode number and a hash of the time of birth, where the file
// system has it. The store remembers under which names it has seen an object.
// A handle therefore ends with the store, when others rename the object or a directory
// above it, until it is looked up under the new name, and when Options.Handles objects
// are known: a client then gets NFS3ERR_STALE. With Options.Search, such objects are
// looked for in all directories. What the store itself renames keeps its handle. Handles of the kernel
// (name_to_handle_at) would not have these limits, but opening them needs
// CAP_DAC_READ_SEARCH, and reaches all of the file system.
//
// # Descriptors
//
// However many files clients have open, Options.Files of them, directories
// included, are open in this process: those used last. Others are opened again by
// their names. Only a file that loses its last name while a client has it open
// needs a descriptor for as long: there are Options.Orphans of them, beyond which
// a file that is open cannot be removed (ErrFileOpen). The rest of what the
// process may open is for connections.
//
// # Users
//
// Permissions are checked as described in package store, against the owner and the mode of
// the files, and then by the kernel, against the user of this process. If that user is not
// root, it owns all files that clients make, and clients cannot give files away.
package dir

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options of a Store.
type Options struct {
	// Writable allows changes. Otherwise clients get ErrROFS.
	Writable bool
	// Handles is how many objects are remembered; 0 stands for 1 Mi. The
	// handles of some that were not used become stale beyond that.
	Handles int
	// Files is how many files and directories are kept open; 0 stands for a
	// quarter of what the process may open (RLIMIT_NOFILE), at most 1024.
	Files int
	// Orphans is how many files may be removed while clients have them open; 0
	// stands for an eighth of what the process may open, at most 4096.
	Orphans int
	// Recheck is how long it may take until clients lose what others have moved
	// out of the directory; 0 stands for a second.
	Recheck time.Duration
	// HandleKey protects handles from being guessed; zero stands for a random key.
	HandleKey store.Key
	// Search finds objects that an earlier Store with the same HandleKey has given
	// handles of, by reading all directories. Operations on them fail with ErrDelay until
	// that is done.
	Search bool
	// NoPermissions leaves the check of permissions to the kernel.
	NoPermissions bool
}

// Store serves a directory.
type Store struct {
	opt      Options
	info     store.Info
	rules    store.Rules
	verifier uint64
	dev, mnt uint64
	started  time.Time
	orphans  atomic.Int64
	root     *node
	top      *file // of the root
	isRoot   bool  // this process is

	// names is held by what changes names, so that the table follows.
	names sync.Mutex

	mu    sync.Mutex
	nodes map[store.Handle]*node
	open  fileCache

	searches searches
	pool     sync.Pool // of *buffer
}

var _ store.Store = (*Store)(nil)

// Open serves the directory of that path, which is followed if it is a link.
func Open(path string, opt Options) (*Store, error) {
	opt.Handles = cmp.Or(opt.Handles, 1<<20)
	limit := descriptors()
	opt.Files = cmp.Or(opt.Files, min(max(limit/4, 8), 1024))
	opt.Orphans = cmp.Or(opt.Orphans, min(max(limit/8, 4), 4096))
	opt.Recheck = cmp.Or(opt.Recheck, time.Second)
	if opt.HandleKey == (store.Key{}) {
		opt.HandleKey = store.NewKey()
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Store{opt: opt, verifier: random(), started: time.Now(), nodes: map[store.Handle]*node{}, isRoot: os.Geteuid() == 0}
	s.open.limit = opt.Files
	st, err := statAt(fd, "")
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.dev, s.mnt = st.dev, st.mnt
	s.top = newFile(fd)
	s.root = &node{handle: st.attr.Handle, kind: store.Directory, pinned: s.top}
	s.nodes[s.root.handle] = s.root
	s.info = store.Info{
		Handles:     store.NewSeal(opt.HandleKey),
		FSID:        [2]uint64{uint64(unix.Major(s.dev)), uint64(unix.Minor(s.dev))},
		ReadOnly:    !opt.Writable,
		MaxFileSize: math.MaxInt64,
		MaxName:     255,
		MaxLink:     math.MaxUint16,
		MaxSymlink:  4095,
		MaxXattr:    64 << 10,
		TimeDelta:   store.Time{Nsec: 1},
		CloneAlign:  4096,
		HardLinks:   true, Symlinks: true, Devices: true, Xattrs: s.hasXattrs(),
		Seek: true, Allocate: true, Deallocate: true, Copy: true, Clone: true,
		CasePreserving: true, ChownRestricted: true,
	}
	s.rules = store.Rules{Info: &s.info, NoPermissions: opt.NoPermissions}
	if opt.Search {
		s.searches.prepare(s)
	}
	return s, nil
}

// descriptors is how many files the process may have open.
func descriptors() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	return int(min(r.Cur, math.MaxInt32))
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// hasXattrs asks the file system whether it has extended attributes of users.
func (s *Store) hasXattrs() bool {
	_, err := unix.Getxattr(proc(s.root.pinned.fd), prefix+"probe", nil)
	return err == nil || err == unix.ENODATA
}

// Info describes the store. The file system below may lack an operation that Info reports.
func (s *Store) Info() *store.Info { return &s.info }

// Root is the directory itself.
func (s *Store) Root() store.Handle { return s.root.handle }

// Verifier is a random number, since this process does not know what an earlier one has lost.
func (s *Store) Verifier() uint64 { return s.verifier }

// Close closes all files.
func (s *Store) Close() error {
	s.searches.close()
	s.mu.Lock()
	nodes := s.nodes
	s.nodes = map[store.Handle]*node{}
	s.mu.Unlock()
	s.open.clear()
	for _, n := range nodes {
		n.mu.Lock()
		pinned := n.pinned
		n.pinned = nil
		n.mu.Unlock()
		if pinned != nil {
			pinned.put()
		}
	}
	return nil
}

// Statfs reports how full the file system is.
func (s *Store) Statfs(st *store.Statfs) error {
	f, err := s.file(s.root, openPath)
	if err != nil {
		return err
	}
	defer f.put()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(f.fd, &fs); err != nil {
		return convert(err)
	}
	block := uint64(max(fs.Frsize, 1))
	*st = store.Statfs{
		TotalBytes: fs.Blocks * block, FreeBytes: fs.Bfree * block, AvailBytes: fs.Bavail * block,
		TotalFiles: fs.Files, FreeFiles: fs.Ffree, AvailFiles: fs.Ffree,
	}
	return nil
}

// errnos are the errors of the kernel that have a counterpart.
var errnos = map[unix.Errno]store.Error{
	unix.EPERM: store.ErrPerm, unix.ENOENT: store.ErrNoEnt, unix.EIO: store.ErrIO, unix.ENXIO: store.ErrNXIO,
	unix.EACCES: store.ErrAccess, unix.EEXIST: store.ErrExist, unix.EXDEV: store.ErrXDev, unix.ENODEV: store.ErrNoDev,
	unix.ENOTDIR: store.ErrNotDir, unix.EISDIR: store.ErrIsDir, unix.EINVAL: store.ErrInval, unix.EFBIG: store.ErrFBig,
	unix.ENOSPC: store.ErrNoSpace, unix.EROFS: store.ErrROFS, unix.EMLINK: store.ErrMLink, unix.ENAMETOOLONG: store.ErrNameTooLong,
	unix.ENOTEMPTY: store.ErrNotEmpty, unix.EDQUOT: store.ErrDQuot, unix.ESTALE: store.ErrStale, unix.EOPNOTSUPP: store.ErrNotSupp,
	unix.ENOSYS: store.ErrNotSupp, unix.ENODATA: store.ErrNoXattr, unix.E2BIG: store.ErrXattrTooBig, unix.ERANGE: store.ErrXattrTooBig,
	unix.ENOTTY: store.ErrNotSupp, unix.ENOMEM: store.ErrDelay, unix.EMFILE: store.ErrDelay, unix.ENFILE: store.ErrDelay,
	unix.EAGAIN: store.ErrDelay, unix.EBUSY: store.ErrDelay, unix.ETXTBSY: store.ErrAccess, unix.ELOOP: store.ErrNotDir,
	unix.EOVERFLOW: store.ErrFBig,
}

// convert turns an error of the kernel into one of package store.
func convert(err error) error {
	if err == nil {
		return nil
	}
	var own store.Error
	if errors.As(err, &own) {
		return own
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		if e, ok := errnos[errno]; ok {
			return e
		}
	}
	return store.ErrServerFault
}

// retry repeats a system call that a signal has interrupted.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
