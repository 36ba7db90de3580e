package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

const rootLong = `rpcrdma-dump shows the RPC transactions in packet captures of RoCEv2, RoCEv1,
InfiniBand and iWARP, above all NFS over RDMA, and in the TCP and UDP traffic
next to them. Each transaction is one line: the call, what its chunks moved, and
the reply. Input is pcap or pcapng, also compressed with gzip or zstd. Several
files are merged by time; "-" is standard input.

Transactions are sorted by the first packet of the call, as far as memory allows
to wait for those without a reply; --sort completion prints them as they end.`

const rootExit = `Exit status:
  0  success
  1  failure: a file cannot be read, output cannot be written
  2  usage
  3  finished, but the input is truncated or malformed; everything that could
     be decoded has been printed, and standard error names the places. Packets
     cut to the snapshot length of the capture are not malformed.`

const rootExamples = `  rpcrdma-dump trace.pcap
  rpcrdma-dump -v -c 10 trace.pcapng.zst
  rpcrdma-dump -Y 'latency > 1ms' -T ndjson trace.pcap | jq .latency_ns.total
  rpcrdma-dump -T fields -e time -e xid -e operation -e status trace.pcap
  rpcrdma-dump report trace.pcap
  rpcrdma-dump -T ndjson --resume-state nfs.state cap-00017.pcap
  rpcrdma-dump -i eth0 -Y 'latency > 100ms'
  tcpdump -i eth0 -w - udp port 4791 | rpcrdma-dump -`

func newRootCommand(s *cli.Streams) *cobra.Command {
	o := &dumpOptions{}
	cmd := cli.NewRoot(&cobra.Command{
		Use:     "rpcrdma-dump [flags] FILE...",
		Short:   "Show the RPC transactions in captures of RDMA networks",
		Long:    rootLong + "\n\n" + strings.TrimSpace(text.Legend) + "\n\n" + rootExit,
		Example: rootExamples,
		Args:    cli.CommandOrFile,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}, s)
	o.flags(cmd)
	cmd.PersistentFlags().Bool("no-pager", false, "write to the terminal at once, without $PAGER or less")
	config := ""
	cmd.PersistentFlags().StringVar(&config, "config", "", "read defaults and filters from this `file`, or none (default: rpcrdma/dump.toml in $XDG_CONFIG_HOME or ~/.config)")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := configure(cmd, config); err != nil {
			return err
		}
		cli.Pager(cmd, s)
		return fitLines(cmd, s)
	}
	cli.Habits(cmd, map[string]string{
		"f":    "filters go with -Y, --filter; with -i, --capture-filter says what is captured",
		"s":    "with 'rpcrdma-dump capture', -s is how much is kept of each packet",
		"w":    "'rpcrdma-dump split -Y EXPRESSION -w FILE' writes packets of transactions, 'rpcrdma-dump capture -w FILE' what it captures",
		"json": "-T ndjson writes one object for each transaction, -T json a list of them",
		"z":    "statistics are commands, such as 'rpcrdma-dump report', 'connections' and 'operations'",
	})
	cmd.AddCommand(
		newPacketsCommand(s),
		newConnectionsCommand(s),
		newOperationsCommand(s),
		newWhyCommand(s),
		newSessionsCommand(s),
		newShowCommand(s),
		newReportCommand(s),
		newDiffCommand(s),
		newCheckCommand(s),
		newKernelCommand(s),
		newExportCommand(s),
		newAnnotateCommand(s),
		newSplitCommand(s),
		newScrubCommand(s),
		newCaptureCommand(s),
		newExtcapCommand(s),
		cli.NewManCommand("rpcrdma-dump", s.Err),
	)
	takeNumeric(cmd)
	takeWidth(cmd)
	return cmd
}

// takeWidth gives --width to the commands that print text. Those that lay out their lines have it already.
func takeWidth(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		switch c.Name() {
		case "packets", "connections", "operations", "why", "sessions", "diff", "check", "kernel":
			c.Flags().Int("width", 0, "`columns` of a line of text (default: those of the terminal, else unlimited)")
		}
	}
}

// fitLines wraps lines of text at --width, by default at the width of the terminal.
func fitLines(cmd *cobra.Command, s *cli.Streams) error {
	f := cmd.Flags()
	if f.Lookup("width") == nil { // a command without text
		return nil
	}
	width, err := f.GetInt("width")
	if err != nil {
		return err
	}
	if width != 0 && cmd.HasParent() {
		if err := checkWidth(width); err != nil {
			return err
		}
	}
	if format := f.Lookup("format"); format != nil && format.Value.String() != "text" || f.Changed("html") {
		return nil
	}
	if width == 0 {
		width, _ = cli.Terminal(s.Out)
	}
	s.Columns = max(width, 0)
	return nil
}

// takeNumeric has all commands that read captures accept -n, as people type it out of habit: names of hosts are not looked up anyway.
func takeNumeric(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if f := c.Flags(); f.Lookup("read") != nil && f.Lookup("numeric") == nil && f.ShorthandLookup("n") == nil {
			f.BoolP("numeric", "n", true, "do not look up names of hosts; this is the default")
			_ = f.MarkHidden("numeric")
		}
		takeNumeric(c)
	}
}
