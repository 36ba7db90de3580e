package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/parquet"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/units"
)

const exportParquetLong = `Write one row for each transaction to an Apache Parquet file, for DuckDB,
ClickHouse, Spark, Trino and others. The columns are the keys of the ndjson
output.

With --partition, files go below a directory, in folders that these engines read
as columns (DIR/date=2026-11-21/hour=05/host=NAME/part-0.parquet), so that the
captures of a fleet become one table. Existing files stay.

With --operations the rows are the operations of RDMA that "rpcrdma-dump
operations" lists, and the columns the keys of its ndjson.`

const exportParquetExamples = `  rpcrdma-dump export parquet trace.pcap -w trace.parquet
  rpcrdma-dump export parquet -Y 'op == READ' trace.pcap -w reads.parquet
  rpcrdma-dump export parquet --operations trace.pcap -w operations.parquet
  rpcrdma-dump export parquet --partition time=1h,host --host nfs-7 trace.pcap -w /data/rpcrdma
  rpcrdma-dump export parquet --resume-state rows.state cap-00017.pcap -w 17.parquet
  duckdb -c "select procedure, count(*) from 'trace.parquet' group by all"`

type parquetOptions struct {
	exportOptions
	fabricFlags
	partition  string
	host       string
	operations bool
}

func newExportParquetCommand(s *cli.Streams) *cobra.Command {
	o := &parquetOptions{}
	cmd := &cobra.Command{
		Use:     "parquet [flags] FILE... -w OUT",
		Short:   "Write transactions as Parquet",
		Long:    exportParquetLong,
		Example: exportParquetExamples,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	o.exportOptions.flags(cmd, "write to this `file`, - for standard output; with --partition to this directory")
	o.resume.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.partition, "partition", "", "divide into folders by this `list` of time=1d, time=1h, time=15m and host, such as time=1h,host")
	f.BoolVar(&o.operations, "operations", false, "write operations of RDMA instead of transactions: of every connection, with or without RPC")
	o.fabricFlags.register(f)
	f.StringVar(&o.host, "host", "", "`name` of the captured host, for the file and the folders")
	return cmd
}

func (o *parquetOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	match, err := o.check()
	if err != nil {
		return err
	}
	var without []string
	if o.count > 0 {
		without = append(without, "-c")
	}
	if o.operations {
		without = append(without, "--operations")
	}
	if err := o.resume.check(&o.inputOptions, without...); err != nil {
		return err
	}
	metadata := make(map[string]string)
	if o.host != "" {
		metadata["rpcrdma.host"] = o.host
	}
	var layout parquet.Layout
	if o.partition != "" {
		var host bool
		if layout, host, err = parquet.ParseLayout(o.partition); err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--partition: %w", err)}
		}
		if host {
			if layout.Host = o.host; o.host == "" {
				return cli.Usagef("--partition host needs --host NAME: a capture does not say where it was taken")
			}
		}
		if o.out == "-" {
			return cli.Usagef("--partition needs a directory to write to")
		}
	}
	if o.operations {
		if o.partition != "" || o.filter != "" {
			return cli.Usagef("--partition and -Y are for transactions: they do not go with --operations")
		}
		return o.writeOperations(cmd, s, args, metadata)
	} else if len(o.decodeAs) > 0 {
		return cli.Usagef("--decode-as goes with --operations")
	}
	if o.partition != "" {
		o.needs.Trees = []string{o.out}
	} else {
		o.need(o.out)
	}
	resumed, err := o.resume.open(s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	j.resume = resumed
	o.memory.Reserve(20 << 20) // pages of all columns, and what compresses them
	opt := o.decoder()
	opt.Concurrent = true
	o.parts = o.blame(&opt)
	if o.partition != "" {
		t := parquet.NewTree(o.out, layout, metadata)
		t.Outputs, t.AtOnce, t.Group = j.files, !j.in.live, o.group()
		defer t.Discard()
		err = o.export(j, opt, match, t.Add, t.Close)
		written(s, err, t.Rows(), fmt.Sprintf("%s in %s", units.Plural(t.Files(), "file"), o.out))
		return err
	}
	out, err := o.create(j)
	if err != nil {
		return err
	}
	defer out.Discard()
	buf := bufio.NewWriterSize(out, 1<<16)
	w := parquet.NewWriter(buf, metadata)
	if n := o.group(); n > 0 {
		w = parquet.NewSmallWriter(buf, metadata, n)
	}
	err = o.export(j, opt, match, w.Add, func() error {
		if err := errors.Join(w.Close(), buf.Flush()); err != nil {
			return err
		}
		return out.Commit()
	})
	written(s, err, w.Rows(), o.out)
	return err
}

// group is how many bytes a row group may have, 0 for the default: columns and their
// dictionaries take several times as much.
func (o *parquetOptions) group() int {
	if !o.memory.Given() {
		return 0
	}
	return o.memory.Scale(parquet.GroupBytes / 2)
}

// writeOperations writes the operations of RDMA.
func (o *parquetOptions) writeOperations(cmd *cobra.Command, s *cli.Streams, args []string, metadata map[string]string) error {
	services, err := o.services()
	if err != nil {
		return err
	}
	o.need(o.out)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	o.memory.Reserve(20 << 20) // pages of all columns, and what compresses them
	out, err := o.create(j)
	if err != nil {
		return err
	}
	defer out.Discard()
	buf := bufio.NewWriterSize(out, 1<<16)
	w := parquet.NewOperationWriter(buf, metadata, o.group())
	var failed error
	_, tty := cli.Terminal(s.Err)
	err = j.operations(&o.inputOptions, services, 0, o.count, tty, func(x *fabric.Operation) bool {
		failed = w.Add(x)
		return failed == nil
	})
	if err == nil && failed == nil {
		if failed = j.whole(o.out); failed == nil {
			if failed = errors.Join(w.Close(), buf.Flush()); failed == nil {
				failed = out.Commit()
			}
		}
	}
	err = j.finish(err, closed(failed))
	if err == nil || errors.Is(err, cli.ErrDamaged) {
		cli.Tell(s.Err, "rpcrdma-dump", "%s written to %s", units.Plural(w.Rows(), "operation"), o.out)
	}
	return err
}
