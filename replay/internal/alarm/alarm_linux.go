package alarm

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Alarm wakes its owner at a time. The runtime's own timers round what is shorter than
// a millisecond up when the process is idle (the timeout of its poller has that unit);
// a timerfd does not.
type Alarm struct {
	C    chan struct{}
	file *os.File
	fd   int
}

// New returns an alarm that is not set.
func New() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	a := &Alarm{C: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}
	go func() {
		var b [8]byte
		for {
			if _, err := a.file.Read(b[:]); err != nil {
				return
			}
			select {
			case a.C <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// Set makes C ready after d. An earlier setting is forgotten.
func (a *Alarm) Set(d time.Duration) {
	d = max(d, time.Nanosecond)
	_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

// Stop gives back what the alarm holds.
func (a *Alarm) Stop() { _ = a.file.Close() }
