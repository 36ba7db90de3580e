package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

const operationsLong = `List the operations of RDMA - Send, Write, Read, atomic - of every connection of
RoCE, InfiniBand and iWARP, whatever the layer above. Each is one line, as it
ends:

  05:39:05.592969 #1 192.0.2.1 > 192.0.2.2 NFS/RDMA write 65536 bytes, 211.4µs

the time of its first packet, the connection as numbered in the other listings,
who asked whom, the layer above, what it is, its length, and its latency: from
its first packet to the acknowledgement of all of it, of a Read from the request
to the last response. Where there is none, the reason stands in its place:
unanswered (the connection or the capture ended), incomplete (the end of a Send,
or the response of a Read, was not captured), given up (more were under way than
can be followed), interrupted (sequence numbers contradicted what was known).

The layer above is known from connection management or a TCP port, or said with
--decode-as. With a question mark it is a guess from the first messages.`

// operationsOptions are the flags of the command operations.
type operationsOptions struct {
	inputOptions
	fabricFlags
	time       timeFlag
	format     string
	count      uint64
	connection int
	lines      bool
}

// fabricFlags are shared by all commands that name the layers above connections.
type fabricFlags struct{ decodeAs []string }

func (o *fabricFlags) register(f *pflag.FlagSet) {
	f.StringArrayVar(&o.decodeAs, "decode-as", nil, "take connections to a port, or service id, for a `service`: PORT=SERVICE or 0xID=SERVICE, "+
		"with one of "+strings.Join(fabric.ServiceWords(), ", "))
}

// services is what the user has specified about them.
func (o *fabricFlags) services() (map[uint64]string, error) {
	m := make(map[uint64]string)
	for _, s := range o.decodeAs {
		if err := fabric.ParseDecodeAs(m, s); err != nil {
			return nil, cli.Usagef("--decode-as: %v", err)
		}
	}
	return m, nil
}

func newOperationsCommand(s *cli.Streams) *cobra.Command {
	o := &operationsOptions{}
	cmd := &cobra.Command{
		Use:   "operations [flags] FILE...",
		Short: "List RDMA operations of every connection, with or without RPC",
		Long:  operationsLong,
		Example: "  rpcrdma-dump operations trace.pcap\n" +
			"  rpcrdma-dump operations -T ndjson trace.pcap | jq 'select(.latency_ns > 1e6)'\n" +
			"  rpcrdma-dump operations --decode-as 4500=nvme trace.pcap",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or ndjson")
	cli.PositiveVar(f, &o.connection, "connection", "only operations of connection `n`, as numbered in the other listings")
	f.Uint64VarP(&o.count, "count", "c", 0, "stop after `n` operations that were printed; 0 prints all")
	o.fabricFlags.register(f)
	o.time.register(f)
	f.BoolVarP(&o.lines, "line-buffered", "l", false, "write each line at once")
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "ndjson"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *operationsOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.format != "text" && o.format != "ndjson" {
		return cli.Usagef("-T is text or ndjson, not %q", o.format)
	}
	services, err := o.services()
	if err != nil {
		return err
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	out := newOutput(s, j.in.live, o.lines)
	e := &fabric.Encoder{Clock: text.Clock{Format: o.time.format}}
	json := o.format == "ndjson"
	_, outTTY := cli.Terminal(s.Out)
	_, errTTY := cli.Terminal(s.Err)
	err = j.operations(&o.inputOptions, services, o.connection, o.count, errTTY && !outTTY, func(x *fabric.Operation) bool {
		b := out.begin()
		if json {
			b = append(e.AppendJSON(b, x), '\n')
		} else {
			b = e.AppendText(b, x)
		}
		return out.end(b)
	})
	a := j.d.Account()
	if i := slices.IndexFunc(a.Kinds, func(k decode.Count) bool { return k.Class == decode.ClassKernel }); i >= 0 && !j.stopped {
		j.notes.Printf("note: %s of a kernel: they tell of calls, not of operations; rpcrdma-dump without a command lists the calls", units.Plural(a.Kinds[i].Packets, "event"))
	}
	if json && !j.stopped {
		out.end(printable.AppendValue(out.begin(), account.New(&a)))
	}
	return j.finish(err, out.close())
}

// operations runs the job, and calls add for each operation of RDMA, or for those of one connection, until it is false or there were as many
// as asked for.
func (j *job) operations(o *inputOptions, services map[uint64]string, connection int, count uint64, progress bool, add func(*fabric.Operation) bool) error {
	r := fabric.New(fabric.Options{
		DecodeAs: services, Memory: o.memory.Scale(fabric.DefaultMemory),
		Operation: func(x *fabric.Operation) {
			if j.stopped || connection != 0 && x.Connection.Resolve().ID != connection {
				return
			}
			if !add(x) {
				j.stop()
			}
			if count > 0 {
				if count--; count == 0 {
					j.stop()
				}
			}
		},
	})
	opt := o.decoder()
	opt.Transactions.OnCompletion = true // nobody looks at them
	opt.Observe(r.Observer())
	opt.Transactions.Carries = fabric.Carries(services)
	j.d = decode.New(opt, func(*transaction.Transaction) {})
	err := j.run(progress)
	if n := r.Totals().NotOperations; n > 0 && !j.stopped {
		j.notes.Printf("note: %d operations could not be followed: their beginning, or their headers, were not captured", n)
	}
	return err
}
