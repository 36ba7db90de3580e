// Package nfstest calls RPC servers in tests, directly or through a transport. It has a
// thin NFSv3 client, which lets tests see the wire structures.
package nfstest

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/rpcrdma/toolkit/internal/onclose"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// ErrDropped says that the server gave up a call without a reply.
var ErrDropped = errors.New("nfstest: the call was dropped")

// Direct hands calls to a handler and waits for the replies. Results are like
// Write chunks: with one, an eligible item goes there if it fits.
type Direct struct {
	Handler transport.Handler
	Name    transport.Peer

	ends onclose.Hooks
}

// NewDirect returns a connection of its own.
func NewDirect(h transport.Handler) *Direct {
	return &Direct{Handler: h, Name: transport.Peer{
		Transport: "direct", ID: transport.NextID(),
		Local: netip.MustParseAddrPort("192.0.2.1:20049"), Remote: netip.MustParseAddrPort("192.0.2.2:700"),
	}}
}

// Do makes a call. The reply is a copy.
func (d *Direct) Do(ctx context.Context, c *transport.Call) error {
	x := &exchange{d: d, call: c, done: make(chan struct{})}
	d.Handler.ServeRPC(x)
	select {
	case <-x.done:
		return c.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the connection as far as the handler can tell.
func (d *Direct) Close() { d.ends.Run() }

type exchange struct {
	d    *Direct
	call *transport.Call
	once sync.Once
	done chan struct{}
}

func (x *exchange) Call() *transport.Message { return &x.call.Message }
func (x *exchange) Peer() transport.Peer     { return x.d.Name }

func (x *exchange) MaxResult(n int) uint32 {
	if n < 0 || n >= len(x.call.Results) {
		return 0
	}
	return uint32(len(x.call.Results[n]))
}

func (x *exchange) Reply(m *transport.Message) {
	answered := true
	x.once.Do(func() {
		answered = false
		x.call.Err = x.keep(m)
		if m.Release != nil {
			m.Release()
		}
		close(x.done)
	})
	if answered {
		panic("nfstest: two replies to one call")
	}
}

// keep copies a reply: items that have a chunk go there, the others into the stream.
func (x *exchange) keep(m *transport.Message) error {
	reply, apart := &x.call.Reply, len(x.call.Results) > 0
	*reply = transport.Message{}
	if !apart {
		reply.Stream = m.AppendWhole(nil)
		return nil
	}
	if len(m.Items) > len(x.call.Results) {
		return transport.ErrBadReply
	}
	reply.Stream = append([]byte(nil), m.Stream...)
	for i, it := range m.Items {
		if len(it.Data) > len(x.call.Results[i]) {
			return transport.ErrTooLong
		}
		n := copy(x.call.Results[i], it.Data)
		reply.Items = append(reply.Items, transport.Item{Data: x.call.Results[i][:n]})
	}
	return nil
}

func (x *exchange) Drop() {
	x.once.Do(func() {
		x.call.Err = ErrDropped
		close(x.done)
	})
}

func (x *exchange) Disconnect()                   { x.d.Close() }
func (x *exchange) Backward() transport.Requester { return nil }

func (x *exchange) OnClose(key any, f func()) { x.d.ends.Set(key, f) }
