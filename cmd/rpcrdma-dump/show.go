package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/ladder"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// showOptions are the flags of the command show.
type showOptions struct {
	inputOptions
	format     string
	time       timeFlag
	color      string
	verbose    bool
	ascii      bool
	width      int
	connection int
	frame      uint64
	packets    int
	index      string

	wanted []wantedXID
	remake bool // the index is to be made
}

const showLong = `Show transactions packet by packet: the client on the left, the server on the
right, one arrow for each packet, with the phases of the latency between them.
Below are the phases on a common scale, the transaction as the listing shows it,
and how many bytes each segment of its chunks offered and received.

An XID has the eight hexadecimal digits of the listing, 0x and hexadecimal
digits, or decimal digits. Eight decimal digits could be either: both are looked
for. Every other argument is a file, and so is an argument after an XID if a
file of that name exists.

Packets of one operation share an arrow and long runs of operations are
shortened, unless -v is given. R, Z, W and P name chunks as in the listing:
W0[3] is segment 3 of Write chunk 0. #7 is the seventh RDMA operation of the
transaction. AGAIN marks packets that were seen before.

With --index, a file next to a large capture remembers where each XID is: made
by the first command that names it, it lets later ones decode a part of the
capture only. They show the same. It is for one file that is not compressed. An
index that does not fit, because the capture has changed since, or because
somebody else has made it, is not used, and made again.

If several transactions have the same XID, all of them are shown; --connection
and --frame choose one.`

func newShowCommand(s *cli.Streams) *cobra.Command {
	o := &showOptions{}
	cmd := &cobra.Command{
		Use:   "show [flags] XID... FILE...",
		Short: "Show a transaction packet by packet",
		Long:  showLong,
		Example: "  rpcrdma-dump show 0x138a9383 trace.pcap\n" +
			"  rpcrdma-dump show -v 138a9383 148a9383 trace.pcap\n" +
			"  rpcrdma-dump show -T json 327848835 trace.pcap | jq '.packets[].frame'",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.verbose, "verbose", "v", false, "a line for each packet and each segment")
	cli.PositiveVar(f, &o.connection, "connection", "only on connection `n`, as numbered in the other listings")
	f.Uint64Var(&o.frame, "frame", 0, "only the transactions that packet `n` belongs to")
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or json (an object a line)")
	o.time.register(f)
	f.StringVar(&o.color, "color", "auto", "`when` to use colors: auto, always or never")
	f.BoolVar(&o.ascii, "ascii", false, "use ASCII only; this is the default without a UTF-8 locale")
	f.IntVar(&o.width, "width", 0, "`columns` of a line (default: those of the terminal, else 100)")
	f.IntVar(&o.packets, "limit-packets", 65536, "show at most `n` packets of a transaction")
	f.StringVar(&o.index, "index", "", "use this `file` as an index, or make it")
	o.inputOptions.flags(f)
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// wantedXID is an XID of the command line: one number, or two if it is ambiguous.
type wantedXID struct {
	word string
	xids []uint32
}

// parseXID reads an XID; nil if s is none.
func parseXID(s string) []uint32 {
	var xids []uint32
	if h, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		if n, err := strconv.ParseUint(h, 16, 32); err == nil {
			xids = append(xids, uint32(n))
		}
		return xids
	}
	if len(s) == 8 {
		if n, err := strconv.ParseUint(s, 16, 32); err == nil {
			xids = append(xids, uint32(n))
		}
	}
	if n, err := strconv.ParseUint(s, 10, 32); err == nil && s[0] != '+' {
		xids = append(xids, uint32(n))
	}
	return xids
}

// split separates the XIDs from the file arguments and returns the files.
func (o *showOptions) split(args []string) ([]string, error) {
	o.wanted = nil
	for len(args) > 0 {
		xids := parseXID(args[0])
		if xids == nil {
			break
		}
		if _, err := os.Stat(args[0]); err == nil && len(o.wanted) > 0 {
			break
		}
		o.wanted = append(o.wanted, wantedXID{word: args[0], xids: xids})
		args = args[1:]
	}
	if len(o.wanted) == 0 {
		if len(args) > 0 {
			return nil, cli.Usagef("%q is not an XID: use for example 138a9383, 0x138a9383 or 327848835", args[0])
		}
		return nil, cli.Usagef("name an XID and a capture file")
	}
	return args, nil
}

func (o *showOptions) wants(xid uint32) bool {
	for i := range o.wanted {
		if slices.Contains(o.wanted[i].xids, xid) {
			return true
		}
	}
	return false
}

func (o *showOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	files, err := o.split(args)
	if err != nil {
		return err
	}
	if o.format != "text" && o.format != "json" {
		return cli.Usagef("-T is text or json, not %q", o.format)
	}
	if o.packets < 1 {
		return cli.Usagef("--limit-packets is at least 1")
	}
	if err := checkWidth(o.width); err != nil {
		return err
	}
	if err := o.checkIndex(files); err != nil {
		return err
	}
	color, err := cli.Color(o.color, s.Out)
	if err != nil {
		return err
	}
	width := o.width
	if columns, ok := cli.Terminal(s.Out); width == 0 && ok {
		width = columns
	}
	j, err := start(cmd, s, &o.inputOptions, files)
	if err != nil {
		return err
	}
	out := newOutput(s, j.in.live, false)
	fresh := func() *showing {
		x := &showing{
			o: o, notes: j.notes, json: o.format == "json", found: make([]int, len(o.wanted)),
			draw: &ladder.Drawer{Width: width, Color: color, ASCII: o.ascii || !cli.UTF8(), Verbose: o.verbose},
			view: rpc.View{Names: &rpc.Names{Limit: o.memory.Names()}, Unwrap: j.keys.Contexts},
		}
		if o.time.count > 0 || o.time.word != "" {
			x.draw.Clock = &text.Clock{Format: o.time.format}
		}
		return x
	}
	x, err := o.show(j, fresh, out)
	err = j.finishShow(err, out.close())
	if err != nil && err != cli.ErrDamaged {
		return err
	}
	return o.missing(j, x, err)
}

// show shows the transactions, with an index if there is one that can be used.
func (o *showOptions) show(j *job, fresh func() *showing, out *output) (*showing, error) {
	remake := false
	if o.index != "" {
		x, err := o.indexed(j, fresh, out)
		if err != nil || x != nil {
			return x, err
		}
		remake = o.remake
	}
	x := fresh()
	opt, parts := o.showDecoder()
	var m *making
	j.d = decode.New(opt, func(tx *transaction.Transaction) {
		if j.stopped {
			return
		}
		if m != nil {
			m.Add(tx)
		}
		if x.transaction(tx) {
			if !out.end(x.append(out.begin())) {
				j.stop()
			}
		}
		x.view.Learn()
	})
	if remake {
		m = o.making(j, x, parts)
	}
	_, outTTY := cli.Terminal(j.s.Out)
	_, errTTY := cli.Terminal(j.s.Err)
	progress := errTTY && !outTTY
	if m == nil {
		return x, j.run(progress)
	}
	return x, m.run(j, progress)
}

// showDecoder are the options of the decoder, and what a state has besides it. An index is for all formats.
func (o *showOptions) showDecoder() (decode.Options, []decode.StatePart) {
	opt := o.decoder()
	opt.Concurrent = true
	opt.Transactions.Packets = o.packets
	opt.Transactions.TraceXID = o.wants
	if o.format == "text" && o.index == "" {
		return opt, nil
	}
	return opt, o.blame(&opt)
}

// showing shows the transactions that are wanted.
type showing struct {
	o      *showOptions
	notes  *cli.Problems
	json   bool
	view   rpc.View
	draw   *ladder.Drawer
	encode ladder.Encoder
	found  []int // transactions, by wanted XID
}

// transaction looks at a transaction and reports whether it is to be shown.
func (x *showing) transaction(tx *transaction.Transaction) bool {
	x.view.Set(tx)
	if !x.o.chooses(tx) {
		return false
	}
	for i := range x.o.wanted {
		if slices.Contains(x.o.wanted[i].xids, tx.XID) {
			x.found[i]++
		}
	}
	return true
}

// append appends the transaction, and notes what of it is malformed.
func (x *showing) append(b []byte) []byte {
	if x.view.Undecoded() {
		x.notes.Message(&x.view)
	}
	if x.json {
		return append(x.encode.Append(b, &x.view), '\n')
	}
	return x.draw.Append(b, &x.view)
}

// chooses reports whether a transaction is to be shown.
func (o *showOptions) chooses(tx *transaction.Transaction) bool {
	if !o.wants(tx.XID) || o.connection != 0 && tx.Connection.ID != o.connection {
		return false
	}
	if o.frame == 0 {
		return true
	}
	return slices.ContainsFunc(tx.Packets, func(p transaction.Packet) bool { return p.Ref.Number == o.frame })
}

// missing is the error that an XID was not found.
func (o *showOptions) missing(j *job, x *showing, err error) error {
	var words []string
	for i := range o.wanted {
		if x.found[i] == 0 {
			words = append(words, o.wanted[i].word)
		}
	}
	if len(words) == 0 {
		return err
	}
	s := "no transaction with XID " + strings.Join(words, ", ")
	if o.connection != 0 {
		s += fmt.Sprintf(" on connection %d", o.connection)
	}
	if o.frame != 0 {
		s += fmt.Sprintf(" that packet %d belongs to", o.frame)
	}
	if short := j.cutShort(); short != nil {
		return fmt.Errorf("%w; %s until there", short, s)
	}
	return fmt.Errorf("%s in %s", s, strings.Join(j.in.names, ", "))
}
