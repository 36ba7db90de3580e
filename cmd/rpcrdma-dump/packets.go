package main

import (
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// packetsOptions are the flags of the command packets.
type packetsOptions struct {
	inputOptions
	time       timeFlag
	format     string
	color      string
	count      uint64
	connection int
	all        bool
	hex        bool
	headers    bool
	numeric    bool
	resolve    bool
	lines      bool
}

func newPacketsCommand(s *cli.Streams) *cobra.Command {
	o := &packetsOptions{}
	cmd := &cobra.Command{
		Use:   "packets [flags] FILE...",
		Short: "List packets, with the headers of the fabric",
		Long:  strings.TrimSpace(text.PacketLegend),
		Example: "  rpcrdma-dump packets trace.pcap\n" +
			"  rpcrdma-dump packets --connection 1 -ttt trace.pcap\n" +
			"  rpcrdma-dump packets -T ndjson trace.pcap | jq 'select(.headers.ecn == \"ce\")'",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or ndjson, which has the values of --headers")
	cli.PositiveVar(f, &o.connection, "connection", "only packets of connection `n`, as numbered in the other listings")
	f.BoolVarP(&o.all, "all", "a", false, "also packets that have nothing to do with RPC or RDMA")
	f.Uint64VarP(&o.count, "count", "c", 0, "stop after printing `n` packets; 0 prints all")
	f.BoolVarP(&o.hex, "hex", "x", false, "also show the bytes of the packets")
	f.BoolVar(&o.headers, "headers", false, "also show UDP source port, DSCP, ECN, TTL, VLAN, priority, P_Key and MAC addresses")
	o.time.register(f)
	f.BoolVarP(&o.numeric, "numeric", "n", false, "do not look up names of hosts; this is the default")
	f.BoolVar(&o.resolve, "resolve", false, "look up names of hosts")
	f.StringVar(&o.color, "color", "auto", "`when` to use colors: auto, always or never")
	f.BoolVarP(&o.lines, "line-buffered", "l", false, "write each line at once")
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "ndjson"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	cli.Habits(cmd, map[string]string{
		"Y": "packets are chosen by --connection; 'rpcrdma-dump show XID' has those of a transaction, 'rpcrdma-dump split -Y EXPRESSION -w FILE' writes those of many",
		"w": "'rpcrdma-dump split' and 'rpcrdma-dump capture' write packets",
	})
	return cmd
}

// check refuses flags that exclude each other.
func (o *packetsOptions) check() error {
	switch json := o.format == "ndjson"; {
	case o.numeric && o.resolve:
		return cli.Usagef("-n and --resolve exclude each other")
	case !json && o.format != "text":
		return cli.Usagef("-T is text or ndjson, not %q", o.format)
	case json && o.hex:
		return cli.Usagef("-x needs text: -T ndjson has no bytes")
	}
	return nil
}

func (o *packetsOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	color, err := cli.Color(o.color, s.Out)
	json := o.format == "ndjson"
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	var name func(netip.Addr) string
	if o.resolve {
		name = cli.NewResolver(len(o.ifaces) > 0).Name
	}
	o.needs.Names = o.resolve
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	out := newOutput(s, j.in.live, o.lines)
	list := &text.PacketLister{Clock: text.Clock{Format: o.time.format}, Color: color && !json, Headers: o.headers && !json, Name: name}
	var e connections.PacketEncoder
	opt := o.decoder()
	left := o.count
	listed, others := false, uint64(0)
	packet := func(v *decode.PacketView) {
		if j.stopped {
			return
		}
		if !o.wants(v) {
			others++
			return
		}
		listed = true
		b := out.begin()
		if json {
			b = append(e.Append(b, v, list.Summary(v)), '\n')
		} else {
			b = list.Append(b, v)
		}
		if o.hex {
			b = text.Hex(b, v.Packet.Data, 4)
		}
		if !out.end(b) {
			j.stop()
		}
		if left > 0 {
			if left--; left == 0 {
				j.stop()
			}
		}
	}
	opt.Observe(decode.Observer{Packet: packet})
	j.d = decode.New(opt, func(*transaction.Transaction) {})
	_, outTTY := cli.Terminal(s.Out)
	_, errTTY := cli.Terminal(s.Err)
	err = j.run(errTTY && !outTTY)
	if o.connection != 0 && !listed && !j.stopped {
		j.notes.Printf("note: no packet of a connection %d: 'rpcrdma-dump connections' lists what there is", o.connection)
	} else if others > 0 && o.connection == 0 && !j.stopped {
		j.notes.Printf("note: %s without RDMA or RPC not listed: -a lists them", units.Plural(others, "packet"))
	}
	return j.finish(err, out.close())
}

// wants reports whether a packet is to be listed.
func (o *packetsOptions) wants(v *decode.PacketView) bool {
	if o.connection != 0 {
		return v.Connection != nil && v.Connection.Resolve().ID == o.connection
	}
	return o.all || v.Connection != nil || len(v.RoCE) > 0 || text.Setup(v)
}
