package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/scrub"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

// scrubOptions are the flags of the command scrub.
type scrubOptions struct {
	inputOptions
	write   string
	key     string
	keep    []string
	users   bool
	drop    bool
	names   string
	reverse []string
	window  size
}

const scrubLong = `Write a capture that may leave the house: a pcapng file with the same packets,
of the same lengths and times, that decodes to the same transactions, without
what it tells of people and files.

Replaced, always by the same for the same key: names of files, paths, targets of
symbolic links, file handles, names of users and groups, names of hosts and
domains, what clients and servers call themselves, ids of clients, sessions and
states, verifiers, IP and MAC addresses (those with a common prefix keep one of
the same length).

Zero: file data, wherever it travels; tokens, tickets and everything that
Kerberos protects; extended attributes, security labels; private data of other
protocols; and all that the decoder does not understand. Comments, names and
descriptions of interfaces, and other blocks of the input are left out.

As they were: headers of the fabric with their keys and sequence numbers, XIDs,
procedures, statuses, offsets, sizes, times, numbers of users, groups and files.
Checksums are as right as before, or as wrong.

The capture is read once. Packets wait in memory, at most as much as --window
allows, until it is known what they carry. What is not known by then stays zero
beyond its headers; standard error says how much that is.`

func newScrubCommand(s *cli.Streams) *cobra.Command {
	o := &scrubOptions{}
	cmd := &cobra.Command{
		Use:   "scrub [flags] -w OUT.pcapng FILE...\n  rpcrdma-dump scrub --map MAP --reverse-name NAME...",
		Short: "Write a capture without names, addresses and data",
		Long:  scrubLong,
		Example: "  rpcrdma-dump scrub -w support.pcapng trace.pcap\n" +
			"  rpcrdma-dump scrub --key site.key -w tap1.scrubbed.pcapng tap1.pcap",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.write, "write", "w", "", "write to this `file`; - is standard output")
	f.StringVar(&o.key, "key", "", "take names from what is in this `file`, at least 16 bytes that nobody can guess: the same key gives the same names (default: a new key each time)")
	f.StringSliceVar(&o.keep, "keep", nil, "leave these as they are, a list of: `names` (and handles), extensions (of names), addresses, data (of files)")
	f.BoolVar(&o.users, "users", false, "replace numbers of users and groups, too, but for root and nobody")
	f.BoolVar(&o.drop, "drop-data", false, "cut packets of RDMA READ and RDMA WRITE to their headers (RoCE, InfiniBand)")
	f.StringVar(&o.names, "map", "", "write what takes the place of what to this `file`, which only its owner may read: keep it")
	f.StringArrayVar(&o.reverse, "reverse-name", nil, "look this `name` up in the file of --map, and print what it stands for; no capture is read")
	f.Var(&o.window, "window", "memory for packets that wait and their copies, for example 256M (default 12M)")
	o.fileFlags(f)
	return cmd
}

// secret is the key, a new one if none is named.
func (o *scrubOptions) secret() ([]byte, error) {
	if o.key != "" {
		return scrubKey("--key", o.key)
	}
	key := make([]byte, 32)
	_, err := rand.Read(key)
	return key, err
}

// scrubKey reads the key that a flag names.
func scrubKey(flag, name string) ([]byte, error) {
	key, _, err := readSmall(name, maxResumeKey)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(key) < minResumeKey {
		return nil, cli.Usagef("%s: %s has %d bytes: a key has at least %d", flag, name, len(key), minResumeKey)
	}
	return key, nil
}

// scrubFlag is for commands whose output can be made of what scrub leaves of a capture.
func (o *inputOptions) scrubFlag(f *pflag.FlagSet) {
	f.StringVar(&o.scrub, "scrub", "", "replace names, addresses and data as rpcrdma-dump scrub does with the key in this `file`; not with -i and --follow")
}

// scrubbed has what is read scrubbed, if the flag says so.
func (j *job) scrubbed(o *inputOptions) error {
	switch {
	case o.scrub == "":
		return nil
	case len(o.ifaces) > 0 || o.follow:
		return cli.Usagef("--scrub is for files: packets wait until it is known what they carry")
	}
	key, err := scrubKey("--scrub", o.scrub)
	if err != nil {
		return err
	}
	opt := scrub.Options{Key: key, Window: o.windowBytes(0, scrub.DefaultWindow)}
	cli.GrantMemory(2 * opt.Window)
	j.in.scrubbed = scrub.NewReader(j.in.Reader, opt, o.decoder())
	return nil
}

func (o *scrubOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if len(o.reverse) > 0 {
		return o.lookUp(s, args)
	}
	if err := canHold(s, o.write); err != nil {
		return err
	}
	opt, err := o.options()
	if err != nil {
		return err
	}
	cli.GrantMemory(2 * int(o.window))
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	if o.key != "" {
		j.files.Reads(o.key)
	}
	out, err := cli.Create(j.files, o.write, s.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	names, err := newNameMap(j.files, o.names, s.Out)
	if err != nil {
		return err
	}
	defer names.discard()
	w := capture.NewWriter(out, capture.WriterOptions{Taps: bareTaps(j.taps())})
	opt.Write, opt.Learn = w.Write, names.learn()
	if j.keys.Keytab() {
		opt.Unwrap = j.keys.Contexts
	}
	x := scrub.New(opt)
	err = j.scrub(x, o.decoder())
	werr := x.Err()
	if werr == nil {
		werr = w.Flush()
	}
	if werr == nil {
		werr = j.whole(o.write)
	}
	if werr == nil {
		werr = names.commit()
	}
	if werr == nil {
		werr = out.Commit()
	}
	if werr == nil {
		scrubNotes(j.notes, x.Stats())
	}
	return j.finish(err, closed(werr))
}

// options returns what the flags say, for the Scrubber.
func (o *scrubOptions) options() (opt scrub.Options, err error) {
	opt = scrub.Options{Users: o.users, DropData: o.drop, Window: o.windowBytes(o.window, scrub.DefaultWindow)}
	for _, k := range o.keep {
		switch k {
		case "names":
			opt.KeepNames = true
		case "extensions":
			opt.KeepExtensions = true
		case "addresses":
			opt.KeepAddresses = true
		case "data":
			opt.KeepData = true
		default:
			return opt, cli.Usagef("--keep: names, extensions, addresses or data, not %q", k)
		}
	}
	opt.Key, err = o.secret()
	return opt, err
}

// nameMap is the file of --map; nil if there is none.
type nameMap struct {
	out  *cli.Output
	w    *bufio.Writer
	line []byte
}

func newNameMap(files *outfile.Files, name string, stdout io.Writer) (*nameMap, error) {
	if name == "" {
		return nil, nil
	}
	out, err := cli.Create(files, name, stdout)
	if err != nil {
		return nil, err
	}
	if err := out.Hide(); err != nil {
		out.Discard()
		return nil, err
	}
	return &nameMap{out: out, w: bufio.NewWriter(out)}, nil
}

// lookUp prints what the names of --reverse-name stand for, one a line: its kind, and what it was.
func (o *scrubOptions) lookUp(s *cli.Streams, args []string) error {
	if o.names == "" || o.write != "" || len(args)+len(o.read) > 0 {
		return cli.Usagef("--reverse-name looks into the file of --map, and needs nothing else")
	}
	f, err := os.Open(o.names)
	if err != nil {
		return err
	}
	defer f.Close()
	var m reverseMap
	if err := m.read(f, o.reverse); err != nil {
		return fmt.Errorf("%s: %w", o.names, err)
	}
	w := bufio.NewWriter(s.Out)
	for _, name := range o.reverse {
		if !m.print(w, name) {
			err = fmt.Errorf("%s takes the place of nothing in %s", printable.Line(name), o.names)
		}
	}
	return errors.Join(w.Flush(), err)
}

// reverseMap has the lines of a map that are asked for, by what takes the place of something.
type reverseMap map[string][]string

// longestMapLine bounds the lines of a map. Names have at most a mebibyte, of which each byte may be escaped.
const longestMapLine = 16 << 20

// read finds the lines for names, and for the parts of paths.
func (m *reverseMap) read(r io.Reader, names []string) error {
	*m = make(reverseMap)
	for _, name := range names {
		for _, part := range append(strings.Split(name, "/"), name) {
			(*m)[part] = nil
		}
	}
	in := bufio.NewScanner(r)
	in.Buffer(nil, longestMapLine)
	for in.Scan() {
		kind, rest, _ := strings.Cut(in.Text(), "\t")
		from, to, ok := strings.Cut(rest, "\t")
		if !ok {
			return errors.New("not a file of --map: a line has three columns")
		}
		if was, asked := (*m)[to]; asked && to != "" && !slices.Contains(was, kind+"\t"+from) {
			(*m)[to] = append(was, kind+"\t"+from)
		}
	}
	return in.Err()
}

// print writes what a name stands for, of a path part by part if it has no line of its own. It returns false if nothing is known.
func (m reverseMap) print(w io.Writer, name string) bool {
	if len(m[name]) > 0 {
		for _, line := range m[name] {
			kind, was, _ := strings.Cut(line, "\t")
			fmt.Fprintf(w, "%s\t%s\n", printable.Line(kind), printable.Line(was))
		}
		return true
	}
	parts := strings.Split(name, "/")
	if len(parts) == 1 {
		return false
	}
	found := false
	for i, part := range parts {
		for _, line := range m[part] {
			if kind, was, _ := strings.Cut(line, "\t"); kind == "name" {
				parts[i], found = was, true
			}
		}
	}
	if found {
		fmt.Fprintf(w, "path\t%s\n", printable.Line(strings.Join(parts, "/")))
	}
	return found
}

// learn writes a line: kind, what was there, what is there now.
func (m *nameMap) learn() func(kind, from, to string) {
	if m == nil {
		return nil
	}
	return func(kind, from, to string) {
		m.line = append(append(m.line[:0], kind...), '\t')
		m.line = append(printable.Backslash(m.line, []byte(from)), '\t')
		m.line = append(printable.Backslash(m.line, []byte(to)), '\n')
		_, _ = m.w.Write(m.line) // commit tells of errors
	}
}

func (m *nameMap) commit() error {
	if m == nil {
		return nil
	}
	if err := m.w.Flush(); err != nil {
		return err
	}
	return m.out.Commit()
}

func (m *nameMap) discard() {
	if m != nil {
		m.out.Discard()
	}
}

// scrub copies the whole input.
func (j *job) scrub(x *scrub.Scrubber, opt decode.Options) (err error) {
	defer j.interrupts()()
	j.d, err = x.Run(j.in, opt)
	return err
}

// bareTaps are the places of capture, without what they are called.
func bareTaps(of func() []capture.Tap) func() []capture.Tap {
	if of == nil {
		return nil
	}
	var bare []capture.Tap
	return func() []capture.Tap {
		for _, t := range of()[len(bare):] { // taps are only appended
			tap := capture.Tap{Link: t.Link, SnapLen: t.SnapLen}
			if t.Link == capture.LinkTrace {
				tap.Description = capture.TraceSchema
			}
			bare = append(bare, tap)
		}
		return bare
	}
}

// scrubNotes says what became of the packets, and what of them nobody will be able to read.
func scrubNotes(n *cli.Problems, st scrub.Stats) {
	n.Printf("%s, %s without names and data", units.Plural(st.Packets, "packet"), units.Plural(st.Messages, "message"))
	scrubZeros(n, st)
}

// scrubZeros says of what is not understood how much is left. The rest is zero.
func scrubZeros(n *cli.Problems, st scrub.Stats) {
	for _, x := range []struct {
		count uint64
		what  string
		why   string
	}{
		{st.Secured, "message", "only the RPC header is left: Kerberos protects the rest, or sets up its context"},
		{st.Unknown, "message", "only the RPC header is left: the program is unknown, or the call is missing"},
		{st.Malformed, "message", "only the RPC header is left: the rest is malformed"},
		{st.Other, "message", "nothing is left: neither call nor reply"},
		{st.Late, "message part", "nothing is left: the window had passed when it was understood (see --window)"},
		{st.Fragments, "IP fragment", "only the header is left"},
		{st.Foreign, "packet", "only the headers of link and network are left: neither TCP, UDP nor InfiniBand, nor a known event of a kernel"},
	} {
		if x.count > 0 {
			n.Printf("note: of %s %s", units.Plural(x.count, x.what), x.why)
		}
	}
}
