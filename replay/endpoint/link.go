package endpoint

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/onclose"
	"github.com/rpcrdma/toolkit/internal/ring"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// link is one connection: its queues, its buffers, and its goroutine.
type link struct {
	vc     verbs.Conn
	o      *Options
	mem    *memory
	ctr    *counters
	peer   transport.Peer
	dialed bool

	inlineSend, inlineReceive int
	// invalidate: our Sends may invalidate handles of the peer.
	invalidate bool
	readDepth  uint8

	// acct is the account of a Responder's connection; nil on a Requester's.
	acct *budget.Account
	// stranger: the peer has not sent a call yet, and few receives are posted.
	stranger bool
	// owing is how many exchanges wait for the peer to accept or deliver data;
	// taken is how often the peer has done so. overdue compares them.
	owing     atomic.Int32
	taken     atomic.Uint64
	seenTaken uint64
	seenTime  time.Time

	calls *caller // sends our calls: forward if we dialed, otherwise backward
	serve *server // answers the peer's calls

	mu       sync.Mutex
	idle     sync.Cond // signaled when flushing ends
	queue    ring.Ring[work]
	room     int // in the send queue
	depth    int
	silent   int // requests since the last signaled one
	seq      uint64
	posted   ring.Ring[entry]
	corked   bool
	flushing bool
	dead     bool
	sendFree []*sendBuf
	sendAll  int
	recvs    []*recvBuf
	repost   []verbs.RecvRequest
	wrs      []verbs.WorkRequest // scratch memory of flush
	again    []verbs.RecvRequest // likewise
	slabs    [][]byte
	slabbed  int64 // size of slabs in bytes
	maxSends int

	regMu   sync.Mutex
	regions map[uint64]verbs.Region // by number of the allocation
	blocks  [32][]*block            // free blocks that stay registered, by class
	kept    int
	windows []uint32 // free windows, by the last handle of each
	noAddr  atomic.Bool

	refs atomic.Int32

	hdr rpcrdma.Header // scratch memory of run

	hooks onclose.Hooks
	life  atomic.Uint32 // a linkState
}

// linkState tells whether a connection that the budget evicts can be closed yet.
//
//	setup ── established ──► up ── evict ──► up: closed at once
//	  └───── evict ──► evicted ── established ──► evicted: closed then
type linkState = uint32

const (
	linkSetup   linkState = iota // vc is not set
	linkUp                       // vc is set
	linkEvicted                  // evicted while vc was not set
)

// newLink prepares a connection. established sets it up, run serves it.
func newLink(o *Options, mem *memory, ctr *counters, dialed bool) *link {
	l := &link{o: o, mem: mem, ctr: ctr, dialed: dialed, depth: o.SendDepth, room: o.SendDepth, regions: make(map[uint64]verbs.Region)}
	l.idle.L = &l.mu
	l.refs.Store(1)
	l.readDepth = uint8(min(o.ReadDepth, max(mem.caps.MaxReads, 1), 255))
	l.maxSends = int(o.MaxCredits+o.BackwardCredits)*2 + 64
	mem.hold()
	return l
}

// terms returns the parameters of the connection without its receives.
func (l *link) terms() verbs.Params {
	return verbs.Params{
		PrivateData:        l.o.private(remoteCaps{l.invalidates()}),
		ResponderResources: l.readDepth, InitiatorDepth: l.readDepth,
		SendDepth: l.depth, RecvDepth: int(l.o.MaxCredits) + l.extraReceives(),
		RetryCount: l.o.RetryCount, RNRRetryCount: l.o.RNRRetryCount,
	}
}

// invalidates reports whether we support remote invalidation: as a Responder we close
// handles of the peer, as a Requester we let the peer close ours.
func (l *link) invalidates() bool {
	c := &l.mem.caps
	if !l.dialed {
		return c.SendInvalidate
	}
	return c.SendInvalidate && (c.Invalidates == verbs.InvalidatesAll || c.Invalidates == verbs.InvalidatesWindows && l.o.Registration == Windows)
}

// established takes over the connection and reads the peer's private data.
func (l *link) established(vc verbs.Conn) {
	l.vc = vc
	if !l.life.CompareAndSwap(linkSetup, linkUp) {
		go l.close()
	}
	info := vc.Info()
	own := l.o.own(remoteCaps{l.invalidates()})
	var theirs rdma.PrivateData
	theirs.Decode(info.PrivateData)
	l.inlineSend = min(int(rdma.InlineThreshold(&own, &theirs)), l.o.InlineSend)
	l.inlineReceive = min(int(rdma.InlineThreshold(&theirs, &own)), l.o.InlineReceive)
	// Both sides have to support it (RFC 8797, section 4.1).
	l.invalidate = own.RemoteInvalidate && theirs.RemoteInvalidate
	l.peer = transport.Peer{
		Transport: l.mem.p.Name(), Local: info.Local, Remote: info.Remote,
		Detail: info.Detail, ID: transport.NextID(),
	}
}

// evict ends a connection for the budget. It does not wait.
func (l *link) evict(error) {
	if !l.life.CompareAndSwap(linkSetup, linkEvicted) && l.life.Load() == linkUp {
		go l.close()
	}
}

// overdue checks for the budget whether the peer makes progress.
func (l *link) overdue(now time.Time) error {
	n := l.taken.Load()
	if l.owing.Load() == 0 || n != l.seenTaken || l.seenTime.IsZero() {
		l.seenTaken, l.seenTime = n, now
		return nil
	}
	if now.Sub(l.seenTime) >= l.o.PeerTimeout {
		return budget.ErrUnread
	}
	return nil
}

// slab keeps memory until the end of the connection.
func (l *link) slab(b []byte) {
	l.slabs = append(l.slabs, b)
	l.slabbed += int64(len(b))
	l.acct.Add(int64(len(b)))
}

// ref keeps the buffers of the connection until unref.
func (l *link) ref() { l.refs.Add(1) }

func (l *link) unref() {
	if l.refs.Add(-1) != 0 {
		return
	}
	l.mu.Lock()
	slabs := l.slabs
	l.slabs = nil
	l.mu.Unlock()
	for _, s := range slabs {
		l.mem.p.Free(s)
	}
	l.acct.Add(-l.slabbed)
	l.mem.release()
}

// close ends the connection; run does the rest.
func (l *link) close() { _ = l.vc.Close() }

// shut disconnects: what was posted goes out first.
func (l *link) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.vc.Disconnect(ctx)
	_ = l.vc.Close()
}

// teardown releases what the connection held, after its end.
func (l *link) teardown() {
	_ = l.vc.Close()
	l.mu.Lock()
	l.dead = true
	for l.flushing {
		l.idle.Wait()
	}
	owners := make([]owner, 0, l.posted.Len()+l.queue.Len())
	for l.posted.Len() > 0 {
		if e := l.posted.Pop(); e.owner != nil {
			owners = append(owners, e.owner)
		}
	}
	for l.queue.Len() > 0 {
		if w := l.queue.Pop(); w.owner != nil {
			owners = append(owners, w.owner)
		}
	}
	l.mu.Unlock()
	for _, o := range owners {
		o.workDone(false)
	}
	l.serve.lost(l)
	l.calls.lost(l)
	l.regMu.Lock()
	var blocks []*block
	for i := range l.blocks {
		blocks = append(blocks, l.blocks[i]...)
		l.blocks[i] = nil
	}
	l.regMu.Unlock()
	for _, b := range blocks {
		l.mem.put(b)
	}
	l.hooks.Run()
	l.unref()
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}
