package roce

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// ipHeader is as much of an IP header as route reads, between the i-th pair of hosts.
func ipHeader(i uint32, six bool) (b []byte, net int, src, dst netip.Addr) {
	if six {
		b = make([]byte, ipv6Size)
		binary.BigEndian.PutUint32(b[16:], i)   // interface identifiers: only some bytes differ
		binary.BigEndian.PutUint32(b[32:], i*7) //
		return b, ipv6Size, netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	}
	b = make([]byte, ipv4Size)
	binary.BigEndian.PutUint32(b[12:], 10<<24+i)
	binary.BigEndian.PutUint32(b[16:], 10<<24+i&0xff)
	return b, ipv4Size, netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
}

// Hosts have one Route, however many others there are, and no allocation once they are known.
func TestRoutes(t *testing.T) {
	var d FastDecoder
	const n = maxRoutes / 2
	var routes [2 * n]*Route
	all := func() (changed int) {
		for i := range routes {
			p, net, src, dst := ipHeader(uint32(i/2), i&1 != 0)
			q := d.route(p, net)
			if q.Src != src || q.Dst != dst || q.hash != routeHash(src, dst) {
				t.Fatalf("%d: %v to %v, want %v to %v", i, q.Src, q.Dst, src, dst)
			}
			if q != routes[i] {
				routes[i] = q
				changed++
			}
		}
		return changed
	}
	if got := all(); got != len(routes) {
		t.Errorf("%d Routes for %d pairs of hosts", got, len(routes))
	}
	if got := all(); got != 0 {
		t.Errorf("%d Routes changed", got)
	}
	p, net, _, _ := ipHeader(0, false)
	if got := testing.AllocsPerRun(10, func() {
		for i := range uint32(n) {
			binary.BigEndian.PutUint32(p[12:], 10<<24+i)
			binary.BigEndian.PutUint32(p[16:], 10<<24+i&0xff)
			d.route(p, net)
		}
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// More hosts than are remembered take no more memory.
func TestRoutesBounded(t *testing.T) {
	var d FastDecoder
	for i := range uint32(3*maxRoutes + 1) {
		p, net, _, _ := ipHeader(i, i&1 != 0)
		d.route(p, net)
	}
	if len(d.known) > maxRoutes {
		t.Errorf("%d Routes are remembered", len(d.known))
	}
}

// Hosts with IPv6 whose addresses begin as those of others with IPv4 are not these.
func TestRouteOfFamily(t *testing.T) {
	b := make([]byte, untaggedHeaders+ICRCSize)
	copy(b[12:], []byte{8, 0, 0x45, 0})
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)-etherSize))
	b[etherSize+9] = protoUDP
	copy(b[etherSize+12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	binary.BigEndian.PutUint16(b[etherSize+ipv4Size+2:], Port)
	binary.BigEndian.PutUint16(b[etherSize+ipv4Size+4:], uint16(len(b)-etherSize-ipv4Size))
	packets := []capture.Packet{{Link: capture.LinkEthernet, Length: uint32(len(b)), Data: b}}
	six := make([]byte, ipv6Size)
	copy(six[8:], b[etherSize+12:][:8])

	var d FastDecoder
	other := d.route(six, ipv6Size)
	other.Group = 6
	var groups [1]uint16
	if n := d.Groups(packets, groups[:]); n != 0 {
		t.Fatalf("group %d", groups[0])
	}
	q := d.RouteOf(&packets[0])
	if q == nil || q == other || q.Src != netip.AddrFrom4([4]byte{192, 0, 2, 1}) || q.Dst != netip.AddrFrom4([4]byte{192, 0, 2, 2}) {
		t.Fatalf("%+v", q)
	}
	q.Group = 4
	d.route(six, ipv6Size) // the last one that was asked for
	if n := d.Groups(packets, groups[:]); n != 1 || groups[0] != 4 {
		t.Fatalf("%d packets, group %d", n, groups[0])
	}
}
