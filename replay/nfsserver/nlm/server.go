package nlm

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/portmap"
)

// Limits bound what clients can make the server remember, besides the limits of the Table.
// Zero fields stand for the defaults.
type Limits struct {
	Hosts     int // 8192
	Names     int // of hosts at one address: 64
	Waiters   int // locks that wait: 4096
	OfHost    int // of one host: 1024
	OfFile    int // of one file: 256
	Callbacks int // under way at a time: 16
}

func (l *Limits) defaults() {
	for _, d := range []struct {
		v *int
		n int
	}{{&l.Hosts, 8192}, {&l.Names, 64}, {&l.Waiters, 4096}, {&l.OfHost, 1024}, {&l.OfFile, 256}, {&l.Callbacks, 16}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
}

// Options are the choices of a Server.
type Options struct {
	Limits Limits
	// Dial connects to clients: to their rpcbind and their lock manager. Without it, and if a
	// client has no rpcbind, a callback goes back on the connection that the LOCK came on.
	Dial portmap.Dial
	// Timeout is how long a client may take to answer a callback: 5 s.
	Timeout time.Duration
	// Stable, if set, remembers the hosts that have locks, and Recovered are those that an
	// earlier instance has remembered: they are told that the server has restarted. State is the
	// number of this start, an odd one (Network Status Monitor).
	Stable    Stable
	Recovered []Monitored
	State     int32
	// Name is what the server calls itself when it tells that it has restarted.
	Name string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Monitored is a host that is told of a restart of the server.
type Monitored struct {
	Addr netip.Addr
	Name string
}

// Stable remembers the hosts that have locks.
type Stable interface {
	// AddHost is called before a host gets its first lock.
	AddHost(m *Monitored) error
	// RemoveHost is called when a host has had no lock for a while.
	RemoveHost(m *Monitored)
}

// Server serves NLM and NSM.
type Server struct {
	opt   Options
	store store.Store
	info  *store.Info
	table *state.Table

	ctx     context.Context
	quit    context.CancelFunc
	wg      sync.WaitGroup
	wake    chan struct{}
	calling chan struct{} // as many as callbacks are under way

	dirtyMu sync.Mutex
	dirty   map[state.Key]struct{} // files whose waiters may go on

	mu      sync.Mutex
	hosts   map[hostKey]*host
	names   map[netip.Addr]int // hosts of an address
	queues  map[state.Key][]*waiter
	waiters int
	cookie  uint32
	count   Counts
}

// Counts is how much a server holds, and what it has done.
type Counts struct {
	Hosts, Owners, Waiters int
	Callbacks              int // GRANTED sent
	Refused                int // answered with anything but GRANTED
	Unreachable            int // locks given up, since their owner could not be told
	Restarts               int // of clients
}

// New returns a server of a store whose locks are in a table. The caller closes both, after the
// server.
func New(st store.Store, table *state.Table, opt Options) *Server {
	opt.Limits.defaults()
	if opt.Timeout <= 0 {
		opt.Timeout = 5 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.State == 0 {
		opt.State = 1
	}
	s := &Server{
		opt: opt, store: st, info: st.Info(), table: table, wake: make(chan struct{}, 1), calling: make(chan struct{}, opt.Limits.Callbacks),
		dirty: map[state.Key]struct{}{}, hosts: map[hostKey]*host{}, names: map[netip.Addr]int{}, queues: map[state.Key][]*waiter{},
	}
	s.ctx, s.quit = context.WithCancel(context.Background())
	table.Outsiders.OnFree(s.freed)
	s.wg.Go(s.run)
	if len(opt.Recovered) > 0 && opt.Dial != nil {
		s.wg.Go(s.announce)
	}
	return s
}

// Close ends callbacks. It is called when no more calls come.
func (s *Server) Close() {
	s.quit()
	s.wg.Wait()
}

// Counts returns how much the server holds now.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.count
	c.Hosts, c.Waiters = len(s.hosts), s.waiters
	for _, h := range s.hosts {
		c.Owners += len(h.owners)
	}
	return c
}

// run goes on with waiters, and forgets idle hosts.
func (s *Server) run() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-t.C:
			s.tick(n%5 == 0)
		}
		s.goOn()
	}
}

// tick marks the files of waiters whose callback has to be repeated; all says that all waiters
// shall try again: a lease may have run out.
func (s *Server) tick(all bool) {
	now := s.opt.Now()
	s.mu.Lock()
	var keys []state.Key
	for key, q := range s.queues {
		for _, w := range q {
			if all || w.granted && !w.calling && !now.Before(w.next) {
				keys = append(keys, key)
				break
			}
		}
	}
	gone := s.forgetIdle(now)
	s.mu.Unlock()
	s.dirtyMu.Lock()
	for _, key := range keys {
		s.dirty[key] = struct{}{}
	}
	s.dirtyMu.Unlock()
	if s.opt.Stable != nil {
		for i := range gone {
			s.opt.Stable.RemoveHost(&gone[i])
		}
	}
}

// freed notes that waiters of a file may go on. It does not wait.
func (s *Server) freed(key state.Key) {
	s.dirtyMu.Lock()
	s.dirty[key] = struct{}{}
	s.dirtyMu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// takeDirty reports whether waiters of a file may go on, and takes the note of that away.
func (s *Server) takeDirty(key state.Key) bool {
	s.dirtyMu.Lock()
	defer s.dirtyMu.Unlock()
	_, ok := s.dirty[key]
	delete(s.dirty, key)
	return ok
}
