package transport

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/replay/internal/halfopen"
)

// Source is the address that limits and fair shares count the peer by: an IPv4
// address, or the first address of an IPv6 network of 64 bits, since one host may
// use all of them. Peers without an address share the zero Addr.
func (p Peer) Source() netip.Addr { return halfopen.Source(p.Remote.Addr()).Addr() }
