package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

func newExportCommand(s *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export FORMAT [flags] FILE... -w OUT",
		Short: "Write transactions to files for other programs",
		Args:  cli.CommandOnly,
		RunE:  func(*cobra.Command, []string) error { return cli.Usagef("name a format: parquet or trace") },
	}
	cmd.AddCommand(newExportParquetCommand(s), newExportTraceCommand(s))
	return cmd
}

// exportOptions are the flags that all exports have.
type exportOptions struct {
	inputOptions
	out    string
	filter string
	count  uint64
	resume resumeOptions
	parts  []decode.StatePart // of a state, besides the decoder and names
}

func (o *exportOptions) flags(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.out, "write", "w", "", what)
	f.StringVarP(&o.filter, "filter", "Y", "", "only transactions for which the display filter `expression` holds")
	f.Uint64VarP(&o.count, "count", "c", 0, "stop after writing `n` transactions; 0 writes all")
	o.inputOptions.flags(f)
	o.scrubFlag(f)
}

func (o *exportOptions) check() (*filter.Filter, error) {
	if o.out == "" {
		return nil, cli.Usagef("no output: name it with -w; - is standard output")
	}
	return cli.Filter(o.filter)
}

// exporter takes the transactions that are to be written.
type exporter struct {
	*job
	view  rpc.View
	match *filter.Filter
	count uint64
	add   func(*rpc.View) error
	err   error
}

// export runs the decoder over the input and passes the selected transactions to add. finish ends the output;
// it is not called if the output is to be discarded.
func (o *exportOptions) export(j *job, opt decode.Options, match *filter.Filter, add func(*rpc.View) error, finish func() error) error {
	e := &exporter{job: j, match: match, count: o.count, add: add, view: rpc.View{Names: &rpc.Names{Limit: o.memory.Names()}, Unwrap: j.keys.Contexts}}
	j.d = decode.New(opt, e.transaction)
	if err := j.resume.begin(j, "export", append(o.parts, e.view.Names)); err != nil {
		return err
	}
	_, errTTY := cli.Terminal(j.s.Err)
	err := j.run(errTTY)
	out := e.err
	if err == nil && out == nil {
		if out = j.whole(o.out); out == nil {
			out = finish()
		}
		if out == nil {
			err = j.resume.save(j)
		}
	}
	return j.finish(err, closed(out))
}

func (e *exporter) transaction(tx *transaction.Transaction) {
	if e.stopped {
		return
	}
	v := &e.view
	v.Set(tx)
	if v.Undecoded() {
		e.notes.Message(v)
	}
	if e.match == nil || e.match.Match(v) {
		if e.err = e.add(v); e.err != nil {
			e.stop()
		}
		if e.count > 0 {
			if e.count--; e.count == 0 {
				e.stop()
			}
		}
	}
	v.Learn()
}

// create opens the file that an export goes to.
func (o *exportOptions) create(j *job) (*cli.Output, error) {
	if _, tty := cli.Terminal(j.s.Out); tty && o.out == "-" {
		return nil, cli.Usagef("standard output is a terminal: name a file with -w, or redirect")
	}
	return cli.Create(j.files, o.out, j.s.Out)
}

// written reports how much an export has written, unless it failed.
func written(s *cli.Streams, err error, rows uint64, to string) {
	if err != nil && !errors.Is(err, cli.ErrDamaged) {
		return
	}
	cli.Tell(s.Err, "rpcrdma-dump", "%s written to %s", units.Plural(rows, "transaction"), to)
}
