package run

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes the engine at a time. The runtime's own timers round what is
// shorter than a millisecond up when the process is idle (the timeout of its
// poller has that unit); a timerfd does not.
type alarm struct {
	c    chan struct{}
	file *os.File
	fd   int
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	a := &alarm{c: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}
	go func() {
		var b [8]byte
		for {
			if _, err := a.file.Read(b[:]); err != nil {
				return
			}
			select {
			case a.c <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// set arms the alarm; an earlier setting is forgotten.
func (a *alarm) set(d time.Duration) {
	d = max(d, time.Nanosecond)
	_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

func (a *alarm) stop() { _ = a.file.Close() }
