package nlm

import (
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// hostKey names a host: two names at one address are two hosts, as behind a translator of
// addresses, or in a replay.
type hostKey struct {
	addr netip.Addr
	name string
}

// host is a client.
type host struct {
	hostKey
	source  state.Source
	locks   *state.Host
	owners  map[ownerKey]*owner
	waiting int   // locks that wait
	calling int   // callbacks under way
	state   int32 // its number when it has last said that it has restarted
	stable  bool  // in Options.Stable
	idle    time.Time
}

// ownerKey names an owner on a host. Shares have no svid.
type ownerKey struct {
	share bool
	svid  int32
	oh    string
}

// owner is a process on a host, or what the host takes for one.
type owner struct {
	ownerKey
	host  *host
	locks *state.Outsider
	waits map[*waiter]state.Key // what it waits for, and where
}

// Sizes in bytes, with the entries of maps.
const (
	hostCost   = 640
	ownerCost  = 384
	waiterCost = 768
)

// idleFor is how long a host without locks is remembered: as long as Linux does.
const idleFor = 2 * time.Minute

// host finds or makes a host; nil if there is no room. mu is held.
func (s *Server) host(c *nfsserver.Call, name []byte) *host {
	peer := c.Peer()
	k := hostKey{peer.Remote.Addr().Unmap(), string(name)}
	if h := s.hosts[k]; h != nil {
		return h
	}
	source := peer.Source()
	if len(s.hosts) >= s.opt.Limits.Hosts || s.names[k.addr] >= s.opt.Limits.Names {
		if !s.forgetOne(k.addr) {
			return nil
		}
	}
	if !s.table.Outsiders.Charge(source, hostCost+2*len(name)) {
		return nil
	}
	h := &host{hostKey: k, source: source, locks: state.NewHost(source), owners: map[ownerKey]*owner{}, idle: s.opt.Now()}
	s.hosts[k] = h
	s.names[k.addr]++
	return h
}

// forgetOne makes room for another host: it forgets one without locks, of this address if that
// has too many.
func (s *Server) forgetOne(addr netip.Addr) bool {
	own := s.names[addr] >= s.opt.Limits.Names
	for _, h := range s.hosts {
		if h.empty() && (!own || h.addr == addr) {
			s.forgetHost(h)
			return true
		}
	}
	return false
}

func (h *host) empty() bool { return len(h.owners) == 0 && h.waiting == 0 && h.calling == 0 }

// forgetHost forgets a host. What is in Options.Stable stays there: to tell a host of a restart
// for nothing does no harm.
func (s *Server) forgetHost(h *host) {
	delete(s.hosts, h.hostKey)
	if s.names[h.addr]--; s.names[h.addr] == 0 {
		delete(s.names, h.addr)
	}
	s.table.Outsiders.Refund(h.source, hostCost+2*len(h.name))
}

// forgetIdle forgets the hosts that have been without locks for long, and returns those that
// Options.Stable need not remember any more.
func (s *Server) forgetIdle(now time.Time) (gone []Monitored) {
	for _, h := range s.hosts {
		if h.empty() && now.Sub(h.idle) > idleFor {
			s.forgetHost(h)
			if h.stable {
				gone = append(gone, Monitored{h.addr, h.name})
			}
		}
	}
	return gone
}

// owner finds or makes an owner; nil if there is no room.
func (s *Server) owner(h *host, k ownerKey) *owner {
	if o := h.owners[k]; o != nil {
		return o
	}
	if !s.table.Outsiders.Charge(h.source, ownerCost+2*len(k.oh)) {
		return nil
	}
	o := &owner{ownerKey: k, host: h}
	o.locks = state.NewOutsider(h.locks, o)
	h.owners[k] = o
	return o
}

// settle forgets an owner that holds nothing.
func (s *Server) settle(o *owner) {
	h := o.host
	if len(o.waits) == 0 && h.owners[o.ownerKey] == o && !s.table.Outsiders.Holds(o.locks) {
		delete(h.owners, o.ownerKey)
		s.table.Outsiders.Refund(h.source, ownerCost+2*len(o.oh))
	}
	h.idle = s.opt.Now()
}

// release ends all that a host has.
func (s *Server) release(h *host) {
	for key, q := range s.queues {
		for _, w := range q {
			if w.owner.host == h {
				s.unqueue(key, w)
			}
		}
	}
	for _, o := range h.owners {
		s.table.Outsiders.Drop(o.locks)
		s.settle(o)
	}
}

// waiter is a lock that waits: for others, and then for its owner to be told.
type waiter struct {
	owner *owner
	state.Range
	write   bool
	lock    nlm.Nlm4Lock // as it came
	cookie  []byte
	version uint32
	back    transport.Requester // to whom the lock came from; may be nil

	granted bool // the owner has it, and has to be told
	calling bool // it is being told
	sent    bool // a callback may have reached it
	tries   int
	next    time.Time // not to be told again before
	gone    bool
}

func (w *waiter) cost() int {
	return waiterCost + len(w.lock.CallerName) + len(w.lock.Fh) + len(w.lock.Oh) + len(w.cookie)
}

// find returns the waiter of an owner for a range, nil if there is none.
func (s *Server) find(o *owner, key state.Key, r state.Range, write bool) *waiter {
	for _, w := range s.queues[key] {
		if w.owner == o && w.Range == r && w.write == write {
			return w
		}
	}
	return nil
}

// queue adds a waiter; false if there is no room.
func (s *Server) queue(key state.Key, w *waiter) bool {
	l, h := &s.opt.Limits, w.owner.host
	if s.waiters >= l.Waiters || h.waiting >= l.OfHost || len(s.queues[key]) >= l.OfFile || !s.table.Outsiders.Charge(h.source, w.cost()) {
		return false
	}
	s.queues[key] = append(s.queues[key], w)
	s.waiters++
	h.waiting++
	if w.owner.waits == nil {
		w.owner.waits = map[*waiter]state.Key{}
	}
	w.owner.waits[w] = key
	s.table.Outsiders.Wait(key, 1)
	return true
}

// unqueue removes a waiter.
func (s *Server) unqueue(key state.Key, w *waiter) {
	if w.gone {
		return
	}
	w.gone = true
	q := s.queues[key]
	kept := make([]*waiter, 0, len(q))
	for _, x := range q {
		if x != w {
			kept = append(kept, x)
		}
	}
	if len(kept) == 0 {
		delete(s.queues, key)
	} else {
		s.queues[key] = kept
	}
	s.waiters--
	w.owner.host.waiting--
	delete(w.owner.waits, w)
	s.table.Outsiders.Refund(w.owner.host.source, w.cost())
	s.table.Outsiders.Wait(key, -1)
}
