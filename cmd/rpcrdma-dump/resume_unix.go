//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ownFile is an error if somebody else may have written a file.
func ownFile(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return errors.New("belongs to another user. A state is trusted: it must be yours, or signed (--resume-key)")
	case info.Mode().Perm()&0o002 != 0:
		return errors.New("can be written by all users. A state is trusted: it must be yours, or signed (--resume-key)")
	}
	return nil
}
