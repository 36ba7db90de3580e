package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfsacl"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/verbs/auto"
)

// serve is our server: NFSv3 and v4 over RDMA, MOUNT also over TCP for
// mount(8), all of one store in memory.
func serve(ctx context.Context, o *options) error {
	p, err := o.open(ctx, auto.Purpose{Local: o.addr})
	if err != nil {
		return err
	}
	defer p.Close()
	st := memory.New(memory.Options{})
	defer st.Close()
	s := nfsserver.New(nfsserver.Options{})
	defer s.Close()
	four := nfs4.New(st, nfs4.Options{Lease: 30 * time.Second})
	defer four.Close()
	s.Register(v3.New(st, v3.Options{}))
	s.Register(nfsacl.New(st))
	s.Register(mountd.New(st, mountd.Options{Path: o.path}))
	s.Register(four.Program())
	r, err := endpoint.Listen(ctx, p, o.addr, s, o.endpoint)
	if err != nil {
		return err
	}
	defer r.Close()
	m, err := tcprpc.Listen(ctx, o.mount, s, tcprpc.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	fmt.Printf("listening at %v\n", r.Addr())
	<-ctx.Done()
	fmt.Printf("%+v\n", r.Stats())
	return nil
}
