package ops

import (
	"math"
	"math/bits"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// current is an operation on the current file handle.
func current(_ xdr.Message, a *Act) { a.file(Current) }

// operations has the operations of NFSv4.0 (RFC 7530), 4.1 (RFC 8881), 4.2 (RFC 7862) and of
// extended attributes (RFC 8276).
var operations = table{
	nfs4.OP_ACCESS: {Class: Nothing, Weight: Aside},
	nfs4.OP_CLOSE: {Class: Nothing, State: true, Use: Closes,
		outcome: gets(func(m *nfs4.CLOSE4res, o *Outcome) { o.State = &m.OpenStateid }),
		held:    holds(func(m *nfs4.CLOSE4args) *nfs4.Stateid4 { return &m.OpenStateid })},
	nfs4.OP_COMMIT: {Class: Nothing,
		act: of(func(m *nfs4.COMMIT4args, a *Act) { a.on(m.Offset, uint64(m.Count)) })},
	nfs4.OP_CREATE:     {Class: Changes, Effect: Descends, act: of(create)},
	nfs4.OP_DELEGPURGE: {Class: Nothing, State: true},
	nfs4.OP_DELEGRETURN: {Class: Nothing, State: true, Use: Returns,
		held: holds(func(m *nfs4.DELEGRETURN4args) *nfs4.Stateid4 { return &m.DelegStateid })},
	nfs4.OP_GETATTR: {Class: Nothing, Weight: Aside},
	nfs4.OP_GETFH: {Class: Nothing, Weight: Noise, Gives: Handle,
		outcome: gets(func(m *nfs4.GETFH4res, o *Outcome) { o.Handle = m.Resok4.Object })},
	nfs4.OP_LINK: {Class: Changes,
		act: of(func(m *nfs4.LINK4args, a *Act) {
			a.file(Saved)
			a.named(Current, m.Newname)
		})},
	nfs4.OP_LOCK: {Class: Holds, State: true, Use: Needs, Gives: State, held: holds(lockNeeds),
		outcome: gets(func(m *nfs4.LOCK4res, o *Outcome) { o.State = &m.Resok4.LockStateid }),
		act:     of(func(m *nfs4.LOCK4args, a *Act) { a.on(m.Offset, m.Length) })},
	nfs4.OP_LOCKT: {Class: Nothing,
		act: of(func(m *nfs4.LOCKT4args, a *Act) { a.on(m.Offset, m.Length) })},
	nfs4.OP_LOCKU: {Class: Nothing, State: true, Use: Narrows,
		act:     of(func(m *nfs4.LOCKU4args, a *Act) { a.on(m.Offset, m.Length) }),
		outcome: gets(func(m *nfs4.LOCKU4res, o *Outcome) { o.State = &m.LockStateid }),
		held:    holds(func(m *nfs4.LOCKU4args) *nfs4.Stateid4 { return &m.LockStateid })},
	nfs4.OP_LOOKUP: {Class: Nothing, Effect: Descends, Weight: Look,
		act: of(func(m *nfs4.LOOKUP4args, a *Act) { a.named(Current, m.Objname) })},
	nfs4.OP_LOOKUPP: {Class: Nothing, Effect: Ascends, Weight: Look},
	nfs4.OP_NVERIFY: {Class: Nothing, Weight: Aside},
	nfs4.OP_OPEN: {Class: Changes, Effect: Descends, State: true, Use: Needs, Gives: State, act: of(open),
		outcome: gets(opened), held: holds(openNeeds)},
	nfs4.OP_OPENATTR: {Class: Changes, Effect: EntersAttributes, act: of(openattr)},
	nfs4.OP_OPEN_CONFIRM: {Class: Nothing, State: true, Use: Confirms,
		outcome: gets(func(m *nfs4.OPEN_CONFIRM4res, o *Outcome) { o.State = &m.Resok4.OpenStateid }),
		held:    holds(func(m *nfs4.OPEN_CONFIRM4args) *nfs4.Stateid4 { return &m.OpenStateid })},
	nfs4.OP_OPEN_DOWNGRADE: {Class: Nothing, State: true, Use: Narrows,
		outcome: gets(func(m *nfs4.OPEN_DOWNGRADE4res, o *Outcome) { o.State = &m.Resok4.OpenStateid }),
		held:    holds(func(m *nfs4.OPEN_DOWNGRADE4args) *nfs4.Stateid4 { return &m.OpenStateid })},
	nfs4.OP_PUTFH:     {Class: Nothing, Effect: Puts, Weight: Noise},
	nfs4.OP_PUTPUBFH:  {Class: Nothing, Effect: PutsPublic, Weight: Noise},
	nfs4.OP_PUTROOTFH: {Class: Nothing, Effect: PutsRoot, Weight: Noise, Purpose: Mounting},
	nfs4.OP_READ: {Class: Nothing, Use: Accesses, Reply: Reply{Items: OneItem, Item: "count"},
		act: of(func(m *nfs4.READ4args, a *Act) { a.on(m.Offset, uint64(m.Count)) }),
		outcome: gets(func(m *nfs4.READ4res, o *Outcome) {
			o.moved(uint64(m.Resok4.Data.Length))
			o.EOF = m.Resok4.Eof
		})},
	nfs4.OP_READDIR:  {Class: Nothing, Gives: Handles, Reply: Reply{Rest: "maxcount"}},
	nfs4.OP_READLINK: {Class: Nothing, Reply: Reply{Items: OneItem, Room: 64 << 10}},
	nfs4.OP_REMOVE: {Class: Changes,
		act: of(func(m *nfs4.REMOVE4args, a *Act) { a.named(Current, m.Target) })},
	nfs4.OP_RENAME: {Class: Changes,
		act: of(func(m *nfs4.RENAME4args, a *Act) {
			a.named(Saved, m.Oldname)
			a.named(Current, m.Newname)
		})},
	nfs4.OP_RENEW:     {Class: Nothing, Purpose: Lease},
	nfs4.OP_RESTOREFH: {Class: Nothing, Effect: Restores, Weight: Noise},
	nfs4.OP_SAVEFH:    {Class: Nothing, Effect: Saves, Weight: Noise},
	nfs4.OP_SECINFO: {Class: Nothing, Effect: Consumes,
		act: of(func(m *nfs4.SECINFO4args, a *Act) { a.named(Current, m.Name) })},
	nfs4.OP_SETATTR: {Class: Changes, Use: Accesses, act: current},
	nfs4.OP_SETCLIENTID: {Class: Nothing, State: true, Purpose: Clients, Gives: Client,
		outcome: gets(func(m *nfs4.SETCLIENTID4res, o *Outcome) { o.Client = &m.Resok4.Clientid })},
	nfs4.OP_SETCLIENTID_CONFIRM: {Class: Nothing, State: true, Purpose: Clients},
	nfs4.OP_VERIFY:              {Class: Nothing, Weight: Aside},
	nfs4.OP_WRITE: {Class: Changes, Use: Accesses,
		act: of(func(m *nfs4.WRITE4args, a *Act) {
			a.on(m.Offset, uint64(m.Data.Length))
			a.Stable = m.Stable.Symbol()
		}),
		outcome: gets(func(m *nfs4.WRITE4res, o *Outcome) { o.moved(uint64(m.Resok4.Count)) })},
	nfs4.OP_RELEASE_LOCKOWNER: {Class: Nothing, State: true},

	nfs4.OP_BACKCHANNEL_CTL:      {Class: Nothing, Minor: 1, State: true, Purpose: Clients},
	nfs4.OP_BIND_CONN_TO_SESSION: {Class: Nothing, Minor: 1, State: true, Purpose: Clients},
	nfs4.OP_EXCHANGE_ID: {Class: Nothing, Minor: 1, State: true, Purpose: Clients, Gives: Client,
		outcome: gets(func(m *nfs4.EXCHANGE_ID4res, o *Outcome) { o.Client = &m.EirResok4.EirClientid })},
	nfs4.OP_CREATE_SESSION: {Class: Nothing, Minor: 1, State: true, Purpose: Clients, Gives: Session,
		outcome: gets(func(m *nfs4.CREATE_SESSION4res, o *Outcome) { o.Session = &m.CsrResok4.CsrSessionid })},
	nfs4.OP_DESTROY_SESSION: {Class: Nothing, Minor: 1, State: true, Purpose: Clients},
	nfs4.OP_FREE_STATEID: {Class: Nothing, Minor: 1, State: true, Use: Frees,
		held: holds(func(m *nfs4.FREE_STATEID4args) *nfs4.Stateid4 { return &m.FsaStateid })},
	nfs4.OP_GET_DIR_DELEGATION: {Class: Holds, Minor: 1, Feature: DirDelegations, State: true, Gives: State, act: current,
		outcome: gets(func(m *nfs4.GET_DIR_DELEGATION4res, o *Outcome) {
			if r := &m.GddrResNonFatal4; r.GddrnfStatus == nfs4.GDD4_OK {
				o.Delegation = &r.GddrnfResok4.GddrStateid
			}
		})},
	nfs4.OP_GETDEVICEINFO: {Class: Nothing, Minor: 1, Feature: Layouts, Reply: Reply{Rest: "gdia_maxcount"}},
	nfs4.OP_GETDEVICELIST: {Class: Nothing, Minor: 1},
	nfs4.OP_LAYOUTCOMMIT:  {Class: Changes, Minor: 1, Feature: Layouts, Use: Needs, act: current},
	nfs4.OP_LAYOUTGET: {Class: Changes, Minor: 1, Feature: Layouts, Use: Needs, State: true, Gives: State, Reply: Reply{Rest: "loga_maxcount"}, act: of(layoutget),
		outcome: gets(func(m *nfs4.LAYOUTGET4res, o *Outcome) { o.State = &m.LogrResok4.LogrStateid })},
	nfs4.OP_LAYOUTRETURN: {Class: Holds, Minor: 1, Feature: Layouts, Use: Needs, State: true, act: current, // it can report errors of devices
		outcome: gets(func(m *nfs4.LAYOUTRETURN4res, o *Outcome) {
			if r := &m.LorrStateid; r.LrsPresent {
				o.State = &r.LrsStateid
			}
		})},
	nfs4.OP_SECINFO_NO_NAME: {Class: Nothing, Minor: 1, Effect: Consumes, Purpose: Mounting},
	nfs4.OP_SEQUENCE:        {Class: Nothing, Minor: 1, Weight: Noise, Purpose: Lease},
	nfs4.OP_SET_SSV:         {Class: Never, Minor: 1}, // of a protection that the codecs do not look into
	nfs4.OP_TEST_STATEID:    {Class: Nothing, Minor: 1, Use: Asks},
	nfs4.OP_WANT_DELEGATION: {Class: Holds, Minor: 1, State: true, Gives: State, act: current,
		outcome: gets(func(m *nfs4.WANT_DELEGATION4res, o *Outcome) { o.Delegation = m.WdrResok4.Stateid() })},
	nfs4.OP_DESTROY_CLIENTID: {Class: Nothing, Minor: 1, State: true, Purpose: Clients},
	nfs4.OP_RECLAIM_COMPLETE: {Class: Nothing, Minor: 1, State: true, Purpose: Clients},

	nfs4.OP_ALLOCATE: {Class: Changes, Minor: 2, Use: Needs,
		act: of(func(m *nfs4.ALLOCATE4args, a *Act) { a.on(m.AaOffset, m.AaLength) })},
	nfs4.OP_COPY: {Class: Changes, Minor: 2, Use: Needs, Gives: State, act: of(copyFile),
		outcome: gets(func(m *nfs4.COPY4res, o *Outcome) { o.State = underWay(&m.CrResok4.CrResponse) })},
	// It lets another server read the file without our doing.
	nfs4.OP_COPY_NOTIFY: {Class: Never, Minor: 2, Use: Needs},
	nfs4.OP_DEALLOCATE: {Class: Changes, Minor: 2, Use: Needs,
		act: of(func(m *nfs4.DEALLOCATE4args, a *Act) { a.on(m.DaOffset, m.DaLength) })},
	nfs4.OP_IO_ADVISE:      {Class: Holds, Minor: 2, Use: Needs, act: current},
	nfs4.OP_LAYOUTERROR:    {Class: Holds, Minor: 2, Feature: Layouts, Use: Needs, act: current}, // a server may fence a device for it
	nfs4.OP_LAYOUTSTATS:    {Class: Holds, Minor: 2, Feature: Layouts, Use: Needs, act: current},
	nfs4.OP_OFFLOAD_CANCEL: {Class: Changes, Minor: 2, Use: Needs, act: current},
	nfs4.OP_OFFLOAD_STATUS: {Class: Nothing, Minor: 2, Use: Needs},
	nfs4.OP_READ_PLUS: {Class: Nothing, Minor: 2, Use: Needs, Reply: Reply{Items: ManyItems, Item: "rpa_count", Rest: "rpa_count"},
		act: of(func(m *nfs4.READ_PLUS4args, a *Act) { a.on(m.RpaOffset, uint64(m.RpaCount)) })},
	nfs4.OP_SEEK: {Class: Nothing, Minor: 2, Use: Needs,
		act: of(func(m *nfs4.SEEK4args, a *Act) { a.on(m.SaOffset, 0) })},
	nfs4.OP_WRITE_SAME: {Class: Changes, Minor: 2, Use: Needs, Gives: State, act: of(writeSame),
		outcome: gets(func(m *nfs4.WRITE_SAME4res, o *Outcome) { o.State = underWay(&m.Resok4) })},
	nfs4.OP_CLONE: {Class: Changes, Minor: 2, Use: Needs,
		act: of(func(m *nfs4.CLONE4args, a *Act) {
			a.file(Saved)
			a.on(m.ClDstOffset, m.ClCount)
		})},

	nfs4.OP_GETXATTR:    {Class: Nothing, Minor: 2, Feature: Xattrs, Reply: Reply{Room: 64 << 10}, act: current},
	nfs4.OP_SETXATTR:    {Class: Changes, Minor: 2, Feature: Xattrs, act: current},
	nfs4.OP_LISTXATTRS:  {Class: Nothing, Minor: 2, Feature: Xattrs, Reply: Reply{Rest: "lxa_maxcount"}},
	nfs4.OP_REMOVEXATTR: {Class: Changes, Minor: 2, Feature: Xattrs, act: current},
}

// callbacks are the operations of a server that calls its client.
var callbacks = table{
	nfs4.OP_CB_GETATTR:              {Class: Never, act: of(func(m *nfs4.CB_GETATTR4args, a *Act) { a.object(m.Fh) })},
	nfs4.OP_CB_RECALL:               {Class: Never, act: of(func(m *nfs4.CB_RECALL4args, a *Act) { a.object(m.Fh) })},
	nfs4.OP_CB_LAYOUTRECALL:         {Class: Never, Minor: 1},
	nfs4.OP_CB_NOTIFY:               {Class: Never, Minor: 1},
	nfs4.OP_CB_PUSH_DELEG:           {Class: Never, Minor: 1},
	nfs4.OP_CB_RECALL_ANY:           {Class: Never, Minor: 1},
	nfs4.OP_CB_RECALLABLE_OBJ_AVAIL: {Class: Never, Minor: 1},
	nfs4.OP_CB_RECALL_SLOT:          {Class: Never, Minor: 1},
	nfs4.OP_CB_SEQUENCE:             {Class: Never, Minor: 1, Weight: Noise},
	nfs4.OP_CB_WANTS_CANCELLED:      {Class: Never, Minor: 1},
	nfs4.OP_CB_NOTIFY_LOCK:          {Class: Never, Minor: 1},
	nfs4.OP_CB_NOTIFY_DEVICEID:      {Class: Never, Minor: 1},
	nfs4.OP_CB_OFFLOAD:              {Class: Never, Minor: 2},
}

func create(m *nfs4.CREATE4args, a *Act) {
	if a.named(Current, m.Objname); m.Objtype.Type == nfs4.NF4LNK {
		a.text(m.Objtype.Linkdata)
	}
}

// open: without CREATE nothing changes, but share reservations and delegations may block
// others.
func open(m *nfs4.OPEN4args, a *Act) {
	if m.Openhow.Opentype != nfs4.OPEN4_CREATE {
		a.Class = Holds
	}
	if name, ok := OpenName(m); ok {
		a.named(Current, name)
	} else {
		a.file(Current)
	}
}

// OpenName returns the name that an OPEN looks up in the current directory; ok is false if
// it opens the current file itself (RFC 8881, section 18.16).
func OpenName(m *nfs4.OPEN4args) (name []byte, ok bool) {
	switch m.Claim.Claim {
	case nfs4.CLAIM_NULL:
		return m.Claim.File, true
	case nfs4.CLAIM_DELEGATE_CUR:
		return m.Claim.DelegateCurInfo.File, true
	case nfs4.CLAIM_DELEGATE_PREV:
		return m.Claim.FileDelegatePrev, true
	}
	return nil, false
}

func opened(m *nfs4.OPEN4res, o *Outcome) {
	o.State, o.Delegation = &m.Resok4.Stateid, m.Resok4.Delegation.Stateid()
}

// underWay is the state id of a copy that the server has not finished; nil if it has.
func underWay(r *nfs4.WriteResponse4) *nfs4.Stateid4 {
	if len(r.WrCallbackId) == 0 {
		return nil
	}
	return &r.WrCallbackId[0]
}

func openattr(m *nfs4.OPENATTR4args, a *Act) {
	if a.file(Current); !m.Createdir {
		a.Class = Nothing
	}
}

// layoutget: servers of block layouts allocate space for writing.
func layoutget(m *nfs4.LAYOUTGET4args, a *Act) {
	if a.file(Current); m.LogaIomode == nfs4.LAYOUTIOMODE4_READ {
		a.Class = Holds
	}
}

// copyFile: with another server as the source, this one would have to call it.
func copyFile(m *nfs4.COPY4args, a *Act) {
	a.file(Saved)
	if a.on(m.CaDstOffset, m.CaCount); len(m.CaSourceServer) > 0 {
		a.Class = Never
	}
}

// writeSame: blocks of one pattern, one after the other.
func writeSame(m *nfs4.WRITE_SAME4args, a *Act) {
	b := &m.WsaAdb
	high, count := bits.Mul64(b.AdbBlockSize, b.AdbBlockCount)
	if high > 0 {
		count = math.MaxUint64
	}
	a.on(b.AdbOffset, count)
}

// openNeeds: an OPEN may claim a delegation.
func openNeeds(m *nfs4.OPEN4args) *nfs4.Stateid4 {
	switch m.Claim.Claim {
	case nfs4.CLAIM_DELEGATE_CUR:
		return &m.Claim.DelegateCurInfo.DelegateStateid
	case nfs4.CLAIM_DELEG_CUR_FH:
		return &m.Claim.OcDelegateStateid
	}
	return nil
}

func lockNeeds(m *nfs4.LOCK4args) *nfs4.Stateid4 {
	if m.Locker.NewLockOwner {
		return &m.Locker.OpenOwner.OpenStateid
	}
	return &m.Locker.LockOwner.LockStateid
}
