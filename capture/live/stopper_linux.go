package live

import (
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// stopper is the part of a Source that ends it: Stop and Close may be called while Read waits.
type stopper struct {
	wake     int // eventfd that ends a wait; -1 until it is open
	stopping atomic.Bool
	closing  atomic.Bool

	reading sync.Mutex // held by Read, and by Close
	err     error      // what Read returns from now on

	mu     sync.Mutex // of closed, and of what the Source says it guards
	closed bool
}

func (s *stopper) openWake() (err error) {
	s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return err
}

// poll adds what Stop wakes.
func (s *stopper) poll(list []unix.PollFd) []unix.PollFd {
	if s.stopping.Load() {
		return list
	}
	return append(list, unix.PollFd{Fd: int32(s.wake), Events: unix.POLLIN})
}

// Stop implements Source.
func (s *stopper) Stop() {
	s.stopping.Store(true)
	s.rouse()
}

func (s *stopper) rouse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake >= 0 && !s.closed {
		_, _ = unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// close ends Read and calls free, once, with mu held.
func (s *stopper) close(free func()) {
	s.closing.Store(true)
	s.rouse()
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	free()
	if s.wake >= 0 {
		unix.Close(s.wake)
	}
	if s.err == nil {
		s.err = os.ErrClosed
	}
}
