package tcprpc

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// exchange is a call of the peer.
type exchange struct {
	conn     *conn
	rec      *record
	call     transport.Message
	reply    transport.Message
	answered atomic.Bool
	at       place
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (c *conn) serve(rec *record) {
	c.count.calls.Add(1)
	x := exchanges.Get().(*exchange)
	x.conn, x.rec = c, rec
	x.call = transport.Message{Stream: rec.b}
	x.answered.Store(false)
	c.mu.Lock()
	c.serving++
	c.mu.Unlock()
	if h := c.handler.Load(); h != nil {
		(*h).ServeRPC(x)
		return
	}
	r := oncrpc.Reply{XID: binary.BigEndian.Uint32(rec.b), Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
	x.Reply(&transport.Message{Stream: r.Append(nil)})
}

func (x *exchange) Call() *transport.Message { return &x.call }
func (x *exchange) Peer() transport.Peer     { return x.conn.peer }
func (x *exchange) MaxResult(int) uint32     { return 0 }
func (x *exchange) Disconnect()              { x.conn.close() }

func (x *exchange) Backward() transport.Requester { return x.conn.calls }

func (x *exchange) OnClose(key any, f func()) { x.conn.hooks.Set(key, f) }

func (x *exchange) Reply(m *transport.Message) {
	if !x.answered.CompareAndSwap(false, true) {
		return
	}
	x.reply = *m
	if !x.conn.send(x) {
		x.written(false)
	}
}

func (x *exchange) Drop() {
	if x.answered.CompareAndSwap(false, true) {
		x.end()
	}
}

func (x *exchange) message() *transport.Message { return &x.reply }
func (x *exchange) place() *place               { return &x.at }

func (x *exchange) begun(time.Time) {}
func (x *exchange) landed() bool    { return true }
func (x *exchange) weight() int     { return x.reply.Size() }

func (x *exchange) written(ok bool) {
	if ok {
		x.conn.count.replies.Add(1)
	}
	if x.reply.Release != nil {
		x.reply.Release()
	}
	x.end()
}

func (x *exchange) end() {
	c := x.conn
	x.rec.free()
	x.conn, x.rec, x.call, x.reply, x.at = nil, nil, transport.Message{}, transport.Message{}, idle
	exchanges.Put(x)
	c.mu.Lock()
	c.serving--
	c.room.Signal()
	c.mu.Unlock()
}
