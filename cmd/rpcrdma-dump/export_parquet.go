package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/parquet"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

const exportParquetLong = `Write one row for each transaction to an Apache Parquet file, for DuckDB,
ClickHouse, Spark, Trino and others. The columns are the keys of the ndjson output.

With --partition, files go below a directory, in folders that these engines read
as columns (DIR/date=2026-11-21/hour=05/host=NAME/part-0.parquet), so that the
captures of a fleet become one table. Existing files stay.`

const exportParquetExamples = `  rpcrdma-dump export parquet trace.pcap -w trace.parquet
  rpcrdma-dump export parquet -Y 'op == READ' trace.pcap -w reads.parquet
  rpcrdma-dump export parquet --partition time=1h,host --host nfs-7 trace.pcap -w /data/rpcrdma
  duckdb -c "select procedure, count(*), median(latency_ns.total) from 'trace.parquet' group by all"`

type parquetOptions struct {
	exportOptions
	partition string
	host      string
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
	f := cmd.Flags()
	f.StringVar(&o.partition, "partition", "", "divide into folders by this `list` of time=1d, time=1h, time=15m and host, such as time=1h,host")
	f.StringVar(&o.host, "host", "", "`name` of the captured host, for the file and the folders")
	return cmd
}

func (o *parquetOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	match, err := o.check()
	if err != nil {
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
	if o.partition != "" {
		o.needs.Trees = []string{o.out}
	} else {
		o.need(o.out)
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	o.memory.Reserve(20 << 20) // pages of all columns, and what compresses them
	opt := o.decoder()
	opt.Concurrent = true
	o.blame(&opt)
	if o.partition != "" {
		t := parquet.NewTree(o.out, layout, metadata)
		t.Outputs, t.AtOnce = j.files, !j.in.live
		defer t.Discard()
		err = o.export(j, opt, match, t.Add, t.Close)
		written(s, err, t.Rows(), fmt.Sprintf("%s in %s", text.Plural(uint64(t.Files()), "file"), o.out))
		return err
	}
	out, err := o.create(j)
	if err != nil {
		return err
	}
	defer out.Discard()
	buf := bufio.NewWriterSize(out, 1<<16)
	w := parquet.NewWriter(buf, metadata)
	if o.memory.Given() { // columns and their dictionaries take several times as much
		w = parquet.NewSmallWriter(buf, metadata, o.memory.Scale(parquet.GroupBytes/2))
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
