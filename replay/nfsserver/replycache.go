package nfsserver

import (
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// replyCache keeps the last replies of calls that are not idempotent, so that a
// client that asks again, since it lost its connection, gets the same reply
// (Juszczak, "Improving the Performance and Correctness of an NFS Server",
// 1989). Calls are the same if client, XID, procedure and arguments are.
type replyCache struct {
	mu      sync.Mutex
	entries map[replyKey]*cachedReply
	ring    []cachedReply // in order of arrival; next is the oldest
	next    int
}

// replyKey tells calls apart. The client is known by its address, since it may
// come back from another port.
type replyKey struct {
	client             netip.Addr
	connection         uint64 // if there is no address
	xid                uint32
	program, procedure uint32
	sum                uint64 // of the arguments
}

type cachedReply struct {
	key     replyKey
	state   replyState
	message []byte
	waiting []transport.Exchange // duplicates that came before the reply
}

type replyState uint8

const (
	unused replyState = iota
	working
	answered
)

const (
	// A larger reply is not kept; none of NFSv3 is so large.
	maxCachedReply = 8 << 10
	// More duplicates of a call than these are dropped.
	maxWaiting = 8
)

func newReplyCache(n int) *replyCache {
	return &replyCache{entries: make(map[replyKey]*cachedReply, n), ring: make([]cachedReply, n)}
}

// admit reports whether a call is new. Otherwise it was answered, or will be
// when the call that it repeats is.
func (r *replyCache) admit(c *Call) bool {
	peer := c.x.Peer()
	key := replyKey{client: peer.Remote.Addr(), xid: c.Header.XID, program: c.Header.Program, procedure: c.Header.Procedure}
	if !key.client.IsValid() {
		key.connection = peer.ID
	}
	var h maphash.Hash
	h.SetSeed(c.server.seed)
	_, _ = h.Write(c.Args.Rest())
	for i := range c.msg.Items {
		_, _ = h.Write(c.msg.Items[i].Data)
	}
	key.sum = h.Sum64()

	r.mu.Lock()
	if e := r.entries[key]; e != nil {
		r.repeat(c, e)
		return false
	}
	defer r.mu.Unlock()
	for range r.ring {
		e := &r.ring[r.next]
		r.next = (r.next + 1) % len(r.ring)
		if e.state == working {
			continue
		}
		if e.state == answered {
			delete(r.entries, e.key)
		}
		e.key, e.state = key, working
		r.entries[key] = e
		c.cached = e
		return true
	}
	return true // all are being worked at: this one is not kept
}

// repeat answers a duplicate. It unlocks.
func (r *replyCache) repeat(c *Call, e *cachedReply) {
	if e.state == answered {
		c.Out = append(c.Out[:0], e.message...)
		r.mu.Unlock()
		c.Send()
		return
	}
	wait := len(e.waiting) < maxWaiting
	if wait {
		e.waiting = append(e.waiting, c.x)
	}
	r.mu.Unlock()
	if !wait {
		c.Drop()
		return
	}
	c.x, c.msg = nil, nil
	c.released()
}

// done keeps a reply and gives it to those that wait for it.
func (r *replyCache) done(e *cachedReply, m *transport.Message) {
	r.mu.Lock()
	fits := m.Size() <= maxCachedReply
	if fits {
		e.message = m.AppendWhole(e.message[:0])
		e.state = answered
	} else {
		delete(r.entries, e.key)
		e.state = unused
	}
	waiting := e.waiting
	e.waiting = nil
	var whole []byte
	if len(waiting) > 0 {
		whole = m.AppendWhole(nil)
	}
	r.mu.Unlock()
	for _, x := range waiting {
		x.Reply(&transport.Message{Stream: append([]byte(nil), whole...)})
	}
}

// abandon forgets a call that gets no reply.
func (r *replyCache) abandon(e *cachedReply) {
	r.mu.Lock()
	delete(r.entries, e.key)
	e.state = unused
	waiting := e.waiting
	e.waiting = nil
	r.mu.Unlock()
	for _, x := range waiting {
		x.Drop()
	}
}
