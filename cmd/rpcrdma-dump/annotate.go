package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/annotate"
	"github.com/rpcrdma/toolkit/analyze/window"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// annotateOptions are the flags of the command annotate.
type annotateOptions struct {
	inputOptions
	write  string
	window size
	delay  time.Duration
}

const annotateLong = `Write a pcapng file with the same packets, in which each packet of a transaction
has a comment: the transaction, its XID, the role of the packet, and the phase
of the latency. Wireshark shows comments in the packet details and finds them
with filters such as

  frame.comment contains "xid 0x138a9383"
  frame.comment contains "seen again"

A packet that belongs to several transactions has a comment for each. Capture
points become interfaces; times keep their nanoseconds. Comments of the input
are dropped.

The capture is read once. Packets wait in memory, at most as much as --window
allows, until their transactions have ended. A packet that has to leave earlier
gets what is known by then; standard error says how many did.`

func newAnnotateCommand(s *cli.Streams) *cobra.Command {
	o := &annotateOptions{}
	cmd := &cobra.Command{
		Use:   "annotate [flags] -w OUT.pcapng FILE...",
		Short: "Write a capture whose packets name their transactions",
		Long:  annotateLong,
		Example: "  rpcrdma-dump annotate -w annotated.pcapng trace.pcap\n" +
			"  tcpdump -w - udp port 4791 | rpcrdma-dump annotate -w annotated.pcapng -",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.write, "write", "w", "", "write to this `file`; - is standard output")
	f.Var(&o.window, "window", "memory for packets that wait, for example 256M (default 32M)")
	cli.DurationVar(f, &o.delay, "delay", 0, "write each packet at the latest this `time` after it came, for a program that reads along: 2s")
	o.inputOptions.flags(f)
	return cmd
}

func (o *annotateOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if err := canHold(s, o.write); err != nil {
		return err
	}
	o.need(o.write)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	out, err := cli.Stream(j.files, o.write, s.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	w := capture.NewWriter(out, capture.WriterOptions{Taps: j.taps(), Application: "rpcrdma-dump " + cli.Version()})
	cli.GrantMemory(2 * int(o.window))
	a := annotate.New(w, o.windowBytes(o.window, window.DefaultBytes))
	a.LimitNames(o.memory.Names())
	a.Unwrap(j.keys.Contexts)
	a.Malformed(j.notes.Message)
	opt := o.decoder()
	a.Options(&opt)
	last := release(a, &opt, o.delay)
	j.d = decode.New(opt, func(tx *transaction.Transaction) {
		last.mu.Lock()
		defer last.mu.Unlock()
		a.Transaction(tx)
		if a.Err() != nil {
			j.stop()
		}
	})
	_, outTTY := cli.Terminal(s.Out)
	_, errTTY := cli.Terminal(s.Err)
	err = j.run(errTTY && (!outTTY || o.write != "-"))
	last.end()
	st, werr := a.Close()
	if werr != nil {
		packets, whole := w.Stored()
		if o.write != "-" {
			werr = fmt.Errorf("%s holds the first %s only: %w", o.write, units.Plural(packets, "packet"), werr)
		}
		werr = errors.Join(werr, out.Truncate(whole))
	} else {
		werr = out.Commit()
	}
	if werr == nil {
		j.notes.Printf("%d of %s annotated", st.Annotated, units.Plural(st.Packets, "packet"))
		if st.Open > 0 {
			j.notes.Printf("note: %s on packets that left the window before their transaction ended: see --window", units.Plural(st.Open, "comment"))
		}
		if st.Late > 0 {
			j.notes.Printf("note: %s left the window before the transaction was known: see --window", units.Plural(st.Late, "packet"))
		}
		if st.Dropped > 0 {
			j.notes.Printf("note: %s left out of packets that have too many", units.Plural(st.Dropped, "comment"))
		}
	}
	return j.finish(err, closed(werr))
}

// taps are the places of capture of the input.
func (j *job) taps() func() []capture.Tap {
	if t, ok := j.in.Reader.(capture.Tapper); ok {
		return t.Taps
	}
	return nil
}

// canHold returns why a capture cannot be written to a file.
func canHold(s *cli.Streams, name string) error {
	if name == "" {
		return cli.Usagef("name the file to write with -w; - is standard output")
	}
	if name == "-" {
		if _, tty := cli.Terminal(s.Out); tty {
			return cli.Usagef("a capture is not written to a terminal")
		}
	}
	return cli.Uncompressed(name)
}
