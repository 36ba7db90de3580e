package nfsserver

import (
	"container/list"
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// replyCache keeps the last replies of calls that are not idempotent, so that a
// client that asks again, since it lost its connection, gets the same reply
// (Juszczak, "Improving the Performance and Correctness of an NFS Server",
// 1989). Calls are the same if client, user, XID, procedure and arguments are.
//
// When the cache is full, a source (an address) that has more than half of an
// equal share gives up its own oldest reply, so that no client can push out those
// of all others.
type replyCache struct {
	mu      sync.Mutex
	limit   int
	entries map[replyKey]*cachedReply
	sources map[replySource]*list.List // of *cachedReply, the oldest in front
	free    []*cachedReply
}

// replyKey tells calls apart. The client is known by its address, since it may
// come back from another port.
type replyKey struct {
	source             replySource
	client             netip.Addr // one of the source
	xid                uint32
	program, procedure uint32
	sum                uint64 // of the user and the arguments
}

// replySource is where clients call from.
type replySource struct {
	source     netip.Addr
	connection uint64 // if there is no address
}

type cachedReply struct {
	key     replyKey
	place   *list.Element // among those of its source
	state   replyState
	message []byte
	waiting []transport.Exchange // duplicates that came before the reply
}

type replyState uint8

const (
	working replyState = iota
	answered
)

const (
	// A larger reply is not kept; none of NFSv3 is so large.
	maxCachedReply = 8 << 10
	// More duplicates of a call than these are dropped.
	maxWaiting = 8
)

func newReplyCache(n int) *replyCache {
	return &replyCache{limit: n, entries: make(map[replyKey]*cachedReply, n), sources: map[replySource]*list.List{}}
}

// admit reports whether a call is new. Otherwise it was answered, or will be
// when the call that it repeats is.
func (r *replyCache) admit(c *Call) bool {
	peer := c.x.Peer()
	key := replyKey{source: replySource{source: peer.Source()}, client: peer.Remote.Addr(), xid: c.Header.XID, program: c.Header.Program, procedure: c.Header.Procedure}
	if !key.client.IsValid() {
		key.source.connection = peer.ID
	}
	var h maphash.Hash
	h.SetSeed(c.server.seed)
	// Nobody gets the reply to somebody else's call.
	who := make([]byte, 0, 64)
	who = binary.BigEndian.AppendUint32(who, uint32(c.Flavor))
	who = binary.BigEndian.AppendUint32(who, c.User)
	who = binary.BigEndian.AppendUint32(who, c.Cred.UID)
	who = binary.BigEndian.AppendUint32(who, c.Cred.GID)
	for _, g := range c.Cred.GIDs {
		who = binary.BigEndian.AppendUint32(who, g)
	}
	_, _ = h.Write(binary.BigEndian.AppendUint32(who, uint32(len(c.Cred.GIDs))))
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
	if e := r.entry(key.source); e != nil {
		e.key, e.state = key, working
		q := r.sources[key.source]
		if q == nil {
			q = list.New()
			r.sources[key.source] = q
		}
		e.place = q.PushBack(e)
		r.entries[key] = e
		c.cached = e
	}
	return true // if all are being worked at, this one is not kept
}

// entry finds an entry for a reply to a source, nil if there is none.
func (r *replyCache) entry(of replySource) *cachedReply {
	if len(r.entries) < r.limit {
		if n := len(r.free); n > 0 {
			e := r.free[n-1]
			r.free = r.free[:n-1]
			return e
		}
		return &cachedReply{}
	}
	share := r.limit / (2 * len(r.sources))
	q := r.sources[of]
	if q == nil || q.Len() <= share {
		q = nil
		for _, other := range r.sources {
			if q == nil || other.Len() > q.Len() {
				q = other
			}
		}
	}
	for at := q.Front(); at != nil; at = at.Next() {
		if e := at.Value.(*cachedReply); e.state == answered {
			r.drop(e)
			return e
		}
	}
	return nil
}

// drop takes an entry out.
func (r *replyCache) drop(e *cachedReply) {
	delete(r.entries, e.key)
	q := r.sources[e.key.source]
	if q.Remove(e.place); q.Len() == 0 {
		delete(r.sources, e.key.source)
	}
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
		r.drop(e)
		r.free = append(r.free, e)
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
	r.drop(e)
	waiting := e.waiting
	e.waiting = nil
	r.free = append(r.free, e)
	r.mu.Unlock()
	for _, x := range waiting {
		x.Drop()
	}
}
