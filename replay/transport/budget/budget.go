// Package budget bounds the memory that all peers of one or several servers can make
// them hold: incomplete records, calls, unread replies, receive buffers. Each
// connection has an Account. When memory runs out, accounts decide which connection is
// ended: by what it holds, and for how long.
//
// Three rules keep well-behaved peers going:
//
//   - Back-pressure. A connection may start more work only while it holds no more
//     than what is free (Account.Room). However many connections are greedy,
//     something stays free, and one that holds nothing may always continue. (Choudhury and Hahne,
//     Dynamic Queue Length Thresholds, 1998, with a factor of one.)
//   - Eviction. If the limit is exceeded nevertheless, the connection with the
//     largest product of bytes and time without progress is ended. A connection
//     that makes progress is evicted last, however much it holds.
//   - Newcomers. Connections without a complete first message have a table of their
//     own, which is shared fairly among sources (package halfopen), and a deadline.
package budget

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/halfopen"
)

// Reasons for ending a connection.
var (
	ErrMemory      = errors.New("the memory for all connections is used up, and this one holds much of it for long")
	ErrConnections = errors.New("too many connections, many of them from this address")
	ErrNewcomers   = errors.New("too many connections without a first message")
	ErrSilent      = errors.New("no first message in time")
	ErrRecord      = errors.New("a record did not end in time")
	ErrUnread      = errors.New("replies were not taken in time")
)

// Options of a Budget.
type Options struct {
	// Bytes is how much all connections together may hold. Default 256 MiB.
	Bytes int64
	// Log, if set, reports connections that are ended, at most once a second.
	Log func(format string, args ...any)
}

// DefaultBytes is the default of Options.Bytes.
const DefaultBytes = 256 << 20

// Stats counts the connections that were ended since the start, by reason.
type Stats struct {
	Memory, Connections, Newcomers, Silent, Records, Unread uint64
	// Refused counts connections that were not accepted.
	Refused uint64
	// Bytes is how much is held now, Peak the most that ever was.
	Bytes, Peak int64
}

// Ended returns how many connections were ended, for any reason.
func (s *Stats) Ended() uint64 {
	return s.Memory + s.Connections + s.Newcomers + s.Silent + s.Records + s.Unread
}

// Budget is shared by all connections of one or several servers.
type Budget struct {
	limit int64
	log   func(format string, args ...any)
	now   func() time.Time

	used, peak atomic.Int64
	// trip is what used has to exceed before relieve looks for a connection to end.
	trip atomic.Int64

	mu     sync.Mutex
	groups map[*Group]struct{}
	// all holds the accounts that may be ended, leaving those that are being ended.
	all      []*Account
	leaving  map[*Account]struct{}
	timer    *time.Timer
	stats    Stats
	logged   time.Time
	unlogged int
}

// New returns a budget.
func New(o Options) *Budget {
	if o.Bytes <= 0 {
		o.Bytes = DefaultBytes
	}
	b := &Budget{limit: o.Bytes, log: o.Log, now: time.Now, groups: make(map[*Group]struct{}), leaving: make(map[*Account]struct{})}
	b.trip.Store(b.limit)
	return b
}

// Limit returns Options.Bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Stats returns the counts so far.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Bytes, s.Peak = b.used.Load(), b.peak.Load()
	return s
}

// GroupOptions bound the connections of one server.
type GroupOptions struct {
	Name string // for the log: "tcp"
	// Connections is how many there may be.
	Connections int
	// Newcomers is how many of them may be without a first message, and
	// NewcomerTime for how long.
	Newcomers    int
	NewcomerTime time.Duration
	// Tick is how often Account checks are called.
	Tick time.Duration
}

// Group are the connections of one server.
type Group struct {
	b         *Budget
	o         GroupOptions
	accounts  map[*Account]struct{}
	sources   map[netip.Prefix]*source
	alive     int
	newcomers *halfopen.Table[*Account]
}

// source is where connections of a group come from.
type source struct {
	alive int // connections, without those that are being ended
	all   int // with them
	held  atomic.Int64
}

// Join adds a server. The server has to call Leave at its end.
func (b *Budget) Join(o GroupOptions) *Group {
	o.Tick = max(o.Tick, 5*time.Millisecond)
	g := &Group{
		b: b, o: o, accounts: make(map[*Account]struct{}), sources: make(map[netip.Prefix]*source),
		newcomers: halfopen.New[*Account](max(1, min(o.Newcomers, o.Connections))),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.groups[g] = struct{}{}
	if b.timer == nil {
		b.timer = time.AfterFunc(b.tick(), b.onTimer)
	} else {
		b.timer.Reset(b.tick())
	}
	return g
}

// Leave removes a server.
func (g *Group) Leave() {
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	delete(g.b.groups, g)
	if len(g.b.groups) == 0 {
		g.b.timer.Stop()
	}
}

// tick returns the shortest tick of all groups. mu is held.
func (b *Budget) tick() time.Duration {
	d := time.Second
	for g := range b.groups {
		d = min(d, g.o.Tick)
	}
	return d
}

func (b *Budget) onTimer() {
	b.sweep(b.now())
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.groups) > 0 {
		b.timer.Reset(b.tick())
	}
}

// Account accounts for one connection. Its methods may be called from any goroutine. A
// nil Account counts nothing and always has room.
type Account struct {
	g      *Group
	peer   netip.AddrPort
	source *source
	prefix netip.Prefix
	evict  func(error)
	check  func(now time.Time) error

	held   atomic.Int64
	events atomic.Uint64
	// Used by the sweeper; Budget.mu protects them.
	seen    uint64
	since   time.Time // without progress
	entry   *halfopen.Entry[*Account]
	at      int // in Budget.all, if not evicted
	evicted bool
	closed  bool
}

// settled is how long a connection has to be without progress before it may be evicted
// for a new one from a source with as many connections.
const settled = 10 * time.Second

// Open makes an account for a connection that has been accepted. If there are as
// many as there may be, one that has been idle, or of a source that has more, is
// ended; if there is no such connection, ok is false. evict ends the
// connection; it must not wait, nor call the Budget, and is called once at most.
// check, if set, is called from time to time and returns why the connection is to
// be ended, one of ErrRecord and ErrUnread, or nil.
func (g *Group) Open(peer netip.AddrPort, evict func(error), check func(now time.Time) error) (a *Account, ok bool) {
	b := g.b
	a = &Account{g: g, peer: peer, prefix: halfopen.Source(peer.Addr()), evict: evict, check: check}
	var list [2]eviction
	b.mu.Lock()
	a.since = b.now()
	if a.source = g.sources[a.prefix]; a.source == nil {
		a.source = new(source)
	}
	if g.alive >= g.o.Connections {
		w := g.worst(a.source, a.since)
		if w == nil || w.source.alive <= a.source.alive+1 && w.idle(a.since) < settled {
			b.stats.Refused++
			b.mu.Unlock()
			return nil, false
		}
		list[0] = b.end(w, ErrConnections)
	}
	g.accounts[a] = struct{}{}
	g.alive++
	a.at = len(b.all)
	b.all = append(b.all, a)
	g.sources[a.prefix] = a.source
	a.source.alive++
	a.source.all++
	var old *halfopen.Entry[*Account]
	if a.entry, old = g.newcomers.Add(peer.Addr(), a, a.since); old != nil {
		list[1] = b.end(old.Value, ErrNewcomers)
	}
	b.mu.Unlock()
	for _, e := range list {
		e.do()
	}
	return a, true
}

// Close ends the account. What it holds stays counted until it is given back.
func (a *Account) Close() {
	if a == nil {
		return
	}
	b := a.g.b
	b.mu.Lock()
	if !a.closed {
		a.closed = true
		a.leave()
		delete(a.g.accounts, a)
		delete(b.leaving, a)
		// What is still held then is not seen in the share of its source any more.
		if a.source.all--; a.source.all == 0 {
			delete(a.g.sources, a.prefix)
		}
	}
	b.mu.Unlock()
}

// leave stops counting the account against limits of connections.
func (a *Account) leave() {
	if a.evicted {
		return
	}
	a.evicted = true
	g := a.g
	g.newcomers.Remove(a.entry)
	b := g.b
	last := b.all[len(b.all)-1]
	b.all[a.at], last.at = last, a.at
	b.all[len(b.all)-1] = nil
	b.all = b.all[:len(b.all)-1]
	g.alive--
	a.source.alive--
}

// Proven records that the peer has completed a first message.
func (a *Account) Proven() {
	if a == nil {
		return
	}
	b := a.g.b
	b.mu.Lock()
	a.g.newcomers.Remove(a.entry)
	b.mu.Unlock()
}

// Progress records that the peer has completed a message, or taken one.
func (a *Account) Progress() {
	if a != nil {
		a.events.Add(1)
	}
}

// Held returns how many bytes the connection holds.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	return a.held.Load()
}

// Room reports whether the connection may start more work.
func (a *Account) Room() bool {
	if a == nil {
		return true
	}
	return a.held.Load() <= a.g.b.limit-a.g.b.used.Load()
}

// Fits reports whether the connection may take n more bytes and still have room.
func (a *Account) Fits(n int) bool {
	if a == nil {
		return true
	}
	return a.held.Load()+2*int64(n) <= a.g.b.limit-a.g.b.used.Load()
}

// MaxWait bounds how long a connection that holds nothing has to wait before it may
// start work.
const MaxWait = time.Second

// Admit reports whether a connection that holds nothing, and has waited for so long,
// may start work of about n bytes. While nothing is free, connections of sources that
// hold more than the average have to wait. Otherwise a flood that reconnects whenever
// it is evicted would keep the server busy.
func (a *Account) Admit(n int64, waited time.Duration) bool {
	if a == nil || waited >= MaxWait {
		return true
	}
	b := a.g.b
	if b.used.Load()+max(n, b.limit/64) <= b.limit {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	sources := 0
	for g := range b.groups {
		sources += len(g.sources)
	}
	return a.source.held.Load()*int64(sources) < b.used.Load()/2
}

// Add adds n, which may be negative, to what the connection holds. If the limit is
// exceeded, connections are ended until enough is about to be free; this one may be
// among them.
func (a *Account) Add(n int64) {
	if a == nil || n == 0 {
		return
	}
	b := a.g.b
	a.held.Add(n)
	a.source.held.Add(n)
	used := b.used.Add(n)
	if n < 0 {
		if t := max(b.limit, used+b.slack()); t < b.trip.Load() {
			b.trip.Store(t)
		}
		return
	}
	for p := b.peak.Load(); used > p && !b.peak.CompareAndSwap(p, used); p = b.peak.Load() {
	}
	if used > b.trip.Load() {
		b.relieve()
	}
}

// slack is how many more bytes have to be taken before relieve looks again.
func (b *Budget) slack() int64 { return b.limit / 64 }

// relieve ends connections until what the others hold is below the limit.
func (b *Budget) relieve() {
	var list []eviction
	b.mu.Lock()
	now := b.now()
	for {
		left := b.used.Load()
		for a := range b.leaving {
			left -= a.held.Load()
		}
		var worst *Account
		score := 0.0
		b.sample(func(a *Account) {
			if s := float64(a.held.Load()) * (a.idle(now) + time.Millisecond).Seconds(); s > score {
				worst, score = a, s
			}
		})
		if left <= b.limit || worst == nil {
			break
		}
		list = append(list, b.end(worst, ErrMemory))
	}
	// Connections that are being ended release their memory a little later. Until
	// then, look again only if much more is taken.
	b.trip.Store(max(b.limit, b.used.Load()) + b.slack())
	b.mu.Unlock()
	for _, e := range list {
		e.do()
	}
}

// samples is how many accounts are compared when one has to be evicted: all, or this many
// at random if there are more. Comparing thousands each time would be work that a
// flood can cause.
const samples = 64

// sample calls f for accounts that may be ended. mu is held.
func (b *Budget) sample(f func(*Account)) {
	if len(b.all) <= samples {
		for _, a := range b.all {
			f(a)
		}
		return
	}
	for range samples {
		f(b.all[rand.IntN(len(b.all))])
	}
}

// idle returns for how long the account has made no progress. mu is held.
func (a *Account) idle(now time.Time) time.Duration {
	if n := a.events.Load(); n != a.seen {
		a.seen, a.since = n, now
	}
	return now.Sub(a.since)
}

// worst returns the connection to evict when there are too many: the longest idle one
// of the source that has the most, counting the newcomer. mu is held.
func (g *Group) worst(newcomer *source, now time.Time) *Account {
	var worst *Account
	var share int
	var idle time.Duration
	g.b.sample(func(a *Account) {
		if a.g != g {
			return
		}
		n := a.source.alive
		if a.source == newcomer {
			n++
		}
		if d := a.idle(now); worst == nil || n > share || n == share && d > idle {
			worst, share, idle = a, n, d
		}
	})
	return worst
}

// eviction is the part of ending a connection that is done without the lock.
type eviction struct {
	a   *Account
	why error
	log func()
}

func (e eviction) do() {
	if e.a == nil {
		return
	}
	if e.log != nil {
		e.log()
	}
	e.a.evict(e.why)
}

// end stops counting an account; do ends its connection. mu is held.
func (b *Budget) end(a *Account, why error) eviction {
	if a == nil || a.evicted {
		return eviction{}
	}
	a.leave()
	b.leaving[a] = struct{}{}
	switch why {
	case ErrMemory:
		b.stats.Memory++
	case ErrConnections:
		b.stats.Connections++
	case ErrNewcomers:
		b.stats.Newcomers++
	case ErrSilent:
		b.stats.Silent++
	case ErrRecord:
		b.stats.Records++
	case ErrUnread:
		b.stats.Unread++
	}
	e := eviction{a: a, why: why}
	now := b.now()
	if b.log == nil {
		return e
	}
	if now.Sub(b.logged) < time.Second {
		b.unlogged++
		return e
	}
	more := ""
	if b.unlogged > 0 {
		more = fmt.Sprintf("; %d other connections were ended since the last such line", b.unlogged)
	}
	b.logged, b.unlogged = now, 0
	e.log = func() {
		b.log("%s: the connection of %v was ended: %v (it holds %d KiB, all together %d of %d MiB)%s",
			a.g.o.Name, a.peer, why, a.Held()>>10, b.used.Load()>>20, b.limit>>20, more)
	}
	return e
}

// sweep ends connections that are overdue.
func (b *Budget) sweep(now time.Time) {
	var list []eviction
	b.mu.Lock()
	for g := range b.groups {
		for o := g.newcomers.Oldest(); o != nil && now.Sub(o.Since) >= g.o.NewcomerTime; o = g.newcomers.Oldest() {
			list = append(list, b.end(o.Value, ErrSilent))
		}
		for a := range g.accounts {
			if a.evicted || a.check == nil {
				continue
			}
			if why := a.check(now); why != nil {
				list = append(list, b.end(a, why))
			}
		}
	}
	b.mu.Unlock()
	for _, e := range list {
		e.do()
	}
}

// Reclaim evicts one newcomer, of the source that has the most. It is for a server that
// has no descriptor left to accept with. It reports false if there is no newcomer.
func (g *Group) Reclaim() bool {
	g.b.mu.Lock()
	var e eviction
	if old := g.newcomers.Evict(); old != nil {
		e = g.b.end(old.Value, ErrNewcomers)
	}
	g.b.mu.Unlock()
	e.do()
	return e.a != nil
}

// Clock watches something that a peer has to finish: a record that it sends, or data
// that it has to take. One goroutine calls Start and Stop; the check of an Account
// calls Overdue. Only the sweeper reads the time, so Start and Stop are cheap.
type Clock struct {
	// seq is odd while the clock runs, and different each time.
	seq   atomic.Uint64
	seen  uint64
	since time.Time
}

// Start starts the clock, unless it runs already.
func (c *Clock) Start() {
	if n := c.seq.Load(); n&1 == 0 {
		c.seq.Store(n + 1)
	}
}

// Stop stops the clock.
func (c *Clock) Stop() {
	if n := c.seq.Load(); n&1 != 0 {
		c.seq.Store(n + 1)
	}
}

// Overdue reports whether the clock has been running for limit.
func (c *Clock) Overdue(now time.Time, limit time.Duration) bool {
	n := c.seq.Load()
	if n&1 == 0 || n != c.seen {
		c.seen, c.since = n, now
		return false
	}
	return now.Sub(c.since) >= limit
}
