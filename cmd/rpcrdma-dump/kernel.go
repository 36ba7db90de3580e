package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/kernel"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const kernelLong = `Join the transactions of a capture with what the Linux kernels of client and
server recorded: trace events of either (--ftrace), and the counters of the
client's mounts (--mountstats). Calls are matched by XID, client and time. The
clocks of trace and capture may differ; the offset is computed from the calls.

  CLIENT   QUEUE from the start of the task to the transmission, RTT from there
           to the reply, WIRE the total of the transaction. OUTSIDE is RTT minus
           WIRE, the share of client and adapter and, unless the capture was
           taken there, of the network. AFTER from the reply to the end of the
           task
  SERVER   PHASE between call and response, EXEC the execution time that the
           server recorded. REST is PHASE minus EXEC: BEFORE the execution the
           call waits for a thread, BEHIND it the response waits for the adapter
  MOUNT    the counts of mountstats next to those of the capture

Each RTT must be longer than the transaction, and each PHASE longer than the
execution; calls that violate this are listed.

Record on the client:
  cd /sys/kernel/tracing
  echo sunrpc:rpc_stats_latency rpcrdma:xprtrdma_marshal \
       rpcrdma:xprtrdma_reply rpcrdma:xprtrdma_inline_thresh |
       tr ' ' '\n' > set_event
  … ; cat trace > trace.client; cat /proc/self/mountstats > mountstats
and on the server with the events
  sunrpc:svc_process sunrpc:svc_stats_latency rpcrdma:svcrdma_decode_rqst
The output of trace-cmd report, of perf script, and of the bpftrace scripts in
docs/bpftrace (for slow calls only) is read as well.`

// kernelFlags name the kernel's records. Commands that join transactions with them have these flags.
type kernelFlags struct {
	mountstats []string
	ftrace     []string
}

func (o *kernelFlags) register(f *pflag.FlagSet) {
	f.StringArrayVar(&o.ftrace, "ftrace", nil, "trace events of a client or server, as text: `file` (repeatable)")
	f.StringArrayVar(&o.mountstats, "mountstats", nil, "a copy of the client's /proc/self/mountstats: `file` (repeatable)")
}

// names are the files that are read.
func (o *kernelFlags) names() []string {
	return append(append([]string(nil), o.ftrace...), o.mountstats...)
}

// kernelHint says what the file of a flag looks like.
var kernelHint = map[string]string{
	"ftrace":     ": no event of rpcrdma or sunrpc, as trace-cmd report and the file trace_pipe show them",
	"mountstats": ": no mount of NFS, as /proc/self/mountstats shows them on the client",
}

// load reads the files; nil if none is named.
func (o *kernelFlags) load() (*kernel.Join, error) {
	if len(o.ftrace)+len(o.mountstats) == 0 {
		return nil, nil
	}
	if err := cmp.Or(cli.Distinct("--ftrace", o.ftrace), cli.Distinct("--mountstats", o.mountstats)); err != nil {
		return nil, err
	}
	j := kernel.New(kernel.Options{})
	for _, name := range o.ftrace {
		if err := o.read(name, j.ReadTrace); err != nil {
			return nil, err
		}
	}
	for _, name := range o.mountstats {
		if err := o.read(name, j.ReadMountstats); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// errNoRecords says that there is nothing to compare transactions with.
var errNoRecords = errors.New("no file has records of the kernel: see rpcrdma-dump kernel --help for how to get them")

type kernelOptions struct {
	inputOptions
	kernelFlags
	format string
	filter string
}

func newKernelCommand(s *cli.Streams) *cobra.Command {
	o := &kernelOptions{}
	cmd := &cobra.Command{
		Use:     "kernel [flags] FILE...",
		Short:   "Compare transactions with the records of the kernels",
		Long:    kernelLong,
		Example: "  rpcrdma-dump kernel --ftrace trace.client --ftrace trace.server trace.pcap",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.kernelFlags.register(f)
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or json")
	f.StringVarP(&o.filter, "filter", "Y", "", "only transactions for which the display filter `expression` holds")
	o.inputOptions.flags(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *kernelOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.format != "text" && o.format != "json" {
		return cli.Usagef("-T is text or json, not %q", o.format)
	}
	match, err := cli.Filter(o.filter)
	if err != nil {
		return err
	}
	join, err := o.load()
	if err != nil {
		return err
	}
	if join == nil {
		return cli.Usagef("no kernel file: name one with --ftrace or --mountstats")
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	opt := o.decoder()
	opt.Concurrent = true
	if match.Blame() {
		o.blame(&opt)
	}
	view := rpc.View{Names: &rpc.Names{Limit: o.memory.Names()}, Unwrap: j.keys.Contexts}
	j.d = decode.New(opt, func(tx *transaction.Transaction) {
		view.Set(tx)
		if view.Undecoded() {
			j.notes.Message(&view)
		}
		if match == nil || j.matches(match.Match(&view)) {
			join.Add(&view)
		}
		if match != nil {
			view.Learn()
		}
	})
	_, errTTY := cli.Terminal(s.Err)
	err = j.run(errTTY)
	r := join.Result()
	j.noteStrange(r)
	j.noteMissed(o.filter)
	if err == nil && !slices.ContainsFunc(r.Files, func(f kernel.File) bool { return f.Events > 0 || f.Mounts > 0 }) {
		err = errNoRecords
	}
	out := newOutput(s, false, false)
	if o.format == "json" {
		err = errors.Join(err, printable.Indented(out, r))
	} else {
		results.Kernel(out, r)
	}
	return j.finish(err, out.close())
}

// noteStrange notes files in which nothing was found.
func (j *job) noteStrange(r *kernel.Result) {
	for _, f := range r.Files {
		if f.Events == 0 && f.Mounts == 0 {
			j.notes.Printf("note: --%s %s: the file has no records for this flag%s", f.Kind, f.Name, kernelHint[f.Kind])
		}
	}
}

// read opens a file of the kernel, which may be compressed.
func (o *kernelFlags) read(name string, parse func(string, io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, done, err := plain(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer done()
	if err := parse(name, r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// plain reads through gzip and zstd.
func plain(f io.Reader) (io.Reader, func(), error) {
	b := bufio.NewReader(f)
	head, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		return z, func() {}, err
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}
