package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/sandbox"
	"github.com/rpcrdma/toolkit/internal/units"
)

// liveOptions are the flags for captures from network interfaces. All commands that read captures have them.
type liveOptions struct {
	ifaces  []string
	ports   []string
	rpc     bool
	direct  bool // no tunnels
	all     bool // everything, not only RDMA
	expr    string
	snap    int
	ring    ringSize
	promisc bool
	clock   bool
	fanout  int
	rings   int
	events  cli.Events
	box     sandbox.Options
}

// interfaceFlags are the flags that every command has.
func (o *liveOptions) interfaceFlags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.ifaces, "interface", "i", nil, "capture on this network `interface` instead (repeatable); any is all of them, trace the kernel's own events, which need no packets")
	f.StringSliceVar(&o.ports, "ports", nil, "with -i: `list` of TCP ports of iWARP (default 20049)")
	f.BoolVar(&o.rpc, "rpc", false, "with -i: rpcbind, MOUNT and NFS over TCP and UDP, too")
	f.BoolVar(&o.direct, "no-tunnels", false, "with -i: leave out what is wrapped in a tunnel or mirror")
	cli.NumberVar(f, &o.rings, "rings", 1, 64, "with -i: `n` packet rings for each interface (default 1), for one that several processors receive from")
	o.events.Flag(f)
	o.box.Flags(f)
}

// filterFlags chooses the filter of the kernel by an expression.
func (o *liveOptions) filterFlag(f *pflag.FlagSet, name, short string) {
	f.StringVarP(&o.expr, name, short, "", "with -i: of these, only packets that match this capture filter `expression`; with -i trace: only calls that match, as in \"slower 10ms and procedure READ\"")
}

// tuningFlags are useful for captures that are written to files.
func (o *liveOptions) tuningFlags(f *pflag.FlagSet) {
	f.IntVarP(&o.snap, "snaplen", "s", 0, "keep `n` bytes of each packet (default all)")
	f.VarP(&o.ring, "buffer", "B", "memory `size` for packets that wait to be written: 128M, or a number of KiB (default 64M)")
	f.BoolVarP(&o.promisc, "promisc", "p", false, "take frames to other stations, too (promiscuous mode)")
	f.BoolVar(&o.clock, "hardware-time", false, "take the timestamps of the adapter where it has them")
	cli.NumberVar(f, &o.fanout, "fanout", 1, 65535, "share the packets with other captures that name the same `group` (1 to 65535)")
}

// filter is what the kernel lets through; nil is everything.
func (o *liveOptions) filter() (*pcapfilter.Expr, error) {
	if err := cli.PacketsOnly(o.names(), o.all, "--all"); err != nil {
		return nil, err
	}
	if o.trace() {
		_, err := o.traffic()
		return nil, err
	}
	extra, err := pcapfilter.Parse(o.expr)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	if o.all {
		if o.rpc || o.ports != nil || o.direct {
			return nil, cli.Usagef("--all is everything: leave --rpc, --ports and --no-tunnels out")
		}
		return extra, nil
	}
	t, err := o.traffic()
	if err != nil {
		return nil, err
	}
	return pcapfilter.And(t.Expr(), extra), nil
}

// trace reports that the kernel's events are taken.
func (o *liveOptions) trace() bool { return slices.Contains(o.names(), live.Events) }

// traffic is what is taken without --all.
func (o *liveOptions) traffic() (pcapfilter.Traffic, error) {
	return cli.Traffic(o.names(), o.ports, o.rpc, o.direct)
}

// taken says what passes the filter of the kernel.
func (o *liveOptions) taken() string {
	if o.all {
		return "taking all packets"
	}
	t, err := o.traffic()
	if err != nil {
		return ""
	}
	return cli.Taken(o.names(), t)
}

// open starts to capture.
func (o *liveOptions) open() (live.Source, error) {
	filter, err := o.filter()
	if err != nil {
		return nil, err
	}
	if o.snap < 0 {
		return nil, cli.Usagef("-s is a number of bytes")
	}
	opt := live.Options{
		Interfaces: o.names(), Filter: filter, SnapLen: o.snap, RingSize: int(o.ring),
		Rings: o.rings, Promiscuous: o.promisc, Segments: !o.all, HardwareTime: o.clock, KeepClock: o.box.Mode != sandbox.Off,
	}
	if err := o.events.Check(o.names()); err != nil {
		return nil, err
	}
	if opt.EventLevel = o.events.Level; o.trace() {
		if opt.EventFilter, err = live.ParseEventFilter(o.expr); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
	}
	if o.rings > 1 && o.fanout != 0 {
		return nil, cli.Usagef("--rings and --fanout exclude each other: a ring is in one group")
	}
	if o.fanout != 0 {
		opt.Fanout = &live.Fanout{Group: uint16(o.fanout)}
	}
	return live.Open(opt)
}

// names are the interfaces; several may share one -i, separated by commas.
func (o *liveOptions) names() []string {
	var out []string
	for _, s := range o.ifaces {
		for name := range strings.SplitSeq(s, ",") {
			if name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// ringSize is a size whose plain number is in KiB, like -B of tcpdump.
type ringSize size

func (s *ringSize) Type() string   { return "size" }
func (s *ringSize) String() string { return (*size)(s).String() }

func (s *ringSize) Set(v string) error {
	if n, err := strconv.ParseUint(v, 10, 23); err == nil && n > 0 {
		*s = ringSize(n << 10)
		return nil
	}
	return (*size)(s).Set(v)
}

// fileSize is a size whose plain number is in millions of bytes, like -C of tcpdump.
type fileSize size

func (s *fileSize) Type() string   { return "size" }
func (s *fileSize) String() string { return (*size)(s).String() }

func (s *fileSize) Set(v string) error {
	if n, err := strconv.ParseUint(v, 10, 32); err == nil && n > 0 {
		*s = fileSize(n * 1e6)
		return nil
	}
	return (*size)(s).Set(v)
}

// counters notes what the kernel counted.
func counters(n *cli.Problems, r live.Source) {
	for _, s := range r.Stats() {
		what := "packet"
		if s.Interface == live.Events {
			what = "event"
		}
		n.Printf("%s: %s captured, %d dropped for lack of room%s", s.Interface, units.Plural(s.Received-min(s.Received, s.Dropped), what), s.Dropped, missed(s.Missed))
		for _, c := range s.Calls {
			n.Printf("%s: %s", s.Interface, cli.Completeness(c))
		}
		for i, p := range s.Rings {
			n.Printf("%s: ring %d: %s captured, %d dropped", s.Interface, i+1, units.Plural(p.Received-min(p.Received, p.Dropped), "packet"), p.Dropped)
		}
		if s.Dropped > 0 {
			n.Printf("%s: note: a larger buffer (-B) or a narrower filter avoids drops", s.Interface)
		}
	}
}

func missed(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d missed by the interface", n)
}
