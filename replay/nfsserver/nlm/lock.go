package nlm

import (
	"bytes"
	"math"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// stat is a status of version 4, which has all that others have.
type stat = nlm.Nlm4Stats

// makeRange turns offset and length into a Range. A length of 0 reaches to the end of every
// file.
func makeRange(offset, length uint64) (state.Range, bool) {
	switch {
	case length == 0:
		return state.Range{First: offset, Last: math.MaxUint64}, true
	case length-1 > math.MaxUint64-offset:
		return state.Range{}, false
	}
	return state.Range{First: offset, Last: offset + length - 1}, true
}

// wireLength is the reverse.
func wireLength(r state.Range) uint64 {
	if r.Last == math.MaxUint64 {
		return 0
	}
	return r.Last - r.First + 1
}

// file checks that the caller may lock a file: that it exists, is a regular one, and that he
// may read or write it.
func (s *Server) file(c *nfsserver.Call, fh []byte) (state.Key, stat) {
	key, err := s.info.Handles.Open(fh)
	var a store.Attr
	if err == nil {
		err = s.store.GetAttr(key, &a)
	}
	switch {
	case err == nil:
	case store.Of(err) == store.ErrStale || store.Of(err) == store.ErrBadHandle:
		return key, nlm.NLM4_STALE_FH
	default:
		return key, nlm.NLM4_FAILED
	}
	if a.Type != store.Regular || !store.PermitsData(&c.Cred, &a, store.MayRead) && !store.PermitsData(&c.Cred, &a, store.MayWrite) {
		return key, nlm.NLM4_FAILED
	}
	return key, nlm.NLM4_GRANTED
}

func (s *Server) test(c *nfsserver.Call, a *nlm.Nlm4Testargs) (r nlm.Nlm4Testrply) {
	l := &a.Alock
	key, st := s.file(c, l.Fh)
	rng, fine := makeRange(l.LOffset, l.LLen)
	switch {
	case st != nlm.NLM4_GRANTED:
		r.Stat = st
		return r
	case !fine:
		r.Stat = nlm.NLM4_FBIG
		return r
	case s.table.Grace.Active():
		r.Stat = nlm.NLM4_DENIED_GRACE_PERIOD
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	who := state.NewOutsider(state.NewHost(c.Peer().Source()), nil)
	if o := s.known(c, l.CallerName, ownerKey{svid: l.Svid, oh: string(l.Oh)}); o != nil {
		who = o.locks
	}
	held, out := s.table.Outsiders.Test(who, key, rng, a.Exclusive)
	switch out {
	case state.Conflict:
		r.Stat = nlm.NLM4_DENIED
		r.Holder = nlm.Nlm4Holder{Exclusive: held.Write, LOffset: held.First, LLen: wireLength(held.Range)}
		if held.By != nil {
			o := held.By.Label.(*owner)
			r.Holder.Svid, r.Holder.Oh = o.svid, []byte(o.oh)
		}
	case state.Recalling:
		r.Stat = later
	default:
		r.Stat = nlm.NLM4_GRANTED
	}
	return r
}

// later is what clients are told who cannot have a lock because another client has a delegation,
// which it was asked to return: NLM has nothing better, and clients try again.
const later = nlm.NLM4_DENIED_GRACE_PERIOD

// monitored says that a host shall be told when the server restarts.
func (s *Server) lock(c *nfsserver.Call, a *nlm.Nlm4Lockargs, version uint32, monitored bool) stat {
	l := &a.Alock
	key, st := s.file(c, l.Fh)
	r, fine := makeRange(l.LOffset, l.LLen)
	switch {
	case st != nlm.NLM4_GRANTED:
		return st
	case !fine:
		return nlm.NLM4_FBIG
	case a.Reclaim != s.table.Grace.Active():
		return nlm.NLM4_DENIED_GRACE_PERIOD
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.host(c, l.CallerName)
	if h == nil {
		return nlm.NLM4_DENIED_NOLOCKS
	}
	o := s.owner(h, ownerKey{svid: l.Svid, oh: string(l.Oh)})
	if o == nil {
		return nlm.NLM4_DENIED_NOLOCKS
	}
	defer s.settle(o)
	if monitored && !h.stable && s.opt.Stable != nil {
		if s.opt.Stable.AddHost(&Monitored{h.addr, h.name}) != nil {
			return nlm.NLM4_DENIED_NOLOCKS
		}
		h.stable = true
	}
	_, out := s.table.Outsiders.Lock(o.locks, key, r, a.Exclusive)
	switch {
	case out == state.Done:
		if w := s.find(o, key, r, a.Exclusive); w != nil {
			s.unqueue(key, w)
		}
		return nlm.NLM4_GRANTED
	case out == state.Full:
		return nlm.NLM4_DENIED_NOLOCKS
	case a.Block && out == state.Conflict && s.deadlock(want{o, key, r, a.Exclusive}):
		if w := s.find(o, key, r, a.Exclusive); w != nil {
			s.unqueue(key, w)
		}
		if version < nlm.NLM_VERSX {
			return nlm.NLM4_DENIED // it has no word for it
		}
		return nlm.NLM4_DEADLCK
	case a.Block:
		return s.wait(c, o, key, r, a, version)
	case out == state.Recalling:
		return later
	}
	return nlm.NLM4_DENIED
}

// wait lets a lock wait.
func (s *Server) wait(c *nfsserver.Call, o *owner, key state.Key, r state.Range, a *nlm.Nlm4Lockargs, version uint32) stat {
	if w := s.find(o, key, r, a.Exclusive); w != nil {
		w.back = c.Exchange().Backward() // asked again, perhaps on a new connection
		return nlm.NLM4_BLOCKED
	}
	l := &a.Alock
	w := &waiter{owner: o, Range: r, write: a.Exclusive, cookie: bytes.Clone(a.Cookie), version: version, back: c.Exchange().Backward(), lock: nlm.Nlm4Lock{
		CallerName: bytes.Clone(l.CallerName), Fh: bytes.Clone(l.Fh), Oh: bytes.Clone(l.Oh), Svid: l.Svid, LOffset: l.LOffset, LLen: l.LLen,
	}}
	if !s.queue(key, w) {
		return nlm.NLM4_DENIED_NOLOCKS
	}
	s.freed(key) // what it waits for may have ended before it was known to wait
	return nlm.NLM4_BLOCKED
}

// known finds an owner who holds or waits for something.
func (s *Server) known(c *nfsserver.Call, name []byte, k ownerKey) *owner {
	if h := s.hosts[hostKey{c.Peer().Remote.Addr().Unmap(), string(name)}]; h != nil {
		return h.owners[k]
	}
	return nil
}

func (s *Server) unlock(c *nfsserver.Call, l *nlm.Nlm4Lock) stat {
	key, err := s.info.Handles.Open(l.Fh)
	r, fine := makeRange(l.LOffset, l.LLen)
	switch {
	case err != nil:
		return nlm.NLM4_STALE_FH
	case !fine:
		return nlm.NLM4_FBIG
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.known(c, l.CallerName, ownerKey{svid: l.Svid, oh: string(l.Oh)})
	if o == nil {
		return nlm.NLM4_GRANTED // nothing is locked
	}
	defer s.settle(o)
	for _, write := range [...]bool{false, true} {
		if w := s.find(o, key, r, write); w != nil {
			s.unqueue(key, w)
		}
	}
	if s.table.Outsiders.Unlock(o.locks, key, r) == state.Full {
		return nlm.NLM4_DENIED_NOLOCKS
	}
	return nlm.NLM4_GRANTED
}

// cancel is CANCEL. What no longer waits is no error, as with Linux.
func (s *Server) cancel(c *nfsserver.Call, a *nlm.Nlm4Cancargs) stat {
	l := &a.Alock
	key, err := s.info.Handles.Open(l.Fh)
	r, fine := makeRange(l.LOffset, l.LLen)
	switch {
	case err != nil:
		return nlm.NLM4_STALE_FH
	case !fine:
		return nlm.NLM4_FBIG
	case s.table.Grace.Active():
		return nlm.NLM4_DENIED_GRACE_PERIOD
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.known(c, l.CallerName, ownerKey{svid: l.Svid, oh: string(l.Oh)})
	if o == nil {
		return nlm.NLM4_GRANTED
	}
	defer s.settle(o)
	if w := s.find(o, key, r, a.Exclusive); w != nil {
		if w.granted {
			s.table.Outsiders.Unlock(o.locks, key, r)
		}
		s.unqueue(key, w)
	}
	return nlm.NLM4_GRANTED
}

func (s *Server) share(c *nfsserver.Call, a *nlm.Nlm4Shareargs, un bool) stat {
	x := &a.Share
	if x.Mode > nlm.FsmDRW || x.Access > nlm.FsaRW {
		return nlm.NLM4_FAILED
	}
	k := ownerKey{share: true, oh: string(x.Oh)}
	if un {
		key, err := s.info.Handles.Open(x.Fh)
		if err != nil {
			return nlm.NLM4_STALE_FH
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if o := s.known(c, x.CallerName, k); o != nil {
			s.table.Outsiders.Unshare(o.locks, key)
			s.settle(o)
		}
		return nlm.NLM4_GRANTED
	}
	key, st := s.file(c, x.Fh)
	switch {
	case st != nlm.NLM4_GRANTED:
		return st
	case a.Reclaim != s.table.Grace.Active():
		return nlm.NLM4_DENIED_GRACE_PERIOD
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.host(c, x.CallerName)
	if h == nil {
		return nlm.NLM4_DENIED_NOLOCKS
	}
	o := s.owner(h, k)
	if o == nil {
		return nlm.NLM4_DENIED_NOLOCKS
	}
	defer s.settle(o)
	switch s.table.Outsiders.Share(o.locks, key, uint32(x.Access), uint32(x.Mode)) {
	case state.Conflict:
		return nlm.NLM4_DENIED
	case state.Recalling:
		return later
	case state.Full:
		return nlm.NLM4_DENIED_NOLOCKS
	}
	return nlm.NLM4_GRANTED
}

// freeAll ends all that a host has.
func (s *Server) freeAll(c *nfsserver.Call, name []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[hostKey{c.Peer().Remote.Addr().Unmap(), string(name)}]; h != nil {
		s.release(h)
	}
}
