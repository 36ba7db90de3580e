package state

import (
	"cmp"
	"slices"
	"time"
)

// reaper drops the records of clients that have been silent for too long, or whose room is needed.
type reaper struct {
	leases   *leases
	clients  *registry
	courtesy time.Duration // Options.Courtesy
	gleaned  time.Time     // when expired clients were last dropped to make room
	fullOf   Source        // had no room for a record
	fullAt   time.Time     // when
	// drop are told of each client that goes: they drop what they keep for it. tidy are told of
	// those that stay.
	drop []func(*Client)
	tidy []func(c *Client, now time.Time)
}

// destroy drops a record with all that the client holds.
func (r *reaper) destroy(c *Client) {
	if c.gone {
		return
	}
	c.gone = true
	for _, f := range r.drop {
		f(c)
	}
	c.hangUp()
	r.clients.remove(c)
}

// reap drops clients whose lease has run out; those that hold state only after courtesy. If tidy
// is set, what the others need no more goes, too.
func (r *reaper) reap(tidy bool, courtesy time.Duration) {
	now := r.leases.now()
	for _, c := range r.clients.byTag {
		if r.leases.expired(c, now) {
			if len(c.states) == 0 || r.leases.expired(c, now.Add(-courtesy)) {
				r.destroy(c)
			}
		} else if tidy {
			for _, f := range r.tidy {
				f(c, now)
			}
		}
	}
}

// glean drops clients whose lease has run out, to make room; at most once a second.
func (r *reaper) glean() bool {
	now := r.leases.now()
	if r.courtesy == 0 || now.Sub(r.gleaned).Abs() < time.Second {
		return false
	}
	r.gleaned = now
	r.reap(false, 0)
	return true
}

// dropExpired drops the clients that have a file open but whose lease has run
// out.
func (r *reaper) dropExpired(f *file) {
	now := r.leases.now()
	for o := range f.opens {
		if c := o.client; !c.gone && r.leases.expired(c, now) {
			r.destroy(c)
		}
	}
}

// conflict is a range of somebody else that conflicts with one of owner, which belongs to the
// client of, if it has a record; nil if there is none. Clients whose lease has run out give way.
func (r *reaper) conflict(f *file, owner holder, of *Client, rg Range, write bool) *held {
	h := f.locks.conflict(owner, rg, write)
	if h != nil {
		if c := h.owner.record(); c != nil && c != of && r.leases.expired(c, r.leases.now()) {
			r.dropExpired(f)
			h = f.locks.conflict(owner, rg, write)
		}
	}
	return h
}

// makeRoom makes room for one more record of a source. Expired records go first, then those that
// their clients can make again without a loss: unconfirmed records, and records without opens and
// locks, the longest silent first. They are the source's own, or, if it has none, those of the
// source with the most. Nobody loses opens or locks.
func (r *reaper) makeRoom(from Source) bool {
	now, records := r.leases.now(), &r.clients.records
	switch {
	case records.room(from) > 0:
		return true
	case from == r.fullOf && now.Sub(r.fullAt).Abs() < fullFor:
		return false
	}
	r.reap(false, 0)
	if records.room(from) > 0 {
		return true
	}
	if r.evict(from, records, nil, false) {
		return true
	}
	r.fullOf, r.fullAt = from, now
	return false
}

// fullFor is how long a source without room is not searched again.
const fullFor = 100 * time.Millisecond

// evict drops records that hold neither opens nor locks, except spare, of a source; of the one with
// the most, if it has nothing of what is scarce. If sessions is set, only those with sessions go.
// Several go at a time, so that a flood of newcomers does not search all records for each of them.
func (r *reaper) evict(from Source, scarce *shares, spare *Client, sessions bool) bool {
	if scarce.by[from] == 0 {
		from = scarce.greediest()
	}
	var idle []*Client
	for _, c := range r.clients.byTag {
		if c != spare && c.source == from && len(c.states) == 0 && c.busy.Load() == 0 && (!sessions || len(c.sessions) > 0) {
			idle = append(idle, c)
		}
	}
	slices.SortFunc(idle, func(a, b *Client) int {
		if a.confirmed != b.confirmed {
			if b.confirmed {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.renewed.Load(), b.renewed.Load())
	})
	idle = idle[:min(r.clients.records.by[from]/64+1, len(idle))]
	for _, c := range idle {
		r.destroy(c)
	}
	return len(idle) > 0
}
