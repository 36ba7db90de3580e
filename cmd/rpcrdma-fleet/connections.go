package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

const connectionsLong = `List the connections of all taps: those of rpcrdma-dump connections, over all
units of a job. A connection that several taps saw is listed once, as the tap
nearest the responder saw it, with the name of that tap.`

type connectionsOptions struct {
	mergedOptions
	verbose bool
}

func newConnectionsCommand(s *cli.Streams) *cobra.Command {
	o := &connectionsOptions{}
	cmd := &cobra.Command{
		Use:   "connections [flags] STORE",
		Short: "List connections: their setup, traffic and end, over all taps",
		Long:  connectionsLong + mergedLong,
		Example: `  rpcrdma-fleet connections s3://results
  rpcrdma-fleet connections -T ndjson results | jq .connection_key`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.show(cmd, s, args) },
	}
	f := o.register(cmd, "text", "ndjson", "json")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show everything that is known")
	return cmd
}

func (o *connectionsOptions) show(cmd *cobra.Command, s *cli.Streams, args []string) error {
	all := connections.NewMerger()
	return o.run(cmd, s, args, func(m *merged) error {
		list := connections.NewList(8 << 20)
		defer list.Close()
		res, err := all.Result(m.set, list)
		if err != nil {
			return err
		}
		switch {
		case o.format != "text":
			err = connections.JSON(m.out, list, connections.About{First: &m.set.Units, Account: res.Account}, o.format == "json")
		case o.verbose:
			err = list.Each(func(c *connections.Connection) { c.Detail(m.text) })
		default:
			err = connections.Table(m.text, list)
		}
		for _, n := range res.Notes {
			m.notes.Printf("note: %s", n)
		}
		if list.Lost() > 0 {
			m.notes.Printf("%d connections are not listed", list.Lost())
		}
		if err = errors.Join(list.Err(), err); err != nil {
			return fmt.Errorf("the list of connections is longer than memory holds, and a temporary file (see TMPDIR) fails: %w", err)
		}
		return nil
	}, all)
}
