// Package portmap asks a host at which port it serves a program of RPC: rpcbind, or its
// older form, the port mapper (RFC 1833).
package portmap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Port is where hosts serve rpcbind.
const Port = rpcbind.PMAP_PORT

// ErrNotRegistered says that a host does not serve a program.
var ErrNotRegistered = errors.New("the host has not registered the program")

// Dial connects to a host; network is "tcp" or "udp".
type Dial func(ctx context.Context, network string, at netip.AddrPort) (transport.Requester, error)

// Find asks the rpcbind of a host, over TCP and then over UDP, where it serves a program over
// TCP or UDP. It prefers TCP.
func Find(ctx context.Context, dial Dial, host netip.Addr, program, version uint32) (network string, at netip.AddrPort, err error) {
	for _, by := range []string{"tcp", "udp"} {
		var r transport.Requester
		if r, err = dial(ctx, by, netip.AddrPortFrom(host, Port)); err != nil {
			continue
		}
		for _, network = range []string{"tcp", "udp"} {
			var port uint16
			if port, err = Ask(ctx, r, host, network, program, version); err == nil || !errors.Is(err, ErrNotRegistered) {
				at = netip.AddrPortFrom(host, port)
				break
			}
		}
		_ = r.Close()
		if err == nil || errors.Is(err, ErrNotRegistered) {
			break
		}
	}
	if err != nil {
		return "", netip.AddrPort{}, fmt.Errorf("rpcbind of %s: %w", host, err)
	}
	return network, at, nil
}

// Ask asks an rpcbind for one port.
func Ask(ctx context.Context, r transport.Requester, host netip.Addr, network string, program, version uint32) (uint16, error) {
	if host.Unmap().Is4() {
		m := &rpcbind.Mapping{Prog: program, Vers: version, Prot: uint32(rpcbind.IPPROTO_TCP)}
		if network == "udp" {
			m.Prot = uint32(rpcbind.IPPROTO_UDP)
		}
		var port rpcbind.PortMessage
		if err := Do(ctx, r, oncrpc.Call{Program: rpcbind.PMAP_PROG, Version: rpcbind.PMAP_VERS, Procedure: rpcbind.PMAPPROC_GETPORT}, m, &port, time.Second); err != nil {
			return 0, err
		}
		return number(port.Port)
	}
	ask := &rpcbind.Rpcb{RProg: program, RVers: version, RNetid: []byte(network + "6")}
	var at rpcbind.UaddrMessage
	if err := Do(ctx, r, oncrpc.Call{Program: rpcbind.RPCBPROG, Version: rpcbind.RPCBVERS4, Procedure: rpcbind.RPCBPROC4_GETADDR}, ask, &at, time.Second); err != nil {
		return 0, err
	}
	return number(portOf(string(at.Uaddr)))
}

func number(port uint32) (uint16, error) {
	switch {
	case port == 0:
		return 0, ErrNotRegistered
	case port > 65535:
		return 0, fmt.Errorf("%d is not a port", port)
	}
	return uint16(port), nil
}

// portOf is the port of a universal address (RFC 5665, section 5.2.3.4): its last two numbers; 0
// if there is none. The host part is not used: who is asked tells its own port, and nobody else's.
func portOf(s string) uint32 {
	var port uint32
	for shift := 0; shift <= 8; shift += 8 {
		dot := strings.LastIndexByte(s, '.')
		if dot < 0 {
			return 0
		}
		n, err := strconv.ParseUint(s[dot+1:], 10, 8)
		if err != nil {
			return 0
		}
		port |= uint32(n) << shift
		s = s[:dot]
	}
	return port
}

// Universal is the universal address of a port of a host.
func Universal(at netip.AddrPort) string {
	return fmt.Sprintf("%s.%d.%d", at.Addr().Unmap().WithZone(""), at.Port()>>8, at.Port()&0xff)
}

// ErrReply says that a reply is not what the program promises.
var ErrReply = errors.New("the reply could not be read")

// Do makes a call without data in chunks. The results are decoded if the call succeeded;
// nil is for a procedure without results.
func Do(ctx context.Context, r transport.Requester, h oncrpc.Call, args interface{ Append([]byte) []byte }, results interface{ Decode(*xdr.Reader) }, timeout time.Duration) error {
	h.RPCVersion = oncrpc.Version
	c := &transport.Call{MaxReply: 4096, Timeout: timeout}
	c.Stream = h.Append(nil)
	if args != nil {
		c.Stream = args.Append(c.Stream)
	}
	if err := r.Do(ctx, c); err != nil {
		return err
	}
	m := &c.Reply
	var head oncrpc.Reply
	if err := head.Decode(m.Stream, len(m.Stream)); err != nil || len(m.Items) > 0 {
		return ErrReply
	}
	if !head.Succeeded() {
		return &StatusError{head.Status()}
	}
	if results == nil {
		return nil
	}
	body := m.Stream[head.Size():]
	var in xdr.Reader
	in.Reset(body, len(body))
	if results.Decode(&in); in.Failed() {
		return ErrReply
	}
	return nil
}

// StatusError is a call that the RPC layer of the peer has refused.
type StatusError struct{ Status string }

func (e *StatusError) Error() string { return "rpc: " + e.Status }
