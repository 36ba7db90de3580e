package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const sessionsLong = `Show NFSv4.1 sessions across their connections: slots granted, targeted and in
use, the backward channel, trunking, and what each connection carried. Clients
of NFSv2, 3 and 4.0 are shown by address, with the connections that they spread
calls over (nconnect). Layouts and devices of pNFS are named, and I/O to data
servers stands with the file of the metadata server.

Of many sessions or clients, the text has their sum and the unusual ones. A
session is unusual if calls came after all slots had been in use, if operations
failed, if the server set a status flag, or, as a client, if a connection
carried twice its share.`

type sessionsOptions struct {
	inputOptions
	format  string
	verbose bool
}

func newSessionsCommand(s *cli.Streams) *cobra.Command {
	o := &sessionsOptions{}
	cmd := &cobra.Command{
		Use:   "sessions [flags] FILE...",
		Short: "Show NFSv4.1 sessions, trunking, nconnect and pNFS layouts",
		Long:  sessionsLong,
		Example: "  rpcrdma-dump sessions trace.pcap\n" +
			"  rpcrdma-dump sessions -v trace.pcap\n" +
			"  rpcrdma-dump sessions -T ndjson trace.pcap | jq 'select(.kind == \"session\")'",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text, json or ndjson")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show all sessions and clients where there are many, and the use of slots over time")
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json", "ndjson"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *sessionsOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if !slices.Contains([]string{"text", "json", "ndjson"}, o.format) {
		return cli.Usagef("-T is text, json or ndjson, not %q", o.format)
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	v := rpc.View{Names: &rpc.Names{Limit: o.memory.Names()}, Unwrap: j.keys.Contexts}
	r := session.New(j.keys.Peek())
	r.Limit(o.memory.Scale(session.DefaultMemory))
	opt := o.decoder()
	opt.Observe(r.Observer())
	opt.Transactions.Ended = r.Ended
	j.d = decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		if v.Undecoded() {
			j.notes.Message(&v)
		}
		v.Learn()
		r.Transaction(&v)
	})
	_, tty := cli.Terminal(s.Err)
	err = j.run(tty)
	rep := r.Report(j.in.bases())
	out := newOutput(s, false, false)
	var outErr error
	switch o.format {
	case "json":
		outErr = printable.Indented(out, rep)
	case "ndjson":
		outErr = printSessionLines(out, rep)
	default:
		outErr = results.Sessions(out, rep, o.verbose, !o.verbose)
	}
	if outErr == nil {
		outErr = out.close()
	}
	return j.finish(err, outErr)
}

// printSessionLines writes a line for each session, trunk, client, layout and device.
func printSessionLines(w io.Writer, rep *session.Report) error {
	var b []byte
	line := func(kind string, v any) error {
		b = printable.AppendValue(b[:0], struct {
			Schema string `json:"schema"`
			Kind   string `json:"kind"`
			Value  any    `json:"value"`
		}{session.LineSchema, kind, v})
		_, err := w.Write(b)
		return err
	}
	for i := range rep.Sessions {
		if err := line("session", &rep.Sessions[i]); err != nil {
			return err
		}
	}
	for i := range rep.Trunks {
		if err := line("trunk", &rep.Trunks[i]); err != nil {
			return err
		}
	}
	for i := range rep.Servers {
		if err := line("server", &rep.Servers[i]); err != nil {
			return err
		}
	}
	for i := range rep.Clients {
		if err := line("client", &rep.Clients[i]); err != nil {
			return err
		}
	}
	for i := range rep.Layouts {
		if err := line("layout", &rep.Layouts[i]); err != nil {
			return err
		}
	}
	for _, d := range rep.Devices {
		if err := line("device", d); err != nil {
			return err
		}
	}
	return nil
}
