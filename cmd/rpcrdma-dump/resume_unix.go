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
		return errors.New("belongs to somebody else: a state is trusted, so that it has to be your own, or signed (--resume-key)")
	case info.Mode().Perm()&0o002 != 0:
		return errors.New("may be written by everybody: a state is trusted, so that it has to be your own, or signed (--resume-key)")
	}
	return nil
}
