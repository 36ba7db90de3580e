package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// A server that restarts forgets client ids, sessions, opens and locks, and tells each client
// when it calls again (RFC 8881, section 8.4.2; RFC 7530, section 9.6.2). The client is then
// created again and reclaims what it had, as clients do, and the call is sent again. The engine
// waits meanwhile, since all calls of the client need the new state.

// lives identifies the incarnations of a client and of a session that a call belongs to.
type lives struct {
	client  int // of the plan; 0 if the call has none
	life    int
	session int
}

// restarts records how the run dealt with restarts of the server.
type restarts struct {
	list   []report.Recovery
	more   int
	failed map[[2]int]int // attempts in a row that failed, by clone and client
}

const (
	// maxRecoveries is how many are listed.
	maxRecoveries = 64
	// maxLost is how many states that were lost are named.
	maxLost = 16
	// maxAnew is how often one client is created again.
	maxAnew = 256
	// maxFailed is how many attempts in a row to create a client again may fail.
	maxFailed = 3
	// maxRenewals is how often a call is sent again for this.
	maxRenewals = 8
	// maxRanges is how many byte ranges of a lock are followed.
	maxRanges = 1024
)

// forgotten are the statuses with which a server says that it does not know a client, or no
// longer does.
func forgotten(code uint32) bool {
	switch nfs4.Nfsstat4(code) {
	case nfs4.NFS4ERR_BADSESSION, nfs4.NFS4ERR_DEADSESSION, nfs4.NFS4ERR_STALE_CLIENTID, nfs4.NFS4ERR_STALE_STATEID, nfs4.NFS4ERR_EXPIRED:
		return true
	}
	return false
}

// remember notes the incarnations of client and session for a call that is about to be encoded.
func (c *call) remember(client int) {
	c.lives = lives{client: client}
	if c.lives.client > 0 {
		c.lives.life = c.clone.Clients[c.lives.client].Lives
	}
	if s := c.session(); s != nil {
		c.lives.session = s.Lives
	}
}

// clientOf is the NFSv4 client of an op; 0 if that is not known.
func clientOf(t *plan.Tables, o *plan.Op) int {
	if o.Compound == nil {
		return 0
	}
	of := 0
	for i := range o.Compound.Ops {
		for k := range o.Compound.Ops[i].Args {
			switch f := &o.Compound.Ops[i].Args[k]; f.Kind {
			case plan.FieldSession:
				return t.Sessions[f.Ref-1].Client
			case plan.FieldClient:
				return f.Ref
			case plan.FieldState:
				if of == 0 {
					of = t.States[f.Ref-1].Client
				}
			}
		}
	}
	return of
}

// renewed checks whether a reply says that the server has forgotten the client. If so, it creates
// the client again, sends the call again, and returns true.
func (e *engine) renewed(c *call, rpc string, res xdr.Message) bool {
	o := c.form.Op
	if _, ok := res.(*nfs4.CompoundRes); !ok || rpc != "" || c.own || e.stopping != "" || c.lives.client == 0 || c.tries > maxRenewals {
		return false
	}
	code, symbol := judge.StatusOf(res)
	if o.Expect != nil && o.Expect.Status == code {
		return false
	}
	earlier := c.lives.life != c.clone.Clients[c.lives.client].Lives
	switch {
	case earlier && (forgotten(code) || nfs4.Nfsstat4(code) == nfs4.NFS4ERR_BAD_STATEID):
	case !forgotten(code) || !e.recover(c.clone, c.lives.client, symbol):
		return false
	}
	e.count.retried++
	c.release()
	c.form.Note, c.form.Newest = verdict.Restarted, true
	e.step(c.entry, schedule.Postpone)
	e.later.add(time.Now(), c)
	return true
}

// reconnected tells the judge that the server may have lost what was not committed, if the
// connection of a COMMIT was lost before.
func (e *engine) reconnected(c *call, res xdr.Message) {
	o := c.form.Op
	if !(workload.Has(o, nfs4.OP_COMMIT) || o.Compound == nil && o.Program == nfs3.NFS_PROGRAM && o.Procedure == nfs3.NFSPROC3_COMMIT) || res == nil {
		return
	}
	lost := uint64(0)
	for _, l := range e.lines.captured[c.clone.Number] {
		if l == nil {
			continue // it could not be made
		}
		if n := l.req.Stats().Reconnects; n > l.lost {
			lost += n - l.lost
			l.lost = n
		}
	}
	if lost > 0 {
		e.uncommitted(c.clone)
	}
}

// uncommitted reports which written data a restart may have lost.
func (e *engine) uncommitted(w *bindings.Clone) {
	if n := e.judge.Restarted(w.Number); n > 0 {
		e.record.Note("a connection was lost, or the server has restarted: what it held of %d files without a COMMIT may be lost, and is not compared", n)
	}
}

// recover creates a client again and reclaims what it held. It reports whether the client can be
// used again.
func (e *engine) recover(w *bindings.Clone, id int, why string) bool {
	s := &e.restarts
	k := [2]int{w.Number, id}
	if s.failed[k] >= maxFailed || w.Clients[id].Lives >= maxAnew {
		return false
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(e.ctx, e.opt.Timeout)
	defer cancel()
	r := recovery{provision: &e.provision, completed: e.completed, ctx: ctx, w: w, of: id, minor: e.load.Tables.Clients[id-1].Minor}
	r.Clone, r.Client, r.Why, r.At = w.Number, id, why, began.Sub(e.start)
	var err error
	for again := true; again; {
		// The server may restart while its clients recover.
		err = r.run()
		var status *client.StatusError
		again = errors.As(err, &status) && forgotten(status.Code) && r.attempts < maxFailed
	}
	r.Took = time.Since(began)
	if s.failed == nil {
		s.failed = map[[2]int]int{}
	}
	if err != nil {
		s.failed[k]++
		r.Failed = err.Error()
	} else {
		s.failed[k] = 0
	}
	if len(s.list) < maxRecoveries {
		s.list = append(s.list, r.Recovery)
	} else {
		s.more++
	}
	e.uncommitted(w)
	return err == nil
}

// recovery is one such recovery.
type recovery struct {
	*provision
	report.Recovery
	completed map[[2]int]bool // clients that have sent a RECLAIM_COMPLETE which the plan does not have
	ctx       context.Context
	w         *bindings.Clone
	of        int // the client
	minor     uint32
	in        int // a session of the client; 0 with NFSv4.0
	attempts  int
	refused   map[int]error // opens that could not be reclaimed
}

func (r *recovery) run() error {
	r.attempts++
	w, t := r.w, &r.load.Tables
	var sessions []int
	for i := range t.Sessions {
		if t.Sessions[i].Client == r.of && w.Sessions[i+1].Bound {
			sessions = append(sessions, i+1)
		}
	}
	w.Clients[r.of].Lives++
	if err := r.patient(func() error { return r.client(r.ctx, w, r.of) }); err != nil {
		return fmt.Errorf("the client id: %w", err)
	}
	r.in, r.refused = 0, map[int]error{}
	for _, id := range sessions {
		if err := r.patient(func() error { return r.createSession(r.ctx, w, id) }); err != nil {
			return fmt.Errorf("a session: %w", err)
		}
		r.in = id
		r.Sessions++
	}
	if r.minor > 0 && r.in == 0 {
		return nil // it had nothing that could be reclaimed
	}
	for _, kind := range []func(int) error{r.reclaimOpen, r.reclaimLock} {
		for i := range t.States {
			if t.States[i].Client != r.of || !w.States[i+1].Bound || w.States[i+1].Closed || !w.Latest(i+1) {
				continue
			}
			if err := kind(i + 1); prepareFatal(err) {
				return err
			}
		}
	}
	if r.minor > 0 && (w.Clients[r.of].Complete || r.completed[[2]int{w.Number, r.of}]) {
		err := r.patient(func() error {
			return r.call(r.ctx, nil, w, r.of, []plan.CompoundOp{sequence(r.in), {Op: uint32(nfs4.OP_RECLAIM_COMPLETE), Args: []plan.Field{u32("rca_one_fs", 0)}}})
		})
		var status *client.StatusError
		if err != nil && !(errors.As(err, &status) && nfs4.Nfsstat4(status.Code) == nfs4.NFS4ERR_COMPLETE_ALREADY) {
			return fmt.Errorf("RECLAIM_COMPLETE: %w", err)
		}
	}
	return r.reopen()
}

// prepareFatal reports an error after which nothing more can be reclaimed.
func prepareFatal(err error) bool {
	var status *client.StatusError
	if errors.As(err, &status) {
		return forgotten(status.Code)
	}
	return fatal(err)
}

// patient repeats a call that the server asks to have later.
func (r *recovery) patient(f func() error) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := f()
		var status *client.StatusError
		if !errors.As(err, &status) || nfs4.Nfsstat4(status.Code) != nfs4.NFS4ERR_DELAY && nfs4.Nfsstat4(status.Code) != nfs4.NFS4ERR_GRACE {
			return err
		}
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return err
		}
	}
}

// compound sends a COMPOUND of the client, in its session if it has one.
func (r *recovery) compound(ops []plan.CompoundOp, binds ...plan.Bind) error {
	if r.in > 0 {
		ops = append([]plan.CompoundOp{sequence(r.in)}, ops...)
		for i := range binds {
			binds[i].At++
		}
	}
	return r.patient(func() error { return r.call(r.ctx, nil, r.w, r.of, ops, binds...) })
}

// lost gives a state up.
func (r *recovery) lost(id int, why error) {
	s := &r.load.Tables.States[id-1]
	for _, i := range r.w.Aliases(id) {
		r.w.States[i] = bindings.State{Refused: true}
	}
	r.w.States[id] = bindings.State{Refused: true}
	r.Lost++
	if len(r.Details) < maxLost {
		path := "a file that is not known"
		if s.Object > 0 {
			path = r.load.Tables.Objects[s.Object-1].Path
		}
		r.Details = append(r.Details, fmt.Sprintf("%s of %s: %v", s.Kind, path, why))
	}
}

// reclaimOpen reclaims an open. Other states except locks are given up: the server decides again whether
// to give a delegation or a layout.
func (r *recovery) reclaimOpen(id int) error {
	s := &r.load.Tables.States[id-1]
	switch s.Kind {
	case plan.LockState:
		return nil
	case plan.OpenState, plan.UnknownState:
	default:
		r.lost(id, errors.New("it is not reclaimed"))
		return nil
	}
	if s.Object == 0 || r.w.Objects[s.Object].Handle == nil {
		r.lost(id, errors.New("its file is not known"))
		return nil
	}
	err := r.openWith(id, u32("claim", uint32(nfs4.CLAIM_PREVIOUS)), u32("delegate_type", uint32(nfs4.OPEN_DELEGATE_NONE)))
	switch {
	case err == nil:
		r.Opens++
	case !prepareFatal(err):
		r.refused[id] = err
	}
	return err
}

// openWith opens the current file of a state with a claim.
func (r *recovery) openWith(id int, claim ...plan.Field) error {
	s := &r.load.Tables.States[id-1]
	access, deny := r.shares(id)
	if r.minor > 0 {
		access |= nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG
	}
	owner := fmt.Appendf(nil, "rpcrdma-replay open %d", id)
	seqid := u32("seqid", 0)
	if s.Owner > 0 {
		o := &r.load.Tables.Owners[s.Owner-1]
		if o.Bytes != nil {
			owner = o.Bytes
		}
		if o.Kind == "open" && r.minor == 0 {
			seqid = plan.Field{N: "seqid", Kind: plan.FieldSeqid, Ref: s.Owner}
		}
	}
	args := append([]plan.Field{seqid, u32("share_access", access), u32("share_deny", deny), {N: "clientid", Kind: plan.FieldClient, Ref: r.of},
		{N: "owner", Kind: plan.FieldText, Bytes: owner}, u32("opentype", uint32(nfs4.OPEN4_NOCREATE))}, claim...)
	aliases := r.w.Aliases(id)
	err := r.compound([]plan.CompoundOp{put(s.Object), {Op: uint32(nfs4.OP_OPEN), Args: args}},
		plan.Bind{At: 1, Kind: plan.FieldState, Ref: id, State: plan.OpenState})
	for _, i := range aliases {
		if err == nil {
			r.w.Follow(i, id)
		}
	}
	if err != nil || !r.unconfirmed() || seqid.Kind != plan.FieldSeqid {
		return err
	}
	return r.compound(openConfirm(s, id), plan.Bind{At: 1, Kind: plan.FieldState, Ref: id})
}

// unconfirmed reports whether the server wants the latest OPEN confirmed. For a reclaim it need
// not.
func (r *recovery) unconfirmed() bool {
	c, ok := r.result.(*nfs4.CompoundRes)
	if !ok || len(c.Ops) == 0 {
		return false
	}
	o, ok := c.Ops[len(c.Ops)-1].Body.(*nfs4.OPEN4res)
	return ok && o.Status == nfs4.NFS4_OK && o.Resok4.Rflags&nfs4.OPEN4_RESULT_CONFIRM != 0
}

// reopen opens files whose opens could not be reclaimed, because there is no grace period or the
// server refused the reclaim. Without sessions that needs a name, which may belong to another
// file by now.
func (r *recovery) reopen() error {
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		why := r.refused[id]
		if r.in == 0 {
			r.lost(id, why)
			continue
		}
		err := r.openWith(id, u32("claim", uint32(nfs4.CLAIM_FH)))
		switch {
		case prepareFatal(err):
			return err
		case err != nil:
			r.lost(id, err)
		default:
			r.Reopened++
		}
	}
	return nil
}

// shares are the access and deny modes that an open has accumulated.
func (r *recovery) shares(id int) (access, deny uint32) {
	var steps []bindings.Step
	for _, i := range append(r.w.Aliases(id), id) {
		steps = append(steps, r.w.States[i].Steps...)
	}
	slices.SortFunc(steps, func(a, b bindings.Step) int { return cmp.Compare(a.Op, b.Op) })
	for _, x := range steps {
		switch x.Kind {
		case bindings.Opened:
			access |= x.Access & nfs4.OPEN4_SHARE_ACCESS_BOTH
			deny |= x.Deny & nfs4.OPEN4_SHARE_DENY_BOTH
		case bindings.Narrowed:
			access, deny = x.Access&nfs4.OPEN4_SHARE_ACCESS_BOTH, x.Deny&nfs4.OPEN4_SHARE_DENY_BOTH
		}
	}
	if access == 0 {
		access = r.load.Tables.States[id-1].Access & nfs4.OPEN4_SHARE_ACCESS_BOTH
	}
	if access == 0 {
		access = nfs4.OPEN4_SHARE_ACCESS_BOTH
	}
	return access, deny
}

// reclaimLock reclaims the byte ranges of a lock owner in a file.
func (r *recovery) reclaimLock(id int) error {
	s := &r.load.Tables.States[id-1]
	if s.Kind != plan.LockState {
		return nil
	}
	open, owner, held := r.held(id)
	_, refused := r.refused[open]
	switch {
	case open > 0 && r.w.States[open].Closed:
		r.w.States[id].Closed = true // it went with its open
		return nil
	case open == 0 || !r.w.States[open].Bound || s.Object == 0 || r.w.Objects[s.Object].Handle == nil:
		r.lost(id, errors.New("its file is not open"))
		return nil
	case refused && len(held) == 0:
		r.w.States[id] = bindings.State{Refused: true}
		return nil
	case refused:
		r.lost(id, r.refused[open])
		return nil
	case r.w.States[id].More:
		r.lost(id, errors.New("more ranges than are followed"))
		return nil
	}
	release := len(held) == 0
	if release {
		// The plan may go on with the state id of a lock that holds nothing at present.
		held = []lockRange{{typ: nfs4.READ_LT, from: 1<<63 - 2, to: 1<<63 - 1}}
		if access, _ := r.shares(open); access&nfs4.OPEN4_SHARE_ACCESS_READ == 0 {
			held[0].typ = nfs4.WRITE_LT
		}
	}
	for i, x := range held {
		args := []plan.Field{u32("locktype", uint32(x.typ)), u32("reclaim", 1), {N: "offset", Kind: plan.FieldU64, Value: x.from},
			{N: "length", Kind: plan.FieldU64, Value: x.length()}}
		if i == 0 {
			args = append(args, u32("new_lock_owner", 1), r.seqid("open_seqid", open), plan.Field{N: "open_stateid", Kind: plan.FieldState, Ref: open},
				r.seqid("lock_seqid", id), plan.Field{N: "clientid", Kind: plan.FieldClient, Ref: r.of}, plan.Field{N: "owner", Kind: plan.FieldText, Bytes: owner})
		} else {
			args = append(args, u32("new_lock_owner", 0), plan.Field{N: "lock_stateid", Kind: plan.FieldState, Ref: id}, r.seqid("lock_seqid", id))
		}
		err := r.compound([]plan.CompoundOp{put(s.Object), {Op: uint32(nfs4.OP_LOCK), Args: args}}, plan.Bind{At: 1, Kind: plan.FieldState, Ref: id, State: plan.LockState})
		if prepareFatal(err) {
			return err
		}
		switch {
		case err != nil && release:
			r.w.States[id] = bindings.State{Refused: true} // it held nothing
		case err != nil:
			r.lost(id, err)
		}
		if !r.w.States[id].Bound {
			return nil
		}
		if release {
			return r.compound([]plan.CompoundOp{put(s.Object), {Op: uint32(nfs4.OP_LOCKU), Args: []plan.Field{u32("locktype", uint32(x.typ)), r.seqid("seqid", id),
				{N: "lock_stateid", Kind: plan.FieldState, Ref: id}, {N: "offset", Kind: plan.FieldU64, Value: x.from}, {N: "length", Kind: plan.FieldU64, Value: x.length()}}}})
		}
		r.Locks++
	}
	return nil
}

// seqid is the sequence number of a state's owner, which only NFSv4.0 has.
func (r *recovery) seqid(n string, state int) plan.Field {
	if w := r.load.Tables.States[state-1].Owner; r.minor == 0 && w > 0 {
		return plan.Field{N: n, Kind: plan.FieldSeqid, Ref: w}
	}
	return u32(n, 0)
}

// held are the ranges that a lock holds, with its open and its owner.
func (r *recovery) held(id int) (open int, owner []byte, list []lockRange) {
	s := &r.load.Tables.States[id-1]
	if s.Owner > 0 {
		owner = r.load.Tables.Owners[s.Owner-1].Bytes
	}
	if owner == nil {
		owner = fmt.Appendf(nil, "rpcrdma-replay lock %d", id)
	}
	for _, x := range r.w.States[id].Steps {
		switch x.Kind {
		case bindings.Locked:
			if open == 0 {
				open = x.Open
			}
			list = append(without(list, rangeOf(x.Offset, x.Length)), rangeOf(x.Offset, x.Length))
			list[len(list)-1].typ = waitless(x.Type)
		case bindings.Unlocked:
			list = without(list, rangeOf(x.Offset, x.Length))
		}
		if len(list) > maxRanges {
			r.w.States[id].More = true
			break
		}
	}
	if open == 0 {
		// It was there before the capture: made with an open of the same file.
		for i := range r.load.Tables.States {
			if o := &r.load.Tables.States[i]; o.Kind == plan.OpenState && o.Object == s.Object && o.Client == s.Client && r.w.States[i+1].Bound && !r.w.States[i+1].Closed {
				open = i + 1
			}
		}
	}
	return open, owner, list
}

// lockRange is a locked range: to is exclusive, 2^64-1 is the end of the file.
type lockRange struct {
	typ      nfs4.NfsLockType4
	from, to uint64
}

func rangeOf(offset, length uint64) lockRange {
	x := lockRange{from: offset, to: offset + length}
	if length == 1<<64-1 || x.to < x.from {
		x.to = 1<<64 - 1
	}
	return x
}

func (x lockRange) length() uint64 {
	if x.to == 1<<64-1 {
		return x.to
	}
	return x.to - x.from
}

// without returns a list minus a range.
func without(list []lockRange, x lockRange) []lockRange {
	out := make([]lockRange, 0, len(list)+1)
	for _, y := range list {
		if y.to <= x.from || y.from >= x.to {
			out = append(out, y)
			continue
		}
		if y.from < x.from {
			out = append(out, lockRange{y.typ, y.from, x.from})
		}
		if y.to > x.to {
			out = append(out, lockRange{y.typ, x.to, y.to})
		}
	}
	return out
}

// waitless is the non-blocking form of a lock type.
func waitless(t nfs4.NfsLockType4) nfs4.NfsLockType4 {
	switch t {
	case nfs4.READW_LT:
		return nfs4.READ_LT
	case nfs4.WRITEW_LT:
		return nfs4.WRITE_LT
	}
	return t
}
