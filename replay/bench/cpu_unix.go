//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// ownCPU is the processor time of this process, user and system.
func ownCPU() (time.Duration, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}
