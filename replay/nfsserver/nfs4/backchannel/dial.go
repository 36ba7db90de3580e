package backchannel

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// target is where an NFSv4.0 client takes callbacks.
type target struct {
	at     netip.AddrPort
	dial   Dial
	params Params
	ident  uint32

	mu     sync.Mutex
	r      transport.Requester
	closed bool
}

// NewChannel0 returns a Channel to a client of NFSv4.0 that has called from an address.
// It returns nil if callbacks are impossible or not allowed: over other transports than
// TCP, to an address other than the client's, and to privileged ports. A client may not make the
// server connect to others.
func (m *Manager) NewChannel0(from netip.Addr, cb *nfs4.CbClient4, ident uint32) *Channel {
	at, ok := location(&cb.CbLocation)
	if !ok || m.opt.Dial == nil || at.Addr() != from.Unmap().WithZone("") || at.Port() < 1024 {
		return nil
	}
	if from.Zone() != "" {
		at = netip.AddrPortFrom(from, at.Port()) // a link-local address
	}
	sys := oncrpc.Sys{Machine: []byte("nfs")}
	p := Params{Program: cb.CbProgram, Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}}
	return &Channel{m: m, target: &target{at: at, dial: m.opt.Dial, params: p, ident: ident}}
}

// location reads a universal address (RFC 5665, sections 5.2.3.3 and 5.2.3.4).
func location(n *nfs4.Netaddr4) (at netip.AddrPort, ok bool) {
	v6 := false
	switch string(n.NaRNetid) {
	case "tcp":
	case "tcp6":
		v6 = true
	default:
		return at, false
	}
	s := string(n.NaRAddr)
	if len(s) > 64 {
		return at, false
	}
	var port uint64
	for shift := 0; shift <= 8; shift += 8 {
		dot := strings.LastIndexByte(s, '.')
		if dot < 0 {
			return at, false
		}
		b, err := strconv.ParseUint(s[dot+1:], 10, 8)
		if err != nil {
			return at, false
		}
		port |= b << shift
		s = s[:dot]
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Is6() != v6 || addr.Zone() != "" {
		return at, false
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), true
}

// connect returns the connection, and makes one if there is none.
func (t *target) connect(ctx context.Context, timeout time.Duration) (transport.Requester, error) {
	t.mu.Lock()
	r := t.r
	t.mu.Unlock()
	if r != nil {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n, err := t.dial(ctx, t.at, MaxReply, timeout)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = n.Close()
		return nil, ErrClosed
	}
	t.r = n
	return n, nil
}

// disconnect gives up a connection.
func (t *target) disconnect(r transport.Requester) {
	t.mu.Lock()
	if t.r == r {
		t.r = nil
	}
	t.mu.Unlock()
	_ = r.Close()
}

// close ends the connection. It does not wait.
func (t *target) close() {
	t.mu.Lock()
	r := t.r
	t.r, t.closed = nil, true
	t.mu.Unlock()
	if r != nil {
		go func() { _ = r.Close() }()
	}
}
