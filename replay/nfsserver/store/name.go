package store

import "bytes"

// CheckName says whether a name can be one of a directory entry: ErrBadName,
// ErrNameTooLong or nil.
func CheckName(name []byte, limit uint32) error {
	switch {
	case len(name) == 0, string(name) == ".", string(name) == "..":
		return ErrBadName
	case uint64(len(name)) > uint64(limit):
		return ErrNameTooLong
	case bytes.IndexByte(name, '/') >= 0, bytes.IndexByte(name, 0) >= 0:
		return ErrBadName
	}
	return nil
}
