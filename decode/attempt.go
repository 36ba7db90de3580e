package decode

import (
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// attempt is the state of a TCP connection of which only SYNs of one side have been seen.
type attempt struct {
	open bool
	dir  int8   // who sends them
	syns uint32 // that were sent, at different times
	last int64  // time of the newest
}

// asked is what an attempt without an answer counts for.
func (c *tcpConn) asked() Asked {
	return Asked{Connections: 1, Requests: uint64(c.attempt.syns), Longest: c.attempt.last - c.First.Time, First: c.First.Number}
}

// synGap is the least time, in nanoseconds, after which a SYN is sent again: a sooner one is a copy (RFC 6298, section 2, has one second).
const synGap = 100e6

// rpcbindPort is the port of rpcbind (RFC 1833, section 2.1), which clients ask first.
const rpcbindPort = 111

// attempted follows attempts to connect to a service of RPC: an RST that answers a SYN has refused it (RFC 9293, section 3.5.2), and it has
// no answer if nothing else comes.
func (t *tcpDemux) attempted(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref) {
	switch syn := f.TCPFlags & (tcp.SYN | tcp.RST | ackFlag); {
	case syn == tcp.SYN && c.First == ref:
		if p := f.DstPort; p == rpcbindPort || rdma.CarriesRPC(rdma.IWARP, p) {
			c.attempt = attempt{open: true, dir: int8(dir), syns: 1, last: ref.Time}
		}
	case syn == tcp.SYN && dir == int(c.attempt.dir):
		if ref.Time-c.attempt.last >= synGap {
			c.attempt.syns++
			c.attempt.last = ref.Time
		}
	case c.attempt.open:
		if c.attempt.open = false; f.TCPFlags&tcp.RST != 0 && dir != int(c.attempt.dir) {
			t.refused.Add(rdma.Given{Count: 1, First: c.First.Number})
			if t.attempt != nil {
				t.attempt(c.Connection, Asked{})
			}
		}
	}
}
