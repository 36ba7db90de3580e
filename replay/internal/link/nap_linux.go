package link

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in a system call of its own. The kernel may wake a thread 50 µs late, so
// that it can wake several at once (PR_SET_TIMERSLACK); this one asks it not to.
func nap(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) //nolint:errcheck // a little late otherwise
	ts := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&ts, nil)                       //nolint:errcheck // the caller looks at the clock
	unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) //nolint:errcheck // back to the thread's default
}
