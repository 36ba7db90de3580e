package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// A server of NLM calls its client when a lock can be had that the client waits for. Such a call
// of the captured server is an op that asks once more for the lock (plan.Op.Granted): it goes
// when this server has called, or after a while, as clients do whom no call reaches.

// lockProgram is what plan.Connection.Program says of connections to a lock manager.
const lockProgram = "nlm"

// isLock reports whether an op is a call of NLM.
func isLock(o *plan.Op) bool { return o.Program == nlm.NLM_PROG }

// lockKey names a lock that is asked for.
type lockKey struct {
	fh, oh         string
	svid           int32
	offset, length uint64
	exclusive      bool
}

// asked is how far a lock has come that a call may wait for.
type asked uint8

const (
	waits  asked = iota // it was asked for
	called              // the server has called
	had                 // a reply says so
)

// grants are the locks that may be granted by a call. The zero value is ready for use, from any
// goroutine.
type grants struct {
	mu      sync.Mutex
	asked   map[lockKey]asked
	strange int // calls about locks that nobody has asked for
	wake    func()
}

func (g *grants) set(k lockKey, a asked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked == nil {
		g.asked = map[lockKey]asked{}
	}
	if _, ok := g.asked[k]; !ok || a != waits {
		g.asked[k] = a
	}
}

func (g *grants) forget(k lockKey) {
	g.mu.Lock()
	delete(g.asked, k)
	g.mu.Unlock()
}

// waiting reports whether a lock was asked for, and the server has not called.
func (g *grants) waiting(k lockKey) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.asked[k]
	return ok && a == waits
}

// unwanted is how many calls were about locks that nobody has asked for.
func (g *grants) unwanted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.strange
}

// granted deals with a call, and reports whether the lock is wanted.
func (g *grants) granted(k lockKey) bool {
	g.mu.Lock()
	a, ok := g.asked[k]
	switch {
	case !ok:
		g.strange++
	case a == waits:
		g.asked[k] = called
	}
	g.mu.Unlock()
	if ok && g.wake != nil {
		g.wake()
	}
	return ok
}

// ServeRPC implements transport.Handler: it answers GRANTED.
func (g *grants) ServeRPC(x transport.Exchange) {
	m := x.Call()
	var h oncrpc.Call
	if err := h.Decode(m.Stream, len(m.Stream)); err != nil || h.Size() > len(m.Stream) {
		x.Drop()
		return
	}
	reply := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}
	answer := func(stat oncrpc.AcceptStat, res []byte) {
		reply.Accept = stat
		x.Reply(&transport.Message{Stream: append(reply.Append(nil), res...)})
	}
	switch {
	case h.Program != nlm.NLM_PROG:
		answer(oncrpc.ProgUnavail, nil)
		return
	case h.Procedure == nlm.NLM_NULL:
		answer(oncrpc.Success, nil)
		return
	case h.Procedure != nlm.NLM_GRANTED:
		answer(oncrpc.ProcUnavail, nil)
		return
	}
	k, cookie, ok := grantedArgs(h.Version, m.Stream[h.Size():])
	if !ok {
		answer(oncrpc.GarbageArgs, nil)
		return
	}
	st := nlm.NLM4_DENIED
	if g.granted(k) {
		st = nlm.NLM4_GRANTED
	}
	// All versions have the same form and numbers here.
	answer(oncrpc.Success, (&nlm.Nlm4Res{Cookie: cookie, Stat: nlm.Nlm4Stat{Stat: st}}).Append(nil))
}

// grantedArgs reads the arguments of GRANTED.
func grantedArgs(version uint32, b []byte) (k lockKey, cookie []byte, ok bool) {
	var r xdr.Reader
	r.Reset(b, len(b))
	if version == nlm.NLM4_VERS {
		var a nlm.Nlm4Testargs
		a.Decode(&r)
		k, cookie = key4(&a.Alock, a.Exclusive), a.Cookie
	} else {
		var a nlm.NlmTestargs
		a.Decode(&r)
		k, cookie = key3(&a.Alock, a.Exclusive), a.Cookie
	}
	return k, cookie, !r.Failed()
}

func key4(l *nlm.Nlm4Lock, exclusive bool) lockKey {
	return lockKey{string(l.Fh), string(l.Oh), l.Svid, l.LOffset, l.LLen, exclusive}
}

func key3(l *nlm.NlmLock, exclusive bool) lockKey {
	return lockKey{string(l.Fh), string(l.Oh), l.Svid, uint64(l.LOffset), uint64(l.LLen), exclusive}
}

// lockCall is what a call of NLM asks for.
type lockCall struct {
	key   lockKey
	lock  bool // LOCK, NM_LOCK
	block bool
	ends  bool // CANCEL or UNLOCK
}

// lockOf reads an op as it would go out now; ok is false if it is not about a lock, or a value is
// missing.
func lockOf(o *plan.Op, w *bindings.Clone) (l lockCall, ok bool) {
	p := workload.Codec(o)
	if !isLock(o) || p == nil {
		return l, false
	}
	values := bindings.Values{Clone: w, Form: &bindings.Form{Op: o, Slot: -1}}
	b, _, err := o.AppendArgs(nil, nil, &values)
	if err != nil {
		return l, false
	}
	var r xdr.Reader
	r.Reset(b, len(b))
	m := p.NewArgs()
	if m.Decode(&r); r.Failed() {
		return l, false
	}
	switch a := m.(type) {
	case *nlm.NlmLockargs:
		return lockCall{key: key3(&a.Alock, a.Exclusive), lock: true, block: a.Block}, true
	case *nlm.Nlm4Lockargs:
		return lockCall{key: key4(&a.Alock, a.Exclusive), lock: true, block: a.Block}, true
	case *nlm.NlmCancargs:
		return lockCall{key: key3(&a.Alock, a.Exclusive), ends: true}, true
	case *nlm.Nlm4Cancargs:
		return lockCall{key: key4(&a.Alock, a.Exclusive), ends: true}, true
	case *nlm.NlmUnlockargs:
		return lockCall{key: key3(&a.Alock, false), ends: true}, true
	case *nlm.Nlm4Unlockargs:
		return lockCall{key: key4(&a.Alock, false), ends: true}, true
	}
	return l, false
}

// heldKey names what an owner may have of a file.
type heldKey struct {
	clone         *bindings.Clone
	owner, object int
}

func heldOf(w *bindings.Clone, o *plan.Op) (k heldKey) {
	k.clone = w
	for i := range o.Args {
		switch f := &o.Args[i]; f.Kind {
		case plan.FieldLockOwner:
			k.owner = f.Ref
		case plan.FieldHandle:
			k.object = f.Ref
		}
	}
	return k
}

// heldLock is what an owner may have of a file, or waits for.
type heldLock struct {
	// of the latest LOCK
	connection, credential int
	version                uint32
	ranges                 []heldRange
	more                   bool // than are remembered
}

// heldRange is a range that was locked, or is waited for.
type heldRange struct {
	offset, length   uint64 // as on the wire
	exclusive, waits bool
}

// maxHeldRanges is how many ranges of one owner in one file are remembered.
const maxHeldRanges = 64

// last is the last byte of a range.
func (r *heldRange) last() uint64 {
	if r.length == 0 || r.length-1 > math.MaxUint64-r.offset {
		return math.MaxUint64
	}
	return r.offset + r.length - 1
}

func (h *heldLock) add(r heldRange) {
	for i := range h.ranges {
		if x := &h.ranges[i]; x.offset == r.offset && x.length == r.length {
			*x = r
			return
		}
	}
	if h.more = h.more || len(h.ranges) >= maxHeldRanges; !h.more {
		h.ranges = append(h.ranges, r)
	}
}

// remove takes out the ranges that r covers, and reports whether nothing is left.
func (h *heldLock) remove(r heldRange) bool {
	if r.offset == 0 && r.last() == math.MaxUint64 {
		return true
	}
	h.ranges = slices.DeleteFunc(h.ranges, func(x heldRange) bool { return r.offset <= x.offset && x.last() <= r.last() })
	return len(h.ranges) == 0 && !h.more
}

// locks are the locks of NFSv3 that a run holds or waits for. Except for grants, they belong to the engine.
type locks struct {
	grants   grants
	manager  lockManager
	tables   *plan.Tables
	note     func(format string, args ...any)
	held     map[heldKey]*heldLock
	awaiting []awaited
	asked    map[*schedule.Entry]bool // that have waited
}

// awaited is an op that waits for a call of the server.
type awaited struct {
	entry *schedule.Entry
	key   lockKey
	until time.Time
}

// issued notes that a lock is asked for: the server may call before its reply is here.
func (ls *locks) issued(c *call) {
	if l, ok := lockOf(c.form.Op, c.clone); ok && l.lock && l.block {
		ls.grants.set(l.key, waits)
	}
}

// done notes what a reply says about a lock.
func (ls *locks) done(c *call, res xdr.Message) {
	o := c.form.Op
	delete(ls.asked, c.entry)
	l, ok := lockOf(o, c.clone)
	st, is := res.(xdr.Status)
	if !ok || !is {
		return
	}
	code, _ := st.StatusCode()
	k := heldOf(c.clone, o)
	if ls.held == nil {
		ls.held = map[heldKey]*heldLock{}
	}
	switch {
	case l.lock && (code == uint32(nlm.NLM4_GRANTED) || code == uint32(nlm.NLM4_BLOCKED)):
		h := ls.held[k]
		if h == nil {
			h = &heldLock{}
			ls.held[k] = h
		}
		h.connection, h.credential, h.version = o.Connection, o.Credential, o.Version
		h.add(heldRange{l.key.offset, l.key.length, l.key.exclusive, code == uint32(nlm.NLM4_BLOCKED)})
		if code == uint32(nlm.NLM4_GRANTED) && l.block {
			ls.grants.set(l.key, had)
		}
	case l.lock:
		ls.grants.forget(l.key)
	case l.ends && code == uint32(nlm.NLM4_GRANTED):
		ls.grants.forget(l.key)
		for _, exclusive := range []bool{false, true} {
			l.key.exclusive = exclusive
			ls.grants.forget(l.key)
		}
		if h := ls.held[k]; h != nil && h.remove(heldRange{offset: l.key.offset, length: l.key.length}) {
			delete(ls.held, k)
		}
	}
}

// surplus gives back a lock that only this server has granted at once, since the plan does not. An owner who may have other locks
// of these bytes keeps it: they would be lost, too. The result is nil if there is no
// such call.
func (ls *locks) surplus(c *call, res xdr.Message) *plan.Op {
	o := c.form.Op
	x := o.Expect
	if !isLock(o) || o.Granted || x == nil || x.RPC != "" || x.Status == uint32(nlm.NLM4_GRANTED) || x.Status == uint32(nlm.NLM4_BLOCKED) {
		return nil
	}
	l, ok := lockOf(o, c.clone)
	st, is := res.(xdr.Status)
	if !ok || !is || !l.lock {
		return nil
	}
	if code, _ := st.StatusCode(); code != uint32(nlm.NLM4_GRANTED) {
		return nil
	}
	r := heldRange{offset: l.key.offset, length: l.key.length}
	h := ls.held[heldOf(c.clone, o)]
	if h == nil || h.more || slices.ContainsFunc(h.ranges, func(other heldRange) bool {
		return (other.offset != r.offset || other.length != r.length) && other.offset <= r.last() && r.offset <= other.last()
	}) {
		return nil
	}
	host := slices.IndexFunc(o.Args, func(f plan.Field) bool { return f.Kind == plan.FieldLockHost })
	svid := slices.IndexFunc(o.Args, func(f plan.Field) bool { return f.Kind == plan.FieldSvid })
	if host < 1 || svid < host || svid+3 > len(o.Args) {
		return nil // not the form that the planner gives it
	}
	// The cookie, and the range with its owner.
	args := append([]plan.Field{o.Args[0]}, o.Args[host:svid+3]...)
	return &plan.Op{Connection: o.Connection, Credential: o.Credential, Program: o.Program, Version: o.Version, Procedure: nlm.NLM_UNLOCK, Args: args}
}

// await lets an op wait for the server's call until a time. It reports whether it has to.
func (ls *locks) await(n *schedule.Entry, w *bindings.Clone, until time.Time) bool {
	if !n.Op.Granted || ls.asked[n] {
		return false
	}
	l, ok := lockOf(n.Op, w)
	if !ok || !ls.grants.waiting(l.key) {
		return false
	}
	if ls.asked == nil {
		ls.asked = map[*schedule.Entry]bool{}
	}
	ls.asked[n] = true
	ls.awaiting = append(ls.awaiting, awaited{n, l.key, until})
	return true
}

// uncalled reports that an op goes although the server has not called.
func (ls *locks) uncalled(n *schedule.Entry, w *bindings.Clone) bool {
	if !n.Op.Granted {
		return false
	}
	l, ok := lockOf(n.Op, w)
	return ok && ls.grants.waiting(l.key)
}

// arrived takes the ops whose call has come, or has not come in time; all if nothing more is sent.
func (ls *locks) arrived(all bool) (list []*schedule.Entry) {
	kept := ls.awaiting[:0]
	now := time.Now()
	for _, a := range ls.awaiting {
		if !all && now.Before(a.until) && ls.grants.waiting(a.key) {
			kept = append(kept, a)
			continue
		}
		list = append(list, a.entry)
	}
	ls.awaiting = kept
	return list
}

// unlockAll gives up the locks that the plan leaves behind: nobody would, since the lock manager
// does not know that we end.
func (ls *locks) unlockAll(ctx context.Context) {
	strange := ls.grants.unwanted() // those that come for what is given up now are only late
	for k, h := range ls.held {
		if err := ls.unlock(ctx, k, h); err != nil {
			ls.note("a lock of NFSv3 could not be given up: %v", err)
		}
	}
	if strange > 0 {
		ls.note("the server has granted %d locks that nobody waits for", strange)
	}
}

func (ls *locks) unlock(ctx context.Context, k heldKey, h *heldLock) error {
	for i := range h.ranges {
		r := &h.ranges[i]
		ls.grants.forget(grantKey(k, r)) // a call that comes now is too late
		if !r.waits {
			continue
		}
		if _, err := ls.manager.call(ctx, k, h, nlm.NLM_CANCEL, &nlm.Nlm4Cancargs{Block: true, Exclusive: r.exclusive, Alock: alock(k, r)}); err != nil {
			return err
		}
	}
	_, err := ls.manager.call(ctx, k, h, nlm.NLM_UNLOCK, &nlm.Nlm4Unlockargs{Alock: alock(k, &heldRange{})})
	return err
}

// alock is a range as it goes on the wire.
func alock(k heldKey, r *heldRange) nlm.Nlm4Lock {
	o := k.clone.LockOwner(k.owner)
	return nlm.Nlm4Lock{CallerName: o.Host, Fh: *k.clone.HandleFor(nil, k.object), Oh: o.Name, Svid: o.Svid, LOffset: r.offset, LLen: r.length}
}

func grantKey(k heldKey, r *heldRange) lockKey {
	l := alock(k, r)
	return key4(&l, r.exclusive)
}

// lockManager calls the lock managers of servers.
type lockManager struct {
	lines *lines
	creds []oncrpc.Auth
	extra *int // calls that the plan does not have
}

// call makes a call on the connection of a lock, and returns its status.
func (m *lockManager) call(ctx context.Context, k heldKey, h *heldLock, procedure uint32, args xdr.Message) (nlm.Nlm4Stats, error) {
	l := m.lines.captured[k.clone.Number][h.connection]
	if l == nil {
		return 0, fmt.Errorf("connection %d is not there", h.connection)
	}
	if h.version != nlm.NLM4_VERS {
		args = narrow(args)
	}
	head := oncrpc.Call{RPCVersion: oncrpc.Version, Program: nlm.NLM_PROG, Version: h.version, Procedure: procedure}
	if h.credential > 0 && h.credential < len(m.creds) {
		head.Cred = m.creds[h.credential]
	}
	c := &transport.Call{MaxReply: slack, Timeout: grace}
	c.Stream = args.Append(head.Append(nil))
	*m.extra++
	if err := l.req.Do(ctx, c); err != nil {
		return 0, err
	}
	var reply oncrpc.Reply
	if err := reply.Decode(c.Reply.Stream, len(c.Reply.Stream)); err != nil || !reply.Succeeded() {
		return 0, fmt.Errorf("procedure %d: %s", procedure, reply.Status())
	}
	// All versions have the same form and numbers here.
	var r xdr.Reader
	var res nlm.Nlm4Res
	b := c.Reply.Stream[reply.Size():]
	r.Reset(b, len(b))
	if res.Decode(&r); r.Failed() {
		return 0, fmt.Errorf("procedure %d: a malformed reply", procedure)
	}
	return res.Stat.Stat, nil
}

// narrow is a call of versions 1 and 3, from whose calls its range came.
func narrow(args xdr.Message) xdr.Message {
	lock := func(l *nlm.Nlm4Lock) nlm.NlmLock {
		return nlm.NlmLock{CallerName: l.CallerName, Fh: l.Fh, Oh: l.Oh, Svid: l.Svid, LOffset: uint32(l.LOffset), LLen: uint32(l.LLen)}
	}
	switch a := args.(type) {
	case *nlm.Nlm4Lockargs:
		return &nlm.NlmLockargs{Cookie: a.Cookie, Block: a.Block, Exclusive: a.Exclusive, Reclaim: a.Reclaim, Alock: lock(&a.Alock), State: a.State}
	case *nlm.Nlm4Cancargs:
		return &nlm.NlmCancargs{Cookie: a.Cookie, Block: a.Block, Exclusive: a.Exclusive, Alock: lock(&a.Alock)}
	case *nlm.Nlm4Unlockargs:
		return &nlm.NlmUnlockargs{Cookie: a.Cookie, Alock: lock(&a.Alock)}
	}
	return args
}

// laterLock are the statuses of NLM with which a server asks the client to try again later.
func laterLock(o *plan.Op, code uint32) bool {
	return code == uint32(nlm.NLM4_DENIED_GRACE_PERIOD) || o.Granted && code == uint32(nlm.NLM4_BLOCKED)
}
