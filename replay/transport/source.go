package transport

import "net/netip"

// Source is where the peer is, for fair shares: its address; of IPv6 the network
// of 64 bits, since a host there has as many addresses as it likes. Peers without
// an address are one source together.
func (p Peer) Source() netip.Addr {
	a := p.Remote.Addr().Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	net, _ := a.Prefix(64) // cannot fail
	return net.Addr()
}
