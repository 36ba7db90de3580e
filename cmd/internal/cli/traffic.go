package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Traffic is what the flags --ports, --rpc and --no-tunnels take on interfaces.
func Traffic(interfaces, ports []string, rpc, direct bool) (pcapfilter.Traffic, error) {
	t := pcapfilter.Traffic{RPC: rpc, NoTunnels: direct}
	for _, s := range ports {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return t, Usagef("--ports: %q is not a port", s)
		}
		t.TCPPorts = append(t.TCPPorts, uint16(n))
	}
	return t, PacketsOnly(interfaces, rpc || direct || len(ports) > 0, "--ports, --rpc and --no-tunnels")
}

// PacketsOnly refuses flags that choose packets where the kernel's events are taken.
func PacketsOnly(interfaces []string, given bool, flags string) error {
	if given && slices.Contains(interfaces, live.Events) {
		return Usagef("%s choose packets: leave them out with -i %s, which takes the kernel's events", flags, live.Events)
	}
	return nil
}

// Events is the flag --events: how much the kernel tells with -i trace.
type Events struct{ Level ftrace.Level }

// Flag registers it.
func (e *Events) Flag(f *pflag.FlagSet) {
	f.Var(e, "events", "with -i trace: how much the kernel reports, and so what it costs: `calls`, chunks (with the calls) or operations (all; the default, but calls with a filter)")
}

// Set implements pflag.Value.
func (e *Events) Set(s string) (err error) {
	l, ok := ftrace.ParseLevel(s)
	if !ok {
		return errors.New("it is calls, chunks or operations")
	}
	e.Level = l
	return nil
}

// String implements pflag.Value.
func (e *Events) String() string { return e.Level.String() }

// Type implements pflag.Value.
func (*Events) Type() string { return "level" }

// Check refuses the flag where packets are taken.
func (e *Events) Check(interfaces []string) error {
	if e.Level != 0 && !slices.Contains(interfaces, live.Events) {
		return Usagef("--events goes with -i %s", live.Events)
	}
	return nil
}

// Completeness compares the calls that events told with those that the kernel counted.
func Completeness(c live.Calls) string {
	who := "of its client"
	if c.Server {
		who = "to its server"
	}
	s := fmt.Sprintf("the kernel counted %s of NFS %s, events told of %d", units.Plural(c.Counted, "call"), who, c.Ended)
	switch {
	case c.Counted == c.Ended:
		s += ": none is missing"
	case c.Counted < c.Ended:
		s += ": some began before"
	default:
		s += fmt.Sprintf(": %d are under way, or missing", c.Counted-c.Ended)
	}
	return s
}

// Taken says what a capture takes, and what that costs.
func Taken(interfaces []string, t pcapfilter.Traffic) string {
	if slices.Contains(interfaces, live.Events) {
		return "taking the kernel's own events of NFS over RDMA"
	}
	s := "taking " + t.Direct()
	if list := t.Tunnels(); list != "" {
		s += ", and all that tunnels and mirrors carry (" + list + "), RDMA or not; --no-tunnels leaves that out"
	}
	return s
}
