package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/replay/bench"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/providers"
)

// benchFlags are the flags of the command bench.
type benchFlags struct {
	lists     map[string]*[]string // by the names of axes
	fileSize  string
	files     int
	time      time.Duration
	preset    string
	dir       string
	mount     string
	repeat    int
	write     bool
	csv       string
	svg       string
	format    string
	delay     time.Duration
	bandwidth string
	buffers   uint32
}

// axes are the flags that take lists: every combination of their values is measured. A preset fills those that are
// not given; def is for the others.
var axes = []struct{ flag, usage, def string }{
	{"job", "`jobs`: read, write, randread, randwrite, fileop, postmark, iozone", "read,write"},
	{"size", "`bytes` of a call", "64K"},
	{"outstanding", "have `n` calls in flight on each connection: one more than the depth of read-ahead", "1"},
	{"provider", "`fabrics`: " + strings.Join(providers.Fabrics, ", "), "tcp,iwarp,rocev2"},
	{"model", "transfer `models`: read-write, read-read", "read-write"},
	{"credit-policy", "`policies`: linux, fixed, dynamic", "linux"},
	{"credits", "ask for `n` credits, and grant them; 0 is 128 asked for and 64 granted", "0"},
	{"client-factor", "`factors` of the client's credit policy dynamic", "0"},
	{"server-factor", "`factors` of the server's credit policy dynamic", "0"},
	{"registration", "`modes`: per-call, inline, pool, persistent, windows", "per-call"},
	{"inline", "inline thresholds in `bytes`", "4K"},
	{"min-chunk", "smallest items in `bytes` with a separate chunk; 0 chooses chunks as Linux does", "0"},
	{"mtu", "payload of a packet in `bytes`, 256 to 4096, over RoCEv2 and iWARP; 0 is the largest", "0"},
	{"clients", "let `n` clients, each with a connection and a file, do the job at the same time", "1"},
	{"nfs", "`versions` of NFS: 3, 4.0, 4.1, 4.2", "3"},
}

// The first axes describe jobs, the others settings.
const jobAxes = 3

const benchLong = `Measure NFS over RDMA and TCP side by side, for every combination of the given
values. Without SERVER, an in-memory server is started for each setting, in a
process of its own, so that the processor times of client and server are
separate. With SERVER (and --write, and --dir) files are created there; the
processor time of the server is then unknown.

Jobs: read, write, randread, randwrite (for --time each), and the workloads
fileop, postmark and iozone (for --files files, or --file-size).

Presets fill the lists that are not given:

  sweep         read and write, 512 bytes to 1M, read-ahead of 0 to 16 calls,
                over TCP, iWARP and RoCEv2 (Callaghan 2003): some four minutes
  models        Read-Write and Read-Read
  credits       credit policies
  slots         credits against calls in flight, of 16 slots
  inline        inline thresholds, small reads and writes
  min-chunk     smallest items with a separate chunk
  registration  registration modes
  workloads     fileop, postmark, iozone over all fabrics

--link-delay and --link-bandwidth simulate a network between both ends, which
makes the cost of round trips visible on one machine.`

func newBenchCommand(s *cli.Streams) *cobra.Command {
	o := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench [flags] [SERVER]",
		Short: "Measure RDMA against TCP, and choices of endpoints",
		Long:  benchLong,
		Example: "  rpcrdma-replay bench --preset sweep --svg sweep.svg --csv sweep.csv\n" +
			"  rpcrdma-replay bench --preset models --link-delay 100us\n" +
			"  rpcrdma-replay bench --job read --size 64K,1M --provider iwarp,tcp --time 2s",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.preset, "preset", "sweep", "`set` of measurements: "+strings.Join(presetNames, ", "))
	o.lists = make(map[string]*[]string)
	for _, x := range axes {
		o.lists[x.flag] = f.StringSlice(x.flag, nil, x.usage)
	}
	f.Uint32Var(&o.buffers, "credit-buffers", 0, "`receives` of the server for all clients, under the credit policy dynamic (default 4096)")
	f.StringVar(&o.fileSize, "file-size", "64M", "`bytes` of the file, which is in the server's memory")
	f.IntVar(&o.files, "files", 1000, "let fileop and postmark make `n` files")
	cli.DurationVar(f, &o.time, "time", time.Second, "`time` of each measurement of reads and writes")
	f.IntVar(&o.repeat, "repeat", 1, "measure each job `n` times, and show the median round and the spread")
	cli.DurationVar(f, &o.delay, "link-delay", 0, "one-way `delay` of the network between both ends")
	f.StringVar(&o.bandwidth, "link-bandwidth", "", "bits a second of the network, each way")
	f.StringVar(&o.dir, "dir", "/", "`directory` on SERVER")
	f.StringVar(&o.mount, "mount", "", "`HOST:PORT` of MOUNT on SERVER over TCP, for NFSv3 (default: the connection of NFS, else what rpcbind says)")
	f.BoolVar(&o.write, "write", false, "allow files to be made on SERVER")
	f.StringVar(&o.csv, "csv", "", "also write the results to this `file`; - is standard output, and the table goes to standard error")
	f.StringVar(&o.svg, "svg", "", "draw throughput and processor time over the size of calls into this `file`; - as with --csv")
	f.StringVarP(&o.format, "format", "T", "text", "print as `format`: text, csv or json")
	return cmd
}

// presetNames are the names of presets, in the order of the help.
var presetNames = []string{"sweep", "models", "credits", "slots", "inline", "min-chunk", "registration", "workloads"}

// presets fill lists that are not given.
var presets = map[string]map[string]string{
	"sweep":        {"size": "512,1K,4K,16K,64K,256K,1M", "outstanding": "1,2,3,5,9,17"},
	"models":       {"provider": "iwarp,rocev2", "size": "32K,256K", "outstanding": "1,8", "model": "read-write,read-read"},
	"credits":      {"job": "read", "provider": "iwarp,rocev2", "size": "4K", "outstanding": "1,16,64", "credit-policy": "linux,fixed,dynamic"},
	"slots":        {"job": "read", "provider": "iwarp,rocev2", "size": "4K", "outstanding": "16", "credits": "4,8,16,32"},
	"inline":       {"provider": "iwarp,rocev2", "size": "512,2K,8K", "outstanding": "1,8", "inline": "1K,4K,16K"},
	"min-chunk":    {"provider": "iwarp,rocev2", "size": "512,1K,2K,4K,8K", "outstanding": "8", "inline": "16K", "min-chunk": "512,1K,2K,4K,8K,16K"},
	"registration": {"provider": "iwarp,rocev2", "size": "16K,256K", "outstanding": "8", "registration": "per-call,pool,persistent,windows"},
	"workloads":    {"job": "fileop,postmark,iozone", "size": "32K", "outstanding": "4"},
}

// fill fills the lists that are not given.
func (o *benchFlags) fill() error {
	p, err := pick("preset", o.preset, presets)
	if err != nil {
		return err
	}
	for _, x := range axes {
		if v := o.lists[x.flag]; *v == nil {
			*v = strings.Split(cmp.Or(p[x.flag], x.def), ",")
		}
	}
	for flag, known := range map[string][]string{
		"job": {"read", "write", "randread", "randwrite", "fileop", "postmark", "iozone"}, "nfs": {"3", "4.0", "4.1", "4.2"}, "provider": providers.Fabrics,
	} {
		for _, v := range *o.lists[flag] {
			if !slices.Contains(known, v) {
				return cli.Usagef("--%s: %q is not one of %s", flag, v, strings.Join(known, ", "))
			}
		}
	}
	switch {
	case o.time <= 0 || o.files < 1 || o.repeat < 1:
		return cli.Usagef("--time, --files and --repeat are more than zero")
	case o.format != "text" && o.format != "csv" && o.format != "json":
		return cli.Usagef("-T is text, csv or json, not %q", o.format)
	}
	return nil
}

// settings are all combinations of the flag values. TCP has versions and clients only.
func (o *benchFlags) settings() (list []setting, err error) {
	values := make([][]string, 0, len(axes))
	for _, x := range axes[jobAxes:] {
		values = append(values, *o.lists[x.flag])
	}
	type tcp struct {
		version string
		clients int
	}
	had := make(map[tcp]bool)
	for c := range combinations(values...) {
		chosen := make(map[string]string, len(c))
		for i, v := range c {
			chosen[axes[jobAxes+i].flag] = v
		}
		s, err := o.setting(chosen)
		if err != nil {
			return nil, err
		}
		if s.Fabric == "tcp" {
			k := tcp{s.Version, s.Clients}
			if had[k] {
				continue
			}
			had[k] = true
		}
		list = append(list, s)
	}
	return list, nil
}

// combinations are all ways to take one value of each list; the last list changes fastest.
func combinations(lists ...[]string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		at := make([]int, len(lists))
		for _, l := range lists {
			if len(l) == 0 {
				return
			}
		}
		for {
			c := make([]string, len(lists))
			for i, l := range lists {
				c[i] = l[at[i]]
			}
			if !yield(c) {
				return
			}
			i := len(lists) - 1
			for ; i >= 0; i-- {
				if at[i]++; at[i] < len(lists[i]) {
					break
				}
				at[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// maxClients bounds --clients: each has a file in the memory of the server.
const maxClients = 64

// setting is one combination: the value of each axis by its name.
func (o *benchFlags) setting(v map[string]string) (s setting, err error) {
	f := &s.flags
	*f = fabricFlags{model: v["model"], policy: v["credit-policy"], registration: v["registration"], dialect: "1", choice: "linux", delay: o.delay, bandwidth: o.bandwidth, buffers: o.buffers}
	s.Setting = bench.Setting{Fabric: v["provider"], Version: v["nfs"]}
	var credits int
	for _, n := range []struct {
		flag   string
		into   *int
		lo, hi int64
	}{{"inline", &f.inline, 1, 1 << 20}, {"credits", &credits, 0, 4096}, {"min-chunk", &f.minChunk, 0, 1 << 20}, {"mtu", &f.mtu, 0, 4096}, {"clients", &s.Clients, 1, maxClients}} {
		k, err := parseSize("--"+n.flag, v[n.flag])
		if err != nil {
			return s, err
		}
		if k < n.lo || k > n.hi {
			return s, cli.Usagef("--%s is %d to %d", n.flag, n.lo, n.hi)
		}
		*n.into = int(k)
	}
	if f.mtu != 0 && f.mtu < 256 {
		return s, cli.Usagef("--mtu is 256 to 4096, or 0")
	}
	if f.minChunk > 0 {
		f.choice = "minimum"
	}
	f.credits = uint32(credits)
	for flag, into := range map[string]*float64{"client-factor": &f.clientFactor, "server-factor": &f.serverFactor} {
		if *into, err = strconv.ParseFloat(v[flag], 64); err != nil || !(*into >= 0 && *into <= 1000) {
			return s, cli.Usagef("--%s: %q is not a number from 0 to 1000", flag, v[flag])
		}
	}
	if s.where, err = f.options(); err != nil {
		return s, err
	}
	s.where.Name = s.Fabric
	s.where.Endpoint.Unmarked = true // the data are not compared
	s.Link, s.Endpoint = s.where.Link, s.where.Endpoint
	if s.Fabric != "tcp" {
		s.Model, s.Policy, s.Registration, s.Inline, s.MinChunk, s.MTU = f.model, f.policy, f.registration, f.inline, f.minChunk, f.mtu
		s.Credits, s.ClientFactor, s.ServerFactor, s.Buffers = f.credits, f.clientFactor, f.serverFactor, f.buffers
	}
	return s, nil
}

type setting struct {
	bench.Setting
	flags fabricFlags
	where providers.Options
}

func (o *benchFlags) jobList() (list []bench.Job, err error) {
	file, err := parseSize("--file-size", o.fileSize)
	if err != nil {
		return nil, err
	}
	for c := range combinations(*o.lists["job"], *o.lists["size"], *o.lists["outstanding"]) {
		n, err := parseSize("--size", c[1])
		if err != nil {
			return nil, err
		}
		if n < 1 || n > 1<<20 || n > file {
			return nil, cli.Usagef("--size is 1 to 1M, and no more than --file-size")
		}
		out, err := strconv.Atoi(c[2])
		if err != nil || out < 1 || out > 4096 {
			return nil, cli.Usagef("--outstanding is 1 to 4096")
		}
		list = append(list, bench.Job{Kind: c[0], Size: int(n), Outstanding: out, FileSize: file, Files: o.files, Time: o.time})
	}
	return list, nil
}

func (o *benchFlags) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("name one server, or none")
	}
	if err := o.fill(); err != nil {
		return err
	}
	settings, err := o.settings()
	if err != nil {
		return err
	}
	jobs, err := o.jobList()
	if err != nil {
		return err
	}
	if len(args) == 1 && !o.write {
		return cli.Usagef("files are made on %s: that needs --write", args[0])
	}
	files, err := claim(s)
	if err != nil {
		return err
	}
	out := outputs{files: files}
	defer out.discard()
	table, err := out.create(s, o.csv)
	if err != nil {
		return err
	}
	picture, err := out.create(s, o.svg)
	if err != nil {
		return err
	}
	ctx, stop := cli.Context(cmd.Context())
	defer stop()
	var all []*bench.Result
	total := len(settings) * len(jobs)
	var failed error
	for i, set := range settings {
		list, err := o.measure(ctx, s, set, jobs, args, i*len(jobs), total)
		all = append(all, list...)
		if ctx.Err() != nil {
			failed = errors.New("interrupted: what was measured until then follows")
			break
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", set.Fabric, err))
		}
	}
	return errors.Join(o.output(s, all, table, picture), failed)
}

// measure runs all jobs under one setting.
func (o *benchFlags) measure(ctx context.Context, s *cli.Streams, set setting, jobs []bench.Job, args []string, done, total int) ([]*bench.Result, error) {
	var addr netip.AddrPort
	var serverCPU func() (time.Duration, error)
	where := set.where
	if len(args) == 1 {
		var err error
		if addr, err = providers.Resolve(ctx, args[0], portOf(where.Name)); err != nil {
			return nil, err
		}
	} else {
		child, err := startServer(ctx, s, set)
		if err != nil {
			return nil, err
		}
		defer child.stop()
		addr = child.addr
		serverCPU = func() (time.Duration, error) { return bench.ProcessCPU(child.cmd.Process.Pid) }
		if where.Name == "rocev2" {
			local, err := providers.Loopback()
			if err != nil {
				return nil, err
			}
			where.Local = []netip.Addr{local}
		}
	}
	var placed, segments, waited atomic.Uint64
	if set.Fabric != "tcp" {
		where.Endpoint.Trace = func(t *endpoint.Trace) {
			placed.Add(uint64(t.ReadBytes + t.WriteBytes))
			segments.Add(uint64(t.Segments))
			if d := t.Sent.Sub(t.Queued); d > 0 {
				waited.Add(uint64(d))
			}
		}
	}
	f, err := providers.Open(where)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	meters := make([]*bench.Meter, set.Clients)
	for i := range meters {
		fs, closeFS, err := connect(ctx, f, addr, set.Version, o.mount, i)
		if err != nil {
			return nil, err
		}
		defer closeFS()
		m := &bench.Meter{FS: fs, Setting: set.Setting}
		top, err := fs.Root(ctx, o.dir)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("rpcrdma-replay-bench-%d", time.Now().UnixNano())
		if m.Dir, err = fs.Mkdir(ctx, top, name, client.Mode(0o755)); err != nil {
			return nil, err
		}
		if len(args) == 1 {
			defer func() { o.tidy(ctx, s, fs, m, top, name) }()
		}
		meters[i] = m
	}
	meters[0].ServerCPU = serverCPU
	if set.Fabric != "tcp" {
		meters[0].RDMA = func() bench.RDMA {
			return bench.RDMA{Placed: placed.Load(), Segments: segments.Load(), Waited: time.Duration(waited.Load())}
		}
	}
	var out []*bench.Result
	for i, j := range jobs {
		how := fmt.Sprint(j.Kind, " ", set.Fabric)
		for _, of := range []any{set.Model, set.Policy, set.Registration} { // TCP has none of them
			if name := fmt.Sprint(of); name != "" {
				how += " " + name
			}
		}
		cli.Tell(s.Err, "rpcrdma-replay", "%d of %d: %s, %d bytes, %d in flight", done+i+1, total, how, j.Size, j.Outstanding)
		list, err := o.rounds(ctx, meters, j)
		out = append(out, list...)
		if err != nil {
			if len(list) > 0 {
				list[len(list)-1].Err = err.Error()
			}
			// The connection may be in any state: what is left is not measured.
			if left := len(jobs) - i - 1; left > 0 && ctx.Err() == nil {
				err = fmt.Errorf("%w; %d more were not measured", err, left)
			}
			return out, err
		}
	}
	return out, nil
}

// rounds measures a job --repeat times.
func (o *benchFlags) rounds(ctx context.Context, meters []*bench.Meter, j bench.Job) ([]*bench.Result, error) {
	var all [][]*bench.Result
	for range o.repeat {
		list, err := bench.Run(ctx, meters, j)
		if err != nil {
			return list, err
		}
		all = append(all, list)
	}
	return bench.Middle(all), nil
}

// tidyTime bounds the removal of what a measurement has made on a server that was named.
const tidyTime = 30 * time.Second

// tidy removes what a measurement has made on a server that was named, also after an interrupt, and says what is left
// there if it cannot.
func (o *benchFlags) tidy(ctx context.Context, s *cli.Streams, fs client.FS, m *bench.Meter, top []byte, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	_ = m.Close(ctx) // what is still open shows when its file is removed
	left := maxWiped
	if err := wipe(ctx, fs, top, m.Dir, name, 0, &left); err != nil {
		cli.Tell(s.Err, "rpcrdma-replay", "%s was not removed from the server: %v", path.Join(o.dir, name), err)
	}
}

// maxWiped is how many names are removed: a server that lists for ever must not keep the command from ending.
const maxWiped = 1 << 22

// wipe removes the directory of a measurement with its contents.
func wipe(ctx context.Context, fs client.FS, parent, dir []byte, name string, depth int, left *int) error {
	if depth > 3 {
		return errors.New("deeper than what was made")
	}
	for {
		var names []string
		if err := fs.Readdir(ctx, dir, func(e client.Entry) bool { names = append(names, e.Name); return len(names) < wipedAtOnce }); err != nil {
			return err
		}
		for _, n := range names {
			if *left--; *left < 0 {
				return client.ErrListing
			}
			h, a, err := fs.Lookup(ctx, dir, n)
			switch {
			case err != nil:
				return err
			case a.Type == client.Directory:
				err = wipe(ctx, fs, dir, h, n, depth+1, left)
			default:
				err = fs.Remove(ctx, dir, n)
			}
			if err != nil {
				return err
			}
		}
		if len(names) < wipedAtOnce {
			return fs.Rmdir(ctx, parent, name)
		}
	}
}

// wipedAtOnce is how many names are listed before they are removed.
const wipedAtOnce = 4096

func portOf(fabric string) uint16 {
	if fabric == "tcp" {
		return providers.PortTCP
	}
	return providers.PortRDMA
}

// connect makes client n of a version. at is the HOST:PORT of MOUNT from --mount, or empty.
func connect(ctx context.Context, f *providers.Fabric, addr netip.AddrPort, version, at string, n int) (client.FS, func(), error) {
	r, err := f.Dial(ctx, addr, nil)
	if err != nil {
		return nil, nil, err
	}
	rpc := client.RPC{Requester: r, Cred: client.Sys("rpcrdma-replay", 0, 0)}
	if version == "3" {
		m, err := mounter(ctx, r, addr.Addr(), at)
		if err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
		v := client.NewV3(rpc)
		if m == nil {
			return v, func() { _ = r.Close() }, nil
		}
		v.Mount = &client.RPC{Requester: m, Cred: rpc.Cred}
		return v, func() { _, _ = m.Close(), r.Close() }, nil
	}
	v, err := client.NewV4(ctx, rpc, client.V4Options{Minor: uint32(version[2] - '0'), Owner: fmt.Appendf(nil, "rpcrdma-replay bench %d %d %d", os.Getpid(), n, time.Now().UnixNano()), Slots: 128})
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return v, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		_ = v.Shutdown(end)
		cancel()
		_ = r.Close()
	}, nil
}

// server is a child process that serves.
type server struct {
	cmd  *exec.Cmd
	addr netip.AddrPort
	in   io.Closer
	done chan struct{}
}

// startServer starts this program again as the server of a setting.
func startServer(ctx context.Context, s *cli.Streams, set setting) (*server, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	listen := netip.MustParseAddr("127.0.0.1")
	port := "0"
	if set.Fabric == "rocev2" {
		if listen, err = providers.Loopback(); err != nil {
			return nil, err
		}
		port = strconv.Itoa(providers.PortRDMA)
	}
	args := []string{"serve", "--listen", listen.String(), "--provider", set.Fabric, "--rdma-port", port, "--tcp-port", "0", "--memory", "4G", "--with-parent"}
	if set.Fabric != "tcp" {
		args = append(args, "--model", set.flags.model, "--credit-policy", set.flags.policy, "--inline", strconv.Itoa(set.flags.inline), "--registration", serverRegistration(set.flags.registration),
			"--credit-buffers", fmt.Sprint(set.flags.buffers), "--server-factor", fmt.Sprint(set.flags.serverFactor), "--credits", fmt.Sprint(set.flags.credits))
		if n := set.flags.mtu; n > 0 {
			args = append(args, "--mtu", strconv.Itoa(n))
		}
		if n := set.flags.minChunk; n > 0 {
			args = append(args, "--min-chunk", strconv.Itoa(n))
		}
	}
	if set.flags.delay > 0 {
		args = append(args, "--link-delay", set.flags.delay.String())
	}
	if set.flags.bandwidth != "" {
		args = append(args, "--link-bandwidth", set.flags.bandwidth)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stderr = s.Err
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &server{cmd: cmd, in: in, done: make(chan struct{})}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		name, at, ok := strings.Cut(lines.Text(), ": ")
		if ok && name == set.Fabric {
			if c.addr, err = netip.ParseAddrPort(at); err != nil {
				break
			}
			go func() {
				defer close(c.done)
				_, _ = io.Copy(io.Discard, out)
			}()
			return c, nil
		}
	}
	_ = in.Close()
	return nil, errors.Join(fmt.Errorf("the server process did not start"), err, cmd.Wait())
}

// serverRegistration is the server's mode if its clients use another one: it only matters in the read-read
// model.
func serverRegistration(mode string) string {
	if mode == "inline" {
		return "per-call"
	}
	return mode
}

func (c *server) stop() {
	_ = c.in.Close() // it ends with its input
	<-c.done
	_ = c.cmd.Wait()
}

func (o *benchFlags) output(s *cli.Streams, all []*bench.Result, table, picture *cli.Output) error {
	var err error
	out := s.Out
	if cli.ToStdout(o.csv) || cli.ToStdout(o.svg) {
		out = s.Err
	}
	switch {
	case len(all) == 0:
		return errors.New("nothing was measured")
	case o.format == "csv":
		err = bench.CSV(out, all)
	case o.format == "json":
		err = writeJSON(out, all)
	default:
		err = bench.Table(out, all)
	}
	file := func(f *cli.Output, write func(io.Writer, []*bench.Result) error) {
		if f == nil || err != nil {
			return
		}
		if err = write(f, all); err == nil {
			err = f.Commit()
		}
	}
	file(table, bench.CSV)
	file(picture, bench.SVG)
	return err
}
