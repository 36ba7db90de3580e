package nfs4

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/backchannel"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// newCaller makes the Caller of a new client of NFSv4.1 and later.
func (s *Server) newCaller() state.Caller {
	if s.opt.NoDelegations {
		return nil
	}
	return s.back.NewChannel()
}

// newCaller0 makes the Caller of an NFSv4.0 client.
func (s *Server) newCaller0(a *nfs4.SETCLIENTID4args, from netip.Addr) state.Caller {
	if s.opt.NoDelegations {
		return nil
	}
	if c := s.back.NewChannel0(from, &a.Callback, a.CallbackIdent); c != nil {
		return c
	}
	return nil
}

// channel is the Channel behind a Caller, nil if there is none.
func channel(c state.Caller) *backchannel.Channel {
	ch, _ := c.(*backchannel.Channel)
	return ch
}

// bindNew makes a new session known to the Channel of its client.
func (x *clientOps) bindNew(a *nfs4.CREATE_SESSION4args, r *nfs4.CREATE_SESSION4resok) {
	c := channel(x.s.table.Sessions.Caller(r.CsrSessionid))
	cred, usable := backchannel.Security(a.CsaSecParms)
	if c == nil || !usable {
		return
	}
	c.Add(r.CsrSessionid, x.minor, backchannel.Params{Program: a.CsaCbProgram, Cred: cred, Request: a.CsaBackChanAttrs.CaMaxrequestsize})
	if r.CsrFlags&nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN != 0 {
		x.bind(r.CsrSessionid)
	}
}

// bind adds the connection to the backchannel of a session.
func (x *clientOps) bind(s state.SessionID) {
	c, back := channel(x.s.table.Sessions.Caller(s)), x.c.Exchange().Backward()
	if c == nil || back == nil {
		return
	}
	conn := x.c.Conn()
	bound := conn.Value(boundKey{x.s}, func() any { return &boundChannels{} }).(*boundChannels)
	if bound.add(c) {
		conn.OnClose(func() { bound.end(conn.Peer.ID) })
	}
	c.Bind(s, conn.Peer.ID, back)
}

// boundChannels are the Channels that use a connection.
type boundChannels struct {
	mu       sync.Mutex
	channels map[*backchannel.Channel]struct{}
	prune    int // how many there may be before those of removed clients are dropped
}

type boundKey struct{ s *Server }

// add reports whether it is the first one.
func (b *boundChannels) add(c *backchannel.Channel) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.channels == nil
	if first {
		b.channels, b.prune = map[*backchannel.Channel]struct{}{}, 16
	}
	if len(b.channels) >= b.prune {
		for c := range b.channels {
			if c.Closed() {
				delete(b.channels, c)
			}
		}
		b.prune = 2*len(b.channels) + 16
	}
	b.channels[c] = struct{}{}
	return first
}

func (b *boundChannels) end(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.channels {
		c.Disconnected(id)
	}
}

func (x *clientOps) backchannelCtl(a *nfs4.BACKCHANNEL_CTL4args) status {
	cred, usable := backchannel.Security(a.BcaSecParms)
	if !usable {
		return nfs4.NFS4ERR_INVAL
	}
	if c := channel(x.s.table.Sessions.Caller(x.place.at.Session())); c != nil {
		c.Change(x.place.at.Session(), backchannel.Params{Program: a.BcaCbProgram, Cred: cred})
	}
	return ok
}

// want is what an OPEN says about delegations.
func (x *openOps) want(a *nfs4.OPEN4args) state.Want {
	if x.minor == 0 {
		return state.WantDefault
	}
	times := state.Want(0)
	if x.wishes(a, nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS) {
		times = state.WantTimes
	}
	switch uint32(a.ShareAccess) & nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_MASK {
	case nfs4.OPEN4_SHARE_ACCESS_WANT_READ_DELEG:
		return state.WantRead | times
	case nfs4.OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG:
		return state.WantWrite | times
	case nfs4.OPEN4_SHARE_ACCESS_WANT_ANY_DELEG:
		return state.WantAny | times
	case nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG, nfs4.OPEN4_SHARE_ACCESS_WANT_CANCEL:
		return state.WantNone
	}
	return state.WantDefault | times
}

// wishes reports whether an OPEN has a want of RFC 9754.
func (x *openOps) wishes(a *nfs4.OPEN4args, want uint32) bool {
	return x.minor >= 2 && uint32(a.ShareAccess)&want != 0
}

// delegate gives the delegation that comes with an OPEN of the file of x.attr.
func (x *openOps) delegate(a *nfs4.OPEN4args, access uint32) state.Grant {
	switch a.Claim.Claim {
	case nfs4.CLAIM_NULL, nfs4.CLAIM_FH:
		return x.s.table.Delegations.Grant(x.turn, &x.attr, access, x.want(a))
	case nfs4.CLAIM_PREVIOUS:
		return x.s.table.Delegations.Reclaim(x.turn, &x.attr, access, a.Claim.DelegateType)
	}
	return state.Grant{Type: nfs4.OPEN_DELEGATE_NONE}
}

// appendDelegation appends the delegation that comes with an OPEN.
func (x *openOps) appendDelegation(b []byte, a *nfs4.OPEN4args, g *state.Grant) []byte {
	everyone := nfs4.Nfsace4{Type: nfs4.ACE4_ACCESS_ALLOWED_ACE_TYPE} // nobody: the client asks by ACCESS
	d := nfs4.OpenDelegation4{DelegationType: g.Type}
	switch g.Type {
	case nfs4.OPEN_DELEGATE_READ, nfs4.OPEN_DELEGATE_READ_ATTRS_DELEG:
		d.Read = nfs4.OpenReadDelegation4{Stateid: g.Stateid, Recall: g.Recall, Permissions: everyone}
	case nfs4.OPEN_DELEGATE_WRITE, nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG:
		d.Write = nfs4.OpenWriteDelegation4{Stateid: g.Stateid, Recall: g.Recall, Permissions: everyone}
		d.Write.SpaceLimit.Limitby = nfs4.NFS_LIMIT_SIZE
		d.Write.SpaceLimit.Filesize = x.s.info.MaxFileSize
	default:
		return appendNoDelegation(b, uint32(a.ShareAccess)&wants, x.minor, g.Contended)
	}
	return d.Append(b)
}

// appendNoDelegation appends that there is no delegation, and why if one was wanted (RFC 8881,
// section 18.16.3).
func appendNoDelegation(b []byte, want, minor uint32, contended bool) []byte {
	if want &= nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_MASK; minor == 0 || want == 0 {
		return xdr.AppendUint32(b, uint32(nfs4.OPEN_DELEGATE_NONE))
	}
	d := nfs4.OpenDelegation4{DelegationType: nfs4.OPEN_DELEGATE_NONE_EXT}
	switch {
	case want == nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG:
		d.OdWhynone.OndWhy = nfs4.WND4_NOT_WANTED
	case want == nfs4.OPEN4_SHARE_ACCESS_WANT_CANCEL:
		d.OdWhynone.OndWhy = nfs4.WND4_CANCELLED
	case contended:
		d.OdWhynone.OndWhy = nfs4.WND4_CONTENTION
	default:
		d.OdWhynone.OndWhy = nfs4.WND4_RESOURCE
	}
	return d.Append(b)
}

// fromDelegation checks the delegation that an OPEN refers to.
func (x *openOps) fromDelegation(a *nfs4.OPEN4args, access uint32) status {
	var id *nfs4.Stateid4
	switch a.Claim.Claim {
	case nfs4.CLAIM_DELEGATE_CUR:
		id = &a.Claim.DelegateCurInfo.DelegateStateid
	case nfs4.CLAIM_DELEG_CUR_FH:
		id = &a.Claim.OcDelegateStateid
	default:
		return ok
	}
	return x.s.table.Delegations.MayOpen(x.turn, id, x.attr.Handle, access)
}

func (x *openOps) delegreturn(a *nfs4.DELEGRETURN4args) status {
	id, st := x.stateid(&a.DelegStateid)
	if st != ok {
		return st
	}
	return x.s.table.Delegations.Return(x.client, id, x.fh, x.principal())
}

// getDirDelegation is GET_DIR_DELEGATION. No changes are told (CB_NOTIFY): the first one by somebody else recalls the delegation.
func (x *dirOps) getDirDelegation(*nfs4.GET_DIR_DELEGATION4args) status {
	x.list.Max, x.list.Attrs = minEntries, false
	if err := x.s.store.ReadDir(&x.c.Cred, x.fh, 0, 0, &x.list); err != nil {
		return x.inDirectory(err, x.fh)
	}
	var r nfs4.GET_DIR_DELEGATION4res_non_fatal
	if id, given := x.s.table.Delegations.Directory(x.client, x.fh, x.principal()); given {
		r.GddrnfResok4.GddrStateid = id
		binary.BigEndian.PutUint64(r.GddrnfResok4.GddrCookieverf[:], x.list.Verifier)
	} else {
		r.GddrnfStatus = nfs4.GDD4_UNAVAIL
	}
	x.c.Out = r.Append(x.c.Out)
	return ok
}

// sender is the client that a COMPOUND comes from, as far as it is known.
type sender struct {
	*request
	files *guard
	args  *nfs4.CompoundArgs
}

// identify notes whose stateid an NFSv4.0 operation carries, since a client's operations do not
// recall its own delegations. Since NFSv4.1 the session identifies the client.
func (x *sender) identify(id *nfs4.Stateid4) {
	if x.minor == 0 && x.s.table.Delegations.Any() {
		if c := x.s.table.Stateids.Client(id); c != nil {
			x.isBy(c)
		}
	}
}

// callerKey is the key of a connection's last NFSv4.0 client, an atomic.Pointer.
type callerKey struct{}

func (x *sender) lastCaller() *atomic.Pointer[state.Client] {
	return x.c.Conn().Value(callerKey{}, func() any { return new(atomic.Pointer[state.Client]) }).(*atomic.Pointer[state.Client])
}

// isBy notes which NFSv4.0 client sends the COMPOUND, and that it uses the connection.
func (x *sender) isBy(c *state.Client) {
	if x.files.by = c; x.minor == 0 {
		if last := x.lastCaller(); last.Load() != c {
			last.Store(c)
		}
	}
}

// asker is who asks for attributes. Of an NFSv4.0 COMPOUND in which nothing has told yet, it is the
// client whose delegation is returned further on, as Linux asks right before that, or else the last
// one that used the connection. To ask this client for the attributes would have it wait for itself.
// A change is not taken for the holder's on such grounds: it recalls the delegation, as with
// Linux's server.
func (x *sender) asker() *state.Client {
	if x.minor != 0 || x.files.by != nil {
		return x.files.by
	}
	for i := range x.args.Ops {
		if a, ok := x.args.Ops[i].Body.(*nfs4.DELEGRETURN4args); ok {
			if c := x.s.table.Stateids.Client(&a.DelegStateid); c != nil {
				return c
			}
		}
	}
	return x.lastCaller().Load()
}

// written are attributes whose current values only a client with a write delegation may know.
var written = makeSet(nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE, nfs4.FATTR4_TIME_ACCESS, nfs4.FATTR4_TIME_MODIFY, nfs4.FATTR4_TIME_METADATA, nfs4.FATTR4_SPACE_USED)

// later is the status of an operation that waits for a callback. No client sees it.
const later status = 0xffffffff

// holder asks the client that has a write delegation of a file for its attributes.
type holder struct {
	*request
	objects *objects
	sender  *sender
	ask     state.Written // what to ask for
	asked   int           // the operation that was asked for
	attrs   nfs4.Attrs    // the answer, or
	err     error
}

// current asks the client that has a write delegation of the current file for its
// attributes, and makes them those of the current object (RFC 8881, section 10.4.3).
func (x *holder) current() status {
	if !x.s.table.Delegations.Any() {
		return ok
	}
	w, found := x.s.table.Delegations.WrittenBy(x.sender.asker(), x.objects.fh)
	if !found {
		return ok
	}
	if x.asked != x.index {
		x.ask = w
		return later
	}
	if x.err != nil {
		if x.sender.files.begin(x.objects.fh, false) != nil {
			return nfs4.NFS4ERR_DELAY // it is recalled
		}
		return ok
	}
	changed := x.attrs.Change != w.Was.Change
	if !changed && !w.Times {
		return ok // nothing has changed except by WRITEs
	}
	if changed {
		// The file is changed here, too, so that change attribute and times move on.
		s := store.SetAttr{Mask: store.SetMtimeNow}
		if t, told := keptTime(x.attrs.TimeDelegModify, w.Was.Mtime); told && w.Times && x.attrs.Has(nfs4.FATTR4_TIME_DELEG_MODIFY) {
			s.Mask, s.Mtime = store.SetMtime, t
		}
		_ = x.s.store.SetAttr(&store.Cred{Bypass: true}, x.objects.fh, &s, new(store.Wcc))
	}
	if err := x.s.store.GetAttr(x.objects.fh, &x.objects.attr); err != nil {
		return statusOf(err)
	}
	if changed {
		x.objects.attr.Size = x.attrs.Size
	}
	if t, told := keptTime(x.attrs.TimeDelegAccess, w.Was.Atime); told && w.Times && x.attrs.Has(nfs4.FATTR4_TIME_DELEG_ACCESS) {
		x.objects.attr.Atime = t
	}
	x.objects.attrAt = x.index - 1
	return ok
}

// keptTime is a time that the holder of a delegation reports. One before that of the file when it was delegated is not used, and one in the
// future counts as now (RFC 9754, section 5).
func keptTime(t nfs4.Nfstime4, was store.Time) (kept store.Time, used bool) {
	kept = store.Time{Sec: t.Seconds, Nsec: t.Nseconds}
	if now := store.Now(); now.Before(kept) {
		kept = now
	}
	return kept, !kept.Before(was)
}

// wait lets the COMPOUND continue when the holder of a write delegation has answered. The caller
// must not use x afterwards.
func (x *compound) wait() {
	resume := func(attrs nfs4.Attrs, err error) {
		x.holder.attrs, x.holder.err, x.holder.asked = attrs, err, x.next
		if !x.s.back.Go(x.execute) {
			// The server ends.
			x.place.end(nil)
			x.c.Drop()
		}
	}
	if c := channel(x.holder.ask.Caller); c != nil {
		c.GetAttr(x.holder.ask.Key, x.holder.ask.Times, resume)
		return
	}
	resume(nfs4.Attrs{}, backchannel.ErrNoPath)
}
