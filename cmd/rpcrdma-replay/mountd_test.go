package main

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/portmap"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// serves answers the calls of some programs with a number, and refuses others.
func serves(t *testing.T, number uint32, programs ...uint32) netip.AddrPort {
	t.Helper()
	l, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", transport.HandlerFunc(func(x transport.Exchange) {
		m, _ := oncrpc.Peek(x.Call().Stream)
		r := oncrpc.Reply{XID: m.XID, Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
		for _, p := range programs {
			if m.Program == p {
				r.Accept = oncrpc.Success
			}
		}
		b := r.Append(nil)
		if r.Accept == oncrpc.Success && m.Procedure != 0 {
			b = xdr.AppendUint32(b, number)
		}
		x.Reply(&transport.Message{Stream: b})
	}), tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr()
}

// TestDialMount: MOUNT is where NFS is, or where rpcbind has it.
func TestDialMount(t *testing.T) {
	elsewhere := serves(t, 0, mount.MOUNT_PROGRAM)
	for _, x := range []struct {
		name     string
		nfs      []uint32
		rpcbind  netip.AddrPort
		at, fail string
	}{
		{"with NFS", []uint32{100003, mount.MOUNT_PROGRAM}, serves(t, 0), "", ""},
		{"where rpcbind says", []uint32{100003}, serves(t, uint32(elsewhere.Port()), rpcbind.PMAP_PROG), elsewhere.String(), ""},
		{"nowhere", []uint32{100003}, serves(t, 0, rpcbind.PMAP_PROG), "", "MOUNT is not where NFS is (PROG_UNAVAIL), and rpcbind of 127.0.0.1: the host has not registered the program: give it with --mount"},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, err := providers.DialClient(t.Context(), "tcp", serves(t, 0, x.nfs...))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			m, err := dialMount(t.Context(), r, elsewhere.Addr(), func(ctx context.Context, network string, at netip.AddrPort) (transport.Requester, error) {
				if at.Port() == portmap.Port {
					at = x.rpcbind
				}
				return providers.DialClient(ctx, network, at)
			})
			switch {
			case x.fail != "":
				if err == nil || !strings.Contains(err.Error(), x.fail) {
					t.Errorf("%v", err)
				}
			case err != nil:
				t.Error(err)
			case (m == nil) != (x.at == "") || m != nil && m.Peer().Remote.String() != x.at:
				t.Errorf("%v", m)
			}
			if m != nil {
				_ = m.Close()
			}
		})
	}
}
