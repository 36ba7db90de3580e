package rocev2

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	recvMessages   = 8
	recvBufferSize = 1 << 16
)

// wire tells the race detector that sending a packet happens before receiving it, as
// package net does for its sockets: both ends may be in this process.
var wire atomic.Uint32

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// udp is a UDP socket that sends and receives several datagrams at a time.
type udp struct {
	file   *os.File
	waiter *waiter
	raw    syscall.RawConn
	v6     bool
	gso    bool // the kernel supports UDP_SEGMENT
	buffer int  // bytes of receive buffer, as the kernel counts

	// Scratch memory of recv.
	readFunc func(fd uintptr) bool
	received int
	errno    syscall.Errno
	msgs     [recvMessages]mmsghdr
	iovs     [recvMessages]unix.Iovec
	names    [recvMessages]unix.RawSockaddrInet6
	controls [recvMessages][8]uint64
	bufs     []byte
}

func openUDP(local netip.AddrPort, buffer int, offload bool) (*udp, error) {
	u := &udp{v6: local.Addr().Is6()}
	var failed error
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) { failed = u.configure(int(fd), buffer, offload) })
		return errors.Join(err, failed)
	}}
	network := "udp4"
	if u.v6 {
		network = "udp6"
	}
	pc, err := lc.ListenPacket(context.Background(), network, local.String())
	if err != nil {
		return nil, err
	}
	if err := u.take(pc.(*net.UDPConn)); err != nil {
		return nil, err
	}
	u.readFunc = u.read
	u.bufs = make([]byte, recvMessages*recvBufferSize)
	for i := range u.msgs {
		u.iovs[i].Base = &u.bufs[i*recvBufferSize]
		u.iovs[i].SetLen(recvBufferSize)
		h := &u.msgs[i].hdr
		h.Iov = &u.iovs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&u.names[i]))
		h.Control = (*byte)(unsafe.Pointer(&u.controls[i][0]))
	}
	return u, nil
}

// take takes the socket out of package net, and so out of the poller of the runtime.
func (u *udp) take(c *net.UDPConn) error {
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	fd := -1
	if e := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); e != nil || err != nil {
		return errors.Join(e, os.NewSyscallError("fcntl", err))
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	u.file = os.NewFile(uintptr(fd), "udp")
	if u.raw, err = u.file.SyscallConn(); err == nil {
		u.waiter, err = newWaiter(fd)
	}
	if err != nil {
		u.file.Close()
	}
	return err
}

func (u *udp) configure(fd, buffer int, offload bool) error {
	// Never fragment: only then does the kernel leave the identification 0.
	level, discover, value := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
	if u.v6 {
		level, discover, value = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
	}
	if err := unix.SetsockoptInt(fd, level, discover, value); err != nil {
		return err
	}
	// As large as an unprivileged process may have it.
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer) //nolint:errcheck // what there is, is asked for below
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer) //nolint:errcheck // a small one only slows down
	var err error
	if u.buffer, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil {
		return err
	}
	if offload {
		_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		u.gso = err == nil
		unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) //nolint:errcheck // Linux 5.0; without it datagrams come one by one
	}
	return nil
}

func (u *udp) close() error {
	u.waiter.close()
	return u.file.Close()
}

// recv reads datagrams. Without block it returns 0 if there are none.
func (u *udp) recv(block bool) (int, error) {
	for {
		u.received, u.errno = 0, 0
		if err := u.raw.Read(u.readFunc); err != nil {
			return 0, err
		}
		if u.errno != 0 {
			return 0, u.errno
		}
		if u.received > 0 || !block {
			return u.received, nil
		}
		if err := u.waiter.wait(); err != nil {
			return 0, err
		}
	}
}

func (u *udp) read(fd uintptr) bool {
	for i := range u.msgs {
		h := &u.msgs[i].hdr
		h.Namelen = uint32(unsafe.Sizeof(u.names[i]))
		h.SetControllen(int(unsafe.Sizeof(u.controls[i])))
		h.Flags = 0
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&u.msgs[0])), uintptr(len(u.msgs)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			u.received = int(n)
			wire.Load()
			return true
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return true
		}
		u.errno = errno
		return true
	}
}

// message returns the i-th datagram of recv: packets of size bytes each, the last one
// perhaps shorter. It is nil if the datagram is unusable.
func (u *udp) message(i int) (b []byte, size int, src netip.AddrPort) {
	m := &u.msgs[i]
	if m.hdr.Flags&unix.MSG_TRUNC != 0 {
		return nil, 0, src
	}
	b = u.bufs[i*recvBufferSize:][:m.n]
	size = len(b)
	control := unsafe.Slice((*byte)(unsafe.Pointer(&u.controls[i][0])), unsafe.Sizeof(u.controls[i]))[:m.hdr.Controllen]
	if len(control) >= unix.CmsgLen(4) {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO {
			if n := int(*(*int32)(unsafe.Pointer(&control[unix.CmsgLen(0)]))); n > 0 && n < size {
				size = n
			}
		}
	}
	name := &u.names[i]
	port := uint16(name.Port>>8 | name.Port<<8)
	if u.v6 {
		a := netip.AddrFrom16(name.Addr)
		if name.Scope_id != 0 {
			a = a.WithZone(strconv.Itoa(int(name.Scope_id)))
		}
		return b, size, netip.AddrPortFrom(a, port)
	}
	v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
	return b, size, netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port)
}

// batchSys is what a batch needs to be sent.
type batchSys struct {
	b         *batch
	writeFunc func(fd uintptr) bool
	first     int // message
	sent      int // messages
	errno     syscall.Errno
	sockaddr
	msgs     []mmsghdr
	iovs     []unix.Iovec
	controls []segmentControl
}

// segmentControl is a control message with UDP_SEGMENT.
type segmentControl struct {
	hdr  unix.Cmsghdr
	size uint16
	_    [6]byte
}

func (s *batchSys) init(b *batch) {
	s.b = b
	s.writeFunc = s.write
}

// sockaddr is an address as system calls take it.
type sockaddr struct {
	name    unix.RawSockaddrInet6
	namelen uint32
}

func (s *sockaddr) address(dst netip.AddrPort, v6 bool) {
	port := dst.Port()>>8 | dst.Port()<<8
	if v6 {
		s.name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: dst.Addr().As16(), Scope_id: scope(dst.Addr().Zone())}
		s.namelen = unix.SizeofSockaddrInet6
		return
	}
	*(*unix.RawSockaddrInet4)(unsafe.Pointer(&s.name)) = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: dst.Addr().Unmap().As4()}
	s.namelen = unix.SizeofSockaddrInet4
}

func scope(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if n, err := strconv.Atoi(zone); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	return 0
}

// send sends the messages of a batch from the first on, and returns how many were sent.
// The error is EAGAIN if the socket's buffer is full; any other error concerns the next
// message.
func (u *udp) send(b *batch, first int, dst netip.AddrPort) (int, error) {
	s := &b.sys
	s.address(dst, u.v6)
	s.first, s.sent, s.errno = first, 0, 0
	n := len(b.messages) - first
	if cap(s.msgs) < n {
		s.msgs = make([]mmsghdr, n, max(2*n, 8))
		s.controls = make([]segmentControl, n, max(2*n, 8))
	}
	if cap(s.iovs) < len(b.parts) {
		s.iovs = make([]unix.Iovec, 0, 2*len(b.parts))
	}
	s.msgs, s.controls, s.iovs = s.msgs[:n], s.controls[:n], s.iovs[:0]
	for i := range s.msgs {
		m := &b.messages[first+i]
		from := len(s.iovs)
		for j := m.segment; j < m.segment+m.segments; j++ {
			seg := &b.segments[j]
			for _, p := range b.parts[seg.part : seg.part+seg.parts] {
				base := unsafe.SliceData(p)
				// A trailer and the next header lie side by side.
				if k := len(s.iovs); k > from {
					if last := &s.iovs[k-1]; uintptr(unsafe.Pointer(last.Base))+uintptr(last.Len) == uintptr(unsafe.Pointer(base)) {
						last.SetLen(int(last.Len) + len(p))
						continue
					}
				}
				s.iovs = append(s.iovs, unix.Iovec{Base: base})
				s.iovs[len(s.iovs)-1].SetLen(len(p))
			}
		}
		h := &s.msgs[i].hdr
		*h = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&s.name)), Namelen: s.namelen, Iov: &s.iovs[from]}
		h.SetIovlen(len(s.iovs) - from)
		if m.segments > 1 {
			c := &s.controls[i]
			c.hdr = unix.Cmsghdr{Level: unix.IPPROTO_UDP, Type: unix.UDP_SEGMENT}
			c.hdr.SetLen(unix.CmsgLen(2))
			c.size = uint16(m.size)
			h.Control = (*byte)(unsafe.Pointer(c))
			h.SetControllen(unix.CmsgSpace(2))
		}
	}
	err := u.raw.Write(s.writeFunc)
	clear(s.iovs) // so that no payload is kept alive
	if err != nil {
		return 0, err
	}
	if s.errno != 0 {
		return s.sent, s.errno
	}
	return s.sent, nil
}

func (s *batchSys) write(fd uintptr) bool {
	wire.Add(1)
	for s.sent < len(s.msgs) {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&s.msgs[s.sent])), uintptr(len(s.msgs)-s.sent), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			s.sent += int(n)
		case unix.EINTR:
		default:
			s.errno = errno
			return true
		}
	}
	return true
}

// sendOne sends one packet.
func (u *udp) sendOne(packet []byte, dst netip.AddrPort) error {
	o := singles.Get().(*single)
	defer singles.Put(o)
	o.packet, o.errno = packet, 0
	o.address(dst, u.v6)
	err := u.raw.Write(o.writeFunc)
	o.packet = nil
	if err == nil && o.errno != 0 {
		err = os.NewSyscallError("sendto", o.errno)
	}
	return err
}

// single is what one packet needs to be sent.
type single struct {
	sockaddr
	packet    []byte
	errno     syscall.Errno
	writeFunc func(fd uintptr) bool
}

var singles = sync.Pool{New: func() any {
	o := new(single)
	o.writeFunc = o.write
	return o
}}

func (o *single) write(fd uintptr) bool {
	wire.Add(1)
	for {
		_, _, o.errno = unix.Syscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(o.packet))), uintptr(len(o.packet)), 0,
			uintptr(unsafe.Pointer(&o.name)), uintptr(o.namelen))
		if o.errno != unix.EINTR {
			return true
		}
	}
}

// full reports whether an error of send means that the socket's buffer is full.
func full(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) }

// noOffload reports whether an error of send may mean that this path cannot do
// segmentation offload.
func noOffload(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EMSGSIZE)
}
