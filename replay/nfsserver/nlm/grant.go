package nlm

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/portmap"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// When a lock that waits can be had, its owner gets it, and is told by GRANTED. An owner who
// does not want it any more, or whom no callback can reach, loses it again: it asks again from
// time to time, as Linux does. One that may have heard of it keeps it.

const (
	// maxTries is how often a callback is tried; the time between doubles.
	maxTries   = 5
	ofHost     = 2 // callbacks of one host at a time
	firstDelay = time.Second
)

// goOn gives locks to those who wait for files of which something was given up. Only run calls
// it; the table is not locked for longer than one attempt takes.
func (s *Server) goOn() {
	s.dirtyMu.Lock()
	keys := s.dirty
	s.dirty = map[state.Key]struct{}{}
	s.dirtyMu.Unlock()
	for key := range keys {
		for left := maxRestarts; !s.goThrough(key, left > 0); left-- {
		}
	}
}

// maxRestarts is how often goThrough starts again for a file because another range was unlocked.
// After that it goes on to the last waiter, so that a file that is unlocked all the time starves nobody.
const maxRestarts = 256

// goThrough gives locks to the waiters of a file, first come, first served. If another range of the
// file is unlocked meanwhile, it stops and reports false, unless mayStop is false: a waiter that was
// passed over may get its lock now, and has waited longer than those behind it.
func (s *Server) goThrough(key state.Key, mayStop bool) (done bool) {
	s.mu.Lock()
	q := s.queues[key]
	s.mu.Unlock()
	for _, w := range q { // unqueue makes a new list
		if s.ctx.Err() != nil {
			return true
		}
		s.mu.Lock()
		if mayStop && s.takeDirty(key) {
			s.mu.Unlock()
			return false
		}
		s.attempt(key, w)
		s.mu.Unlock()
	}
	return true
}

// attempt gives a waiter its lock, if that is possible now, and has its owner told. mu is held.
func (s *Server) attempt(key state.Key, w *waiter) {
	if w.gone || w.calling {
		return
	}
	if !w.granted {
		if _, out := s.table.Outsiders.Lock(w.owner.locks, key, w.Range, w.write); out != state.Done {
			return
		}
		w.granted = true
	}
	h := w.owner.host
	if s.opt.Now().Before(w.next) || h.calling >= ofHost {
		return // tick comes back to it
	}
	select {
	case s.calling <- struct{}{}:
	default:
		return
	}
	w.calling = true
	h.calling++
	s.count.Callbacks++
	s.cookie++
	cookie := s.cookie
	s.wg.Go(func() {
		st, sent, err := s.tell(w, cookie)
		<-s.calling
		s.mu.Lock()
		defer s.mu.Unlock()
		h.calling--
		w.calling = false
		s.answered(key, w, st, sent, err)
		s.freed(key) // others may have waited for the callback to end
	})
}

// answered deals with the answer to a callback.
func (s *Server) answered(key state.Key, w *waiter, st stat, sent bool, err error) {
	if w.gone {
		return
	}
	defer s.settle(w.owner) // it may have unlocked the range, within a larger one, before its answer came
	w.sent = w.sent || sent
	w.tries++
	switch {
	case err == nil && st == nlm.NLM4_GRANTED:
		s.unqueue(key, w)
		return
	case err == nil && st != nlm.NLM4_DENIED_GRACE_PERIOD:
		s.count.Refused++
	case w.tries < maxTries:
		w.next = s.opt.Now().Add(firstDelay << (w.tries - 1))
		return
	case w.sent:
		s.unqueue(key, w) // it may have heard
		return
	default:
		s.count.Unreachable++
	}
	s.table.Outsiders.Unlock(w.owner.locks, key, w.Range)
	s.unqueue(key, w)
}

// ErrNoPath says that a client has no rpcbind, and its connection is gone.
var ErrNoPath = errors.New("nlm: no way to the client")

// tell tells an owner that it has its lock. sent reports that the callback may have arrived.
func (s *Server) tell(w *waiter, cookie uint32) (st stat, sent bool, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, 2*s.opt.Timeout)
	defer cancel()
	r, done, err := s.reach(ctx, w.owner.host.addr, w.version, w.back)
	if err != nil {
		return 0, false, err
	}
	defer done()
	h := oncrpc.Call{Program: nlm.NLM_PROG, Version: w.version, Procedure: nlm.NLMPROC4_GRANTED, Cred: s.cred()}
	c := binary.BigEndian.AppendUint32(nil, cookie)
	args := nlm.Nlm4Testargs{Cookie: c, Exclusive: w.write, Alock: w.lock}
	if w.version == nlm.NLM4_VERS {
		var res nlm.Nlm4Res
		err = portmap.Do(ctx, r, h, &args, &res, s.opt.Timeout)
		return res.Stat.Stat, true, err
	}
	var res nlm.NlmRes
	err = portmap.Do(ctx, r, h, narrowTest(&args), &res, s.opt.Timeout)
	return stat(res.Stat.Stat), true, err
}

func (s *Server) cred() oncrpc.Auth {
	sys := oncrpc.Sys{Machine: []byte(s.opt.Name[:min(len(s.opt.Name), 64)])}
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}
}

// minPort is the lowest port of a client that the server connects to, besides rpcbind's: a
// client shall not make it talk to other services.
const minPort = 1024

// reach connects to a client's lock manager: where its rpcbind says, or on the connection back
// on which a call of it came. done gives up what was made for that.
func (s *Server) reach(ctx context.Context, addr netip.Addr, version uint32, back transport.Requester) (r transport.Requester, done func(), err error) {
	err = ErrNoPath
	if s.opt.Dial != nil && addr.IsValid() {
		find, cancel := context.WithTimeout(ctx, s.opt.Timeout)
		network, at, failed := portmap.Find(find, s.opt.Dial, addr, nlm.NLM_PROG, version)
		if failed == nil && at.Port() >= minPort {
			r, failed = s.opt.Dial(find, network, at)
		}
		cancel()
		if failed == nil && r != nil {
			return r, func() { _ = r.Close() }, nil
		}
		if failed != nil {
			err = failed
		}
	}
	if back == nil {
		return nil, nil, err
	}
	return back, func() {}, nil
}
