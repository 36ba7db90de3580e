package simulate

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// connection is a transport of a client, which is connected anew when it breaks.
type connection struct {
	n       *network
	client  *client
	index   int
	times   uint32  // it was connected
	ends    [2]*end // the client's, the server's
	up      bool
	granted int
	open    []*Call // sent, not answered, in order
	backlog []*Call // that wait for a credit
}

// connect makes the two queue pairs.
func (c *connection) connect() {
	c.times++
	r := stream(c.n.seed, "queue pair", uint64(c.client.h.index)<<32|uint64(c.index)<<16|uint64(c.times))
	for i, h := range [2]*host{c.client.h, c.n.server} {
		if old := c.ends[i]; old != nil {
			old.dead = true
			h.ends = slices.DeleteFunc(h.ends, func(e *end) bool { return e == old })
		}
		e := &end{c: c, n: c.n, h: h, qpn: 0x100 + r.Uint32N(0x10000)<<4 + uint32(c.index)}
		e.post = r.Uint32() & mask24
		e.at, e.fresh, e.base = e.post, e.post, e.post
		c.ends[i] = e
		h.ends = append(h.ends, e)
	}
	a, b := c.ends[0], c.ends[1]
	a.other, b.other = b, a
	a.expected, b.expected = b.post, a.post
	a.receive = c.atClient
	if c.n.IWARP {
		c.opens()
	}
	b.receive = func(m []byte, call *Call) {
		if rpcrdma.Type(binary.BigEndian.Uint32(m[12:])) != rpcrdma.TypeDone {
			c.n.nfsd.take(c, call)
		}
	}
}

// port is the UDP source port of an end.
func (c *connection) port(e *end) uint16 {
	return 0xc000 + uint16(c.ends[0].qpn*7+e.qpn)&0x3fff
}

// depth is how many Reads an end may have under way, or answers.
func (c *connection) depth(asks bool) int {
	if d := c.n.ReadDepth; d != nil && d.ByServer == asks {
		return d.Depth
	}
	return 16
}

// depthOf is how many Reads of an end may be under way.
func (c *connection) depthOf(e *end) int {
	if e == c.ends[1] {
		return min(c.depth(true), c.depth(false))
	}
	return 16
}

// ackTimeout is the time that a requester waits for an acknowledgement.
func (n *network) ackTimeout() int64 { return 4096 << n.AckTimeout }

// broken ends a connection whose retries are used up. The client connects again.
func (c *connection) broken() {
	if !c.up {
		return
	}
	c.up = false
	for _, e := range c.ends {
		e.dead = true
	}
	c.n.after(reconnectTime, c.setup)
}

// reconnectTime is the client's wait before it connects again, and between its requests.
const reconnectTime = 250_000_000

// management sends a message of the connection manager.
func (c *connection) management(from int, a ibcm.Attribute, fill func(ibcm.MAD), arrive func()) {
	b, mad := ibcm.Append(nil, a, uint64(c.client.h.index)<<16|uint64(c.index)<<8|uint64(c.times))
	fill(mad)
	hosts := [2]*host{c.client.h, c.n.server}
	p := &packet{src: hosts[from], dst: hosts[1-from], srcPort: rocePort, arrive: arrive}
	p.Opcode = roce.UDSendOnly
	p.PKey = roce.DefaultPKey
	p.DestQP = 1
	p.DETH = roce.DETHFields{QKey: 0x80010000, SrcQP: 1}
	p.Payload, p.PayloadLen = b, len(b)
	p.src.manage = append(p.src.manage, p)
	p.src.wake()
}

// setup connects by messages, again and again until the server answers.
func (c *connection) setup() {
	if c.n.IWARP {
		c.setupTCP()
		return
	}
	if c.up {
		return
	}
	c.connect()
	local := 0x1000 + uint32(c.index)<<8 + c.times + uint32(c.client.h.index)<<16
	remote := local + 0x800000
	a, b := c.ends[0], c.ends[1]
	times := c.times
	private := (&rdma.PrivateData{Version: 1, SendSize: inlineSize, ReceiveSize: inlineSize}).Append(nil)
	c.n.after(reconnectTime, func() {
		if c.times == times && !c.up {
			c.setup()
		}
	})
	c.management(0, ibcm.AttributeREQ, func(m ibcm.MAD) {
		r := ibcm.REQ(m.Data())
		r.SetLocalID(local)
		r.SetLocalQPN(a.qpn)
		r.SetStartingPSN(b.post)
		r.SetPathMTU(ibcm.MTUCode(c.n.MTU))
		r.SetServiceID(ibcm.IPServiceID(6, 20049))
		r.SetResponderResources(uint8(c.depth(false)))
		r.SetInitiatorDepth(16)
		r.SetRetryCount(uint8(c.n.Retries))
		r.SetRNRRetryCount(7)
		path := r.Primary()
		path.SetAckTimeout(uint8(c.n.AckTimeout))
		r.SetIP(netip.AddrPortFrom(c.client.h.addr, 900+uint16(c.index)), c.n.server.addr, private)
	}, func() {
		c.management(1, ibcm.AttributeREP, func(m ibcm.MAD) {
			r := ibcm.REP(m.Data())
			r.SetIDs(remote, local)
			r.SetLocalQPN(b.qpn)
			r.SetStartingPSN(a.post)
			r.SetResponderResources(16)
			r.SetInitiatorDepth(uint8(min(c.depth(true), c.depth(false))))
			r.SetPrivate(private)
		}, func() {
			if c.times != times || c.up {
				return
			}
			c.management(0, ibcm.AttributeRTU, func(m ibcm.MAD) { ibcm.RTU(m.Data()).SetIDs(local, remote) }, func() {})
			c.established(times)
		})
	})
}

// established begins to use a connection: what was not answered on the one before is sent again.
func (c *connection) established(times uint32) {
	if c.times != times || c.up {
		return
	}
	c.up, c.granted = true, 1 // until the first reply grants more (RFC 8166, section 3.3.3)
	again := c.open
	c.open = nil
	if c.n.NFS4 && times == 1 && c.index == 0 {
		c.client.createSession(c)
	}
	for _, call := range again {
		c.send(call)
	}
	c.pump()
}

// pump sends what has a credit.
func (c *connection) pump() {
	for c.up && len(c.backlog) > 0 && len(c.open) < max(c.granted, 1) {
		call := c.backlog[0]
		c.backlog = c.backlog[1:]
		c.send(call)
	}
}
