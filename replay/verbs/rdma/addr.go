//go:build verbs && cgo && linux

package rdma

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// sockaddr is room for a sockaddr_in or sockaddr_in6 of the kernel.
type sockaddr [28]byte

func toSockaddr(a netip.AddrPort) (s sockaddr) {
	ip := a.Addr().Unmap()
	binary.BigEndian.PutUint16(s[2:], a.Port())
	if ip.Is4() {
		binary.NativeEndian.PutUint16(s[:], syscall.AF_INET)
		b := ip.As4()
		copy(s[4:], b[:])
		return s
	}
	binary.NativeEndian.PutUint16(s[:], syscall.AF_INET6)
	b := ip.As16()
	copy(s[8:], b[:])
	if zone := ip.Zone(); zone != "" {
		if i, err := net.InterfaceByName(zone); err == nil {
			binary.NativeEndian.PutUint32(s[24:], uint32(i.Index))
		} else if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
			binary.NativeEndian.PutUint32(s[24:], uint32(n))
		}
	}
	return s
}

func fromSockaddr(s *sockaddr) netip.AddrPort {
	port := binary.BigEndian.Uint16(s[2:])
	switch binary.NativeEndian.Uint16(s[:]) {
	case syscall.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:8])), port)
	case syscall.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(s[8:24])), port)
	}
	return netip.AddrPort{}
}
