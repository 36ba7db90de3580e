package client

import (
	"context"
	"errors"
	"time"
)

// Type is the type of an object of a file system.
type Type uint32

// Types, with the numbers of ftype3 and nfs_ftype4.
const (
	Regular   Type = 1
	Directory Type = 2
	Block     Type = 3
	Character Type = 4
	Symlink   Type = 5
	Socket    Type = 6
	Fifo      Type = 7
)

// Attr has the attributes that the package asks for.
type Attr struct {
	Type         Type
	Mode         uint32
	Links        uint32
	Size, Fileid uint64
	Atime, Mtime time.Time
	// UID and GID are -1 if the server writes them as names (NFSv4).
	UID, GID int64
	// Major and Minor are the number of a device.
	Major, Minor uint32
}

// SetAttr has attributes to set; nil leaves one alone.
type SetAttr struct {
	Mode         *uint32
	UID, GID     *uint32
	Size         *uint64
	Atime, Mtime *time.Time
}

// Mode returns a SetAttr that sets the mode only.
func Mode(m uint32) SetAttr { return SetAttr{Mode: &m} }

// Entry is an entry of a directory.
type Entry struct {
	Name   string
	Fileid uint64
	Cookie uint64
}

// File is an object that can be read or written.
type File struct {
	Handle []byte
	state  *openState // NFSv4
}

// ErrListing says that a listing does not end: that the server repeats itself, or gives no more
// entries without saying that it is at the end.
var ErrListing = errors.New("the listing does not end")

// FS is an NFS client of any version. Handles are the server's. Memory for Read and Write
// comes from Alloc, so that it can travel in chunks.
// All methods may be called from any goroutine.
type FS interface {
	// Version is "3", "4.0", "4.1" or "4.2".
	Version() string
	Alloc(n int) ([]byte, error)
	Free(b []byte)

	// Root finds the object at an absolute path: with MOUNT (v3), or from the
	// root file handle (v4). It does not follow symbolic links.
	Root(ctx context.Context, path string) ([]byte, error)
	Lookup(ctx context.Context, dir []byte, name string) ([]byte, Attr, error)
	Getattr(ctx context.Context, handle []byte) (Attr, error)
	Setattr(ctx context.Context, handle []byte, a SetAttr) error
	Access(ctx context.Context, handle []byte, mask uint32) (uint32, error)
	Readlink(ctx context.Context, handle []byte) (string, error)
	Mkdir(ctx context.Context, dir []byte, name string, a SetAttr) ([]byte, error)
	Symlink(ctx context.Context, dir []byte, name, target string, a SetAttr) ([]byte, error)
	Mknod(ctx context.Context, dir []byte, name string, t Type, major, minor uint32, a SetAttr) ([]byte, error)
	Link(ctx context.Context, object, dir []byte, name string) error
	Remove(ctx context.Context, dir []byte, name string) error
	Rmdir(ctx context.Context, dir []byte, name string) error
	Rename(ctx context.Context, from []byte, name string, to []byte, newname string) error
	// Readdir calls f for each entry but "." and "..", until it returns false.
	Readdir(ctx context.Context, dir []byte, f func(Entry) bool) error

	// Create makes a regular file if there is none, and opens it for reading
	// and writing. With exclusive it fails if the name exists.
	Create(ctx context.Context, dir []byte, name string, a SetAttr, exclusive bool) (*File, error)
	Open(ctx context.Context, dir []byte, name string, write bool) (*File, error)
	Close(ctx context.Context, f *File) error
	Read(ctx context.Context, f *File, offset uint64, p []byte) (n int, eof bool, err error)
	// Write returns how many bytes the server wrote.
	Write(ctx context.Context, f *File, offset uint64, p []byte, stable bool) (n int, err error)
	Commit(ctx context.Context, f *File) error

	// Shutdown releases what the server keeps for this client. It does not
	// close the Requester.
	Shutdown(ctx context.Context) error
}
