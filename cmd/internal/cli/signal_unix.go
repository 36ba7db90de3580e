//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

func ignoreFileSize() { signal.Ignore(syscall.SIGXFSZ) }

// die ends the process by a signal, so that who waits for it sees which.
func die(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if ok {
		signal.Reset(s)
		if syscall.Kill(syscall.Getpid(), s) == nil {
			time.Sleep(time.Second) // it is on its way
		}
	}
	os.Exit(128 + int(s))
}

// openFiles is how many files this process may have open; 0 if that is not known.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
}
