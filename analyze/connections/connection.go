package connections

import (
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Connection is a connection at its end.
type Connection struct {
	*rdma.Connection
	Client rdma.Side // the side that sends forward calls; if there were none, the one that was seen first
	Calls  transaction.Calls
	// Malformed is how many of its Sends have an RPC-over-RDMA header that cannot be decoded.
	Malformed uint64
	// Headers are the header values of what each side sent; empty if they were not collected.
	Headers  [2]Headers
	Policies Policies // empty if nobody has looked
	// Tap names the tap that saw it, and Taps is how many did, in a list of several taps; otherwise they are zero.
	Tap  string
	Taps int
	// Capture is the file of the tap that has its first packet, and Packet the number of that in it, if packets are numbered over several.
	Capture string
	Packet  uint64
}

// New is a connection as it is now.
func New(c *rdma.Connection) *Connection {
	client, _ := transaction.ClientOf(c)
	malformed := transaction.MalformedOf(c)
	return &Connection{Connection: c, Client: client, Calls: transaction.CallsOf(c), Malformed: malformed.Total()}
}

// order is the client's side, then the server's.
func (c *Connection) order() [2]rdma.Side { return [2]rdma.Side{c.Client, c.Client.Other()} }

func (c *Connection) setupName(side rdma.Side) string {
	return [rdma.SetupMessages]string{"-", "REQ", "REP", "MPA"}[c.Setup[side].Message]
}

func (c *Connection) state() string {
	if c.Terminated == "" && c.State == rdma.Closed {
		return "open"
	}
	return c.State.String()
}

// service names the layer above, "-" if it is not known.
func (c *Connection) service() string {
	if s := fabric.NameService(c.Connection, c.Client.Other(), nil); s.Source != fabric.SourceNone {
		return s.String()
	}
	return "-"
}
