package run

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// call is one call of a run, from the time it is due. It is reused for other calls. Its state is
// in its entry (package schedule).
type call struct {
	client.Call
	inbox *inbox // where it comes back to
	hash  bool   // data of the reply are hashed on the way
	entry *schedule.Entry
	clone *bindings.Clone
	line  *line
	form  bindings.Form

	own     bool      // the plan does not have it
	behind  *call     // of the plan, which this one of our own belongs to
	follows bool      // it goes when our call is over, rather than ending with it
	relaid  bool      // the captured layout does not fit
	tries   int       // how often it was sent
	putOff  time.Time // when the server put it off first; zero: never
	due     time.Time // when it should have been sent
	status  string    // of the reply
	lives   lives     // when the call was encoded
	lent    [][]byte  // memory of the line's pool
	verdict judge.Reply

	// Copies of data that the transport owns and takes back when Done returns.
	stream      []byte         // of the call
	head        int            // bytes of its RPC header
	sent        *xdr.Procedure // nil if it is not known
	replied     []byte
	items       []transport.Item
	spare       [][]byte
	itemLengths []uint32
	hashes      []string // of items
}

var (
	_ bindings.Memory = (*call)(nil)
	_ judge.Data      = (*call)(nil)
)

// session is the session whose slot the call needs; nil if it needs none.
func (c *call) session() *bindings.Session {
	if c.form.Session == 0 {
		return nil
	}
	return &c.clone.Sessions[c.form.Session]
}

// done is the transport's Done: it copies what is needed of the reply.
func done(t *transport.Call) {
	c := t.User.(*call)
	if c.Err != nil {
		c.inbox.put(c)
		return
	}
	c.keep()
	if !c.hash || len(c.items) == 0 {
		c.inbox.put(c)
		return
	}
	// Hashing a megabyte takes as long as a hundred small calls, so neither the transport nor the
	// engine waits for it.
	go func() {
		for i := range c.items {
			c.hashes = append(c.hashes, plan.HashData(c.items[i].Data))
		}
		c.inbox.put(c)
	}()
}

// OpOf is the number of the op that a call of a run is for; 0 if the plan does not
// have the call.
func OpOf(t *transport.Call) int {
	if c, ok := t.User.(*call); ok && c.entry != nil && !c.own {
		return c.entry.Op.ID
	}
	return 0
}

// keep copies the reply out of the transport's memory, except for data that is already in ours.
func (c *call) keep() {
	c.replied = append(c.replied[:0], c.Reply.Stream...)
	c.items, c.itemLengths, c.hashes = c.items[:0], c.itemLengths[:0], c.hashes[:0]
	for i, it := range c.Reply.Items {
		c.itemLengths = append(c.itemLengths, uint32(len(it.Data)))
		if !c.ours(it.Data) {
			for len(c.spare) <= i {
				c.spare = append(c.spare, nil)
			}
			c.spare[i] = append(c.spare[i][:0], it.Data...)
			it.Data = c.spare[i]
		}
		c.items = append(c.items, it)
	}
	c.Reply = transport.Message{Stream: c.replied, Items: c.items}
}

// ours reports whether data are in memory that the call has lent to the transport.
func (c *call) ours(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	for _, r := range c.Results {
		if len(r) > 0 && &r[0] == &b[0] {
			return true
		}
	}
	return false
}

// Bytes implements judge.Data.
func (c *call) Bytes(d xdr.Data) []byte { return c.Reply.Bytes(d) }

// Hash implements judge.Data. Data of chunks have been hashed by done.
func (c *call) Hash(d xdr.Data, b []byte) string {
	if d.Chunk > 0 && d.Chunk <= len(c.hashes) {
		return c.hashes[d.Chunk-1]
	}
	return plan.HashData(b)
}

// left is the number of bytes behind the results of a reply.
func (c *call) left(res xdr.Message) int {
	if res == nil {
		return 0
	}
	return c.Left()
}

// moved is the number of data bytes of a call.
func (c *call) moved() (n uint64) {
	for i := range c.Items {
		n += uint64(len(c.Items[i].Data))
	}
	for _, l := range c.itemLengths {
		n += uint64(l)
	}
	return n
}

// Borrow implements bindings.Memory.
func (c *call) Borrow(n int) ([]byte, error) {
	b, err := c.line.pool.get(n)
	if err == nil {
		c.lent = append(c.lent, b)
	}
	return b, err
}

// release gives back memory that the call has borrowed.
func (c *call) release() {
	for _, b := range c.lent {
		c.line.pool.put(b)
	}
	c.lent, c.Results, c.Layout = c.lent[:0], nil, nil
}
