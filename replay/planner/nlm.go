package planner

import (
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// Locks of NFSv3 go to a program of their own, mostly over connections of their own. The
// server's GRANTED, a call in the other direction, becomes a LOCK that asks once more: it needs
// the reply that GRANTED stands for, and a server that cannot reach us will give it.

// isNLM reports whether a call is to a lock manager.
func isNLM(tx *transaction.Transaction) bool { return tx.Program == nlm.NLM_PROG }

// lockCall is the argument of a call of NLM, of any version.
type lockCall struct {
	cookie    []byte
	block     bool
	exclusive bool
	reclaim   bool
	state     uint32
	host, fh  []byte
	oh        []byte
	svid      int32
	shared    bool // SHARE, UNSHARE: without svid and range
	wide      bool // version 4
	offset    uint64
	length    uint64
	mode      uint32
	access    uint32
}

func (l *lockCall) lock3(a *nlm.NlmLock) {
	l.host, l.fh, l.oh, l.svid, l.offset, l.length = a.CallerName, a.Fh, a.Oh, a.Svid, uint64(a.LOffset), uint64(a.LLen)
}

func (l *lockCall) lock4(a *nlm.Nlm4Lock) {
	l.host, l.fh, l.oh, l.svid, l.offset, l.length, l.wide = a.CallerName, a.Fh, a.Oh, a.Svid, a.LOffset, a.LLen, true
}

// lockArgs reads the arguments; ok is false for procedures that are not replayed.
func lockArgs(m xdr.Message) (l lockCall, ok bool) {
	switch a := m.(type) {
	case *nlm.NlmTestargs:
		l.cookie, l.exclusive = a.Cookie, a.Exclusive
		l.lock3(&a.Alock)
	case *nlm.NlmLockargs:
		l.cookie, l.block, l.exclusive, l.reclaim, l.state = a.Cookie, a.Block, a.Exclusive, a.Reclaim, uint32(a.State)
		l.lock3(&a.Alock)
	case *nlm.NlmCancargs:
		l.cookie, l.block, l.exclusive = a.Cookie, a.Block, a.Exclusive
		l.lock3(&a.Alock)
	case *nlm.NlmUnlockargs:
		l.cookie = a.Cookie
		l.lock3(&a.Alock)
	case *nlm.NlmShareargs:
		s := &a.Share
		l = lockCall{cookie: a.Cookie, reclaim: a.Reclaim, host: s.CallerName, fh: s.Fh, oh: s.Oh, shared: true, mode: uint32(s.Mode), access: uint32(s.Access)}
	case *nlm.Nlm4Testargs:
		l.cookie, l.exclusive = a.Cookie, a.Exclusive
		l.lock4(&a.Alock)
	case *nlm.Nlm4Lockargs:
		l.cookie, l.block, l.exclusive, l.reclaim, l.state = a.Cookie, a.Block, a.Exclusive, a.Reclaim, uint32(a.State)
		l.lock4(&a.Alock)
	case *nlm.Nlm4Cancargs:
		l.cookie, l.block, l.exclusive = a.Cookie, a.Block, a.Exclusive
		l.lock4(&a.Alock)
	case *nlm.Nlm4Unlockargs:
		l.cookie = a.Cookie
		l.lock4(&a.Alock)
	case *nlm.Nlm4Shareargs:
		s := &a.Share
		l = lockCall{cookie: a.Cookie, reclaim: a.Reclaim, host: s.CallerName, fh: s.Fh, oh: s.Oh, shared: true, wide: true, mode: uint32(s.Mode), access: uint32(s.Access)}
	default:
		return l, false
	}
	return l, true
}

// blockedKey names a lock that waits.
type blockedKey struct {
	server         int
	fh, oh         string
	svid           int32
	offset, length uint64
	exclusive      bool
}

func (l *lockCall) key(server int) blockedKey {
	return blockedKey{server, string(l.fh), string(l.oh), l.svid, l.offset, l.length, l.exclusive}
}

// blocked is a LOCK that was told to wait.
type blocked struct {
	conn  *connection
	args  lockCall
	owner int
	op    int
	cred  int
}

// maxBlocked bounds the locks that wait.
const maxBlocked = 4096

// grantedReply is the reply that a GRANTED stands for.
func grantedReply(version uint32, results bool) *plan.Expect {
	x := &plan.Expect{StatusName: nlm.NLM4_GRANTED.Symbol()}
	var res interface{ Append([]byte) []byte } = &nlm.Nlm4Res{}
	if version != nlm.NLM4_VERS {
		x.StatusName, res = nlm.NlmGranted.Symbol(), &nlm.NlmRes{}
	}
	if results {
		x.Results = res.Append(nil)
	}
	return x
}

// callNLM puts a call of NLM into the plan.
type callNLM struct {
	*call
	states  *states
	waiting *waitingLocks
}

// fill fills the op. A reason means that the call is not replayed.
func (c *callNLM) fill() string {
	f := &c.form
	f.reset()
	a, ok := lockArgs(c.v.Args())
	if !ok {
		return "NLM " + procedure(c.v) + " is not replayed"
	}
	owner := 0
	if w := c.granted; w != nil {
		// Asked as before.
		cookie := a.cookie
		a, owner = w.args, w.owner
		a.cookie = cookie
		c.op.Procedure, c.op.Granted, c.op.Credential = nlm.NLM_LOCK, true, w.cred
		c.deps.Needs(w.op, plan.DepState)
		delete(c.waiting.locks, a.key(c.server))
	} else {
		owner = c.states.lockOwner(&a)
	}
	if owner == 0 {
		return "more owners than are followed"
	}
	f.opaque("cookie", a.cookie)
	if asynchronous(c.v.Tx) {
		c.op.Procedure -= nlm.NLM_TEST_MSG - nlm.NLM_TEST
		c.reasons.add(plan.Inferred, "asynchronous in the capture: its outcome is not compared")
	}
	proc := c.op.Procedure
	share := a.shared
	if proc == nlm.NLM_LOCK || proc == nlm.NLM_CANCEL || proc == nlm.NLM3_NM_LOCK {
		f.bool("block", a.block)
	}
	if proc != nlm.NLM_UNLOCK && !share {
		f.bool("exclusive", a.exclusive)
	}
	f.symbol(plan.Field{N: "caller_name", Kind: plan.FieldLockHost, Ref: owner}, xdr.AppendOpaque(nil, a.host))
	o := c.lockedFile(a.fh)
	f.symbol(plan.Field{N: "oh", Kind: plan.FieldLockOwner, Ref: owner}, xdr.AppendOpaque(nil, a.oh))
	switch {
	case share:
		f.u32("mode", a.mode)
		f.u32("access", a.access)
	default:
		f.symbol(plan.Field{N: "svid", Kind: plan.FieldSvid, Ref: owner}, xdr.AppendUint32(nil, uint32(a.svid)))
		if a.wide {
			f.u64("l_offset", a.offset)
			f.u64("l_len", a.length)
		} else {
			f.u32("l_offset", uint32(a.offset))
			f.u32("l_len", uint32(a.length))
		}
	}
	if proc == nlm.NLM_LOCK || proc == nlm.NLM3_NM_LOCK {
		f.bool("reclaim", a.reclaim)
		f.u32("state", a.state)
	}
	if share {
		f.bool("reclaim", a.reclaim)
	}
	if c.granted == nil && !f.matches(c.v.Args(), c.scratch) {
		return "its arguments are malformed"
	}
	c.op.Args = f.fields
	c.orderLocks(o, &a, proc)
	if c.mayWait(&a) && (proc == nlm.NLM_LOCK || proc == nlm.NLM3_NM_LOCK) {
		c.waiting.add(a.key(c.server), &blocked{conn: c.conn, args: a.clone(), owner: owner, op: c.op.ID, cred: c.op.Credential})
	}
	if c.granted == nil && a.reclaim && (!c.replied || c.status == uint32(nlm.NLM4_GRANTED)) {
		claim(f.fields)
	}
	return ""
}

// claim makes a lock that was reclaimed after a restart of the captured server an ordinary one. The server of the
// replay has not restarted: it still has the lock, gives it to the same owner again, and refuses a reclaim. Where the
// capture begins after the lock was taken, this is how the server of the replay learns of it.
func claim(fields []plan.Field) {
	for i := range fields {
		if fields[i].N == "reclaim" {
			fields[i].Value = 0
		}
	}
}

// mayWait reports whether a LOCK has to wait, or may have to where the reply is another call.
func (c *callNLM) mayWait(a *lockCall) bool {
	switch {
	case c.granted != nil:
		return false
	case asynchronous(c.v.Tx):
		return a.block
	}
	return c.replied && c.status == uint32(nlm.NLM4_BLOCKED)
}

func (l *lockCall) clone() lockCall {
	n := *l
	n.cookie, n.host, n.fh, n.oh = nil, []byte(string(l.host)), []byte(string(l.fh)), []byte(string(l.oh))
	return n
}

// waitingLocks are the LOCKs that were told to wait.
type waitingLocks struct {
	locks map[blockedKey]*blocked
	limit func(what string)
}

func (b *waitingLocks) add(k blockedKey, w *blocked) {
	if len(b.locks) >= maxBlocked {
		b.limit("more locks that wait than are followed")
		return
	}
	b.locks[k] = w
}

// lockedFile adds the file handle.
func (c *callNLM) lockedFile(h []byte) *obj {
	o := c.effects.space.of(c.server, h)
	if o == nil {
		c.form.text("fh", h)
		c.reasons.add(plan.Inferred, "a file handle that is not followed: sent as captured")
		return nil
	}
	if o.typ == "" {
		o.typ = "file"
	}
	c.form.handle("fh", c.effects.space.ref(o), h)
	c.effects.object(o)
	return o
}

// orderLocks keeps the order of calls about locks of the same bytes, and of what the file is
// read and written for under them.
func (c *callNLM) orderLocks(o *obj, a *lockCall, proc uint32) {
	offset, end := a.offset, a.offset+a.length
	if a.shared || a.length == 0 || end < offset {
		end = order.Forever
	}
	if a.shared {
		offset = 0
	} else {
		c.about.span(offset, a.length)
		if a.length == 0 {
			c.about.detail = "@" + strconv.FormatUint(offset, 10) + "-"
		}
	}
	how := order.Writes
	if proc == nlm.NLM_TEST {
		how = order.Reads
	}
	c.effects.locks(o, offset, end, how)
}

// opaque is text that is never symbolic.
func (f *form) opaque(n string, b []byte) {
	f.rawBytes(n, xdr.AppendOpaque(nil, b))
}

// nlmOwner identifies an owner of NLM. Shares have no svid.
type nlmOwner struct {
	host, oh string
	svid     int32
	shared   bool
}

// lockOwner finds or makes the owner of a lock; 0 if there is no room.
func (s *states) lockOwner(a *lockCall) int {
	k := nlmOwner{string(a.host), string(a.oh), a.svid, a.shared}
	if x := s.nlmOwners[k]; x != nil {
		return x.ID
	}
	if len(s.ownersIn) >= maxOwners || s.b.room.full() {
		s.b.limit("more owners than are followed")
		return 0
	}
	if s.nlmOwners == nil {
		s.nlmOwners = map[nlmOwner]*owner{}
	}
	x := &owner{Owner: plan.Owner{ID: len(s.ownersIn) + 1, Kind: plan.OwnerNLM, Bytes: []byte(k.oh), Host: strings.ToValidUTF8(k.host, "?"), Svid: k.svid}}
	s.b.room.take(ownerSize + 4*(len(k.host)+len(k.oh)))
	s.ownersIn = append(s.ownersIn, x)
	s.nlmOwners[k] = x
	return x.ID
}
