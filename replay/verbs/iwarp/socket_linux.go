package iwarp

import (
	"net"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSocket is a TCP socket with non-blocking reads and writes, which package net does
// not have.
type rawSocket struct {
	rc  syscall.RawConn
	out []syscall.Iovec
	in  []syscall.Iovec

	// A write and a read of the same socket need its lock in the kernel. Whoever has to wait for it sleeps, and to be woken can take ten times as
	// long as the other call. So nobody asks whether there is something to read during a write, and a write waits for a short read.
	writing atomic.Bool
	reading atomic.Bool
}

// patience is how often a write looks whether a read is over: for a few microseconds.
const patience = 4000

// ask calls once, a read that does not wait, unless there is a write. It reports whether it did.
func (r *rawSocket) ask(once func(fd uintptr) bool) (asked bool, err error) {
	r.reading.Store(true) // first: so one of two that begin at the same time sees the other
	if asked = !r.writing.Load(); asked {
		err = r.rc.Read(once)
	}
	r.reading.Store(false)
	return asked, err
}

func newRawSocket(c net.Conn) *rawSocket {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	rc, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	if sameHost(t.LocalAddr(), t.RemoteAddr()) {
		_ = t.SetWriteBuffer(nearBuffer) // otherwise it is only slower
	}
	return &rawSocket{rc: rc}
}

// nearBuffer is the send buffer of a connection within this host. The kernel doubles it, for its own bookkeeping, and
// limits it to net.core.wmem_max. The default grows to several MiB (net.ipv4.tcp_wmem), and both ends then spend more time
// on the same bytes, probably because these have left the caches before they are read. Within a host, more data in flight
// fills no wire.
const nearBuffer = 256 << 10

// sameHost reports whether both ends of a connection are on this host.
func sameHost(local, remote net.Addr) bool {
	l, r := addrPort(local).Addr(), addrPort(remote).Addr()
	return r.IsValid() && (r.IsLoopback() || l == r)
}

// writev writes as much of several slices as the socket accepts now. again means that it
// accepts nothing.
func (r *rawSocket) writev(fd uintptr, bufs [][]byte) (n int, again bool, err error) {
	r.out = iovecs(r.out[:0], bufs)
	r.writing.Store(true)
	for i := 0; i < patience && r.reading.Load(); i++ {
	}
	n, again, err = transfer(unix.SYS_WRITEV, unix.SYS_SENDTO, fd, r.out)
	r.writing.Store(false)
	clear(r.out) // so that it keeps no memory alive
	return n, again, err
}

// readv reads what is available. At the end of the stream n is 0 and again is false.
func (r *rawSocket) readv(fd uintptr, bufs [][]byte) (n int, again bool, err error) {
	r.in = iovecs(r.in[:0], bufs)
	r.reading.Store(true)
	n, again, err = transfer(unix.SYS_READV, unix.SYS_RECVFROM, fd, r.in)
	r.reading.Store(false)
	clear(r.in)
	return n, again, err
}

func iovecs(v []syscall.Iovec, bufs [][]byte) []syscall.Iovec {
	for _, b := range bufs {
		if len(b) == 0 {
			continue
		}
		e := syscall.Iovec{Base: unsafe.SliceData(b)}
		e.SetLen(len(b))
		v = append(v, e)
	}
	return v
}

// transfer reads or writes once. One slice, as small messages are, takes recvfrom or sendto, which are cheaper than readv and
// writev, and Go's scheduler is not told of the call: it does not wait, so it takes no longer than a copy.
func transfer(vector, single, fd uintptr, v []syscall.Iovec) (n int, again bool, err error) {
	if len(v) == 0 {
		return 0, false, nil
	}
	for {
		var r uintptr
		var e syscall.Errno
		if len(v) == 1 {
			r, _, e = syscall.RawSyscall6(single, fd, uintptr(unsafe.Pointer(v[0].Base)), uintptr(v[0].Len), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
		} else {
			r, _, e = syscall.Syscall(vector, fd, uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)))
		}
		switch e {
		case 0:
			return int(r), false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, e
		}
	}
}
