package nfsserver

import (
	"container/heap"
	"container/list"
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// replyCache keeps the last replies to calls that are not idempotent. A client that
// sends a call again because it lost its connection gets the same reply (Juszczak,
// "Improving the Performance and Correctness of an NFS Server", 1989). Two calls are
// the same if client address, program, version, procedure, XID, user and arguments
// are.
//
// The number of replies and their bytes are limited. When the cache is full, a source
// (an address) that has more than half of an equal share gives up its own oldest
// reply, so that no client can push out those of all others.
type replyCache struct {
	mu      sync.Mutex
	limit   int // entries
	room    int // bytes
	used    int // bytes
	entries map[replyKey]*cachedReply
	sources map[replySource]*replyShare
	shares  replyShares // the same, the greediest first
	free    []*cachedReply
	evicted uint64 // replies that were given up for others
	unkept  uint64 // calls whose reply found no room
	now     func() time.Time
}

// replyKey identifies a call. The client is known by its address, since it may come
// back from another port.
type replyKey struct {
	source                      replySource
	client                      netip.Addr // one of the source
	xid                         uint32
	program, version, procedure uint32
	sum                         uint64 // of the user and the arguments
}

// replySource is where clients call from.
type replySource struct {
	source     netip.Addr
	connection uint64 // if there is no address
}

// replyShare is what the cache holds for a source.
type replyShare struct {
	source   replySource
	answered list.List // of *cachedReply, the oldest in front
	entries  int       // those without an answer included
	bytes    int
	at       int // in replyCache.shares
}

type cachedReply struct {
	key     replyKey
	share   *replyShare
	place   *list.Element // among the answered ones of its source; nil without an answer
	stream  []byte
	items   []transport.Item     // their memory does not change, and is not used again
	bytes   int                  // counted
	at      time.Time            // of the reply
	waiting []transport.Exchange // duplicates that came before the reply
}

const (
	// A reply may take this part of all bytes.
	replyPart = 8
	// replyCost is what an entry takes besides the reply, in bytes.
	replyCost = 384
	// streamKept is how large the memory of a stream may be to be used again.
	streamKept = 1024
	// A reply is not given again after this time: the call is another one, of a client
	// that numbers its calls from the start again. Linux has the same time.
	replyAge = 2 * time.Minute
	// More duplicates of a call than these are dropped.
	maxWaiting = 8
)

func newReplyCache(entries, bytes int) *replyCache {
	return &replyCache{limit: entries, room: bytes, entries: map[replyKey]*cachedReply{}, sources: map[replySource]*replyShare{}, now: time.Now}
}

// admit reports whether a call is new. Otherwise it was answered, or will be
// when the call that it repeats is.
func (r *replyCache) admit(c *Call) bool {
	key := replyKeyOf(c)
	r.mu.Lock()
	if e := r.entries[key]; e != nil {
		if e.place == nil || r.now().Sub(e.at) < replyAge {
			c.server.duplicates.Add(1) // before its reply, which may be all that its sender waits for
			r.repeat(c, e)
			return false
		}
		r.drop(e)
	}
	defer r.mu.Unlock()
	if len(r.entries) >= r.limit && !r.evict(key.source) {
		r.unkept++ // all entries belong to calls that are being executed
		return true
	}
	e := &cachedReply{}
	if n := len(r.free); n > 0 {
		e, r.free = r.free[n-1], r.free[:n-1]
	}
	e.key, e.share = key, r.share(key.source)
	e.share.entries++
	r.count(e, replyCost)
	r.entries[key] = e
	c.cached = e
	return true
}

func replyKeyOf(c *Call) replyKey {
	peer, h := c.x.Peer(), &c.Header
	key := replyKey{
		source: replySource{source: peer.Source()}, client: peer.Remote.Addr(),
		xid: h.XID, program: h.Program, version: h.Version, procedure: h.Procedure,
	}
	if !key.client.IsValid() {
		key.source.connection = peer.ID
	}
	var sum maphash.Hash
	sum.SetSeed(c.server.seed)
	// Nobody gets the reply to somebody else's call.
	var space [96]byte
	who := binary.BigEndian.AppendUint32(space[:0], uint32(c.Flavor))
	for _, n := range [...]uint32{c.User, c.Cred.UID, c.Cred.GID, uint32(len(c.Cred.GIDs))} {
		who = binary.BigEndian.AppendUint32(who, n)
	}
	for _, g := range c.Cred.GIDs {
		who = binary.BigEndian.AppendUint32(who, g)
	}
	_, _ = sum.Write(who)
	_, _ = sum.Write(c.Args.Rest())
	for i := range c.msg.Items {
		_, _ = sum.Write(c.msg.Items[i].Data)
	}
	key.sum = sum.Sum64()
	return key
}

// share finds or makes the share of a source.
func (r *replyCache) share(of replySource) *replyShare {
	s := r.sources[of]
	if s == nil {
		s = &replyShare{source: of}
		r.sources[of] = s
		heap.Push(&r.shares, s)
	}
	return s
}

// count adds n bytes to an entry.
func (r *replyCache) count(e *cachedReply, n int) {
	e.bytes += n
	e.share.bytes += n
	r.used += n
	heap.Fix(&r.shares, e.share.at)
}

// evict gives up the oldest reply of a source that has more than half of an equal
// share, or else of the one that has most. It reports false if there is no reply to
// give up.
func (r *replyCache) evict(from replySource) bool {
	s := r.sources[from]
	if s == nil || s.bytes <= r.used/(2*len(r.shares)) || s.answered.Len() == 0 {
		if len(r.shares) == 0 {
			return false
		}
		if s = r.shares[0]; s.answered.Len() == 0 {
			return false
		}
	}
	r.drop(s.answered.Front().Value.(*cachedReply))
	r.evicted++
	return true
}

// drop takes an entry out.
func (r *replyCache) drop(e *cachedReply) {
	delete(r.entries, e.key)
	s := e.share
	r.count(e, -e.bytes)
	if e.place != nil {
		s.answered.Remove(e.place)
	}
	if s.entries--; s.entries == 0 {
		heap.Remove(&r.shares, s.at)
		delete(r.sources, s.source)
	}
	stream := e.stream[:0]
	if cap(stream) > streamKept {
		stream = nil
	}
	*e = cachedReply{stream: stream}
	r.free = append(r.free, e)
}

// repeat answers a duplicate. It unlocks.
func (r *replyCache) repeat(c *Call, e *cachedReply) {
	if e.place != nil {
		c.Out = append(c.Out[:0], e.stream...)
		c.reply.Items = append(c.reply.Items[:0], e.items...)
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
	// The data of items may be a file's, which is released with the reply.
	var items []transport.Item
	for _, it := range m.Items {
		items = append(items, transport.Item{Position: it.Position, Data: append([]byte(nil), it.Data...)})
	}
	r.mu.Lock()
	waiting := e.waiting
	e.waiting = nil
	size := m.Size()
	fits := size <= r.room/replyPart
	for fits && r.used+size > r.room {
		fits = r.evict(e.key.source)
	}
	if fits {
		e.stream, e.items = append(e.stream[:0], m.Stream...), items
		r.count(e, size)
		e.at = r.now()
		e.place = e.share.answered.PushBack(e)
	} else {
		r.unkept++
		r.drop(e)
	}
	r.mu.Unlock()
	for _, x := range waiting {
		x.Reply(&transport.Message{Stream: append([]byte(nil), m.Stream...), Items: append([]transport.Item(nil), items...)})
	}
}

// abandon forgets a call that gets no reply.
func (r *replyCache) abandon(e *cachedReply) {
	r.mu.Lock()
	waiting := e.waiting
	r.drop(e)
	r.mu.Unlock()
	for _, x := range waiting {
		x.Drop()
	}
}

// ReplyStats tells what is kept for calls that are sent again.
type ReplyStats struct {
	Entries, Bytes int    // kept now
	Evicted        uint64 // replies given up for newer ones
	Unkept         uint64 // replies for which there was no room
}

func (r *replyCache) stats() ReplyStats {
	if r == nil {
		return ReplyStats{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return ReplyStats{len(r.entries), r.used, r.evicted, r.unkept}
}

// replyShares is a heap (container/heap): the source with most bytes is in front.
type replyShares []*replyShare

func (s replyShares) Len() int           { return len(s) }
func (s replyShares) Less(i, j int) bool { return s[i].bytes > s[j].bytes }

func (s replyShares) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i, j
}

// Push implements heap.Interface.
func (s *replyShares) Push(x any) {
	e := x.(*replyShare)
	e.at = len(*s)
	*s = append(*s, e)
}

// Pop implements heap.Interface.
func (s *replyShares) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return e
}
