package accept

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// A call is the Exchange of the plain call.
var _ transport.Exchange = (*call)(nil)

// Call implements transport.Exchange.
func (c *call) Call() *transport.Message { return &c.message }

// Peer implements transport.Exchange.
func (c *call) Peer() transport.Peer { return c.x.Peer() }

// Identity returns the pseudo flavor of the call, and a number for its principal.
func (c *call) Identity() (flavor oncrpc.Flavor, user uint32) {
	return oncrpc.PseudoKrb5 + oncrpc.Flavor(c.kind-oncrpc.ServiceNone), c.user
}

// MaxResult implements transport.Exchange. Protected results have no chunks of their own.
func (c *call) MaxResult(n int) uint32 {
	if c.kind != oncrpc.ServiceNone {
		return 0
	}
	return c.x.MaxResult(n)
}

// Reply implements transport.Exchange: it protects the reply of the server.
func (c *call) Reply(m *transport.Message) {
	plain := &c.plain
	if plain.Decode(m.Stream, len(m.Stream)) != nil || plain.Stat == oncrpc.Denied {
		c.out = m.AppendWhole(c.out[:0])
		c.sent(m)
		return
	}
	at := plain.Size()
	verifier := c.verifier()
	r := oncrpc.Reply{XID: plain.XID, Stat: oncrpc.Accepted, Verf: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: verifier}, Accept: plain.Accept, Low: plain.Low, High: plain.High}
	c.out = r.Append(c.out[:0])
	c.outItems = c.outItems[:0]
	if !plain.Succeeded() || c.kind == oncrpc.ServiceNone {
		shift := uint32(len(c.out) - at)
		c.out = append(c.out, m.Stream[at:]...)
		for _, it := range m.Items {
			c.outItems = append(c.outItems, transport.Item{Position: it.Position + shift, Data: it.Data})
		}
		c.reply.Items = c.outItems
		c.release = m.Release // items stay where they are
		c.answer()
		return
	}
	body := transport.Message{Stream: m.Stream[at:]}
	for _, it := range m.Items {
		c.outItems = append(c.outItems, transport.Item{Position: it.Position - uint32(at), Data: it.Data})
	}
	body.Items = c.outItems
	b, g := c.out, c.ctx
	start := len(b)
	b = xdr.AppendUint32(b, 0)
	if c.kind == oncrpc.ServiceIntegrity {
		b = body.AppendWhole(xdr.AppendUint32(b, c.seq))
		binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
		g.mu.Lock()
		c.token = g.session.MIC(c.token[:0], b[start+4:])
		g.mu.Unlock()
		b = xdr.AppendOpaque(b, c.token)
	} else {
		g.mu.Lock()
		var token int
		b, token = g.session.BeginWrap(b)
		b = body.AppendWhole(xdr.AppendUint32(b, c.seq))
		b = g.session.EndWrap(b, token)
		g.mu.Unlock()
		n := len(b) - start - 4
		binary.BigEndian.PutUint32(b[start:], uint32(n))
		b = append(b, padding[:-n&3]...)
	}
	c.out = b
	c.sent(m)
}

var padding [4]byte

// sent releases the server's reply, of which out is a copy, and sends out.
func (c *call) sent(m *transport.Message) {
	c.reply.Items = nil
	if m.Release != nil {
		m.Release()
	}
	c.answer()
}

// Drop implements transport.Exchange.
func (c *call) Drop() { c.drop() }

// Disconnect implements transport.Exchange.
func (c *call) Disconnect() { c.x.Disconnect() }

// Backward implements transport.Exchange.
func (c *call) Backward() transport.Requester { return c.x.Backward() }

// OnClose implements transport.Exchange.
func (c *call) OnClose(key any, f func()) { c.x.OnClose(key, f) }
