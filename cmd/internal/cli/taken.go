package cli

import "github.com/rpcrdma/toolkit/capture/pcapfilter"

// Taken says what a capture takes, and what that costs.
func Taken(t pcapfilter.Traffic) string {
	s := "taking " + t.Direct()
	if list := t.Tunnels(); list != "" {
		s += ", and all that tunnels and mirrors carry (" + list + "), RDMA or not; --no-tunnels leaves that out"
	}
	return s
}
