//go:build unix

package cli

import (
	"os"
	"syscall"
)

// identity is equal for the same file.
func identity(info os.FileInfo) any {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return [2]uint64{uint64(s.Dev), uint64(s.Ino)}
	}
	return nil
}
