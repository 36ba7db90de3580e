// Package memory is a store in memory. It is meant to be fast, and to behave
// like a local file system of Linux: holes, hard links, extended attributes,
// clones.
//
// Files are made of blocks of BlockSize. Read hands out the memory of a block
// without copying if the range does not cross a block; a block that is handed
// out, or shared by clones, is copied before it is written to. What Read has
// returned therefore never changes, and a write beside slow readers costs a
// copy of at most BlockSize bytes.
//
// Reading does not change the atime, as on a file system mounted with noatime.
package memory

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Options of a Store. The zero value is usable.
type Options struct {
	// Size is how many bytes the store may take, data, names and all, as far as
	// they can be counted; 0 stands for 1 GiB.
	Size uint64
	// Files is how many objects there may be; 0 stands for 1 Mi.
	Files uint64
	// RootUID, RootGID and RootMode are the attributes of the root; mode 0
	// stands for 01777, so that everyone can work in it.
	RootUID, RootGID, RootMode uint32
	// FSID is the number of the file system; zero stands for {1, 1}.
	FSID [2]uint64
	// Generation goes into all handles, so that handles of another store are
	// stale here; 0 stands for a random number.
	Generation uint32
	// HandleKey makes handles that clients cannot make up; zero stands for a
	// random key.
	HandleKey store.Key
	// NoPermissions lets everyone do everything.
	NoPermissions bool
	// Clock is the time; nil stands for store.Now.
	Clock func() store.Time
}

const (
	rootID = 2
	shards = 64

	// What objects and names are counted as, in bytes, beside their contents.
	inodeCost = 512
	nameCost  = 128
	// extentCost is for each block of a file, in addition to the block, which other files may share.
	extentCost = 64
)

// Store is a file system in memory.
type Store struct {
	opt      Options
	info     store.Info
	rules    store.Rules
	verifier uint64
	root     *inode

	// tree is held exclusively to move objects between directories, and shared
	// by all else that locks more than one inode. Those that hold it shared
	// lock a directory before what is in it; those that do not hold it lock one
	// inode at a time, except for Copy and Clone, which lock two files.
	tree   sync.RWMutex
	shards [shards]shard
	nextID atomic.Uint64
	files  atomic.Int64
	space  space
}

var _ store.Store = (*Store)(nil)

type shard struct {
	mu     sync.RWMutex
	inodes map[uint64]*inode
}

// New makes a store with an empty root.
func New(opt Options) *Store {
	if opt.Size == 0 {
		opt.Size = 1 << 30
	}
	opt.Size = min(opt.Size, math.MaxInt64)
	if opt.Files == 0 {
		opt.Files = 1 << 20
	}
	opt.Files = min(opt.Files, math.MaxInt64)
	if opt.RootMode == 0 {
		opt.RootMode = 0o1777
	}
	if opt.FSID == [2]uint64{} {
		opt.FSID = [2]uint64{1, 1}
	}
	if opt.Generation == 0 {
		opt.Generation = uint32(random()) | 1
	}
	if opt.HandleKey == (store.Key{}) {
		opt.HandleKey = store.NewKey()
	}
	if opt.Clock == nil {
		opt.Clock = store.Now
	}
	s := &Store{opt: opt, verifier: random()}
	s.space.limit = int64(opt.Size)
	s.info = store.Info{
		Handles:     store.NewSeal(opt.HandleKey),
		FSID:        opt.FSID,
		MaxFileSize: math.MaxInt64,
		MaxName:     255,
		MaxLink:     65000,
		MaxSymlink:  4095,
		MaxXattr:    64 << 10,
		TimeDelta:   store.Time{Nsec: 1},
		CloneAlign:  BlockSize,
		HardLinks:   true, Symlinks: true, Devices: true, Xattrs: true,
		Seek: true, Allocate: true, Deallocate: true, Copy: true, Clone: true,
		CasePreserving: true, ChownRestricted: true,
	}
	s.rules = store.Rules{Info: &s.info, NoPermissions: opt.NoPermissions}
	for i := range s.shards {
		s.shards[i].inodes = map[uint64]*inode{}
	}
	s.nextID.Store(rootID - 1)
	s.root = s.newInode(&store.Attr{Type: store.Directory, Mode: opt.RootMode & store.ModeMask, UID: opt.RootUID, GID: opt.RootGID})
	s.root.dir.parent = s.root
	s.insert(s.root)
	return s
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// Info tells what the store is like.
func (s *Store) Info() *store.Info { return &s.info }

// Root is the top directory.
func (s *Store) Root() store.Handle { return s.root.attr.Handle }

// Verifier is a random number: a new store has lost all that was written.
func (s *Store) Verifier() uint64 { return s.verifier }

// Close does nothing: the garbage collector has the rest.
func (s *Store) Close() error { return nil }

// Statfs tells how full the store is.
func (s *Store) Statfs(st *store.Statfs) error {
	used, files := uint64(max(s.space.used.Load(), 0)), uint64(max(s.files.Load(), 0))
	free := s.opt.Size - min(used, s.opt.Size)
	left := s.opt.Files - min(files, s.opt.Files)
	*st = store.Statfs{
		TotalBytes: s.opt.Size, FreeBytes: free, AvailBytes: free,
		TotalFiles: s.opt.Files, FreeFiles: left, AvailFiles: left,
	}
	return nil
}

// find returns the object of a handle.
func (s *Store) find(h store.Handle) (*inode, error) {
	if h.Generation != s.opt.Generation {
		return nil, store.ErrStale
	}
	sh := &s.shards[h.ID%shards]
	sh.mu.RLock()
	n := sh.inodes[h.ID]
	sh.mu.RUnlock()
	if n == nil {
		return nil, store.ErrStale
	}
	return n, nil
}

// findDir is find for directories.
func (s *Store) findDir(h store.Handle) (*inode, error) {
	n, err := s.find(h)
	if err == nil {
		err = store.CheckDirectory(n.kind)
	}
	return n, err
}

// findFile is find for regular files.
func (s *Store) findFile(h store.Handle) (*inode, error) {
	n, err := s.find(h)
	if err == nil {
		err = store.CheckRegular(n.kind)
	}
	return n, err
}

// locked locks what was found, unless it is gone.
func locked(n *inode, err error) (*inode, error) {
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	if n.gone {
		n.mu.Unlock()
		return nil, store.ErrStale
	}
	return n, nil
}

func (s *Store) insert(n *inode) {
	sh := &s.shards[n.attr.Handle.ID%shards]
	sh.mu.Lock()
	sh.inodes[n.attr.Handle.ID] = n
	sh.mu.Unlock()
}
