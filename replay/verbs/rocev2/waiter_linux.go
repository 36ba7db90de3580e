package rocev2

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// waiter waits until a socket has something to read.
//
// The poller of the runtime is told of each datagram that arrives at a socket it knows, and wakes a thread for it, even
// if a goroutine is busy reading that socket. So it knows an epoll instance instead, which is told of the socket only
// while somebody waits (EPOLLONESHOT).
type waiter struct {
	epoll    *os.File
	raw      syscall.RawConn
	socket   int
	readFunc func(fd uintptr) bool
	armed    bool
	events   [1]unix.EpollEvent
	errno    syscall.Errno
}

func newWaiter(socket int) (*waiter, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	w := &waiter{socket: socket}
	if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: unix.EPOLLONESHOT}); err != nil {
		unix.Close(fd) //nolint:errcheck // nothing is lost
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the poller knows it
		unix.Close(fd) //nolint:errcheck // nothing is lost
		return nil, os.NewSyscallError("fcntl", err)
	}
	w.epoll = os.NewFile(uintptr(fd), "epoll")
	if w.raw, err = w.epoll.SyscallConn(); err != nil {
		w.close()
		return nil, err
	}
	w.readFunc = w.ready
	return w, nil
}

func (w *waiter) close() { w.epoll.Close() } //nolint:errcheck // nothing is lost

// wait returns when there may be something to read, or an error once the waiter is closed.
func (w *waiter) wait() error {
	w.armed, w.errno = false, 0
	if err := w.raw.Read(w.readFunc); err != nil {
		return err
	}
	if w.errno != 0 {
		return os.NewSyscallError("epoll", w.errno)
	}
	return nil
}

// ready reports whether there is something to read. The first time it has the poller told as soon as there is.
func (w *waiter) ready(epoll uintptr) bool {
	if !w.armed {
		w.armed = true
		w.errno = errno(unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, w.socket, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}))
		return w.errno != 0
	}
	for {
		n, err := unix.EpollWait(int(epoll), w.events[:], 0)
		if w.errno = errno(err); w.errno != unix.EINTR {
			return n > 0 || w.errno != 0
		}
	}
}

func errno(err error) syscall.Errno {
	e, _ := err.(syscall.Errno)
	return e
}
