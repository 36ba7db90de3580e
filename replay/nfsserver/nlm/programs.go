package nlm

import (
	"bytes"
	"context"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/portmap"
)

// Programs are the versions of NLM, and NSM, as programs of an RPC server.
func (s *Server) Programs() []nfsserver.Program {
	return []nfsserver.Program{s.program(nlm.NLM_VERS), s.program(nlm.NLM_VERSX), s.program(nlm.NLM4_VERS), s.monitor()}
}

// form is the memory of a call: its arguments, of any version, are in the fields of version 4.
type form struct {
	version uint32

	testargs   nlm.Nlm4Testargs
	lockargs   nlm.Nlm4Lockargs
	cancargs   nlm.Nlm4Cancargs
	unlockargs nlm.Nlm4Unlockargs
	shareargs  nlm.Nlm4Shareargs
	notify     nlm.Nlm4Notify

	test   nlm.NlmTestargs
	lock   nlm.NlmLockargs
	canc   nlm.NlmCancargs
	unlock nlm.NlmUnlockargs
	share  nlm.NlmShareargs
	free   nlm.NlmNotify
}

// args decodes arguments. If they cannot be read, the call is answered.
func (f *form) decodeTest(c *nfsserver.Call) bool {
	if f.version == nlm.NLM4_VERS {
		return c.Decode(&f.testargs)
	}
	a := &f.test
	if !c.Decode(a) {
		return false
	}
	f.testargs = nlm.Nlm4Testargs{Cookie: a.Cookie, Exclusive: a.Exclusive, Alock: widen(&a.Alock)}
	return true
}

func (f *form) decodeLock(c *nfsserver.Call) bool {
	if f.version == nlm.NLM4_VERS {
		return c.Decode(&f.lockargs)
	}
	a := &f.lock
	if !c.Decode(a) {
		return false
	}
	f.lockargs = nlm.Nlm4Lockargs{Cookie: a.Cookie, Block: a.Block, Exclusive: a.Exclusive, Alock: widen(&a.Alock), Reclaim: a.Reclaim, State: a.State}
	return true
}

func (f *form) decodeCancel(c *nfsserver.Call) bool {
	if f.version == nlm.NLM4_VERS {
		return c.Decode(&f.cancargs)
	}
	a := &f.canc
	if !c.Decode(a) {
		return false
	}
	f.cancargs = nlm.Nlm4Cancargs{Cookie: a.Cookie, Block: a.Block, Exclusive: a.Exclusive, Alock: widen(&a.Alock)}
	return true
}

func (f *form) decodeUnlock(c *nfsserver.Call) bool {
	if f.version == nlm.NLM4_VERS {
		return c.Decode(&f.unlockargs)
	}
	a := &f.unlock
	if !c.Decode(a) {
		return false
	}
	f.unlockargs = nlm.Nlm4Unlockargs{Cookie: a.Cookie, Alock: widen(&a.Alock)}
	return true
}

func (f *form) decodeShare(c *nfsserver.Call) bool {
	if f.version == nlm.NLM4_VERS {
		return c.Decode(&f.shareargs)
	}
	a := &f.share
	if !c.Decode(a) {
		return false
	}
	x := &a.Share
	f.shareargs = nlm.Nlm4Shareargs{Cookie: a.Cookie, Reclaim: a.Reclaim, Share: nlm.Nlm4Share{CallerName: x.CallerName, Fh: x.Fh, Oh: x.Oh, Mode: x.Mode, Access: x.Access}}
	return true
}

func (f *form) decodeNotify(c *nfsserver.Call) bool {
	if f.version == nlm.NLM4_VERS {
		return c.Decode(&f.notify)
	}
	if !c.Decode(&f.free) {
		return false
	}
	f.notify = nlm.Nlm4Notify{Name: f.free.Name, State: f.free.State}
	return true
}

// result is the answer to most procedures, testResult that to TEST.
func (f *form) result(cookie []byte, st stat) xdr.Message {
	if f.version == nlm.NLM4_VERS {
		return &nlm.Nlm4Res{Cookie: cookie, Stat: nlm.Nlm4Stat{Stat: st}}
	}
	return &nlm.NlmRes{Cookie: cookie, Stat: nlm.NlmStat{Stat: narrowStat(st)}}
}

func (f *form) testResult(cookie []byte, r *nlm.Nlm4Testrply) xdr.Message {
	if f.version == nlm.NLM4_VERS {
		return &nlm.Nlm4Testres{Cookie: cookie, Stat: *r}
	}
	return &nlm.NlmTestres{Cookie: cookie, Stat: nlm.NlmTestrply{Stat: narrowStat(r.Stat), Holder: narrowHolder(&r.Holder)}}
}

func (f *form) shareResult(cookie []byte, st stat) xdr.Message {
	if f.version == nlm.NLM4_VERS {
		return &nlm.Nlm4Shareres{Cookie: cookie, Stat: st}
	}
	return &nlm.NlmShareres{Cookie: cookie, Stat: narrowStat(st)}
}

// Procedures of all versions have the same numbers.
func (s *Server) program(version uint32) nfsserver.Program {
	p := nfsserver.Program{
		// Not Guarded: clients use AUTH_SYS here even if they mount with Kerberos, and Linux
		// allows it, too. They need a handle, which nobody can make up.
		Name: "nlm", Number: nlm.NLM_PROG, Version: version,
		NewState: func() any { return &form{version: version} },
		Procedures: []nfsserver.Procedure{
			nlm.NLMPROC4_NULL:        {Do: nfsserver.Null, Inline: true},
			nlm.NLMPROC4_TEST:        {Do: s.answer(s.doTest)},
			nlm.NLMPROC4_LOCK:        {Do: s.answer(s.doLock), Cached: true},
			nlm.NLMPROC4_CANCEL:      {Do: s.answer(s.doCancel), Cached: true},
			nlm.NLMPROC4_UNLOCK:      {Do: s.answer(s.doUnlock), Cached: true},
			nlm.NLMPROC4_GRANTED:     {Do: s.answer(doGranted)},
			nlm.NLMPROC4_TEST_MSG:    {Do: s.message(s.doTest, nlm.NLMPROC4_TEST_RES)},
			nlm.NLMPROC4_LOCK_MSG:    {Do: s.message(s.doLock, nlm.NLMPROC4_LOCK_RES), Cached: true},
			nlm.NLMPROC4_CANCEL_MSG:  {Do: s.message(s.doCancel, nlm.NLMPROC4_CANCEL_RES), Cached: true},
			nlm.NLMPROC4_UNLOCK_MSG:  {Do: s.message(s.doUnlock, nlm.NLMPROC4_UNLOCK_RES), Cached: true},
			nlm.NLMPROC4_GRANTED_MSG: {Do: s.message(doGranted, nlm.NLMPROC4_GRANTED_RES)},
		},
	}
	if version >= nlm.NLM_VERSX {
		p.Procedures = append(p.Procedures, make([]nfsserver.Procedure, nlm.NLMPROC4_FREE_ALL+1-len(p.Procedures))...)
		p.Procedures[nlm.NLMPROC4_SHARE] = nfsserver.Procedure{Do: s.answer(s.doShare), Cached: true}
		p.Procedures[nlm.NLMPROC4_UNSHARE] = nfsserver.Procedure{Do: s.answer(s.doUnshare), Cached: true}
		p.Procedures[nlm.NLMPROC4_NM_LOCK] = nfsserver.Procedure{Do: s.answer(s.doNMLock), Cached: true}
		p.Procedures[nlm.NLMPROC4_FREE_ALL] = nfsserver.Procedure{Do: s.doFreeAll, Cached: true}
	}
	for _, known := range nlm.Programs {
		for i := range p.Procedures {
			if known.Version == version && i < len(known.Procedures) {
				p.Procedures[i].Name = known.Procedures[i].Name
			}
		}
	}
	return p
}

// procedure executes a call; nil: it has been answered.
type procedure func(c *nfsserver.Call, f *form) xdr.Message

// answer makes a procedure whose result is its reply.
func (s *Server) answer(do procedure) func(c *nfsserver.Call) {
	return func(c *nfsserver.Call) {
		if res := do(c, c.State.(*form)); res != nil {
			c.Reply(res)
		}
	}
}

// message makes a procedure of the asynchronous form: the reply is empty, and the result comes
// as a call of the other side.
func (s *Server) message(do procedure, result uint32) func(c *nfsserver.Call) {
	return func(c *nfsserver.Call) {
		f := c.State.(*form)
		res := do(c, f)
		if res == nil {
			return
		}
		b := res.Append(nil)
		addr, version, back := c.Peer().Remote.Addr().Unmap(), f.version, c.Exchange().Backward()
		c.Send()
		select {
		case s.calling <- struct{}{}:
		default:
			return // the client asks again
		}
		s.wg.Go(func() {
			defer func() { <-s.calling }()
			ctx, cancel := context.WithTimeout(s.ctx, 2*s.opt.Timeout)
			defer cancel()
			r, done, err := s.reach(ctx, addr, version, back)
			if err != nil {
				return
			}
			defer done()
			_ = portmap.Do(ctx, r, oncrpc.Call{Program: nlm.NLM_PROG, Version: version, Procedure: result, Cred: s.cred()}, encoded(b), nil, s.opt.Timeout)
		})
	}
}

// encoded is a message in XDR.
type encoded []byte

func (e encoded) Append(b []byte) []byte { return append(b, e...) }

func (s *Server) doTest(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeTest(c) {
		return nil
	}
	r := s.test(c, &f.testargs)
	return f.testResult(f.testargs.Cookie, &r)
}

func (s *Server) doLock(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeLock(c) {
		return nil
	}
	return f.result(f.lockargs.Cookie, s.lock(c, &f.lockargs, f.version, true))
}

func (s *Server) doNMLock(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeLock(c) {
		return nil
	}
	return f.result(f.lockargs.Cookie, s.lock(c, &f.lockargs, f.version, false))
}

func (s *Server) doCancel(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeCancel(c) {
		return nil
	}
	return f.result(f.cancargs.Cookie, s.cancel(c, &f.cancargs))
}

func (s *Server) doUnlock(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeUnlock(c) {
		return nil
	}
	return f.result(f.unlockargs.Cookie, s.unlock(c, &f.unlockargs.Alock))
}

// doGranted refuses: this server waits for no locks of others.
func doGranted(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeTest(c) {
		return nil
	}
	return f.result(f.testargs.Cookie, nlm.NLM4_DENIED)
}

func (s *Server) doShare(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeShare(c) {
		return nil
	}
	return f.shareResult(f.shareargs.Cookie, s.share(c, &f.shareargs, false))
}

func (s *Server) doUnshare(c *nfsserver.Call, f *form) xdr.Message {
	if !f.decodeShare(c) {
		return nil
	}
	return f.shareResult(f.shareargs.Cookie, s.share(c, &f.shareargs, true))
}

func (s *Server) doFreeAll(c *nfsserver.Call) {
	f := c.State.(*form)
	if !f.decodeNotify(c) {
		return
	}
	s.freeAll(c, bytes.Clone(f.notify.Name))
	c.Send()
}
