package main

import (
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/split"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/analyze/window"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/units"
)

// divideOptions are the flags of the command split.
type divideOptions struct {
	inputOptions
	write  string
	by     string
	filter string
	setup  bool
	rest   bool
	window size
	open   int
	files  int
}

const splitLong = `Write one capture as several pcapng files: by client, server, connection, or
interval of time, or only the packets of chosen transactions.

  --by client      a file for each client: the end that sends forward calls.
                   Equal addresses in different tunnels are different hosts:
                   the network is a part of the second one's name
  --by server      a file for each server, likewise
  --by connection  a file for each connection, as numbered in the listings
  --by time=10s    a file for each interval, counted from the first packet; a
                   transaction belongs with all its packets to the interval in
                   which it begins
  -Y EXPR          only packets of transactions for which the expression holds;
                   alone or with --by

The pattern of -w names the files. These placeholders are replaced:

  {n}              0001, 0002, … in the order in which files are started
  {client} {server} {connection} {time}
                   what --by divides by; {time} is the start of the interval
                   in UTC

Each file can be decoded alone: connections that were set up earlier get the
packets of their setup, too (--setup=false leaves them out). A packet that
belongs to several transactions goes with each of them. Over TCP, the segments
of chosen transactions may therefore carry parts of others, which then look
incomplete.

The capture is read once. Packets wait in memory, at most as much as --window
allows, until it is known what they belong to. If a packet could not be put
where it belongs, standard error says so and the exit status is 1.`

func newSplitCommand(s *cli.Streams) *cobra.Command {
	o := &divideOptions{}
	cmd := &cobra.Command{
		Use:   "split [flags] -w PATTERN FILE...",
		Short: "Split a capture, or extract transactions from it",
		Long:  splitLong,
		Example: "  rpcrdma-dump split --by client -w 'out-{client}.pcapng' trace.pcap\n" +
			"  rpcrdma-dump split --by time=1m -w 'out-{n}.pcapng' trace.pcap\n" +
			"  rpcrdma-dump split -Y 'latency > 100ms' -w slow.pcapng trace.pcap",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.write, "write", "w", "", "`pattern` of the names of files, for example out-{client}-{n}.pcapng; with -Y alone a name, or - for standard output")
	f.StringVar(&o.by, "by", "", "`what` to split by: client, server, connection, or time=INTERVAL")
	f.StringVarP(&o.filter, "filter", "Y", "", "only packets of transactions for which the display filter `expression` holds")
	f.BoolVar(&o.setup, "setup", true, "add the setup of connections, so that each file can be decoded alone")
	f.BoolVar(&o.rest, "rest", false, "also write packets that belong to no connection, to a separate file")
	f.Var(&o.window, "window", "memory for packets that wait, for example 256M (default 32M)")
	f.IntVar(&o.open, "limit-open", 64, "keep at most `n` files open")
	f.IntVar(&o.files, "limit-files", 4096, "write at most `n` files")
	o.inputOptions.flags(f)
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"client", "server", "connection", "time="}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// ways are the values of --by, and the part of a pattern that distinguishes their files.
var ways = map[string]struct {
	by    split.By
	field string
}{
	"":           {split.One, ""},
	"client":     {split.Client, "{client}"},
	"server":     {split.Server, "{server}"},
	"connection": {split.Connection, "{connection}"},
	"time":       {split.Time, "{time}"},
}

// options turns the flags into those of the library.
func (o *divideOptions) options() (split.Options, error) {
	cli.GrantMemory(2 * int(o.window))
	opt := split.Options{NoSetup: !o.setup, Rest: o.rest, Window: o.windowBytes(o.window, window.DefaultBytes), OpenFiles: o.open, Files: o.files}
	if o.write == "" {
		return opt, cli.Usagef("name the files to write with -w")
	}
	if err := cli.Uncompressed(o.write); err != nil {
		return opt, err
	}
	if o.by == "" && o.filter == "" {
		return opt, cli.Usagef("say what to split by: --by, -Y, or both")
	}
	if o.open < 1 || o.files < 1 {
		return opt, cli.Usagef("--limit-open and --limit-files are at least 1")
	}
	name, interval, timed := strings.Cut(o.by, "=")
	way, ok := ways[name]
	if !ok || timed != (name == "time") {
		return opt, cli.Usagef("--by is client, server, connection, or time=INTERVAL, not %q", o.by)
	}
	opt.By = way.by
	if timed {
		d, err := cli.ParseDuration(interval)
		if err != nil || d < time.Millisecond {
			return opt, cli.Usagef("--by time=%s: not an interval of at least 1ms, such as 10, 500ms or 5m", interval)
		}
		opt.Interval = d
	}
	if way.field != "" && !strings.Contains(o.write, "{n}") && !strings.Contains(o.write, way.field) {
		return opt, cli.Usagef("with --by %s the pattern of -w needs %s or {n}", o.by, way.field)
	}
	if rest := patternFields.Replace(o.write); strings.ContainsAny(rest, "{}") {
		return opt, cli.Usagef("-w %s: not one of {n}, {client}, {server}, {connection}, {time}", o.write)
	}
	return opt, nil
}

var patternFields = strings.NewReplacer("{n}", "", "{client}", "", "{server}", "", "{connection}", "", "{time}", "")

func (o *divideOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	opt, err := o.options()
	if err != nil {
		return err
	}
	match, err := cli.Filter(o.filter)
	if err != nil {
		return err
	}
	if match != nil {
		opt.Match = match.Match
	}
	if o.write == "-" {
		if _, tty := cli.Terminal(s.Out); tty {
			return cli.Usagef("a capture is not written to a terminal")
		}
	}
	if o.write != "-" {
		o.need(filepath.Join(patternDir(o.write, "{"), "part")) // or whatever they are called
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	names := &splitNames{pattern: o.write, by: opt.By, out: s.Out, files: j.files, used: make(map[int]*outfile.File), taken: make(map[string]bool)}
	opt.Open = names.open
	opt.Taps = j.taps()
	opt.Application = "rpcrdma-dump " + cli.Version()
	x := split.New(opt)
	x.Unwrap(j.keys.Contexts)
	o.memory.Reserve(8 << 20) // what packets belong to, files being written
	x.LimitNames(o.memory.Names())
	dec := o.decoder()
	x.Options(&dec)
	if match.Blame() {
		o.blame(&dec)
	}
	j.d = decode.New(dec, func(tx *transaction.Transaction) {
		x.Transaction(tx)
		if x.Err() != nil {
			j.stop()
		}
	})
	_, outTTY := cli.Terminal(s.Out)
	_, errTTY := cli.Terminal(s.Err)
	err = j.run(errTTY && (!outTTY || o.write != "-"))
	st, werr := x.Close()
	if werr == nil {
		o.notes(j, &st)
		names.notes(j.notes)
	} else {
		j.notes.Printf("not all could be written: %s reached %s", units.Plural(st.Stored, "packet"), units.Plural(st.Files, "file"))
	}
	err = j.finish(err, closed(werr))
	if (err == nil || err == cli.ErrDamaged) && !st.Whole() {
		return errNotWhole
	}
	return err
}

// errNotWhole means that part of the input is not where it belongs.
var errNotWhole = fmt.Errorf("not all could be put where it belongs")

// notes says what became of the packets.
func (o *divideOptions) notes(j *job, st *split.Stats) {
	n := j.notes
	n.Printf("%d of %s written to %s", st.Kept, units.Plural(st.Packets, "packet"), units.Plural(st.Files, "file"))
	if o.filter != "" {
		n.Printf("%s chosen", units.Plural(st.Chosen, "transaction"))
	}
	if st.Setup > 0 {
		n.Printf("%s of connection setup added", units.Plural(st.Setup, "packet"))
	}
	if st.NoConnection > 0 {
		n.Printf("note: %s of no known connection left out (--rest keeps them)", units.Plural(st.NoConnection, "packet"))
	}
	if st.SetupLost > 0 {
		n.Printf("note: the setup of %s was forgotten for lack of memory", units.Plural(st.SetupLost, "connection"))
	}
	if st.Lost > 0 {
		n.Printf("%s of %s had left the window before it was known that they were wanted: see --window",
			units.Plural(st.Lost, "packet"), units.Plural(st.Torn, "chosen transaction"))
	}
	if st.Misplaced > 0 {
		n.Printf("%s went to the interval of their own time, as they left the window too early: see --window", units.Plural(st.Misplaced, "packet"))
	}
	if st.Overflow > 0 {
		n.Printf("%s left out: they need more files than --limit-files allows", units.Plural(st.Overflow, "packet"))
	}
	if st.Divided > 0 {
		n.Printf("%s divided between two files: where they belong was known too late", units.Plural(st.Divided, "connection"))
	}
}

// splitNames opens the files.
type splitNames struct {
	pattern string
	by      split.By
	out     io.Writer
	files   *outfile.Files
	used    map[int]*outfile.File // by number
	taken   map[string]bool

	hosts map[netip.Addr]*rdma.Tunnel // by what --by divides by: the network that its first file is of
	again []string                    // the same address in another network: what is said of it
	more  uint64
}

// namedHosts is how many hosts with the address of another one are named.
const namedHosts = 8

// safeName replaces characters that are unsuitable for file names.
var safeName = strings.NewReplacer(":", "-", "/", "-", " ", "-", "%", "-")

func nameOf(a netip.Addr) string {
	if !a.IsValid() {
		return "any"
	}
	return safeName.Replace(link.AddrString(a))
}

// name is the pattern filled in. network is added to the address.
func (s *splitNames) name(n split.Name, network string) string {
	client, server, connection, at := nameOf(n.Client)+network, nameOf(n.Server)+network, "any", "any"
	if n.Connection != 0 {
		connection = fmt.Sprint(n.Connection)
	}
	if n.Start != 0 {
		at = time.Unix(0, n.Start).UTC().Format("20060102T150405.000")
	}
	if n.Rest {
		client, server, connection = "rest", "rest", "rest"
	}
	return strings.NewReplacer("{n}", fmt.Sprintf("%04d", n.N), "{client}", client, "{server}", server,
		"{connection}", connection, "{time}", at).Replace(s.pattern)
}

// free returns a name that no other file has. If a host in another network has the same address, it adds the network to the name, and, if
// that is not enough, as for tunnels in a mirror, the number of the file.
func (s *splitNames) free(n split.Name) (string, error) {
	name := s.name(n, "")
	if !s.taken[name] {
		return name, nil
	}
	if _, other := s.hosts[s.host(n)]; other {
		for _, add := range [...]string{text.NetworkName(n.Tunnel), strconv.Itoa(n.N)} {
			if name := s.name(n, "-"+safeName.Replace(add)); !s.taken[name] {
				return name, nil
			}
		}
	}
	return "", cli.Usagef("two files would have the name %s: use {n} in the pattern", name)
}

// host is the address that --by divides by.
func (s *splitNames) host(n split.Name) netip.Addr {
	switch s.by {
	case split.Client:
		return n.Client
	case split.Server:
		return n.Server
	}
	return netip.Addr{}
}

func (s *splitNames) open(n split.Name, again bool) (io.WriteCloser, error) {
	if s.pattern == "-" {
		return keepOpen{s.out}, nil
	}
	if again {
		f := s.used[n.N]
		return f, f.Reopen()
	}
	name, err := s.free(n)
	if err != nil {
		return nil, err
	}
	f, err := s.files.Stream(name)
	if err != nil {
		return nil, err
	}
	s.taken[name], s.used[n.N] = true, f
	s.meet(n, name)
	return f, nil
}

// meet records that a host has a file.
func (s *splitNames) meet(n split.Name, name string) {
	addr := s.host(n)
	if !addr.IsValid() {
		return
	}
	first, ok := s.hosts[addr]
	switch {
	case !ok:
		if s.hosts == nil {
			s.hosts = make(map[netip.Addr]*rdma.Tunnel)
		}
		s.hosts[addr] = n.Tunnel
	case len(s.again) == namedHosts:
		s.more++
	default:
		s.again = append(s.again, fmt.Sprintf("%s in %s is another host than in %s: its file is %s", link.AddrString(addr), text.NetworkName(n.Tunnel), text.NetworkName(first), name))
	}
}

// notes names the hosts whose addresses are equal.
func (s *splitNames) notes(n *cli.Problems) {
	for _, line := range s.again {
		n.Printf("note: %s", line)
	}
	if s.more > 0 {
		n.Printf("note: %s with the address of another one", units.Plural(s.more, "more host"))
	}
}

// keepOpen is a stream that is not closed.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
