package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// policyShare is the part of the memory in which handles are remembered, from which policies of registration are guessed.
const policyShare = 16

const connectionsLong = `List the connections of a capture, two lines for each: the client with what it
sent, then the server. The client is the side that sends forward calls.

  SERVICE  the layer above, by connection management or port
  PEER     address, and queue pair or port
  SETUP    what the side said when the connection was made: REQ or REP (RoCE,
           InfiniBand), MPA (iWARP); - if that was not captured
  DEPTH    RDMA Reads that the side answers at once / starts at once
  INLINE   bytes that the side sends / receives in a Send, from its private
           data (RFC 8797); i if it supports remote invalidation
  MTU      path MTU in bytes; over iWARP the longest FPDU that came
  PACKETS, BYTES, SENDS, READS, WRITES: what the side sent; reads are requests
  AGAIN    retransmitted or duplicate packets; NAK: with RNR after the slash
  ECN      packets marked "congestion experienced"; CNP: the notifications
  GAPS     packets (RoCE) or bytes (TCP) missing from the capture
  CRC      packets with a wrong ICRC, or FPDUs with a wrong CRC32C

Below the table, a line for each connection shows when it was seen and how it
ended. With -v, and in JSON, each side has the header values of what it sent:
UDP source port, DSCP, ECN, VLAN, priority, TTL, MAC addresses, P_Key; several
if they vary. --trackers leaves them out. How the client seems to register
memory, and the rules by which it asks for credits and the server grants them,
are guesses from handles, segments and credit fields.

With --save-state, the list is saved. The command reads saved states in place of
captures and merges those of several taps: a connection that several of them saw
is listed once, as the tap nearest the responder saw it, and the line below the
table names that tap.`

// connectionsOptions are the flags of the command connections.
type connectionsOptions struct {
	inputOptions
	stateOption
	format  string
	verbose bool
}

func newConnectionsCommand(s *cli.Streams) *cobra.Command {
	o := &connectionsOptions{}
	cmd := &cobra.Command{
		Use:   "connections [flags] FILE...",
		Short: "List connections: their setup, traffic and end",
		Long:  connectionsLong,
		Example: `  rpcrdma-dump connections trace.pcap
  rpcrdma-dump connections -v trace.pcap
  rpcrdma-dump connections -T ndjson trace.pcap | jq .connection_key
  rpcrdma-dump connections --save-state tap7.state trace.pcap`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text, ndjson or json")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show everything that is known")
	o.stateOption.register(f)
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	o.trackersFlag(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "ndjson", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *connectionsOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.format != "text" && o.format != "ndjson" && o.format != "json" {
		return cli.Usagef("-T is text, ndjson or json, not %q", o.format)
	}
	if err := o.checkTrackers(); err != nil {
		return err
	}
	if saved, err := areStates(append(slices.Clone(o.read), args...)); err != nil {
		return err
	} else if saved {
		return o.states(cmd, s, args)
	}
	files, err := o.claim(s, args)
	if err != nil {
		return err
	}
	var made *cli.Output
	defer func() { made.Discard() }()
	if len(o.ifaces) == 0 {
		if made, err = o.create(files); err != nil {
			return err
		}
	}
	o.need(o.save)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	if len(o.ifaces) > 0 {
		if made, err = o.create(files); err != nil {
			return err
		}
	}
	opt := o.decoder()
	policies := connections.NewRecognizer(opt.Memory / policyShare)
	opt.Memory -= opt.Memory / policyShare
	list := connections.NewList(opt.Memory / 2)
	defer list.Close()
	opt.Transactions.OnCompletion = true // only the counts of connections matter
	var saved *connections.Recorder
	var headers connections.HeaderRecorder
	watch := decode.Observer{Closed: func(c *rdma.Connection) {
		x := connections.New(c)
		if c.MergedInto == nil {
			x.Headers, x.Policies = headers.Take(c), policies.Take(c)
			list.Add(x)
		} else {
			headers.Merge(c)
		}
		if saved != nil {
			saved.Add(x)
		}
	}}
	if o.trackers == 0 {
		watch.Packet = headers.Packet
	}
	opt.Observe(watch)
	ended := func(*transaction.Transaction) {}
	if o.save != "" {
		saved = &connections.Recorder{}
		ended = saved.Transaction
	}
	opt.Group = func(int) func(*transaction.Transaction) bool {
		return func(tx *transaction.Transaction) bool {
			ended(tx)
			return true
		}
	}
	j.d = decode.New(opt, func(tx *transaction.Transaction) {
		ended(tx)
		policies.Transaction(tx)
	})
	j.noteTrackers(o.trackers)
	_, errTTY := cli.Terminal(s.Err)
	err = j.run(errTTY)
	a := j.d.Account()
	err = j.finish(err, o.print(s, list, account.New(&a), j.notes))
	if o.save == "" {
		return err
	}
	return j.commitState(made, o.save, err, saved.Section(j.in.bases(), &a))
}

// print shows the list. What is said of several taps is said in notes.
func (o *connectionsOptions) print(s *cli.Streams, list *connections.List, a *account.Account, notes *cli.Problems) error {
	out := newOutput(s, false, false)
	w := printable.TextWriter(out) // saved words are whatever their author wrote
	var err error
	switch {
	case o.format != "text":
		err = connections.JSON(out, list, connections.About{Account: a}, o.format == "json")
	case o.verbose:
		err = list.Each(func(c *connections.Connection) { c.Detail(w) })
	default:
		err = connections.Table(w, list)
	}
	if list.Lost() > 0 {
		notes.Printf("%d connections are not listed", list.Lost())
	}
	if err = errors.Join(list.Err(), err); err != nil {
		err = fmt.Errorf("the list of connections is longer than memory holds, and a temporary file (see TMPDIR) fails: %w", err)
	}
	return errors.Join(err, out.close())
}

// states shows what was saved.
func (o *connectionsOptions) states(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if err := onlyWith(cmd, "read", "format", "verbose", "save-state", "limit-memory"); err != nil {
		return err
	}
	files, err := o.claim(s, args)
	if err != nil {
		return err
	}
	saved, err := o.create(files)
	if err != nil {
		return err
	}
	defer func() { saved.Discard() }()
	all, err := readStates(append(slices.Clone(o.read), args...), int64(o.memory.Scale(stateBytes)))
	if err != nil {
		return err
	}
	list := connections.NewList(o.memory.Scale(8 << 20))
	defer list.Close()
	res, err := connections.FromUnits(all, list)
	if err != nil {
		return err
	}
	notes := cli.NewProblems("rpcrdma-dump", s.Err)
	for _, n := range res.Notes {
		notes.Printf("note: %s", n)
	}
	if err := errors.Join(o.print(s, list, res.Account, notes), writeState(saved, all)); err != nil {
		return err
	}
	return damagedStates(s, all)
}
