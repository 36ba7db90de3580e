//go:build unix

package verbstest

import (
	"time"

	"golang.org/x/sys/unix"
)

// spent is the processor time of this process, user and system.
func spent() (time.Duration, bool) {
	var r unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err == nil
}
