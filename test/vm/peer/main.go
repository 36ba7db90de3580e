// Command peer is what test/vm/run runs in its virtual machines: our NFS
// server and our NFS client over any provider, and a workload for a mount.
//
//	peer serve -provider iwarp -addr 192.0.2.1:20049   until it is killed
//	peer nfs3 -provider auto -addr 192.0.2.1:20049     against a server
//	peer nfs4 -provider rocev2 -addr 192.0.2.1:20049 -minor 1
//	peer fsx -seed 1 -ops 500 FILE                     on a mount
//	peer probe -addr 192.0.2.1:20049
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/auto"
	"github.com/rpcrdma/toolkit/replay/verbs/rdma"
)

// options holds the options of all commands.
type options struct {
	provider, registration string
	addr                   netip.AddrPort
	mount                  string
	path                   string
	minor                  uint
	seed                   uint64
	ops                    int
	endpoint               endpoint.Options
}

func main() {
	if len(os.Args) < 2 {
		fatal("which command?")
	}
	var o options
	var addr string
	f := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	f.StringVar(&o.provider, "provider", "auto", "auto, rdma, rocev2 or iwarp")
	f.StringVar(&addr, "addr", "192.0.2.1:20049", "address of the server")
	f.StringVar(&o.mount, "mount", "", "address of MOUNT over TCP (default: port 20048 of the server)")
	f.StringVar(&o.path, "path", "/export", "path of the export")
	f.UintVar(&o.minor, "minor", 1, "minor version of NFSv4")
	f.Uint64Var(&o.seed, "seed", 1, "seed of data and of choices")
	f.IntVar(&o.ops, "ops", 1000, "operations of fsx")
	f.StringVar(&o.registration, "registration", "percall", "percall, persistent or windows")
	f.BoolVar(&o.endpoint.NoRemoteInvalidate, "no-invalidate", false, "no remote invalidation")
	f.Parse(os.Args[2:]) //nolint:errcheck // it exits
	var err error
	if o.addr, err = netip.ParseAddrPort(addr); err != nil {
		fatal("%v", err)
	}
	if o.mount == "" {
		o.mount = netip.AddrPortFrom(o.addr.Addr(), 20048).String()
	}
	switch o.registration {
	case "percall":
	case "persistent":
		o.endpoint.Registration = endpoint.Persistent
	case "windows":
		o.endpoint.Registration = endpoint.Windows
	default:
		fatal("registration %s", o.registration)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch os.Args[1] {
	case "serve":
		err = serve(ctx, &o)
	case "nfs3":
		err = client(ctx, &o, nfs3Run)
	case "nfs4":
		err = client(ctx, &o, nfs4Run)
	case "fsx":
		err = fsx(f.Arg(0), o.seed, o.ops)
	case "probe":
		for _, d := range rdma.Probe().Devices {
			fmt.Printf("%+v\n", d)
		}
		fmt.Print(auto.Probe(ctx, auto.Purpose{Remote: o.addr}, auto.Options{}))
	default:
		fatal("no command %s", os.Args[1])
	}
	if err != nil {
		fatal("%s: %v", os.Args[1], err)
	}
}

func fatal(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "peer: "+format+"\n", args...)
	os.Exit(1)
}

// open makes the provider and returns its name.
func (o *options) open(ctx context.Context, p auto.Purpose) (verbs.Provider, error) {
	v, r, err := auto.New(ctx, o.provider, p, auto.Options{})
	fmt.Print(r)
	return v, err
}

// client runs a workload against a server.
func client(ctx context.Context, o *options, run func(context.Context, *options, *caller) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	p, err := o.open(ctx, auto.Purpose{Remote: o.addr})
	if err != nil {
		return err
	}
	defer p.Close()
	r, err := endpoint.Dial(ctx, p, o.addr, o.endpoint)
	if err != nil {
		return err
	}
	fmt.Printf("connected: %+v\n", r.Peer())
	start := time.Now()
	c := &caller{Requester: r}
	if err := run(ctx, o, c); err != nil {
		return err
	}
	s := r.Stats()
	fmt.Printf("done in %v: %+v\n", time.Since(start).Round(time.Millisecond), s)
	if s.Errors > 0 {
		return fmt.Errorf("%s calls failed", strconv.FormatUint(s.Errors, 10))
	}
	return r.Close()
}
