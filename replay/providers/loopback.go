package providers

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// Loopback returns an address of the loopback network whose UDP port 4791 is free. With
// two of them both ends of RoCEv2 run on one machine, each on the port that the fabric
// demands.
func Loopback() (netip.Addr, error) {
	var last error
	for range 100 {
		var b [4]byte
		_, _ = rand.Read(b[:]) // cannot fail (crypto/rand)
		binary.BigEndian.PutUint32(b[:], 127<<24|binary.BigEndian.Uint32(b[:])&0xfffffe|1)
		a := netip.AddrFrom4(b)
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 4791)))
		if err == nil {
			return a, c.Close()
		}
		last = err
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return netip.Addr{}, last
}

// Pair opens two fabrics of one kind on this machine, for a server and for its clients.
// The server's options are o without tap and faults; change, if set, may change them.
// The server may listen at the address returned.
func Pair(o Options, change func(*Options)) (server, clients *Fabric, listen netip.AddrPort, err error) {
	s := o
	s.Tap, s.Outgoing, s.Wrap, s.Wrapped = nil, nil, nil, nil
	local := netip.MustParseAddr("127.0.0.1")
	port := uint16(0)
	if o.Name == "rocev2" {
		if local, err = Loopback(); err != nil {
			return nil, nil, listen, err
		}
		from, err := Loopback()
		if err != nil {
			return nil, nil, listen, err
		}
		o.Local, s.Local = []netip.Addr{from}, []netip.Addr{local}
		port = PortRDMA
	}
	if change != nil {
		change(&s)
	}
	if server, err = Open(s); err != nil {
		return nil, nil, listen, err
	}
	if clients, err = Open(o); err != nil {
		return nil, nil, listen, errors.Join(err, server.Close())
	}
	return server, clients, netip.AddrPortFrom(local, port), nil
}
