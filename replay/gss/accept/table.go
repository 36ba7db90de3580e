package accept

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
)

// handleSize is the size of the handles that we give. They cannot be guessed, so nobody can make
// the server check verifiers of somebody else's context.
const handleSize = 16

type handle [handleSize]byte

// secContext is a context with a client.
type secContext struct {
	handle handle
	source netip.Addr // that created it
	end    time.Time
	cred   oncrpc.Auth // what the server behind gets
	user   uint32
	place  *list.Element // among those of its source; table.mu protects it

	mu      sync.Mutex
	session *krb5.Session
	window  window
}

// context makes a context for an accepted client.
func (h *Handler) context(a *krb5.Accepted) *secContext {
	g := &secContext{session: a.Session, end: a.End.Add(krb5.Skew)}
	_, _ = rand.Read(g.handle[:]) // cannot fail (crypto/rand)
	u := Nobody
	if h.o.Users != nil {
		u = h.o.Users.Lookup(&a.Client, a.Realm)
	}
	sys := oncrpc.Sys{UID: u.UID, GID: u.GID}
	sys.Count = copy(sys.GIDs[:], u.GIDs)
	g.cred = oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}
	// Principals that map to the same user are still two owners of state. A client cannot choose
	// a number to become another one.
	g.user = uint32(maphash.String(h.seed, a.Client.String()))
	return g
}

// window records which of the last sequence numbers were used.
type window struct {
	highest uint32
	used    [Window / 64]uint64 // by the number modulo Window
}

// take reports whether a sequence number is new, and notes it.
func (w *window) take(n uint32) bool {
	word, bit := &w.used[n%Window/64], uint64(1)<<(n%64)
	switch {
	case n > w.highest:
		if n-w.highest >= Window {
			clear(w.used[:])
		} else {
			for i := w.highest + 1; i < n; i++ {
				w.used[i%Window/64] &^= 1 << (i % 64)
			}
		}
		w.highest = n
		*word |= bit
		return true
	case w.highest-n >= Window || *word&bit != 0:
		return false
	}
	*word |= bit
	return true
}

// table holds contexts. Its zero value has room for none.
type table struct {
	mu      sync.Mutex
	limit   int
	all     map[handle]*secContext
	sources map[netip.Addr]*list.List // of *secContext, most recently used first
	evicted uint64
}

func (t *table) evictions() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.evicted
}

func (t *table) find(b []byte, now time.Time) *secContext {
	if len(b) != handleSize {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.all[handle(b)]
	if g == nil {
		return nil
	}
	if now.After(g.end) {
		t.drop(g)
		return nil
	}
	t.sources[g.source].MoveToFront(g.place)
	return g
}

func (t *table) add(g *secContext, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all, t.sources = map[handle]*secContext{}, map[netip.Addr]*list.List{}
	}
	q := t.sources[g.source]
	if q == nil {
		q = list.New()
		t.sources[g.source] = q
	}
	g.place = q.PushFront(g)
	t.all[g.handle] = g
	for len(t.all) > t.limit {
		// Linear in the sources, but small beside the cryptography of a token.
		for _, other := range t.sources {
			if other.Len() > q.Len() {
				q = other
			}
		}
		last := q.Back().Value.(*secContext)
		if !now.After(last.end) {
			t.evicted++
		}
		t.drop(last)
		if q = t.sources[g.source]; q == nil {
			return // it was the only one
		}
	}
}

func (t *table) remove(g *secContext) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[g.handle] == g {
		t.drop(g)
	}
}

// drop forgets a context. t.mu is held.
func (t *table) drop(g *secContext) {
	delete(t.all, g.handle)
	q := t.sources[g.source]
	if q.Remove(g.place); q.Len() == 0 {
		delete(t.sources, g.source)
	}
}

// replays remembers which Authenticators were used (RFC 4120, section 3.2.3). There are
// two generations, each of twice the skew that clocks may have, so that no entry is forgotten
// while its Authenticator would still be accepted.
type replays struct {
	mu       sync.Mutex
	now, old map[[sha256.Size]byte]struct{}
	until    time.Time
}

// maxReplays bounds a generation. Only those who have a ticket can fill it; beyond that,
// contexts are refused until the generation ends.
const maxReplays = 1 << 18

func (r *replays) fresh(now time.Time) krb5.Fresh {
	return func(id [sha256.Size]byte, _ time.Time) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !now.Before(r.until) {
			if now.Sub(r.until) > 2*krb5.Skew {
				r.now = nil
			}
			r.old, r.now, r.until = r.now, map[[sha256.Size]byte]struct{}{}, now.Add(2*krb5.Skew)
		}
		_, a := r.now[id]
		_, b := r.old[id]
		if a || b || len(r.now) >= maxReplays {
			return false
		}
		r.now[id] = struct{}{}
		return true
	}
}
