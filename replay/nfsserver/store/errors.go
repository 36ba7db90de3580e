package store

// Error is an error of a store. Each has a counterpart in NFS3ERR_* and NFS4ERR_*.
type Error uint8

// Errors.
const (
	ErrPerm        Error = iota + 1 // not the owner
	ErrNoEnt                        // no such name
	ErrIO                           // the storage failed
	ErrNXIO                         // no such device; Seek: no such offset
	ErrAccess                       // permission denied
	ErrExist                        // the name exists
	ErrXDev                         // another file system
	ErrNoDev                        // no such device
	ErrNotDir                       // not a directory
	ErrIsDir                        // a directory
	ErrInval                        // an argument makes no sense
	ErrFBig                         // beyond the largest file
	ErrNoSpace                      // no space left
	ErrROFS                         // read-only
	ErrMLink                        // too many hard links
	ErrNameTooLong                  // name too long
	ErrNotEmpty                     // directory not empty
	ErrDQuot                        // quota used up
	ErrStale                        // the object does not exist any more
	ErrBadHandle                    // not a handle of this store
	ErrNotSync                      // the guard of SetAttr does not match
	ErrBadCookie                    // cookie or verifier of ReadDir
	ErrNotSupp                      // the store cannot do it
	ErrServerFault                  // an error that is none of these
	ErrBadType                      // Mknod: no such type
	ErrDelay                        // try again later
	ErrBadName                      // "", ".", "..", or with "/" or NUL in it
	ErrWrongType                    // an object of another type is needed
	ErrNoXattr                      // no such extended attribute
	ErrXattrTooBig                  // value too large
	ErrFileOpen                     // a file that is open cannot lose its last name now
	ErrTooSmall                     // a limit of the caller is too low for any result
)

var errorTexts = [...]string{
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
	ErrServerFault: "server fault",
	ErrBadType:     "type not supported",
	ErrDelay:       "try again later",
	ErrBadName:     "not a valid name",
	ErrWrongType:   "wrong type of object",
	ErrNoXattr:     "no such extended attribute",
	ErrXattrTooBig: "extended attribute too large",
	ErrFileOpen:    "file is open",
	ErrTooSmall:    "buffer or request too small",
}

// Error describes e.
func (e Error) Error() string {
	if int(e) < len(errorTexts) && errorTexts[e] != "" {
		return errorTexts[e]
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
