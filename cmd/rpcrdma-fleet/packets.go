package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/scrub"
	"github.com/rpcrdma/toolkit/analyze/split"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/merge"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

type packetsOptions struct {
	tap, key, xid, at, write, scrub string
	around                          time.Duration
	slowest                         int

	time  int64
	id    uint32
	ends  [2]netip.Addr
	hides []byte
}

const packetsLong = `Write the packets of one transaction, or of what a connection did around a time,
to a pcapng file. What names them is in each row of Parquet, report and check:
the tap, the connection_key, the XID and the time.

The packets come from the captures, wherever they are: from a store, or from the
files of the machine on which the command runs. Captures that a ring has deleted
are gone.`

func newPacketsCommand(s *cli.Streams) *cobra.Command {
	o := &packetsOptions{}
	cmd := &cobra.Command{
		Use:   "packets [flags] {--time TIME|--slowest N} -w FILE STORE",
		Short: "Fetch the packets of a transaction from the captures",
		Long:  packetsLong,
		Example: `  rpcrdma-fleet packets --slowest 1 --scrub site.key -w slow.pcapng s3://results
  rpcrdma-fleet packets --tap nfs-7 --xid 0x1b2c --time 2026-11-21T05:49:36.855329905Z -w slow.pcapng s3://results
  rpcrdma-fleet packets --connection-key 'rocev2|192.0.2.1/17|192.0.2.2/18|1763704890123456789' \
      --time 2026-11-21T05:49:36Z --around 2s --scrub site.key -w - results`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.tap, "tap", "", "`name` of the tap (default: the first one that has such packets)")
	f.StringVar(&o.key, "connection-key", "", "only transactions of the connection with this `key`")
	f.StringVar(&o.xid, "xid", "", "only the transaction with this `XID`, decimal or with 0x")
	f.StringVar(&o.at, "time", "", "`time` of the transaction, as in its row")
	f.IntVar(&o.slowest, "slowest", 0, "the transaction that report lists as number `n` of the slowest, at its tap")
	cli.DurationVar(f, &o.around, "around", 0, "also transactions that began this `time` before or after it (default: 1s without --xid)")
	f.StringVarP(&o.write, "write", "w", "", "write to this `file`; - is standard output")
	f.StringVar(&o.scrub, "scrub", "", "replace names, addresses and data as rpcrdma-dump scrub does with the key in this `file`")
	return cmd
}

// check reads the flags.
func (o *packetsOptions) check(args []string) error {
	switch {
	case len(args) != 1:
		return cli.Usagef("name one store")
	case o.slowest < 0:
		return cli.Usagef("--slowest is a number from 1 on")
	case o.slowest > 0 && (o.tap != "" || o.key != "" || o.xid != "" || o.at != "" || o.around != 0):
		return cli.Usagef("--slowest names a transaction: --tap, --connection-key, --xid, --time and --around do as well")
	case o.slowest == 0 && o.at == "":
		return cli.Usagef("--time is missing: the time of the transaction")
	case o.slowest == 0 && o.xid == "" && o.key == "":
		return cli.Usagef("name a transaction with --xid, a connection with --connection-key, or both")
	case o.write == "":
		return cli.Usagef("name the file to write with -w; - is standard output")
	case o.around < 0:
		return cli.Usagef("--around is not negative")
	}
	var err error
	if o.hides, err = readKey("--scrub", o.scrub); err != nil || o.slowest > 0 {
		return err
	}
	return o.row()
}

// row reads the flags that name a row.
func (o *packetsOptions) row() error {
	at, err := time.Parse(time.RFC3339Nano, strings.Replace(o.at, " ", "T", 1))
	if err != nil {
		return cli.Usagef("--time: %q is not a time such as 2026-11-21T05:49:36.855329905Z", o.at)
	}
	if o.time = at.UnixNano(); o.xid != "" {
		n, err := strconv.ParseUint(o.xid, 0, 32)
		if err != nil {
			return cli.Usagef("--xid: %q is not an XID", o.xid)
		}
		o.id = uint32(n)
	} else if o.around == 0 {
		o.around = time.Second
	}
	if o.key != "" {
		parts := strings.Split(o.key, "|")
		for i := range o.ends {
			if len(parts) == 4 {
				host, _, _ := strings.Cut(parts[i+1], "/")
				o.ends[i], err = netip.ParseAddr(host)
			}
			if len(parts) != 4 || err != nil {
				return cli.Usagef("--connection-key: %q is not a key such as rocev2|192.0.2.1/17|192.0.2.2/18|1763704890123456789", o.key)
			}
		}
	}
	return nil
}

// find finds the transaction of --slowest.
func (o *packetsOptions) find(ctx context.Context, st *store.Store, notes *cli.Problems) error {
	all := latency.NewMerger()
	set, err := merge.Open(ctx, st, nil, all)
	if err != nil {
		return err
	}
	rep, err := all.Report(set)
	if err != nil {
		return err
	}
	list := rep.SlowestOfWork()
	if o.slowest > len(list) {
		return fmt.Errorf("--slowest %d: %d are known", o.slowest, len(list))
	}
	x := list[o.slowest-1]
	o.tap, o.id, o.xid, o.time = x.Tap, x.XID, x.XIDHex, x.Time.UnixNano()
	notes.Printf("%s, XID %s at %s, %s, tap %s", printable.Line(x.Operation), x.XIDHex, x.Time.Format(time.RFC3339Nano), units.DurationText(x.Total), printable.Line(x.Tap))
	return nil
}

// wanted reports whether a transaction is one of those that the flags describe. Of the connection, only the addresses are compared:
// where decoding begins in its middle, its numbers and its first packet may not be known.
func (o *packetsOptions) wanted(v *rpc.View) bool {
	tx := v.Tx
	if o.xid != "" && tx.XID != o.id {
		return false
	}
	if d := tx.First().Time - o.time; d > int64(o.around) || d < -int64(o.around) {
		return false
	}
	if o.key == "" {
		return true
	}
	a, b := tx.Connection.Ends[0].Addr.Unmap(), tx.Connection.Ends[1].Addr.Unmap()
	x, y := o.ends[0].Unmap(), o.ends[1].Unmap()
	return a == x && b == y || a == y && b == x
}

func (o *packetsOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	if _, tty := cli.Terminal(s.Out); tty && o.write == "-" {
		return cli.Usagef("a capture is not written to a terminal")
	}
	ctx, stop := cli.Context(cmd.Context())
	defer stop()
	notes := cli.NewProblems("rpcrdma-fleet", s.Err)
	opt := storeOptions(notes)
	opt.Existing = true
	st, err := store.Open(ctx, args[0], opt)
	if err != nil {
		return err
	}
	defer st.Close()
	if o.slowest > 0 {
		if err := o.find(ctx, st, notes); err != nil {
			return interrupted(ctx, err)
		}
	}
	in := store.NewInputs(opt)
	defer in.Close()
	heads, err := o.heads(ctx, st)
	if err != nil {
		return interrupted(ctx, err)
	}
	var lost []error
	for _, head := range heads {
		files, err := unit.Around(ctx, in, st, head, o.time, func(url string) { notes.Printf("note: %s is not there any more", url) })
		if err == nil && len(files) > 0 {
			var found bool
			if found, err = o.extract(ctx, in, files, s, notes); found {
				return interrupted(ctx, err)
			}
		}
		if err != nil {
			lost = append(lost, err)
		}
	}
	return interrupted(ctx, errors.Join(append(lost, errors.New("no such transaction is in the captures"))...))
}

// heads are the last units of the taps in question.
func (o *packetsOptions) heads(ctx context.Context, st *store.Store) ([]string, error) {
	if o.tap == "" {
		return job.Heads(ctx, st)
	}
	id, err := job.Head(ctx, st, o.tap)
	if err == nil && id == "" {
		err = fmt.Errorf("no unit of a tap %s in %s", printable.Line(o.tap), st.URL())
	}
	return []string{id}, err
}

// extract writes the packets, if there are any.
func (o *packetsOptions) extract(ctx context.Context, in *store.Inputs, files []layout.File, s *cli.Streams, notes *cli.Problems) (found bool, err error) {
	var list []capture.Source
	var out outfile.Files
	for _, f := range files {
		list = append(list, unit.Source(ctx, in, f))
		out.Reads(f.Path())
	}
	r, err := capture.OpenSeries(list, capture.Options{})
	if err != nil {
		return false, err
	}
	defer r.Close()
	tmp, err := os.CreateTemp("", "rpcrdma-fleet-*.pcapng")
	if err != nil {
		return false, err
	}
	defer tmp.Close()
	defer os.Remove(tmp.Name())
	x := split.New(split.Options{
		Match: o.wanted, Application: "rpcrdma-fleet " + cli.Version(),
		Open: func(split.Name, bool) (io.WriteCloser, error) { return unclosed{tmp}, nil },
		Taps: func() []capture.Tap { return r.(capture.Tapper).Taps() },
	})
	var dec decode.Options
	x.Options(&dec)
	d := decode.New(dec, x.Transaction)
	stop := context.AfterFunc(ctx, d.Stop)
	err = d.Run(r)
	stop()
	n, closing := x.Close()
	if err = errors.Join(err, closing, ctx.Err()); err != nil || n.Chosen == 0 {
		return false, err
	}
	if !n.Whole() {
		notes.Printf("note: %s had left memory before it was known that they were wanted", units.Plural(n.Lost, "packet"))
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return true, err
	}
	to, err := cli.Create(&out, o.write, s.Out)
	if err != nil {
		return true, err
	}
	defer to.Discard()
	if err := o.copy(to, tmp); err != nil {
		return true, err
	}
	notes.Printf("%s, %s", units.Plural(n.Chosen, "transaction"), units.Plural(n.Kept, "packet"))
	return true, to.Commit()
}

// copy writes what was found, scrubbed if that was asked for.
func (o *packetsOptions) copy(to io.Writer, from io.Reader) error {
	if o.hides == nil {
		_, err := io.Copy(to, from)
		return err
	}
	r, err := capture.NewReader(from, "the packets that were found", capture.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	clean := scrub.NewReader(r, scrub.Options{Key: o.hides}, decode.Options{})
	w := capture.NewWriter(to, capture.WriterOptions{})
	var b capture.Batch
	for {
		err := clean.Read(&b)
		for i := range b.Packets {
			if err := w.Write(&b.Packets[i]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// unclosed is a file that is read after it was written.
type unclosed struct{ *os.File }

func (unclosed) Close() error { return nil }
