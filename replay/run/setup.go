package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// establish makes what the capture's clients had before it began: client ids,
// sessions, open files, locks. It runs before the engine's loop.
func (e *engine) establish(ctx context.Context, w *world) error {
	t := &e.load.Tables
	for i := range t.Clients {
		if t.Clients[i].DefinedBy != 0 || !e.usesClient(i+1) {
			continue
		}
		if err := e.establishClient(ctx, w, i+1); err != nil {
			return fmt.Errorf("client %d of the plan: %w", i+1, err)
		}
	}
	for i := range t.Sessions {
		if s := &t.Sessions[i]; s.DefinedBy == 0 && w.clients[s.Client].bound {
			if err := e.establishSession(ctx, w, i+1); err != nil {
				return fmt.Errorf("session %d of the plan: %w", i+1, err)
			}
		}
	}
	for i := range t.States {
		s := &t.States[i]
		if s.DefinedBy != 0 {
			continue
		}
		var err error
		switch s.Kind {
		case plan.OpenState, plan.UnknownState:
			err = e.establishOpen(ctx, w, i+1)
		case plan.LockState:
			err = e.establishLock(ctx, w, i+1)
		default:
			w.states[i+1].refused = true
		}
		if fatal(err) {
			return err
		}
		if err != nil {
			e.record.note("%s state %d, which was there before the capture, could not be had: %v", s.Kind, i+1, err)
			w.states[i+1].refused = true
		}
	}
	return nil
}

// usesClient reports whether anything of the plan is of a client.
func (e *engine) usesClient(id int) bool {
	t := &e.load.Tables
	return slices.ContainsFunc(t.Sessions, func(s plan.Session) bool { return s.Client == id }) ||
		slices.ContainsFunc(t.States, func(s plan.State) bool { return s.Client == id }) ||
		slices.ContainsFunc(t.Owners, func(o plan.Owner) bool { return o.Client == id })
}

// example is an op whose connection and user serve for calls of our own.
func (e *engine) example(client int) *plan.Op {
	t := &e.load.Tables
	var any *plan.Op
	for _, o := range e.load.Ops {
		if o.Compound == nil {
			continue
		}
		if any == nil {
			any = o
		}
		for i := range o.Compound.Ops {
			for k := range o.Compound.Ops[i].Args {
				switch a := &o.Compound.Ops[i].Args[k]; a.Kind {
				case plan.FieldSession:
					if t.Sessions[a.Ref-1].Client == client {
						return o
					}
				case plan.FieldClient:
					if a.Ref == client {
						return o
					}
				case plan.FieldState:
					if t.States[a.Ref-1].Client == client {
						return o
					}
				}
			}
		}
	}
	return any
}

// call makes one call of our own and waits for the reply.
func (e *engine) call(ctx context.Context, w *world, client int, ops []plan.CompoundOp, binds ...plan.Bind) error {
	like := e.example(client)
	if like == nil {
		return fmt.Errorf("no call of the plan is of NFSv4")
	}
	minor := uint32(0)
	if client > 0 {
		minor = e.load.Tables.Clients[client-1].Minor
	}
	o := &plan.Op{Connection: like.Connection, Credential: like.Credential, Program: like.Program, Version: like.Version, Procedure: like.Procedure,
		Compound: &plan.Compound{Minor: minor, Ops: ops}, Binds: binds}
	f := e.get()
	defer func() {
		f.world = nil
		e.put(f)
	}()
	f.op, f.world, f.conn = o, w, e.conns[w.number][like.Connection]
	if f.session, f.slot = e.sessionOf(f), -1; f.session != 0 {
		if s := &w.sessions[f.session]; s.bound {
			f.slot = s.take(0)
		}
	}
	if err := e.build(f); err != nil {
		e.leave(f)
		return err
	}
	f.Done = nil
	if err := f.conn.req.Do(ctx, &f.Call.Call); err != nil {
		return err
	}
	f.keep()
	rpc, res, err := e.decode(f)
	if err != nil {
		return err
	}
	if rpc != "" {
		return fmt.Errorf("%s: %s", extraName(o), rpc)
	}
	e.sequence(f, res)
	e.leave(f)
	e.learn(f, res)
	if code, symbol := statusOf(res); code != 0 {
		return statusError(o, code, symbol)
	}
	return nil
}

func u32(n string, v uint32) plan.Field {
	return plan.Field{N: n, Kind: plan.FieldU32, Value: uint64(v)}
}

func (e *engine) establishClient(ctx context.Context, w *world, id int) error {
	if e.load.Tables.Clients[id-1].Minor > 0 {
		return e.call(ctx, w, id, []plan.CompoundOp{{Op: uint32(nfs4.OP_EXCHANGE_ID), Args: []plan.Field{
			{N: "co_verifier", Kind: plan.FieldVerifier, Ref: id}, {N: "co_ownerid", Kind: plan.FieldOwnerID, Ref: id},
			u32("eia_flags", nfs4.EXCHGID4_FLAG_USE_NON_PNFS), u32("spa_how", 0), u32("eia_client_impl_id", 0),
		}}}, plan.Bind{Kind: plan.FieldClient, Ref: id})
	}
	err := e.call(ctx, w, id, []plan.CompoundOp{{Op: uint32(nfs4.OP_SETCLIENTID), Args: []plan.Field{
		{N: "verifier", Kind: plan.FieldVerifier, Ref: id}, {N: "id", Kind: plan.FieldOwnerID, Ref: id},
		u32("cb_program", 0x40000000), {N: "cb_location", Kind: plan.FieldCallback}, u32("callback_ident", 1),
	}}}, plan.Bind{Kind: plan.FieldClient, Ref: id})
	if err != nil {
		return err
	}
	return e.call(ctx, w, id, []plan.CompoundOp{{Op: uint32(nfs4.OP_SETCLIENTID_CONFIRM), Args: []plan.Field{
		{N: "clientid", Kind: plan.FieldClient, Ref: id}, {N: "setclientid_confirm", Kind: plan.FieldConfirm, Ref: id},
	}}})
}

func (e *engine) establishSession(ctx context.Context, w *world, id int) error {
	s := &e.load.Tables.Sessions[id-1]
	or := func(v, def uint32) uint32 {
		if v == 0 {
			return def
		}
		return v
	}
	// Without a backward channel servers give no delegations.
	flags := uint32(0)
	if slices.ContainsFunc(e.load.Tables.States, func(x plan.State) bool { return x.Kind == plan.DelegationState && x.Client == s.Client }) {
		flags = nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN
	}
	args := []plan.Field{
		{N: "csa_clientid", Kind: plan.FieldClient, Ref: s.Client}, {N: "csa_sequence", Kind: plan.FieldCreateSeq, Ref: s.Client}, u32("csa_flags", flags),
		u32("ca_headerpadsize", 0), u32("ca_maxrequestsize", or(s.MaxRequest, 1<<20+64<<10)), u32("ca_maxresponsesize", or(s.MaxResponse, 1<<20+64<<10)),
		u32("ca_maxresponsesize_cached", or(s.MaxCached, 7584)), u32("ca_maxoperations", or(s.MaxOps, 16)), u32("ca_maxrequests", max(s.Slots, 1)), u32("ca_rdma_ird", 0),
		u32("ca_headerpadsize", 0), u32("ca_maxrequestsize", 4096), u32("ca_maxresponsesize", 4096),
		u32("ca_maxresponsesize_cached", 0), u32("ca_maxoperations", 2), u32("ca_maxrequests", 16), u32("ca_rdma_ird", 0),
		u32("csa_cb_program", 0x40000000), u32("csa_sec_parms", 1), u32("cb_secflavor", 0),
	}
	if err := e.call(ctx, w, s.Client, []plan.CompoundOp{{Op: uint32(nfs4.OP_CREATE_SESSION), Args: args}}, plan.Bind{Kind: plan.FieldSession, Ref: id}); err != nil {
		return err
	}
	e.ours = append(e.ours, ownSession{w, id})
	err := e.call(ctx, w, s.Client, []plan.CompoundOp{sequenceOp(id), {Op: uint32(nfs4.OP_RECLAIM_COMPLETE), Args: []plan.Field{u32("rca_one_fs", 0)}}})
	if fatal(err) {
		return err
	}
	return nil // a second session of a client has nothing to reclaim
}

// ownSession is a session that the plan does not end.
type ownSession struct {
	w  *world
	id int
}

// sessionFor is a session of a client that is there already; 0 in NFSv4.0.
func (e *engine) sessionFor(w *world, client int) int {
	for i := range w.sessions {
		if w.sessions[i].bound && e.load.Tables.Sessions[i-1].Client == client {
			return i
		}
	}
	return 0
}

// errImpossible is why something that was there before the capture cannot be had
// here. The run goes on without it.
type errImpossible string

func (e errImpossible) Error() string { return string(e) }

// establishOpen opens a file that was open before the capture.
func (e *engine) establishOpen(ctx context.Context, w *world, id int) error {
	s := &e.load.Tables.States[id-1]
	if s.Object == 0 || w.objects[s.Object].handle == nil {
		return errImpossible("its file is not known")
	}
	if !w.clients[s.Client].bound {
		return errImpossible("its client is not known yet")
	}
	access := s.Access & 3
	if access == 0 {
		access = nfs4.OPEN4_SHARE_ACCESS_BOTH
	}
	owner := fmt.Appendf(nil, "rpcrdma-replay open %d", id)
	seqid := u32("seqid", 0)
	if s.Owner > 0 {
		if b := e.load.Tables.Owners[s.Owner-1].Bytes; b != nil {
			owner = b
		}
		if e.load.Tables.Owners[s.Owner-1].Kind == "open" {
			seqid = plan.Field{N: "seqid", Kind: plan.FieldSeqid, Ref: s.Owner}
		}
	}
	session := e.sessionFor(w, s.Client)
	args := func(flags uint32) []plan.Field {
		return []plan.Field{seqid, u32("share_access", access|flags), u32("share_deny", 0),
			{N: "clientid", Kind: plan.FieldClient, Ref: s.Client}, {N: "owner", Kind: plan.FieldText, Bytes: owner}, u32("opentype", uint32(nfs4.OPEN4_NOCREATE))}
	}
	o := &e.load.Tables.Objects[s.Object-1]
	var ops []plan.CompoundOp
	if session != 0 {
		ops = []plan.CompoundOp{sequenceOp(session), put(s.Object),
			{Op: uint32(nfs4.OP_OPEN), Args: append(args(nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG), u32("claim", uint32(nfs4.CLAIM_FH)))}}
	} else {
		if o.Parent == 0 || w.objects[o.Parent].handle == nil {
			return errImpossible("the directory of its file is not known")
		}
		ops = []plan.CompoundOp{put(o.Parent),
			{Op: uint32(nfs4.OP_OPEN), Args: append(args(0), u32("claim", uint32(nfs4.CLAIM_NULL)), plan.Field{N: "file", Kind: plan.FieldText, Bytes: []byte(nameOf(o.Name, o.NameBytes))})}}
	}
	at := len(ops) - 1
	if err := e.call(ctx, w, s.Client, ops, plan.Bind{At: at, Kind: plan.FieldState, Ref: id, State: plan.OpenState}); err != nil {
		return err
	}
	if session == 0 {
		// What was open before the capture was confirmed before it.
		err := e.call(ctx, w, s.Client, []plan.CompoundOp{put(s.Object),
			{Op: uint32(nfs4.OP_OPEN_CONFIRM), Args: []plan.Field{{N: "open_stateid", Kind: plan.FieldState, Ref: id}, seqid}}},
			plan.Bind{At: 1, Kind: plan.FieldState, Ref: id})
		if fatal(err) {
			return err
		}
	}
	return nil
}

func put(object int) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldHandle, Ref: object}}}
}

// establishLock takes a lock that nobody else minds, for the sake of its state
// id: which range the captured one had is not known.
func (e *engine) establishLock(ctx context.Context, w *world, id int) error {
	s := &e.load.Tables.States[id-1]
	open := 0
	for i := range e.load.Tables.States {
		if o := &e.load.Tables.States[i]; o.Kind == plan.OpenState && o.Object == s.Object && o.Client == s.Client && w.states[i+1].bound {
			open = i + 1
		}
	}
	session := e.sessionFor(w, s.Client)
	if open == 0 || session == 0 {
		return errImpossible("its file is not open")
	}
	owner := fmt.Appendf(nil, "rpcrdma-replay lock %d", id)
	if s.Owner > 0 && e.load.Tables.Owners[s.Owner-1].Bytes != nil {
		owner = e.load.Tables.Owners[s.Owner-1].Bytes
	}
	return e.call(ctx, w, s.Client, []plan.CompoundOp{sequenceOp(session), put(s.Object),
		{Op: uint32(nfs4.OP_LOCK), Args: []plan.Field{u32("locktype", uint32(nfs4.READ_LT)), u32("reclaim", 0),
			{N: "offset", Kind: plan.FieldU64, Value: 1<<63 - 2}, {N: "length", Kind: plan.FieldU64, Value: 1},
			u32("new_lock_owner", 1), u32("open_seqid", 0), {N: "open_stateid", Kind: plan.FieldState, Ref: open, Zero: true}, u32("lock_seqid", 0),
			{N: "clientid", Kind: plan.FieldClient, Ref: s.Client}, {N: "owner", Kind: plan.FieldText, Bytes: owner}}}},
		plan.Bind{At: 2, Kind: plan.FieldState, Ref: id, State: plan.LockState})
}

// abolish ends the sessions that the plan did not make, so that the server need
// not wait for their leases.
func (e *engine) abolish(ctx context.Context) {
	for _, s := range e.ours {
		if !s.w.sessions[s.id].bound || s.w.sessions[s.id].lost {
			continue
		}
		c := e.load.Tables.Sessions[s.id-1].Client
		if e.call(ctx, s.w, c, []plan.CompoundOp{{Op: uint32(nfs4.OP_DESTROY_SESSION), Args: []plan.Field{{N: "dsa_sessionid", Kind: plan.FieldSession, Ref: s.id}}}}) != nil {
			continue
		}
		s.w.sessions[s.id].bound = false
		if e.sessionFor(s.w, c) == 0 {
			_ = e.call(ctx, s.w, c, []plan.CompoundOp{{Op: uint32(nfs4.OP_DESTROY_CLIENTID), Args: []plan.Field{{N: "dca_clientid", Kind: plan.FieldClient, Ref: c}}}})
		}
	}
}
