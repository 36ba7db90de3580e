package cli

import (
	"slices"
	"strconv"

	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
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
