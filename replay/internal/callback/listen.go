package callback

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
)

// In NFSv4.0 a server calls its client on a connection of its own, at the address that
// SETCLIENTID has brought (RFC 7530, sections 3.3.3 and 16.33), and gives no delegation
// before a CB_NULL has been answered there (section 10.4).

// Listener is where callbacks of NFSv4.0 come in. A nil Listener is nowhere.
type Listener struct {
	server *tcprpc.Server
	at     netip.AddrPort
}

// What one server may send. It is small.
const (
	maxRecord      = 64 << 10 // bytes
	maxCalls       = 16
	maxConnections = 16
)

// Listen answers callbacks at an address, on a port that the system chooses.
func Listen(ctx context.Context, at netip.Addr, h Handler) (*Listener, error) {
	s, err := tcprpc.Listen(ctx, netip.AddrPortFrom(at, 0).String(), h, tcprpc.Options{MaxRecord: maxRecord, MaxCalls: maxCalls, MaxConnections: maxConnections})
	if err != nil {
		return nil, err
	}
	return &Listener{s, s.Addr()}, nil
}

// Universal is where the listener is, as a universal address (RFC 5665, sections 5.2.3.3
// and 5.2.3.4).
func (l *Listener) Universal() []byte {
	return fmt.Appendf(nil, "%s.%d.%d", l.at.Addr(), l.at.Port()>>8, l.at.Port()&0xff)
}

// AppendLocation appends a cb_location: where the listener is, or for a nil Listener an
// address that cannot be reached, which keeps the server from giving delegations.
func (l *Listener) AppendLocation(dst []byte) []byte {
	network, at := "tcp", []byte("0.0.0.0.0.0")
	if l != nil {
		if l.at.Addr().Is6() {
			network = "tcp6"
		}
		at = l.Universal()
	}
	return xdr.AppendOpaque(xdr.AppendOpaque(dst, []byte(network)), at)
}

// Close ends the listener and its connections.
func (l *Listener) Close() error {
	if l == nil {
		return nil
	}
	return l.server.Close()
}
