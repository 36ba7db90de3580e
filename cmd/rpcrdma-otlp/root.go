package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/units"
)

// options are the flags.
type options struct {
	endpoint string
	service  string
	noSpans  bool
	metrics  time.Duration
	wait     time.Duration
}

const long = `Send transactions to an OpenTelemetry collector (OTLP over HTTP): each is a
span, with its phases as children. The input is what rpcrdma-dump -T ndjson
prints; "-" or no file is standard input. What captures therefore needs no
network, and what has the network needs no privilege.

The collector and how to reach it are set as for every OpenTelemetry exporter:
OTEL_EXPORTER_OTLP_ENDPOINT (default http://localhost:4318), …_HEADERS,
…_CERTIFICATE, …_COMPRESSION, …_TIMEOUT; OTEL_RESOURCE_ATTRIBUTES describes
where the capture was made.

Spans have the times of the capture. Their IDs are made of the connection, the
XID and the start, so sending a capture twice gives the same spans. Metrics have
the time at which they are sent; they make sense for live captures.

Exit status:
  0  success
  1  failure: something was not accepted, or the input cannot be read
  2  usage
  3  finished, but lines of the input are no transactions`

func newRootCommand(s *cli.Streams) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "rpcrdma-otlp [flags] [FILE.ndjson...]",
		Short: "Send NFS/RDMA transactions to an OpenTelemetry collector",
		Long:  long,
		Example: "  rpcrdma-dump -T ndjson trace.pcap | rpcrdma-otlp\n" +
			"  rpcrdma-dump -i eth0 -T ndjson -Y 'latency > 100ms' |\n" +
			"    rpcrdma-otlp --endpoint http://collector:4318\n" +
			"  rpcrdma-dump -i eth0 -T ndjson | rpcrdma-otlp --metrics 10s --no-spans",
		Args: cli.CommandOrFile,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.endpoint, "endpoint", "", "`URL` of the collector (default: OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318)")
	f.StringVar(&o.service, "service", "", "`name` of the service in the spans (default: OTEL_SERVICE_NAME, or nfs-rdma)")
	f.BoolVar(&o.noSpans, "no-spans", false, "send no spans")
	cli.DurationVar(f, &o.metrics, "metrics", 0, "send metrics each `interval`: 10s")
	cli.DurationVar(f, &o.wait, "wait", 30*time.Second, "at the end, give up after this `time` without success")
	cli.NewRoot(cmd, s)
	cmd.AddCommand(cli.NewManCommand("rpcrdma-otlp", s.Err))
	return cmd
}

func (o *options) run(ctx context.Context, s *cli.Streams, args []string) error {
	if o.noSpans && o.metrics == 0 {
		return cli.Usagef("--no-spans without --metrics leaves nothing to send")
	}
	if o.metrics < 0 || o.wait < 0 {
		return cli.Usagef("times are not negative")
	}
	if len(args) == 0 {
		if f, ok := s.In.(*os.File); ok {
			if _, tty := cli.Terminal(f); tty {
				return cli.Usagef("no input: name a file, or pipe rpcrdma-dump -T ndjson into it")
			}
		}
		args = []string{"-"}
	}
	if err := checkEndpoint("--endpoint", o.endpoint); err != nil {
		return err
	}
	if o.endpoint == "" {
		for _, name := range []string{endpointVar, endpointVarOf("traces"), endpointVarOf("metrics")} {
			if err := checkEndpoint(name, os.Getenv(name)); err != nil {
				return err
			}
		}
	}
	o.endpoint = strings.TrimRight(o.endpoint, "/")
	notes := cli.NewProblems("rpcrdma-otlp", s.Err)
	ctx, stop := cli.Context(ctx)
	defer stop()
	x, err := newExporter(ctx, o, notes)
	if err != nil {
		return err
	}
	var in counts
	for _, name := range args {
		if err = read(ctx, name, s.In, notes, &in, x.transaction); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	lost := x.close(o.wait)
	notes.Printf("%s read; %s sent, %d not accepted", units.Plural(in.transactions, "transaction"), units.Plural(x.sent.Load(), "span"), x.lost.Load())
	switch {
	case err != nil:
		return err
	case lost != nil:
		return lost
	case in.skipped > 0:
		hint := ""
		if in.transactions == 0 {
			hint = "; the input is what rpcrdma-dump -T ndjson prints"
		}
		notes.Printf("note: %s of the input skipped: no transactions%s", units.Plural(in.skipped, "line"), hint)
		return cli.ErrDamaged
	}
	return nil
}

// read passes the transactions of a file on.
func read(ctx context.Context, name string, stdin io.Reader, notes *cli.Problems, in *counts, each func(context.Context, *record)) error {
	r, grace := stdin, time.Duration(0)
	if name == "-" {
		if f, ok := stdin.(*os.File); !ok || !regular(f) {
			grace = afterSignal
		}
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		r = f
	}
	err := scan(ctx, r, grace, in, func(line uint64, err error) {
		notes.Printf("%s: line %d: %v", name, line, err)
	}, each)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errInterrupted) && grace > 0:
		notes.Printf("note: interrupted; %s had not ended", name)
		return io.EOF // of what others write, this is the end
	}
	return fmt.Errorf("%s: %w", name, err)
}

func regular(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode().IsRegular()
}

// afterSignal is how long standard input may go on after a signal, if others write it.
const afterSignal = 2 * time.Second
