package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/portmap"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/udprpc"
)

// lockTarget is where the lock manager of a server is. It is reached over TCP or UDP, whatever
// the fabric of NFS is.
type lockTarget struct {
	tcp, udp netip.AddrPort // not valid: rpcbind knows
	options  providers.Options
	failed   error // once it could not be found
}

// locked reports whether a plan has calls of a lock manager.
func (t *target) locked() bool {
	for i := range t.load.Tables.Connections {
		if c := &t.load.Tables.Connections[i]; c.Program == "nlm" && c.Ops > 0 {
			return true
		}
	}
	return false
}

// builtinLocks serves the locks of the built-in server.
func (t *target) builtinLocks(ctx context.Context, srv *providers.Server, where providers.Options) error {
	t.locks.options = where
	if !t.locked() {
		return nil
	}
	local := netip.MustParseAddrPort("127.0.0.1:0")
	tcp, err := tcprpc.Listen(ctx, local.String(), srv, tcprpc.Options{})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, tcp.Close)
	udp, err := providers.ListenLocks(ctx, local, srv, nil)
	if err != nil {
		return err
	}
	t.closers = append(t.closers, udp.Close)
	t.locks.tcp, t.locks.udp = tcp.Addr(), udp.Addr()
	return nil
}

// dialLocks connects to the lock manager as the captured client was: over TCP or UDP.
func (t *target) dialLocks(ctx context.Context, c *plan.Connection) (transport.Requester, error) {
	network, at := "tcp", t.locks.tcp
	if c.Fabric == "udp" {
		network, at = "udp", t.locks.udp
	}
	if !at.IsValid() {
		var err error
		if at, err = t.findLocks(ctx, network); err != nil {
			return nil, err
		}
	}
	if network == "udp" {
		return udprpc.Dial(ctx, at.String(), udprpc.Options{Timeout: t.locks.options.TCP.Timeout, Tap: t.locks.options.Tap})
	}
	o := t.locks.options.TCP
	o.Tap, o.Link = t.locks.options.Tap, t.locks.options.Link
	return tcprpc.Dial(ctx, at.String(), o)
}

// findLocks asks the server's rpcbind where its lock manager is. Some servers have it where NFS
// is, and no rpcbind.
func (t *target) findLocks(ctx context.Context, network string) (at netip.AddrPort, err error) {
	if t.locks.failed != nil {
		return at, t.locks.failed
	}
	for _, by := range []string{"tcp", "udp"} {
		var r transport.Requester
		if r, err = providers.DialClient(ctx, by, netip.AddrPortFrom(t.addr.Addr(), providers.PortPortmap)); err != nil {
			continue
		}
		var port uint16
		port, err = portmap.Ask(ctx, r, t.addr.Addr(), network, nlm.NLM_PROG, nlm.NLM4_VERS)
		_ = r.Close()
		if err == nil {
			return netip.AddrPortFrom(t.addr.Addr(), port), nil
		}
	}
	if t.fabric.Name() == "tcp" && network == "tcp" && t.hasLocks(ctx) {
		return t.addr, nil
	}
	t.locks.failed = fmt.Errorf("rpcbind of %s: %w: give the lock manager with --nlm", t.addr.Addr(), err)
	return at, t.locks.failed
}

// hasLocks reports whether the lock manager is at the port of NFS.
func (t *target) hasLocks(ctx context.Context) bool {
	r, err := providers.DialClient(ctx, "tcp", t.addr)
	if err != nil {
		return false
	}
	defer r.Close()
	h := oncrpc.Call{Program: nlm.NLM_PROG, Version: nlm.NLM4_VERS}
	return portmap.Do(ctx, r, h, nil, nil, probeLocks) == nil
}

// probeLocks bounds the wait for a lock manager.
const probeLocks = 2 * time.Second
