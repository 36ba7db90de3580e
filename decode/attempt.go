package decode

import (
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// attempt is the state of a TCP connection of which only SYNs of one side have been seen.
type attempt struct {
	open bool
	dir  int8 // who sends them
}

// rpcbindPort is the port of rpcbind (RFC 1833, section 2.1), which clients ask first.
const rpcbindPort = 111

// attempted follows attempts to connect to a service of RPC: an RST that answers a SYN has refused it (RFC 9293, section 3.5.2), and it has
// no answer if nothing else comes.
func (t *tcpDemux) attempted(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref) {
	switch syn := f.TCPFlags & (tcp.SYN | tcp.RST | ackFlag); {
	case syn == tcp.SYN && c.First == ref:
		if p := f.DstPort; p == rpcbindPort || rdma.CarriesRPC(rdma.IWARP, p) {
			c.attempt = attempt{open: true, dir: int8(dir)}
		}
	case syn == tcp.SYN && dir == int(c.attempt.dir): // sent again
	case c.attempt.open:
		if c.attempt.open = false; f.TCPFlags&tcp.RST != 0 && dir != int(c.attempt.dir) {
			t.refused.Add(rdma.Given{Count: 1, First: c.First.Number})
			if t.told != nil {
				t.told(c.Connection)
			}
		}
	}
}
