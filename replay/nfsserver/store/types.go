package store

import (
	"slices"
	"time"
)

// Handle names an object of a store as long as it exists. Generation tells
// objects apart that had the same ID one after the other. Clients see handles as
// Info.Handles writes them.
type Handle struct {
	ID         uint64 // the file ID that clients see
	Generation uint32
}

// Type is the type of an object, with the numbers of ftype3 and nfs_ftype4.
type Type uint8

// Types.
const (
	Regular   Type = 1
	Directory Type = 2
	Block     Type = 3
	Character Type = 4
	Symlink   Type = 5
	Socket    Type = 6
	FIFO      Type = 7
)

// Mode bits (RFC 1813, section 2.5).
const (
	ModeSetUID   = 0o4000
	ModeSetGID   = 0o2000
	ModeSticky   = 0o1000
	ModeMask     = 0o7777
	ModePermMask = 0o777
)

// Device is the number of a device.
type Device struct{ Major, Minor uint32 }

// Time is a point in time since 1970-01-01 UTC. Nsec is below 1e9.
type Time struct {
	Sec  int64
	Nsec uint32
}

// Now is the current time.
func Now() Time { return TimeOf(time.Now()) }

// TimeOf converts t.
func TimeOf(t time.Time) Time {
	return Time{Sec: t.Unix(), Nsec: uint32(t.Nanosecond())}
}

// Time converts t.
func (t Time) Time() time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// Before reports whether t is before u.
func (t Time) Before(u Time) bool {
	return t.Sec < u.Sec || t.Sec == u.Sec && t.Nsec < u.Nsec
}

// Attr are the attributes of an object.
type Attr struct {
	Handle Handle
	Type   Type
	Mode   uint32 // ModeMask
	Nlink  uint32
	UID    uint32
	GID    uint32
	Size   uint64 // bytes
	Used   uint64 // bytes of storage
	Rdev   Device
	Atime  Time
	Mtime  Time
	Ctime  Time
	Birth  Time // zero if the store does not know
	// Change is greater after each change of data or attributes (change,
	// RFC 8881, section 5.8.1.4).
	Change uint64
	// ACLs are not nil if the object has an ACL that its mode does not say
	// all of. They are shared: see ACLStore.
	ACLs *ACLs
}

// Wcc are the attributes of an object before and after an operation, with
// nothing of others between them if Atomic is set (wcc_data, change_info4).
type Wcc struct {
	Before, After Attr
	Atomic        bool
}

// AttrMask says which attributes are to be set.
type AttrMask uint32

// Attributes that can be set.
const (
	SetMode AttrMask = 1 << iota
	SetUID
	SetGID
	SetSize
	SetAtime    // to SetAttr.Atime
	SetMtime    // to SetAttr.Mtime
	SetAtimeNow // to the server's time
	SetMtimeNow
)

// SetAttr are attributes to be set.
type SetAttr struct {
	Mask         AttrMask
	Mode         uint32
	UID, GID     uint32
	Size         uint64
	Atime, Mtime Time
	// Guard, if set, is the ctime that the object must have (sattrguard3).
	Guard *Time
}

// CreateMode is what to do if the name exists (createmode3, createmode4).
type CreateMode uint8

// Create modes.
const (
	// Unchecked takes what exists, of whatever type, and sets the size of a
	// regular file if SetAttr says so; other attributes are left alone.
	Unchecked CreateMode = iota
	// Guarded gives ErrExist.
	Guarded
	// Exclusive gives ErrExist unless the file was made with this Verifier.
	Exclusive
)

// Create says how to create a regular file.
type Create struct {
	Mode     CreateMode
	Verifier uint64  // of Exclusive
	Set      SetAttr // initial attributes, also with Exclusive (EXCLUSIVE4_1)
}

// AccessMask are permissions, with the bits of ACCESS (RFC 1813, section 3.3.4;
// RFC 8276, section 8.5).
type AccessMask uint32

// Permissions.
const (
	AccessRead AccessMask = 1 << iota
	AccessLookup
	AccessModify
	AccessExtend
	AccessDelete
	AccessExecute
	AccessXattrRead
	AccessXattrWrite
	AccessXattrList

	AccessAll = 1<<9 - 1
)

// Whence says what Seek looks for (data_content4).
type Whence uint8

// What Seek looks for.
const (
	SeekData Whence = iota
	SeekHole
)

// XattrMode is setxattr_option4 (RFC 8276, section 8.4.3).
type XattrMode uint8

// Xattr modes.
const (
	XattrEither  XattrMode = iota
	XattrCreate            // ErrExist if it exists
	XattrReplace           // ErrNoXattr if it does not
)

// Cred is who asks.
type Cred struct {
	UID, GID uint32
	GIDs     []uint32
	// Bypass leaves out the check of permissions for Read, Write and others on
	// the data of a file: the caller has an open file.
	Bypass bool
}

// In reports whether gid is a group of c.
func (c *Cred) In(gid uint32) bool { return c.GID == gid || slices.Contains(c.GIDs, gid) }

// Info says what a store is like.
type Info struct {
	// Handles writes handles for clients and reads them. A nil Seal reads none.
	Handles     *Seal
	FSID        [2]uint64 // major and minor
	ReadOnly    bool
	MaxFileSize uint64 // bytes
	MaxName     uint32 // bytes
	MaxLink     uint32 // hard links of an object
	MaxSymlink  uint32 // bytes of text
	MaxXattr    uint32 // bytes of a value
	TimeDelta   Time   // granularity of times
	CloneAlign  uint64 // bytes
	// What it can do; otherwise the methods give ErrNotSupp.
	HardLinks, Symlinks, Devices, Xattrs bool
	Seek, Allocate, Deallocate           bool
	Copy, Clone                          bool
	CaseInsensitive, CasePreserving      bool
	ChownRestricted                      bool
}

// Statfs says how full a store is. All sizes in bytes.
type Statfs struct {
	TotalBytes, FreeBytes, AvailBytes uint64
	TotalFiles, FreeFiles, AvailFiles uint64
}
