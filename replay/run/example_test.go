package run_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// A capture becomes a plan, and the plan is executed against the built-in server over
// iWARP.
func Example() {
	if err := replayCapture(context.Background(), "../../samples/iwarp-nfs3-crc.pcap.zst"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 110 calls, nothing unexplained: true
}

func replayCapture(ctx context.Context, name string) (err error) {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "plan")
	packets, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		return err
	}
	_, err = planner.Build(ctx, packets, file, decode.Options{}, planner.Options{})
	if err = errors.Join(err, packets.Close()); err != nil {
		return err
	}
	w, err := workload.Load(file, 0)
	if err != nil {
		return err
	}
	defer w.Close()

	// A server, and a fabric to reach it. For a remote server, providers.Open and providers.Resolve are
	// enough.
	server, clients, at, err := providers.Pair(providers.Options{Name: "iwarp"}, nil)
	if err != nil {
		return err
	}
	s := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{})
	defer func() { err = errors.Join(err, clients.Close(), server.Close(), s.Close()) }()
	l, err := server.Listen(ctx, at, s)
	if err != nil {
		return err
	}

	r, err := run.Run(ctx, w, run.Options{
		Directory: "/replay", Prepare: true, Write: true, Timing: run.Fast,
		Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) {
			return clients.Dial(ctx, l.Addr(), nil)
		},
		Access: func(ctx context.Context) (*run.Access, error) {
			r, err := clients.Dial(ctx, l.Addr(), nil)
			return &run.Access{NFS: r, Version: w.Version(), Cred: client.Sys("example", 0, 0)}, err
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d calls, nothing unexplained: %v\n", r.Sent, r.Explained())
	return nil
}
