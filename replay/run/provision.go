package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/prepare"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// provision gives clients the state that no call of the plan creates, for as long as the run lasts.
type provision struct {
	load   *workload.Workload
	clones []*bindings.Clone
	note   func(format string, args ...any)
	// call makes one call for a client, and waits for the reply; without a line over the connection of an example.
	call   func(ctx context.Context, l *line, w *bindings.Clone, of int, ops []plan.CompoundOp, binds ...plan.Bind) error
	result xdr.Message                 // of the latest call, until the next one
	ours   []ownSession                // that the plan does not end
	made   map[*bindings.Session]*line // connections over which sessions were created; the sessions are bound to them
}

// establish creates what the captured clients had before the capture began: client ids,
// sessions, open files, locks. It runs before the engine's loop.
func (p *provision) establish(ctx context.Context, w *bindings.Clone) error {
	t := &p.load.Tables
	for i := range t.Clients {
		if t.Clients[i].DefinedBy != 0 || !p.load.UsesClient(i+1) {
			continue
		}
		if err := p.client(ctx, w, i+1); err != nil {
			return fmt.Errorf("client %d of the plan: %w", i+1, err)
		}
	}
	for i := range t.Sessions {
		if s := &t.Sessions[i]; s.DefinedBy == 0 && w.Clients[s.Client].Bound {
			if err := p.session(ctx, w, i+1); err != nil {
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
			err = p.open(ctx, w, i+1)
		case plan.LockState:
			err = p.lock(ctx, w, i+1)
		default:
			w.States[i+1].Refused = true
		}
		if fatal(err) {
			return err
		}
		if err != nil {
			p.note("%s state %d, which was there before the capture, could not be had: %v", s.Kind, i+1, err)
			w.States[i+1].Refused = true
		}
	}
	return nil
}

// client creates a client.
func (p *provision) client(ctx context.Context, w *bindings.Clone, id int) error {
	if p.load.Tables.Clients[id-1].Minor > 0 {
		return p.call(ctx, nil, w, id, []plan.CompoundOp{{Op: uint32(nfs4.OP_EXCHANGE_ID), Args: []plan.Field{
			{N: "co_verifier", Kind: plan.FieldVerifier, Ref: id}, {N: "co_ownerid", Kind: plan.FieldOwnerID, Ref: id},
			u32("eia_flags", nfs4.EXCHGID4_FLAG_USE_NON_PNFS), u32("spa_how", 0), u32("eia_client_impl_id", 0),
		}}}, plan.Bind{Kind: plan.FieldClient, Ref: id})
	}
	err := p.call(ctx, nil, w, id, []plan.CompoundOp{{Op: uint32(nfs4.OP_SETCLIENTID), Args: []plan.Field{
		{N: "verifier", Kind: plan.FieldVerifier, Ref: id}, {N: "id", Kind: plan.FieldOwnerID, Ref: id},
		u32("cb_program", 0x40000000), {N: "cb_location", Kind: plan.FieldCallback}, u32("callback_ident", 1),
	}}}, plan.Bind{Kind: plan.FieldClient, Ref: id})
	if err != nil {
		return err
	}
	return p.call(ctx, nil, w, id, []plan.CompoundOp{{Op: uint32(nfs4.OP_SETCLIENTID_CONFIRM), Args: []plan.Field{
		{N: "clientid", Kind: plan.FieldClient, Ref: id}, {N: "setclientid_confirm", Kind: plan.FieldConfirm, Ref: id},
	}}})
}

// createSession makes a session like the captured one.
func (p *provision) createSession(ctx context.Context, w *bindings.Clone, id int) error {
	s := &p.load.Tables.Sessions[id-1]
	or := func(v, def uint32) uint32 {
		if v == 0 {
			return def
		}
		return v
	}
	// Servers give no delegations without a backward channel.
	flags := uint32(0)
	if p.load.Delegated(s.Client) {
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
	return p.call(ctx, nil, w, s.Client, []plan.CompoundOp{{Op: uint32(nfs4.OP_CREATE_SESSION), Args: args}}, plan.Bind{Kind: plan.FieldSession, Ref: id})
}

// session creates a session from before the capture.
func (p *provision) session(ctx context.Context, w *bindings.Clone, id int) error {
	s := &p.load.Tables.Sessions[id-1]
	if err := p.createSession(ctx, w, id); err != nil {
		return err
	}
	p.ours = append(p.ours, ownSession{w, id})
	err := p.call(ctx, nil, w, s.Client, []plan.CompoundOp{sequence(id), {Op: uint32(nfs4.OP_RECLAIM_COMPLETE), Args: []plan.Field{u32("rca_one_fs", 0)}}})
	if fatal(err) {
		return err
	}
	return nil // a second session of a client has nothing to reclaim
}

// ownSession is a session that the plan does not end.
type ownSession struct {
	w  *bindings.Clone
	id int
}

// errImpossible says why something that existed before the capture cannot be created
// here. The run goes on without it.
type errImpossible string

func (e errImpossible) Error() string { return string(e) }

// fatal reports whether an error ends the run before it begins.
func fatal(err error) bool {
	var impossible errImpossible
	return prepare.Fatal(err) && !errors.As(err, &impossible)
}

// open opens a file that was open before the capture.
func (p *provision) open(ctx context.Context, w *bindings.Clone, id int) error {
	s := &p.load.Tables.States[id-1]
	if s.Object == 0 || w.Objects[s.Object].Handle == nil {
		return errImpossible("its file is not known")
	}
	if !w.Clients[s.Client].Bound {
		return errImpossible("its client is not known yet")
	}
	access := s.Access & 3
	if access == 0 {
		access = nfs4.OPEN4_SHARE_ACCESS_BOTH
	}
	owner := fmt.Appendf(nil, "rpcrdma-replay open %d", id)
	seqid := u32("seqid", 0)
	if s.Owner > 0 {
		if b := p.load.Tables.Owners[s.Owner-1].Bytes; b != nil {
			owner = b
		}
		if p.load.Tables.Owners[s.Owner-1].Kind == "open" {
			seqid = plan.Field{N: "seqid", Kind: plan.FieldSeqid, Ref: s.Owner}
		}
	}
	session := w.SessionFor(s.Client)
	if session == 0 && p.load.Tables.Clients[s.Client-1].Minor > 0 {
		// No server opens a file outside a session, and the plan creates that later.
		return errImpossible("its client has no session before the start")
	}
	args := func(flags uint32) []plan.Field {
		return []plan.Field{seqid, u32("share_access", access|flags), u32("share_deny", 0),
			{N: "clientid", Kind: plan.FieldClient, Ref: s.Client}, {N: "owner", Kind: plan.FieldText, Bytes: owner}, u32("opentype", uint32(nfs4.OPEN4_NOCREATE))}
	}
	o := &p.load.Tables.Objects[s.Object-1]
	var ops []plan.CompoundOp
	if session != 0 {
		ops = []plan.CompoundOp{sequence(session), put(s.Object),
			{Op: uint32(nfs4.OP_OPEN), Args: append(args(nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG), u32("claim", uint32(nfs4.CLAIM_FH)))}}
	} else {
		if o.Parent == 0 || w.Objects[o.Parent].Handle == nil {
			return errImpossible("the directory of its file is not known")
		}
		ops = []plan.CompoundOp{put(o.Parent),
			{Op: uint32(nfs4.OP_OPEN), Args: append(args(0), u32("claim", uint32(nfs4.CLAIM_NULL)), plan.Field{N: "file", Kind: plan.FieldText, Bytes: []byte(workload.Name(o))})}}
	}
	at := len(ops) - 1
	if err := p.call(ctx, nil, w, s.Client, ops, plan.Bind{At: at, Kind: plan.FieldState, Ref: id, State: plan.OpenState}); err != nil {
		return err
	}
	if session == 0 {
		// What was open before the capture was confirmed before it.
		err := p.call(ctx, nil, w, s.Client, []plan.CompoundOp{put(s.Object),
			{Op: uint32(nfs4.OP_OPEN_CONFIRM), Args: []plan.Field{{N: "open_stateid", Kind: plan.FieldState, Ref: id}, seqid}}},
			plan.Bind{At: 1, Kind: plan.FieldState, Ref: id})
		if fatal(err) {
			return err
		}
	}
	return nil
}

// lock takes a lock that conflicts with nobody, only to get its state id: the range of
// the captured lock is not known.
func (p *provision) lock(ctx context.Context, w *bindings.Clone, id int) error {
	s := &p.load.Tables.States[id-1]
	open := 0
	for i := range p.load.Tables.States {
		if o := &p.load.Tables.States[i]; o.Kind == plan.OpenState && o.Object == s.Object && o.Client == s.Client && w.States[i+1].Bound {
			open = i + 1
		}
	}
	session := w.SessionFor(s.Client)
	if open == 0 || session == 0 {
		return errImpossible("its file is not open")
	}
	owner := fmt.Appendf(nil, "rpcrdma-replay lock %d", id)
	if s.Owner > 0 && p.load.Tables.Owners[s.Owner-1].Bytes != nil {
		owner = p.load.Tables.Owners[s.Owner-1].Bytes
	}
	return p.call(ctx, nil, w, s.Client, []plan.CompoundOp{sequence(session), put(s.Object),
		{Op: uint32(nfs4.OP_LOCK), Args: []plan.Field{u32("locktype", uint32(nfs4.READ_LT)), u32("reclaim", 0),
			{N: "offset", Kind: plan.FieldU64, Value: 1<<63 - 2}, {N: "length", Kind: plan.FieldU64, Value: 1},
			u32("new_lock_owner", 1), u32("open_seqid", 0), {N: "open_stateid", Kind: plan.FieldState, Ref: open, Zero: true}, u32("lock_seqid", 0),
			{N: "clientid", Kind: plan.FieldClient, Ref: s.Client}, {N: "owner", Kind: plan.FieldText, Bytes: owner}}}},
		plan.Bind{At: 2, Kind: plan.FieldState, Ref: id, State: plan.LockState})
}

// abolish ends the sessions that the plan does not end, so that the server need not wait
// for their leases to expire.
func (p *provision) abolish(ctx context.Context) {
	for _, s := range p.ours {
		if !s.w.Sessions[s.id].Bound || s.w.Sessions[s.id].Lost {
			continue
		}
		c := p.load.Tables.Sessions[s.id-1].Client
		if p.call(ctx, p.made[&s.w.Sessions[s.id]], s.w, c, []plan.CompoundOp{{Op: uint32(nfs4.OP_DESTROY_SESSION), Args: []plan.Field{{N: "dsa_sessionid", Kind: plan.FieldSession, Ref: s.id}}}}) != nil {
			continue
		}
		s.w.Sessions[s.id].Bound = false
		if s.w.SessionFor(c) == 0 {
			_ = p.call(ctx, nil, s.w, c, []plan.CompoundOp{{Op: uint32(nfs4.OP_DESTROY_CLIENTID), Args: []plan.Field{{N: "dca_clientid", Kind: plan.FieldClient, Ref: c}}}})
		}
	}
}

// returnAll returns the delegations that the plan leaves behind. Otherwise the next user of the files, such as the
// read-back, waits until the server revokes the delegations, which takes as long as a lease.
func (p *provision) returnAll(ctx context.Context) {
	kept, why := 0, error(nil)
	for _, w := range p.clones {
		for i := range p.load.Tables.States {
			t, ref := &p.load.Tables.States[i], i+1
			s := &w.States[ref]
			if t.Kind != plan.DelegationState || !s.Bound || s.Closed || t.Object == 0 || t.Client == 0 {
				continue
			}
			ops := []plan.CompoundOp{put(t.Object), {Op: uint32(nfs4.OP_DELEGRETURN), Args: []plan.Field{
				{N: "deleg_stateid", Kind: plan.FieldState, Ref: ref}}}} // sent as CLOSE if it is an open
			if p.load.Tables.Clients[t.Client-1].Minor > 0 {
				session := w.SessionFor(t.Client)
				if session == 0 {
					session = p.sessionAgain(ctx, w, t.Client)
				}
				if session == 0 {
					continue // the server has forgotten them with the client
				}
				ops = append([]plan.CompoundOp{sequence(session)}, ops...)
			}
			if err := p.call(ctx, nil, w, t.Client, ops); err != nil {
				kept, why = kept+1, err
			}
			s.Closed = true
		}
	}
	if kept > 0 {
		p.note("%d delegations could not be returned, the last because of: %v", kept, why)
	}
}

// sessionAgain makes a session for a client that has none any more and still exists, since the plan does not destroy it; 0 if there is
// no such client. It is destroyed with the client.
func (p *provision) sessionAgain(ctx context.Context, w *bindings.Clone, client int) int {
	i := slices.IndexFunc(p.load.Tables.Sessions, func(s plan.Session) bool { return s.Client == client })
	if i < 0 || p.createSession(ctx, w, i+1) != nil {
		return 0
	}
	p.ours = append(p.ours, ownSession{w, i + 1})
	return i + 1
}
