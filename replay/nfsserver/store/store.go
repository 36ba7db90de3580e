// Package store is the file system below an NFS server, in terms of objects and
// handles: what NFSv3 (RFC 1813) and NFSv4.0 to 4.2 (RFC 7530, RFC 8881, RFC
// 7862, RFC 8276) need, and no more. There are two implementations: package
// memory, and package dir, which serves a directory.
//
// # Objects
//
// An object is named by its Handle, a number and a generation. A handle that is
// no more, or never was, gives ErrStale. There is nothing to open or close;
// Hold keeps an object that has lost its last name.
//
// # Permissions
//
// A store checks permissions as the Linux NFS server does for an export with
// no_root_squash: UID 0 may do everything, others what mode, owner and groups
// allow, and the owner of a file may read and write its data whatever the mode
// (the client has checked the mode when the file was opened, and a file may
// lose its permissions while it is open). Mapping root to nobody is up to who
// makes the Cred. Both implementations have an option that checks nothing.
//
// # Names
//
// A name is any bytes but "/" and NUL; it is not empty, "." or "..", which give
// ErrBadName. A name longer than Info.MaxName gives ErrNameTooLong.
package store

// Store is a file system. All methods may be called from any goroutine. A *Cred
// and the pointers for results are used only during the call; results are valid
// only if the error is nil. Errors are of type Error.
type Store interface {
	// Info does not change while the store lives.
	Info() *Info
	// Root is the top directory.
	Root() Handle
	// Verifier changes when writes that were not stable may have been lost
	// (writeverf3, RFC 1813, section 3.3.7).
	Verifier() uint64

	// GetAttr tells the attributes of an object. It asks no permission.
	GetAttr(h Handle, a *Attr) error
	// SetAttr changes attributes. ErrNotSync says that the guard did not match.
	SetAttr(c *Cred, h Handle, s *SetAttr, w *Wcc) error
	// Access tells which of the wanted permissions are given.
	Access(c *Cred, h Handle, want AccessMask) (AccessMask, error)

	// Lookup finds a name in a directory. It does not know "." and "..".
	Lookup(c *Cred, dir Handle, name []byte, a *Attr) error
	// Parent is the directory that holds a directory; that of the root is the
	// root.
	Parent(c *Cred, dir Handle) (Handle, error)
	// ReadDir fills list with the entries after a cookie; 0 is the start.
	ReadDir(c *Cred, dir Handle, cookie, verifier uint64, list *DirList) error

	// Create makes a regular file, or finds one; created tells which.
	Create(c *Cred, dir Handle, name []byte, how *Create, a *Attr, w *Wcc) (created bool, err error)
	Mkdir(c *Cred, dir Handle, name []byte, s *SetAttr, a *Attr, w *Wcc) error
	// Symlink makes a symbolic link. Its text is data: nothing follows it.
	Symlink(c *Cred, dir Handle, name, text []byte, s *SetAttr, a *Attr, w *Wcc) error
	// Mknod makes a device, a socket or a FIFO.
	Mknod(c *Cred, dir Handle, name []byte, t Type, dev Device, s *SetAttr, a *Attr, w *Wcc) error
	// Link gives an object that is not a directory another name. The Wcc is the
	// directory's, a becomes the attributes of the object.
	Link(c *Cred, h, dir Handle, name []byte, a *Attr, w *Wcc) error
	// Remove takes a name of what is not a directory: ErrIsDir.
	Remove(c *Cred, dir Handle, name []byte, w *Wcc) error
	// Rmdir removes an empty directory: ErrNotDir, ErrNotEmpty.
	Rmdir(c *Cred, dir Handle, name []byte, w *Wcc) error
	// Rename replaces what has the new name if it is of the same kind (both
	// directories, the one replaced empty, or neither a directory): otherwise
	// ErrExist, as RFC 1813, section 3.3.14 has it, or ErrNotEmpty. Two names
	// of the same object: nothing happens. A directory moved below itself:
	// ErrInval.
	Rename(c *Cred, from Handle, name []byte, to Handle, newName []byte, wFrom, wTo *Wcc) error
	// Readlink appends the text of a symbolic link to b; ErrInval for others.
	Readlink(c *Cred, h Handle, b []byte) ([]byte, error)

	// Read reads at most count bytes; see ReadResult.
	Read(c *Cred, h Handle, offset uint64, count uint32, r *ReadResult) error
	// Write writes data, all of it unless the error says otherwise. The store
	// does not keep data. If stable, data and attributes are on stable
	// storage afterwards as far as the store has any.
	Write(c *Cred, h Handle, offset uint64, data []byte, stable bool, w *Wcc) error
	// Commit makes what was written before stable; count 0 is up to the end.
	Commit(c *Cred, h Handle, offset uint64, count uint64, w *Wcc) error
	// Seek finds the start of the next hole or the next data at or after
	// offset. The end of the file is a hole. ErrNXIO if offset is not in the
	// file, or, searching for data, if only a hole follows.
	Seek(c *Cred, h Handle, offset uint64, what Whence) (uint64, error)
	// Allocate reserves space and makes the file longer if need be; its bytes
	// stay as they read before.
	Allocate(c *Cred, h Handle, offset, length uint64, w *Wcc) error
	// Deallocate makes a hole that reads as zeros. The size stays.
	Deallocate(c *Cred, h Handle, offset, length uint64, w *Wcc) error
	// Copy copies between files, or within one if the ranges do not overlap
	// (ErrInval); length 0 is up to the end of the source. It may stop early:
	// the result is the number of bytes copied.
	Copy(c *Cred, src Handle, srcOffset uint64, dst Handle, dstOffset, length uint64, w *Wcc) (uint64, error)
	// Clone makes a range of dst share its memory with src, all of it or
	// nothing. Offsets and, unless the range ends at the end of the source,
	// the length are multiples of Info.CloneAlign (ErrInval). Length 0 is up
	// to the end of the source.
	Clone(c *Cred, src Handle, srcOffset uint64, dst Handle, dstOffset, length uint64, w *Wcc) error

	// GetXattr appends the value of an extended attribute to b. Names are those
	// of RFC 8276: without the prefix "user.".
	GetXattr(c *Cred, h Handle, name []byte, b []byte) ([]byte, error)
	SetXattr(c *Cred, h Handle, name, value []byte, how XattrMode, w *Wcc) error
	RemoveXattr(c *Cred, h Handle, name []byte, w *Wcc) error
	// ListXattrs calls f for each name, in an order that stays the same while
	// names are neither added nor removed. The name is valid during the call.
	// f must not call the store.
	ListXattrs(c *Cred, h Handle, f func(name []byte) bool) error

	// Statfs tells how full the file system is.
	Statfs(s *Statfs) error

	// Hold keeps an object usable after its last name was removed, until as
	// many calls of Unhold. Unhold of what is not held does nothing.
	Hold(h Handle) error
	Unhold(h Handle)

	// Close gives back what the store has. Nothing may be called after it but
	// ReadResult.Release.
	Close() error
}
