package main

import (
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/chrometrace"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/units"
)

const exportTraceLong = `Write transactions in the Trace Event Format for Perfetto (ui.perfetto.dev) or
chrome://tracing. A connection is a process and each of its slots a thread: a
call takes the lowest free slot. Its slice contains the phases; RDMA Reads and
Writes have tracks below. Counters show the credits and the calls in flight,
instants show retransmissions, NAKs, RNRs, CNPs and the like.

Times are microseconds since the first packet, with three decimals. A file whose
name ends in .gz is compressed; Perfetto reads that.`

func newExportTraceCommand(s *cli.Streams) *cobra.Command {
	o := &exportOptions{}
	cmd := &cobra.Command{
		Use:     "trace [flags] FILE... -w OUT.json",
		Short:   "Write transactions for Perfetto and chrome://tracing",
		Long:    exportTraceLong,
		Example: "  rpcrdma-dump export trace trace.pcap -w trace.json.gz\n  rpcrdma-dump export trace -Y 'latency > 10ms' trace.pcap -w slow.json",
		RunE:    func(cmd *cobra.Command, args []string) error { return runExportTrace(cmd, s, o, args) },
	}
	o.flags(cmd, "write to this `file`, - for standard output")
	return cmd
}

func runExportTrace(cmd *cobra.Command, s *cli.Streams, o *exportOptions, args []string) error {
	match, err := o.check()
	if err != nil {
		return err
	}
	o.need(o.out)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	file, err := o.create(j)
	if err != nil {
		return err
	}
	defer file.Discard()
	out, closeZip := io.Writer(file), func() error { return nil }
	if strings.HasSuffix(o.out, ".gz") {
		z := gzip.NewWriter(file)
		out, closeZip = z, z.Close
	}
	w := chrometrace.New(out, func() int64 { return j.d.Stats().First.Time })
	opt := o.decoder()
	opt.Observe(w.Observer())
	if match.Blame() {
		o.blame(&opt)
	}
	err = o.export(j, opt, match, func(v *rpc.View) error { return w.Add(v) }, func() error {
		if err := errors.Join(w.Close(), closeZip()); err != nil {
			return err
		}
		return file.Commit()
	})
	n := w.Stats()
	written(s, err, n.Transactions, o.out)
	if n.LeftOut > 0 {
		j.notes.Printf("note: %d transactions and events are not shown: too many calls or connections at once", n.LeftOut)
	}
	if n.HiddenOperations > 0 {
		j.notes.Printf("note: %s not shown: too many at once", units.Plural(n.HiddenOperations, "RDMA operation"))
	}
	if n.Late > 0 {
		j.notes.Printf("note: the counters lack %s that came too late", units.Plural(n.Late, "call"))
	}
	return err
}
