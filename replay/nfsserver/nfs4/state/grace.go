package state

import (
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Grace is the time after a start in which clients reclaim what they had before.
type Grace struct {
	leases *leases
	end    atomic.Int64 // Unix time in nanoseconds; 0: there is none
	latest time.Time    // end without clients that are late
	// stable: only clients that stable storage knows may reclaim. recovering are these, and
	// whether they have; it is guarded by the section.
	stable     bool
	recovering map[Identity]bool
	hosts      bool // NFSv3 hosts may reclaim, too
}

func (g *Grace) begin(o *Options) {
	now := g.leases.now()
	if o.Grace > 0 {
		g.latest = now.Add(o.Grace)
	}
	if g.stable = o.Stable != nil; g.stable {
		g.hosts = o.RecoveredHosts
		g.recovering = map[Identity]bool{}
		for _, id := range o.Recovered {
			g.recovering[id] = false
		}
		if len(o.Recovered) == 0 && !g.hosts {
			g.latest = now // nobody has anything to reclaim
		} else if g.latest.IsZero() {
			g.latest = now.Add(g.leases.length)
		}
	}
	if !g.latest.IsZero() {
		g.end.Store(g.latest.UnixNano())
	}
}

// Active reports whether only reclaims are answered.
func (g *Grace) Active() bool {
	end := g.end.Load()
	return end != 0 && g.leases.now().UnixNano() < end
}

// check checks whether a client may get new state, or reclaim state.
func (g *Grace) check(c *Client, reclaim bool) Status {
	active := g.Active()
	switch {
	case reclaim && (!active || c.reclaimed):
		return nfs4.NFS4ERR_NO_GRACE
	case reclaim && !g.knows(c):
		return nfs4.NFS4ERR_RECLAIM_BAD
	case !reclaim && (active || c.minor && !c.reclaimed):
		return nfs4.NFS4ERR_GRACE
	}
	if reclaim && g.stable {
		g.extend()
	}
	return nfs4.NFS4_OK
}

// knows reports whether a client had state before the restart. Without stable storage, every
// client is believed.
func (g *Grace) knows(c *Client) bool {
	_, known := g.recovering[c.identity()]
	return known || !g.stable
}

// extend gives clients that have come back time to reclaim: the grace period lasts for another half
// of a lease from now on, and twice as long as it would have at most. Linux does likewise. Nobody who
// reclaims is refused because the server was slow, or many came at once.
func (g *Grace) extend() {
	now, lease := g.leases.now(), g.leases.length
	want := min(now.Add(lease/2).UnixNano(), g.latest.Add(lease).UnixNano())
	for {
		end := g.end.Load()
		if end <= now.UnixNano() || end >= want || g.end.CompareAndSwap(end, want) {
			return
		}
	}
}

// back notes that a client has come back.
func (g *Grace) back(c *Client) {
	if done, known := g.recovering[c.identity()]; known && !done {
		g.extend()
	}
}

// complete notes that a client has reclaimed what it wants. The grace period ends with the last
// one.
func (g *Grace) complete(c *Client) {
	c.reclaimed = true
	if _, known := g.recovering[c.identity()]; !known {
		return
	}
	g.recovering[c.identity()] = true
	for _, done := range g.recovering {
		if !done {
			return
		}
	}
	if !g.hosts {
		g.end.Store(g.leases.now().UnixNano())
	}
}
