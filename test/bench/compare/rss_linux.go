package main

import (
	"os"
	"syscall"
)

// maxRSS is the largest resident size of a process that has ended, in bytes.
func maxRSS(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss) * 1024 // kilobytes, see getrusage(2)
	}
	return 0
}
