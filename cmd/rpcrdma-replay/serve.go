package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/replay/fault"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/playback"
	"github.com/rpcrdma/toolkit/replay/nfsserver/stable"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/dir"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs/auto"
)

// serveFlags are the flags of the command serve.
type serveFlags struct {
	fabricFlags
	kerberos      serverFlags
	providers     []string
	listen        string
	rdmaPort      uint16
	tcpPort       uint16
	dir           string
	writable      bool
	state         string
	memory        string
	playback      string
	limit         cli.Memory
	scale         float64
	export        string
	squash        string
	lease         time.Duration
	workers       int
	buffers       string
	patience      time.Duration
	capture       string
	faults        []string
	parent        bool
	noDelegations bool
	portmapPort   uint16
}

const serveLong = `Serve NFS versions 3 (with NFSACL, NLM and NSM), 4.0, 4.1 and 4.2, and MOUNT,
without a server in the kernel: from memory, from a directory (--dir, read-only
unless --writable is given), or with the replies of a capture (--playback). The
command prints how a Linux client mounts it, and runs until Ctrl-C; it then says
what it has done, and the exit status is 0.

RDMA needs no adapter and no privilege: the providers rocev2 and iwarp are
software, and clients with Soft-RoCE, Soft-iWARP or an adapter can reach them.
The kernel's Soft-RoCE occupies UDP port 4791 on all addresses of its machine,
so rocev2 cannot be used next to it.

A playback answers each call with the reply of the captured server to the same
call, after the time that the captured server took (multiplied by --scale).`

func newServeCommand(s *cli.Streams) *cobra.Command {
	o := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve NFS from memory, a directory or a capture",
		Long:  serveLong + "\n\n" + faultsLong,
		Example: "  rpcrdma-replay serve --listen 192.0.2.1\n" +
			"  rpcrdma-replay serve --listen 192.0.2.1 --dir /srv/data --provider iwarp,tcp\n" +
			"  rpcrdma-replay serve --listen 192.0.2.1 --playback trace.pcap --scale 2",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.listen, "listen", "127.0.0.1", "`address` to listen at")
	f.StringSliceVar(&o.providers, "provider", []string{"auto", "tcp"}, "`fabrics`: "+strings.Join(fabricNames, ", ")+"; several by commas")
	f.Uint16Var(&o.rdmaPort, "rdma-port", providers.PortRDMA, "`port` of NFS over RDMA")
	f.Uint16Var(&o.tcpPort, "tcp-port", providers.PortTCP, "`port` of NFS and MOUNT over TCP; 0 chooses one")
	f.Uint16Var(&o.portmapPort, "portmap-port", 0, "`port` at which clients may ask, over TCP and UDP, where the lock manager of NFSv3 is; Linux asks at 111. 0: nowhere, mount with nolock")
	f.StringVar(&o.dir, "dir", "", "serve this `directory` instead of memory")
	f.BoolVar(&o.writable, "writable", false, "let clients change the directory")
	f.StringVar(&o.state, "state", "", "with --dir: keep in this `directory` what clients need to go on after a restart; \"none\" keeps nothing (default: below $XDG_STATE_HOME)")
	f.StringVar(&o.memory, "memory", "1G", "`bytes` that the files in memory may take")
	f.StringVar(&o.playback, "playback", "", "answer from this `capture`")
	o.limit.Flag(f)
	f.Lookup("limit-memory").Usage = "with --playback: " + f.Lookup("limit-memory").Usage
	cli.FactorOrZeroVar(f, &o.scale, "scale", 1, "`times` the captured service time; 0 is at once")
	f.StringVar(&o.export, "export", "/", "`path` under which MOUNT knows the root")
	o.kerberos.flags(f)
	f.StringVar(&o.squash, "squash", "none", "`users` who become nobody: none, root or all")
	cli.DurationVar(f, &o.lease, "lease", 90*time.Second, "`time` for which NFSv4 keeps the state of a silent client")
	f.BoolVar(&o.noDelegations, "no-delegations", false, "never delegate files to NFSv4 clients")
	f.IntVar(&o.workers, "workers", 0, "let `n` goroutines do the calls (default: 16 for a directory; none for memory, whose calls never wait)")
	f.StringVar(&o.buffers, "buffers", "256M", "`bytes` that all connections together may make the server hold: calls, replies that nobody has read yet, receive buffers")
	cli.DurationVar(f, &o.patience, "peer-timeout", 30*time.Second, "`time` that a peer may take to end a record, or to take what is sent to it")
	f.StringVar(&o.capture, "capture", "", "write our own packets to this `file`, pcapng (soft providers and TCP)")
	f.StringArrayVar(&o.faults, "fault", nil, "`fault` to inject, see above; may be repeated")
	f.BoolVar(&o.parent, "with-parent", false, "end when standard input does")
	_ = f.MarkHidden("with-parent")
	o.fabricFlags.flags(f)
	return cmd
}

func (o *serveFlags) run(ctx context.Context, s *cli.Streams) error {
	where, err := o.fabricFlags.options()
	if err != nil {
		return err
	}
	specs, err := parseFaultSpecs(o.faults)
	if err != nil {
		return err
	}
	faults := fault.New(specs)
	if faults != nil {
		where.Wrapped = faults.Provider
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	told := &cli.Witness{W: s.Out}
	var reads []string
	if o.playback != "" {
		reads = append(reads, o.playback)
	}
	reads = append(reads, o.kerberos.reads()...)
	files, err := claim(s, reads...)
	if err != nil {
		return err
	}
	if o.capture != "" {
		if err := files.Check(o.capture); err != nil {
			return err
		}
	}
	if o.parent {
		var cancel func()
		ctx, cancel = withParent(ctx, s.In)
		defer cancel()
	}
	where.PeerTimeout = o.patience
	if where.Budget, err = o.budget(s); err != nil {
		return err
	}
	addr, err := o.address(ctx)
	if err != nil {
		return err
	}
	h, what, done, err := o.handler(s)
	if err != nil {
		return err
	}
	var closers []func() error
	closers = append(closers, done)
	defer func() {
		for i := len(closers) - 1; i >= 0; i-- {
			_ = closers[i]()
		}
	}()
	if o.capture != "" {
		own, err := newOwnCapture(files, o.capture)
		if err != nil {
			return err
		}
		where.Tap = own.packets
		closers = append(closers, own.end)
	}
	fmt.Fprintf(told, "serving %s\n", printable.Line(what))
	var listeners []named
	for _, name := range o.names(ctx, s, addr.Addr()) {
		f, err := providers.Open(at(where, name, addr.Addr()))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		closers = append(closers, f.Close)
		port := o.rdmaPort
		if name == "tcp" {
			port = o.tcpPort
		}
		l, err := f.Listen(ctx, netip.AddrPortFrom(addr.Addr(), port), faults.Handler(h))
		if err != nil {
			if ctx.Err() != nil {
				break // stopped before it has begun
			}
			return err
		}
		listeners = append(listeners, named{name, l})
		fmt.Fprintf(told, "%s: %s\n", name, l.Addr())
	}
	more, err := o.locks(ctx, s, told, addr.Addr(), where, listeners, h)
	if closers = append(closers, more...); err != nil {
		return err
	}
	// Who cannot learn the addresses has no use for the server. A reader that has seen enough is none of those.
	if told.Err != nil && !errors.Is(told.Err, syscall.EPIPE) {
		return told.Err
	}
	began := time.Now()
	<-ctx.Done()
	if o.parent {
		return nil
	}
	account(s, time.Since(began), listeners, where.Budget, h)
	for i := len(closers) - 1; i >= 0; i-- {
		err = errors.Join(err, closers[i]())
	}
	closers = nil
	return err
}

// address reads --listen. It has no port: each fabric has a flag for its own.
func (o *serveFlags) address(ctx context.Context) (netip.AddrPort, error) {
	if len(o.providers) == 0 {
		return netip.AddrPort{}, cli.Usagef("--provider names no fabric: use some of %s", strings.Join(fabricNames, ", "))
	}
	for _, name := range o.providers {
		if err := checkFabric(name); err != nil {
			return netip.AddrPort{}, err
		}
	}
	_, port, err := providers.Split(o.listen)
	if err == nil && port != 0 {
		return netip.AddrPort{}, cli.Usagef("--listen %s: an address without a port: those are --rdma-port and --tcp-port", o.listen)
	}
	addr, err := providers.Resolve(ctx, o.listen, 1)
	if err != nil {
		return addr, cli.Usagef("--listen: %v", err)
	}
	return addr, nil
}

// withParent is a context that ends when standard input does.
func withParent(ctx context.Context, in io.Reader) (context.Context, func()) {
	child, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return child, cancel
}

// at are the options of a fabric that listens at an address.
func at(where providers.Options, fabric string, addr netip.Addr) providers.Options {
	where.Name = fabric
	if fabric == "rocev2" && len(where.Local) == 0 && !addr.IsUnspecified() {
		where.Local = []netip.Addr{addr}
	}
	return where
}

// budget limits what all connections together hold.
func (o *serveFlags) budget(s *cli.Streams) (*budget.Budget, error) {
	size, err := parseSize("--buffers", o.buffers)
	switch {
	case err != nil:
		return nil, err
	case size < 1<<20:
		return nil, cli.Usagef("--buffers: %s is not enough for one call: at least 1M is needed", o.buffers)
	case o.patience <= 0:
		return nil, cli.Usagef("--peer-timeout is positive")
	}
	return budget.New(budget.Options{Bytes: size, Log: func(format string, args ...any) {
		cli.Tell(s.Err, "rpcrdma-replay", format, args...)
	}}), nil
}

// account says what the server has done until it was stopped, which is its normal end.
func account(s *cli.Streams, took time.Duration, listeners []named, held *budget.Budget, h transport.Handler) {
	cli.Tell(s.Err, "rpcrdma-replay", "stopped after %s", took.Round(100*time.Millisecond))
	for _, l := range listeners {
		st := l.Stats()
		fmt.Fprintf(s.Err, "%s: %d calls, %d replies, %d RDMA Reads of %d bytes, %d RDMA Writes of %d bytes\n", l.name, st.Calls, st.Replies, st.Reads, st.ReadBytes, st.Writes, st.WriteBytes)
	}
	if b := held.Stats(); b.Ended()+b.Refused > 0 {
		fmt.Fprintf(s.Err, "connections ended: %d for memory, %d for their number, %d without a first message, %d for records that did not end, %d for replies that were not read; %d refused\n",
			b.Memory, b.Connections, b.Newcomers+b.Silent, b.Records, b.Unread, b.Refused)
	}
	if srv, ok := h.(*providers.Server); ok {
		if k, ok := srv.Kerberos(); ok {
			fmt.Fprintf(s.Err, "Kerberos: %d contexts, %d calls; refused: %d contexts, %d forged calls, %d repeated calls; %d calls of unknown contexts; %d contexts given up\n",
				k.Contexts, k.Calls, k.Refused, k.Forged, k.Repeated, k.Unknown, k.Evicted)
		}
		st := srv.Stats()
		fmt.Fprintf(s.Err, "calls sent again: %d; replies kept for them: %d of %d bytes, %d given up for others, %d without room\n",
			st.Duplicates, st.Replies.Entries, st.Replies.Bytes, st.Replies.Evicted, st.Replies.Unkept)
	}
	if srv, ok := h.(*providers.Server); ok {
		if n := srv.Locks(); n.Hosts+n.Callbacks+n.Restarts > 0 {
			fmt.Fprintf(s.Err, "locks of NFSv3: %d hosts, %d owners, %d waiting; %d callbacks, %d refused, %d hosts could not be told; %d clients have restarted\n",
				n.Hosts, n.Owners, n.Waiters, n.Callbacks, n.Refused, n.Unreachable, n.Restarts)
		}
	}
	if p, ok := h.(*playback.Handler); ok {
		fmt.Fprintf(s.Err, "playback: %+v\n", p.Stats())
	}
}

type named struct {
	name string
	providers.Listener
}

// names are the fabrics to serve; auto is resolved.
func (o *serveFlags) names(ctx context.Context, s *cli.Streams, addr netip.Addr) []string {
	var out []string
	for _, n := range o.providers {
		if n == "auto" {
			r := auto.Probe(ctx, auto.Purpose{Local: netip.AddrPortFrom(addr, o.rdmaPort)}, auto.Options{})
			cli.Tell(s.Err, "rpcrdma-replay", "provider %s: %s", r.Provider, r.Reason)
			n = r.Provider
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// consistent refuses flags that do not go together.
func (o *serveFlags) consistent() error {
	switch {
	case o.playback != "" && o.dir != "":
		return cli.Usagef("--playback and --dir exclude each other")
	case o.capture == "-":
		return cli.Usagef("--capture needs the name of a file, not -")
	case o.limit.Given() && o.playback == "":
		return cli.Usagef("--limit-memory goes with --playback")
	case !strings.HasPrefix(o.export, "/") || printable.Line(o.export) != o.export:
		return cli.Usagef("--export %q: a path that begins with / and can be typed", o.export)
	case o.state != "" && o.dir == "":
		return cli.Usagef("--state goes with --dir: memory does not survive a restart")
	case o.writable && o.dir == "":
		return cli.Usagef("--writable goes with --dir: memory is always writable")
	case o.playback != "" && o.portmapPort != 0:
		return cli.Usagef("--portmap-port does not go with --playback, which has no locks")
	case o.playback != "" && (o.kerberos.keytab != "" || len(o.kerberos.sec) > 0 || o.kerberos.users != ""):
		return cli.Usagef("--keytab, --sec and --users do not go with --playback, whose replies come from the capture")
	case o.playback == "" && (o.lease < time.Second || o.lease > time.Hour):
		return cli.Usagef("--lease %s: from 1s to 1h", o.lease)
	}
	return nil
}

// handler builds the handler that answers calls, its description, and its cleanup.
func (o *serveFlags) handler(s *cli.Streams) (h transport.Handler, what string, done func() error, err error) {
	squash, err := pick("squash", o.squash, map[string]nfsserver.Squash{"none": nfsserver.NoSquash, "root": nfsserver.RootSquash, "all": nfsserver.AllSquash})
	if err != nil {
		return nil, "", nil, err
	}
	if err := o.consistent(); err != nil {
		return nil, "", nil, err
	}
	if o.playback != "" {
		return o.answers(s)
	}
	kerberos, flavors, err := o.kerberos.options(s)
	if err != nil {
		return nil, "", nil, err
	}
	opt := providers.ServerOptions{V4: nfs4.Options{Lease: o.lease, Courtesy: courtesy, NoDelegations: o.noDelegations}, RPC: nfsserver.Options{Workers: o.workers, Squash: squash, Flavors: flavors}, Mount: mountd.Options{Path: o.export}, Kerberos: kerberos}
	opt.NLM.Dial = providers.DialClient
	opt.NLM.Name, _ = os.Hostname()
	if kerberos.Users != nil {
		opt.V4.Names = kerberos.Users.ID
	}
	var st store.Store
	closeState := func() error { return nil }
	if o.dir != "" {
		if opt.RPC.Workers == 0 {
			opt.RPC.Workers = 16
		}
		kept, err := o.kept(s)
		if err != nil {
			return nil, "", nil, err
		}
		files := dir.Options{Writable: o.writable}
		if kept != nil {
			files.HandleKey, files.Search = kept.Key(), true
			opt.V4.Owner, opt.V4.Stable, opt.V4.Recovered = kept.Owner(), kept, kept.Recovered()
			opt.NLM.Stable, opt.NLM.Recovered, opt.NLM.State = kept, kept.RecoveredHosts(), kept.Starts()
			opt.V4.RecoveredHosts = len(opt.NLM.Recovered) > 0
			closeState = kept.Close
		}
		if st, err = dir.Open(o.dir, files); err != nil {
			return nil, "", nil, errors.Join(err, closeState())
		}
		what = "the directory " + o.dir
		if !o.writable {
			what += ", read-only"
		}
	} else {
		size, err := parseSize("--memory", o.memory)
		if err != nil {
			return nil, "", nil, err
		}
		st = memory.New(memory.Options{Size: uint64(size)})
		what = "an empty file system in memory"
	}
	srv := providers.NewServer(st, opt)
	return srv, what, func() error { return errors.Join(srv.Close(), closeState()) }, nil
}

// kept opens the state that a server of a directory keeps for its next start; nil if it keeps
// nothing.
func (o *serveFlags) kept(s *cli.Streams) (*stable.Dir, error) {
	if o.state == "none" {
		return nil, nil
	}
	if o.state != "" {
		path, err := filepath.Abs(o.state) // what is looked at is what is opened, whatever ".." comes behind a link
		if err == nil {
			err = apart(path, o.dir)
		}
		if err != nil {
			return nil, fmt.Errorf("--state: %w", err)
		}
		d, err := stable.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--state: %w", err)
		}
		return d, nil
	}
	path, err := defaultState(o.dir)
	if err == nil {
		if err := apart(path, o.dir); err != nil {
			return nil, err
		}
		var d *stable.Dir
		if d, err = stable.Open(path); err == nil {
			return d, nil
		}
	}
	cli.Tell(s.Err, "rpcrdma-replay", "note: clients cannot go on after a restart: %v; see --state", err)
	return nil, nil
}

// apart refuses a state directory inside the directory that is served: it holds the key of the handles and the
// records of all clients, which every client could then read.
func apart(state, served string) error {
	root, err := os.Stat(served)
	if err != nil {
		return err
	}
	at, err := filepath.Abs(state)
	if err != nil {
		return err
	}
	for {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			at = real // from here up, everything exists
		}
		if st, err := os.Stat(at); err == nil && os.SameFile(st, root) {
			return fmt.Errorf("the state directory %s is inside the served directory %s, whose clients could read its keys: name another one with --state, or --state none", state, served)
		}
		up := filepath.Dir(at)
		if up == at {
			return nil
		}
		at = up
	}
}

// defaultState is where a server of a directory keeps its state.
func defaultState(dir string) (string, error) {
	home, err := cli.StateHome()
	if err != nil {
		return "", err
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if linked, err := filepath.EvalSymlinks(at); err == nil {
		at = linked
	}
	sum := sha256.Sum256([]byte(at))
	return filepath.Join(home, "rpcrdma-replay", hex.EncodeToString(sum[:8])), nil
}

// courtesy is how long silent NFSv4 clients keep state that conflicts with nobody: as long as
// with Linux.
const courtesy = 24 * time.Hour

// maxRecording is the default for how many bytes of a capture are kept for answers.
const maxRecording = 96 << 20

// answers is the handler of a playback.
func (o *serveFlags) answers(s *cli.Streams) (transport.Handler, string, func() error, error) {
	r, err := capture.Open([]string{o.playback}, capture.Options{BatchSize: o.limit.Batch()})
	if err != nil {
		return nil, "", nil, err
	}
	defer r.Close()
	if n := o.limit.Note(); n != "" {
		cli.Tell(s.Err, "rpcrdma-replay", "note: %s", n)
	}
	// The recording is kept, the decoder's memory is not.
	rec, err := playback.Load(r, playback.Limits{Bytes: int64(o.limit.Scale(maxRecording)), Memory: o.limit.Decoder()})
	if rec == nil {
		return nil, "", nil, err
	}
	problems, total := r.Problems()
	for _, x := range problems {
		cli.Tell(s.Err, "rpcrdma-replay", "%v", x)
	}
	if total > len(problems) {
		cli.Tell(s.Err, "rpcrdma-replay", "%d more problems of this kind", total-len(problems))
	}
	counts := rec.Counts()
	if counts.Records == 0 {
		return nil, "", nil, errors.Join(fmt.Errorf("%s: no call of this capture can be answered%s", o.playback, unanswered(counts, ": ")), err)
	}
	if left := unanswered(counts, ""); left != "" {
		cli.Tell(s.Err, "rpcrdma-replay", "note: calls of the capture that can be answered: %d; left out: %s", counts.Records, left)
	}
	if counts.Missing > 0 {
		cli.Tell(s.Err, "rpcrdma-replay", "note: bytes of data in replies that are zeros, since the capture lacks them or there is no room: %d", counts.Missing)
	}
	what := fmt.Sprintf("answers from %s, at %g times its service times", o.playback, o.scale)
	if err != nil {
		what += fmt.Sprintf(" (the capture is damaged: %v)", err)
	}
	h := playback.New(rec, playback.Options{Scale: o.scale})
	return h, what, func() error { return nil }, nil
}

// unanswered counts the calls of a capture that a playback has no answer for, with the reasons; what comes before
// them is put in front.
func unanswered(c playback.Counts, before string) string {
	var list []string
	for _, x := range []struct {
		n   int
		why string
	}{
		{c.NoReply, "without call or reply"},
		{c.Cut, "of which the capture lacks a part"},
		{c.Opaque, "that are encrypted"},
		{c.Backward, "from a server to its client"},
		{c.Full, "for lack of room, see --limit-memory"},
	} {
		if x.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", x.n, x.why))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return before + strings.Join(list, ", ")
}

// locks serves the lock manager over UDP, at the port that it has over TCP, and the port mapper
// that tells clients where it is. Then it says how to mount.
func (o *serveFlags) locks(ctx context.Context, s *cli.Streams, told io.Writer, addr netip.Addr, where providers.Options, listeners []named, h transport.Handler) ([]func() error, error) {
	closers, err := o.lockManager(ctx, s, told, addr, where, listeners, h)
	if err == nil && ctx.Err() == nil {
		o.mounts(told, listeners)
	}
	return closers, err
}

func (o *serveFlags) lockManager(ctx context.Context, s *cli.Streams, told io.Writer, addr netip.Addr, where providers.Options, listeners []named, h transport.Handler) (closers []func() error, err error) {
	_, ok := h.(*providers.Server)
	select {
	case <-ctx.Done(): // stopped before it has begun
		return nil, nil
	default:
	}
	if !ok {
		return nil, nil
	}
	var tcp, udp uint16
	for _, l := range listeners {
		if l.name == "tcp" {
			tcp = l.Addr().Port()
		}
	}
	if tcp == 0 {
		if o.portmapPort != 0 {
			return nil, cli.Usagef("--portmap-port: locks go over TCP: add --provider tcp")
		}
		return nil, nil
	}
	l, err := providers.ListenLocks(ctx, netip.AddrPortFrom(addr, tcp), h, where.Tap)
	if err != nil {
		// Another server may have the port. Clients can use TCP.
		cli.Tell(s.Err, "rpcrdma-replay", "note: no locks over UDP: %v", err)
	} else {
		udp = l.Addr().Port()
		closers = append(closers, l.Close)
		fmt.Fprintf(told, "udp: %s, locks of NFSv3 only\n", l.Addr())
	}
	if o.portmapPort == 0 {
		return closers, nil
	}
	p, err := providers.Portmap(ctx, netip.AddrPortFrom(addr, o.portmapPort), tcp, udp, where)
	if err != nil {
		return closers, fmt.Errorf("--portmap-port: %w", err)
	}
	fmt.Fprintf(told, "port mapper: %s\n", p.Addr())
	return append(closers, p.Close), nil
}

// mounts shows how a Linux client mounts the server.
func (o *serveFlags) mounts(w io.Writer, listeners []named) {
	tcp := netip.AddrPort{}
	for _, l := range listeners {
		if l.name == "tcp" {
			tcp = l.Addr()
		}
	}
	fmt.Fprintf(w, "\nOn a Linux client:\n")
	for _, l := range listeners {
		a := l.Addr()
		host := a.Addr().String()
		if a.Addr().IsUnspecified() {
			host = "SERVER"
		} else if a.Addr().Is6() {
			host = "[" + host + "]"
		}
		proto := "rdma"
		if l.name == "tcp" {
			proto = "tcp"
		}
		if a.Addr().Is6() {
			proto += "6"
		}
		sec, name := o.kerberos.hint()
		if name != "" {
			host = name
		}
		fmt.Fprintf(w, "  mount -t nfs -o vers=4.2,proto=%s,port=%d%s %s:/ /mnt\n", proto, a.Port(), sec, host)
		v3 := fmt.Sprintf("vers=3,proto=%s,port=%d%s", proto, a.Port(), sec)
		if o.portmapPort != providers.PortPortmap {
			v3 += ",nolock"
		}
		if tcp.IsValid() {
			v3 += fmt.Sprintf(",mountproto=tcp,mountport=%d", tcp.Port())
			fmt.Fprintf(w, "  mount -t nfs -o %s %s:%s /mnt\n", v3, host, o.export)
		} else {
			fmt.Fprintf(w, "  (version 3 needs MOUNT over TCP: add --provider %s,tcp)\n", strings.Join(o.providers, ","))
		}
	}
	fmt.Fprintf(w, "\nStop with Ctrl-C.\n")
}
