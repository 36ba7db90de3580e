package split

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// conn is what a Splitter has to know of a connection. Packets and files refer
// to it longer than the connection lives: an *rdma.Connection, with all that
// decoding keeps of it, would stay in memory for that.
type conn struct {
	c      *rdma.Connection // nil once it has ended
	into   *conn            // it turned out to be a part of that one
	number int
	ends   [2]netip.Addr
	client rdma.Side // see transaction.ClientOf
	tenant uint64    // see rdma.Connection.Tenant
	tunnel *rdma.Tunnel
}

// conns are the connections that have not ended.
type conns struct {
	open   map[*rdma.Connection]*conn
	latest *conn
	gone   [64]*conn // ended lately: packets may still come
	goneOf [64]*rdma.Connection
	next   int
}

// of returns what is known of a connection; nil for nil.
func (s *conns) of(c *rdma.Connection) *conn {
	if c == nil {
		return nil
	}
	if s.latest != nil && s.latest.c == c {
		return s.latest
	}
	k := s.open[c]
	if k == nil {
		for i, g := range s.goneOf {
			if g == c {
				return s.gone[i]
			}
		}
		if s.open == nil || len(s.open) >= maxMet {
			for _, k := range s.open {
				k.settle()
			}
			s.open = make(map[*rdma.Connection]*conn)
		}
		k = &conn{c: c, number: c.ID, tenant: c.Tenant, tunnel: c.Tunnel}
		s.open[c] = k
	}
	s.latest = k
	return k
}

// closed records a connection's end.
func (s *conns) closed(c *rdma.Connection) {
	k := s.open[c]
	if k == nil {
		return
	}
	if c.MergedInto != nil {
		k.into = s.of(c.Resolve())
	}
	k.settle()
	delete(s.open, c)
	s.gone[s.next], s.goneOf[s.next] = k, c
	s.next = (s.next + 1) % len(s.gone)
}

// settle keeps of a connection what counts.
func (k *conn) settle() {
	if c := k.c; c != nil {
		k.ends = [2]netip.Addr{c.Ends[0].Addr, c.Ends[1].Addr}
		k.client, _ = transaction.ClientOf(c)
		k.c = nil
	}
}

// resolve returns the connection that one has become a part of, or the
// connection itself.
func (s *conns) resolve(k *conn) *conn {
	for k != nil {
		switch {
		case k.into != nil:
			k = k.into
		case k.c != nil && k.c.MergedInto != nil:
			k.into = s.of(k.c.Resolve())
		default:
			return k
		}
	}
	return nil
}

// addresses are the addresses of the end that sends forward calls, and of the other: side 0 is the first if
// none was seen.
func (k *conn) addresses() (client, server netip.Addr) {
	ends, side := k.ends, k.client
	if c := k.c; c != nil {
		ends = [2]netip.Addr{c.Ends[0].Addr, c.Ends[1].Addr}
		side, _ = transaction.ClientOf(c)
	}
	return ends[side], ends[side.Other()]
}
