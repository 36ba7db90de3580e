package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/portmap"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// probeMount bounds the wait for MOUNT on the connection of NFS.
const probeMount = 5 * time.Second

// dialMount connects to MOUNT of an NFSv3 server where rpcbind says that it is. It returns nil if the server answers MOUNT on nfs, the
// connection of NFS.
func dialMount(ctx context.Context, nfs transport.Requester, host netip.Addr, dial portmap.Dial) (transport.Requester, error) {
	var refused *portmap.StatusError
	err := portmap.Do(ctx, nfs, oncrpc.Call{Program: mount.MOUNT_PROGRAM, Version: mount.MOUNT_V3}, nil, nil, probeMount)
	if !errors.As(err, &refused) {
		return nil, nil // MOUNT is there; any other error shows when it is used
	}
	network, at, err := portmap.Find(ctx, dial, host, mount.MOUNT_PROGRAM, mount.MOUNT_V3)
	if err != nil {
		return nil, fmt.Errorf("MOUNT is not where NFS is (%s), and %w: give it with --mount", refused.Status, err)
	}
	r, err := dial(ctx, network, at)
	if err != nil {
		return nil, fmt.Errorf("MOUNT at %s, where rpcbind has it: %w", at, err)
	}
	return r, nil
}

// mounter connects to the MOUNT at HOST:PORT, or to where dialMount finds it.
func mounter(ctx context.Context, nfs transport.Requester, host netip.Addr, at string) (transport.Requester, error) {
	if at == "" {
		return dialMount(ctx, nfs, host, providers.DialClient)
	}
	addr, err := providers.Resolve(ctx, at, providers.PortTCP)
	if err != nil {
		return nil, fmt.Errorf("--mount: %w", err)
	}
	r, err := providers.DialClient(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("MOUNT: %w", err)
	}
	return r, nil
}
