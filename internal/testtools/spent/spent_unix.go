//go:build unix

package spent

import (
	"syscall"
	"time"
)

func processors() (time.Duration, bool) {
	var r syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err == nil
}
