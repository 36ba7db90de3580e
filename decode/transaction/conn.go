package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// conn is what a Tracker knows of a connection: rdma.Connection.Upper. At the
// end of the connection the halves go; the rest stays for those who list it.
type conn struct {
	halves  [2]*half // by the side of the requester; nil if it has sent nothing yet
	forward uint8    // 1 + the side that sends forward calls; 0 if no call has shown it
	likely  uint8    // 1 + the side to which the first reply without a call went; 0 if there was none
	calls   Calls
	// delivered is what is known of the delivery of messages, by their sender.
	delivered [2]delivery
	// carries says that the connection is known to carry RPC-over-RDMA. malformed are its Sends with headers that
	// cannot be decoded, whether that is known or not.
	carries   bool
	malformed Malformed
	// copied is the last copy that was handed out, see copyOf, and number the
	// number that it had.
	copied *rdma.Connection
	number int
	// renumbered says that a copy has the number that Renumber gave it.
	renumbered bool
}

// UpperOfConnection implements rdma.Upper.
func (*conn) UpperOfConnection() {}

// Calls count the transactions of a connection that have ended.
type Calls struct {
	Ended      uint64
	Unanswered uint64 // no reply was seen
	Incomplete uint64 // no call was seen, or a part is missing
}

func (c *Calls) add(o Calls) {
	c.Ended += o.Ended
	c.Unanswered += o.Unanswered
	c.Incomplete += o.Incomplete
}

// CallsOf returns how many transactions of a connection have ended so far; of a
// copy of a connection, by the time of the copy.
func CallsOf(c *rdma.Connection) Calls {
	if k, ok := c.Upper.(*conn); ok {
		return k.calls
	}
	return Calls{}
}

// ClientOf returns the side that sends forward calls: as calls have shown, the one that
// has set up the connection, or of iWARP the one that talks to the port of NFS/RDMA. If nothing of that was captured, ok is false,
// and the side is the one to which replies go, as their transactions have it; 0 if
// there are none.
func ClientOf(c *rdma.Connection) (side rdma.Side, ok bool) {
	if s := forwardSide(c); s != unknownSide {
		return s, true
	}
	if k, ok := c.Upper.(*conn); ok && k.likely != 0 {
		return rdma.Side(k.likely - 1), false
	}
	return 0, false
}

// of returns what is known of a connection, from now on if nothing was.
func of(c *rdma.Connection) *conn {
	if k, ok := c.Upper.(*conn); ok {
		return k
	}
	k := new(conn)
	c.Upper = k
	return k
}

// halfOf is the half of a side, nil if it has sent nothing.
func halfOf(c *rdma.Connection, side rdma.Side) *half {
	if k, ok := c.Upper.(*conn); ok {
		return k.halves[side]
	}
	return nil
}

// copyOf is a copy of what is known of a connection's ends and setup, which
// does not change any more. It is made anew only when that has changed; the
// counters in it keep the values that they had then.
func copyOf(c *rdma.Connection) *rdma.Connection {
	k := of(c)
	if s := k.copied; s != nil && k.number == c.ID && s.Fabric == c.Fabric && sameEnds(&s.Ends, &c.Ends) && s.MTU == c.MTU &&
		s.State == c.State && s.Setup[0].Frame == c.Setup[0].Frame && s.Setup[1].Frame == c.Setup[1].Frame {
		return s
	}
	s := Copy(c)
	s.Settled = true // Renumber has changed its number before anybody sees it
	k.copied, k.number = s, c.ID
	return s
}

// sameEnds is == field by field: each transaction asks, and Go compares whole arrays in functions of their own.
func sameEnds(a, b *[2]rdma.End) bool {
	return a[0].QPN == b[0].QPN && a[1].QPN == b[1].QPN && a[0].Port == b[0].Port && a[1].Port == b[1].Port &&
		a[0].Addr == b[0].Addr && a[1].Addr == b[1].Addr
}

// Copy returns a copy of a connection as it is now, of which ClientOf and CallsOf say
// what they say of c now.
func Copy(c *rdma.Connection) *rdma.Connection {
	k := of(c)
	s := new(rdma.Connection)
	*s = c.Copy()
	s.Upper = &conn{forward: k.forward, likely: k.likely, calls: k.calls, carries: k.carries, malformed: k.malformed}
	return s
}
