package main

import "golang.org/x/sys/unix"

// roomy reports whether a file system has room for the inputs of some targets.
func roomy(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Bavail*uint64(s.Bsize) >= shmRoom
}
