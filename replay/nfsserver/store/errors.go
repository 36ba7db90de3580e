package store

// Error is a failed operation of a store. Its value is the NFS status code that the client gets (RFC 1813, section 2.6;
// RFC 8881, section 15.1; RFC 8276, section 8.5).
type Error uint32

// Errors. NFSv3 does not have those from ErrBadName on.
const (
	ErrPerm        Error = 1     // not the owner
	ErrNoEnt       Error = 2     // no such name
	ErrIO          Error = 5     // the storage failed
	ErrNXIO        Error = 6     // no such device; Seek: no such offset
	ErrAccess      Error = 13    // permission denied
	ErrExist       Error = 17    // the name exists
	ErrXDev        Error = 18    // another file system
	ErrNoDev       Error = 19    // no such device
	ErrNotDir      Error = 20    // not a directory
	ErrIsDir       Error = 21    // a directory
	ErrInval       Error = 22    // an argument makes no sense
	ErrFBig        Error = 27    // beyond the largest file
	ErrNoSpace     Error = 28    // no space left
	ErrROFS        Error = 30    // read-only
	ErrMLink       Error = 31    // too many hard links
	ErrNameTooLong Error = 63    // name too long
	ErrNotEmpty    Error = 66    // directory not empty
	ErrDQuot       Error = 69    // quota used up
	ErrStale       Error = 70    // the object does not exist any more
	ErrBadHandle   Error = 10001 // not a handle of this store
	ErrNotSync     Error = 10002 // the guard of SetAttr does not match
	ErrBadCookie   Error = 10003 // cookie or verifier of ReadDir
	ErrNotSupp     Error = 10004 // the store cannot do it
	ErrTooSmall    Error = 10005 // a limit of the caller is too low for any result
	ErrServerFault Error = 10006 // an error that is none of these
	ErrBadType     Error = 10007 // Mknod: no such type
	ErrDelay       Error = 10008 // try again later
	ErrBadName     Error = 10041 // "", ".", "..", or with "/" or NUL in it
	ErrFileOpen    Error = 10046 // a file that is open cannot lose its last name now
	ErrWrongType   Error = 10083 // an object of another type is needed
	ErrNoXattr     Error = 10095 // no such extended attribute
	ErrXattrTooBig Error = 10096 // value too large
)

var errorTexts = map[Error]string{
	ErrPerm:        "operation not permitted",
	ErrNoEnt:       "no such file or directory",
	ErrIO:          "input/output error",
	ErrNXIO:        "no such device or offset",
	ErrAccess:      "permission denied",
	ErrExist:       "file exists",
	ErrXDev:        "on another file system",
	ErrNoDev:       "no such device",
	ErrNotDir:      "not a directory",
	ErrIsDir:       "is a directory",
	ErrInval:       "invalid argument",
	ErrFBig:        "file too large",
	ErrNoSpace:     "no space left",
	ErrROFS:        "read-only file system",
	ErrMLink:       "too many links",
	ErrNameTooLong: "name too long",
	ErrNotEmpty:    "directory not empty",
	ErrDQuot:       "quota exceeded",
	ErrStale:       "stale handle",
	ErrBadHandle:   "not a handle",
	ErrNotSync:     "changed by someone else",
	ErrBadCookie:   "bad cookie",
	ErrNotSupp:     "not supported",
	ErrTooSmall:    "buffer or request too small",
	ErrServerFault: "server fault",
	ErrBadType:     "type not supported",
	ErrDelay:       "try again later",
	ErrBadName:     "not a valid name",
	ErrFileOpen:    "file is open",
	ErrWrongType:   "wrong type of object",
	ErrNoXattr:     "no such extended attribute",
	ErrXattrTooBig: "extended attribute too large",
}

// Error describes e.
func (e Error) Error() string {
	if text, known := errorTexts[e]; known {
		return text
	}
	return "unknown error"
}

// Of turns any error into an Error: nil into 0, an error of another type into
// ErrServerFault.
func Of(err error) Error {
	if err == nil {
		return 0
	}
	if e, ok := err.(Error); ok {
		return e
	}
	return ErrServerFault
}
