package planner

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// NFSv4 by hand.

// step is an operation of a COMPOUND with its result, nil if it was not
// executed.
type step struct {
	op        nfs4.NfsOpnum4
	args, res xdr.Message
}

func (s *scene) compound(minor uint32, steps ...step) {
	s.t.Helper()
	a := &nfs4.CompoundArgs{Minorversion: minor}
	r := &nfs4.CompoundRes{}
	for _, x := range steps {
		a.Ops = append(a.Ops, nfs4.Op{Number: uint32(x.op), Body: x.args})
		if x.res == nil {
			continue
		}
		o := nfs4.Op{Number: uint32(x.op), Body: x.res}
		r.Ops = append(r.Ops, o)
		code, _, _ := o.Status()
		r.Status = nfs4.Nfsstat4(code)
	}
	s.call(4, 1, a, r)
}

func ok4() xdr.Message    { return &nfs4.Status4res{} }
func putfh(h string) step { return step{nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte(h)}, ok4()} }
func getfh(h string) step {
	return step{nfs4.OP_GETFH, xdr.Void{}, &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: []byte(h)}}}
}

func sid(seq uint32, name string) nfs4.Stateid4 {
	s := nfs4.Stateid4{Seqid: seq}
	copy(s.Other[:], name)
	return s
}

func sequence(session string, slot, seq uint32) step {
	a := &nfs4.SEQUENCE4args{SaSequenceid: seq, SaSlotid: slot, SaHighestSlotid: slot}
	copy(a.SaSessionid[:], session)
	r := &nfs4.SEQUENCE4res{}
	r.SrResok4.SrSessionid = a.SaSessionid
	return step{nfs4.OP_SEQUENCE, a, r}
}

func openStep4(clientid uint64, owner, name string, seqid uint32, create bool, id nfs4.Stateid4, before, after uint64) step {
	a := &nfs4.OPEN4args{Seqid: seqid, ShareAccess: 3, Owner: nfs4.StateOwner4{Clientid: clientid, Owner: []byte(owner)}}
	if create {
		a.Openhow.Opentype = nfs4.OPEN4_CREATE
	}
	a.Claim.Claim, a.Claim.File = nfs4.CLAIM_NULL, []byte(name)
	r := &nfs4.OPEN4res{}
	r.Resok4.Stateid = id
	r.Resok4.Cinfo = nfs4.ChangeInfo4{Atomic: true, Before: before, After: after}
	return step{nfs4.OP_OPEN, a, r}
}

func readStep4(id nfs4.Stateid4, offset uint64, data string) step {
	r := &nfs4.READ4res{}
	r.Resok4.Eof = true
	r.Resok4.Data = xdr.Data{Length: uint32(len(data)), Inline: []byte(data)}
	return step{nfs4.OP_READ, &nfs4.READ4args{Stateid: id, Offset: offset, Count: 4096}, r}
}

func writeStep4(id nfs4.Stateid4, offset uint64, data string) step {
	r := &nfs4.WRITE4res{}
	r.Resok4.Count = uint32(len(data))
	return step{nfs4.OP_WRITE, &nfs4.WRITE4args{Stateid: id, Offset: offset, Data: xdr.Data{Length: uint32(len(data)), Inline: []byte(data)}}, r}
}

func closeStep4(seqid uint32, id nfs4.Stateid4) step {
	r := &nfs4.CLOSE4res{OpenStateid: nfs4.Stateid4{Seqid: id.Seqid + 1, Other: id.Other}}
	return step{nfs4.OP_CLOSE, &nfs4.CLOSE4args{Seqid: seqid, OpenStateid: id}, r}
}

func removeStep4(name string) step {
	return step{nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte(name)}, &nfs4.REMOVE4res{}}
}

// fields of a kind, in order.
func kinds(o *plan.Op, k plan.FieldKind) (list []plan.Field) {
	each(o, func(f *plan.Field) {
		if f.Kind == k {
			list = append(list, *f)
		}
	})
	return list
}

// Nothing is opened with a client id of NFSv4.0 before that is confirmed.
func TestConfirmed(t *testing.T) {
	l := load(t, build(t, "../../samples/iwarp-nfs40-basic.pcap.zst", Options{}))
	confirm, opens := 0, 0
	for _, o := range l.ops {
		if o.Compound == nil {
			continue
		}
		for i := range o.Compound.Ops {
			switch o.Compound.Ops[i].Op {
			case uint32(nfs4.OP_SETCLIENTID_CONFIRM):
				confirm = o.ID
			case uint32(nfs4.OP_OPEN):
				if opens++; confirm == 0 || !l.reaches(o.ID, confirm) {
					t.Errorf("OPEN %d does not wait for SETCLIENTID_CONFIRM %d", o.ID, confirm)
				}
			}
		}
	}
	if opens == 0 {
		t.Error("no OPEN")
	}
}

// A file that is removed while it is open (NFSv4.0, with the owner's sequence).
func TestRemoveWhileOpen(t *testing.T) {
	s := newScene(t)
	const cl = 0x77
	s.compound(0, putfh("root"), openStep4(cl, "me", "f", 1, true, sid(1, "S"), 1, 2), getfh("F")) // 1
	s.compound(0, putfh("F"), step{nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: sid(1, "S"), Seqid: 2},
		&nfs4.OPEN_CONFIRM4res{Resok4: nfs4.OPEN_CONFIRM4resok{OpenStateid: sid(2, "S")}}}) // 2
	s.compound(0, putfh("F"), writeStep4(sid(2, "S"), 0, "data")) // 3
	s.compound(0, putfh("root"), removeStep4("f"))                // 4
	s.compound(0, putfh("F"), readStep4(sid(2, "S"), 0, "data"))  // 5
	s.compound(0, putfh("F"), closeStep4(3, sid(2, "S")))         // 6
	s.compound(0, putfh("F"), step{nfs4.OP_GETATTR, &nfs4.GETATTR4args{}, &nfs4.GETATTR4res{Status: nfs4.NFS4ERR_STALE}})
	l := s.plan()
	f := l.object(t, "f")
	l.want(t, "created by", f.CreatedBy, 1)
	for i := 2; i <= 6; i++ {
		l.want(t, "class", l.ops[i-1].Class, plan.Exact)
		l.waits(t, i, 1)
	}
	l.want(t, "states", len(l.States), 1)
	l.want(t, "owners", len(l.Owners), 1)
	l.waits(t, 3, 2)
	l.waits(t, 4, 3)
	l.waits(t, 5, 3)
	l.waits(t, 6, 5)
	for _, i := range []int{1, 2, 6} {
		if k := kinds(l.ops[i-1], plan.FieldSeqid); len(k) != 1 || k[0].Ref != 1 {
			t.Errorf("op %d: sequence %+v", i, k)
		}
	}
	if c := l.Clients[0]; c.Class != plan.Synthesised || c.DefinedBy != 0 {
		t.Errorf("client %+v", c)
	}
}

// An owner of NFSv4.0 goes on with the next number when it has the reply, also if the capture lacks that. The same number again is
// the same call.
func TestOwnerWithoutReply(t *testing.T) {
	const cl = 0x77
	for name, c := range map[string]struct {
		next  uint32
		waits bool
	}{
		"next number": {3, true},
		"same number": {2, false},
	} {
		s := newScene(t)
		s.compound(0, putfh("root"), openStep4(cl, "me", "f", 1, true, sid(1, "S"), 1, 2), getfh("F")) // 1
		closing := &nfs4.CompoundArgs{}
		for _, x := range []step{putfh("F"), closeStep4(2, sid(1, "S"))} {
			closing.Ops = append(closing.Ops, nfs4.Op{Number: uint32(x.op), Body: x.args})
		}
		s.call(4, 1, closing, nil)                                                                          // 2
		s.compound(0, putfh("root"), openStep4(cl, "me", "g", c.next, true, sid(1, "T"), 2, 3), getfh("G")) // 3
		l := s.plan()
		l.want(t, name, l.reaches(3, 2), c.waits)
	}
}

// A Linux server's session ids begin with the id of the client, which the capture need not show otherwise before it is used.
func TestClientOfSession(t *testing.T) {
	id := string([]byte{0, 0, 0, 0, 0, 0, 0, 0x99}) + "E"
	destroy := func(client uint64) step {
		return step{nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: client}, ok4()}
	}
	for name, c := range map[string]struct {
		client uint64
		same   bool
	}{"its client": {0x99, true}, "another client": {0x98, false}} {
		s := newScene(t)
		s.compound(1, sequence(id, 0, 7), putfh("F"), readStep4(sid(0, "S"), 0, "data")) // 1
		s.compound(1, destroy(c.client))                                                 // 2
		l := s.plan()
		if got := kinds(l.ops[1], plan.FieldClient)[0].Ref == l.Sessions[0].Client; got != c.same {
			t.Errorf("%s: %+v, session %+v", name, l.Clients, l.Sessions[0])
		}
	}
}

// An OPEN that is refused for want of rights waits for the modes of the file and of its directory.
func TestRefusedOpen(t *testing.T) {
	mode := func() step {
		a := &nfs4.SETATTR4args{}
		a.ObjAttributes.Attrmask = nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_MODE)}
		a.ObjAttributes.AttrVals = []byte{0, 0, 1, 0}
		r := &nfs4.SETATTR4res{}
		return step{nfs4.OP_SETATTR, a, r}
	}
	refused := func(a step) step {
		a.res = &nfs4.OPEN4res{Status: nfs4.NFS4ERR_ACCESS}
		return a
	}
	byName := refused(openStep4(0x99, "me", "f", 0, false, sid(1, "T"), 1, 1))
	byHandle := refused(openStep4(0x99, "me", "f", 0, false, sid(1, "T"), 1, 1))
	byHandle.args.(*nfs4.OPEN4args).Claim = nfs4.OpenClaim4{Claim: nfs4.CLAIM_FH}
	for name, c := range map[string]struct {
		set, in string // whose mode is set, and what the OPEN starts from
		open    step
	}{
		"the file, by name":   {"F", "root", byName},
		"the file, by handle": {"F", "F", byHandle},
		"its directory":       {"root", "root", byName},
	} {
		s := newScene(t)
		s.compound(1, sequence("E", 0, 1), putfh("root"), openStep4(0x99, "me", "f", 0, false, sid(1, "S"), 1, 1), getfh("F")) // 1
		s.compound(1, sequence("E", 1, 1), putfh(c.set), mode())                                                               // 2
		s.compound(1, sequence("E", 2, 1), putfh(c.in), c.open)                                                                // 3
		l := s.plan()
		found := false
		for _, d := range l.ops[2].Deps {
			found = found || d.Op == 2 && d.Kind == plan.DepSize
		}
		if !found {
			t.Errorf("%s: %+v", name, l.ops[2].Deps)
		}
	}
}

// A session that nobody knows is the one of the CREATE_SESSION before it on the connection whose reply the capture lacks.
func TestSessionWithoutReply(t *testing.T) {
	s := newScene(t)
	s.exchange("me", 0x99, "server")                                                  // 1
	create := &nfs4.CREATE_SESSION4args{CsaClientid: 0x99, CsaSequence: 1}            //
	again := &nfs4.CREATE_SESSION4res{}                                               // of a second session
	again.CsrResok4.CsrSessionid = [16]byte{'K'}                                      //
	one := &nfs4.CompoundArgs{Minorversion: 1}                                        //
	one.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_CREATE_SESSION), Body: create}}       //
	s.call(4, 1, one, nil)                                                            // 2
	s.compound(1, sequence("E", 0, 1), putfh("F"), readStep4(sid(0, "S"), 0, "data")) // 3
	s.compound(1, sequence("X", 0, 1), putfh("F"), readStep4(sid(0, "S"), 0, "data")) // 4: another one
	s.call(4, 1, one, nil)                                                            // 5
	s.compound(1, step{nfs4.OP_CREATE_SESSION, create, again})                        // 6: the client has tried again
	s.compound(1, sequence("Y", 0, 1), putfh("F"), readStep4(sid(0, "S"), 0, "data")) // 7
	l := s.plan()
	for i, want := range []struct{ by, client int }{{2, 1}, {0, 2}, {5, 1}, {6, 1}, {0, 3}} {
		if x := l.Sessions[i]; x.DefinedBy != want.by || x.Client != want.client {
			t.Errorf("session %d: %+v", i+1, x)
		}
	}
	l.want(t, "session of a READ", kinds(l.ops[2], plan.FieldSession)[0].Ref, 1)
	l.waits(t, 3, 2)
	t.Run("of a client from before the capture", func(t *testing.T) {
		s := newScene(t)
		s.call(4, 1, one, nil)
		s.compound(1, sequence("E", 0, 1), putfh("F"), readStep4(sid(0, "S"), 0, "data"))
		l := s.plan()
		if len(l.Sessions) != 1 || l.Sessions[0].DefinedBy != 0 || len(l.ops[0].Binds) != 0 {
			t.Errorf("%+v, %+v", l.Sessions, l.ops[0].Binds)
		}
	})
	if b := l.ops[1].Binds; len(b) != 1 || b[0].Kind != plan.FieldSession || b[0].Ref != 1 {
		t.Errorf("binds %+v", b)
	}
}

// A capture that began in the middle: the state of a READ is not known.
func TestMidstream(t *testing.T) {
	s := newScene(t)
	s.compound(1, sequence("E", 5, 9), putfh("F"), readStep4(sid(0, "S"), 0, "data"))                                                   // 1
	s.compound(1, sequence("E", 5, 10), putfh("F"), writeStep4(sid(0, "S"), 4, "more"))                                                 // 2
	s.compound(1, sequence("E", 0, 3), putfh("F"), step{nfs4.OP_DELEGRETURN, &nfs4.DELEGRETURN4args{DelegStateid: sid(1, "D")}, ok4()}) // 3
	s.compound(1, sequence("E", 5, 11), putfh("F"), closeStep4(0, sid(3, "S")))                                                         // 4
	s.compound(1, sequence("E", 1, 1), putfh("root"), openStep4(0x99, "me", "g", 0, false, sid(1, "G"), 1, 1), getfh("G"))              // 5
	l := s.plan()
	if e := l.Sessions[0]; e.Class != plan.Synthesised || e.Slots != 6 || e.DefinedBy != 0 {
		t.Errorf("session %+v", e)
	}
	l.want(t, "clients", len(l.Clients), 1)
	l.want(t, "client id", l.Clients[0].ClientID, "0000000000000099")
	l.want(t, "states", len(l.States), 3)
	if x := l.States[0]; x.Class != plan.Synthesised || x.Kind != plan.OpenState || x.Access != 3 || x.Object != handle(l.ops[0]) {
		t.Errorf("state %+v", x)
	}
	if x := l.States[1]; x.Kind != plan.DelegationState || x.Class != plan.Synthesised {
		t.Errorf("state %+v", x)
	}
	for i := range 4 {
		l.want(t, "class", l.ops[i].Class, plan.Synthesised)
	}
	l.want(t, "class of an OPEN", l.ops[4].Class, plan.Exact)
	l.waits(t, 2, 1) // the same bytes
	l.waits(t, 4, 2)
	// One nameless directory: it is the base.
	n := 0
	for i := range l.Objects {
		if l.Objects[i].Base {
			n++
			l.want(t, "base", l.Objects[i].ID, handle(l.ops[4]))
		}
	}
	l.want(t, "bases", n, 1)
	l.want(t, "g", l.object(t, "g").NameClass, plan.Exact)
	l.want(t, "F", l.object(t, "unnamed-1").NameClass, plan.Synthesised)
	// Slots: an edge only between those on the same one.
	slot := func(op int) int {
		for _, d := range l.ops[op-1].Deps {
			if d.Kind == plan.DepSlot {
				return d.Op
			}
		}
		return 0
	}
	l.want(t, "slot of 3", slot(3), 0)
	if k := kinds(l.ops[0], plan.FieldState); len(k) != 1 || !k[0].Zero {
		t.Errorf("state id %+v", k)
	}
}

// The client began in the capture, but one of its OPENs is missing: that state cannot be from
// before.
func TestLostState(t *testing.T) {
	s := newScene(t)
	r := &nfs4.CREATE_SESSION4res{}
	copy(r.CsrResok4.CsrSessionid[:], "E")
	s.compound(1, step{nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4args{EiaStateProtect: nfs4.StateProtect4A{SpaHow: nfs4.SP4_MACH_CRED}},
		&nfs4.EXCHANGE_ID4res{EirResok4: nfs4.EXCHANGE_ID4resok{EirClientid: 1}}}) // 1
	s.compound(1, step{nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: 1}, r}) // 2
	s.compound(1, sequence("E", 0, 1), putfh("F"), readStep4(sid(0, "S"), 0, "data"))         // 3
	s.compound(1, sequence("E", 0, 2), putfh("F"), closeStep4(0, sid(1, "S")))                // left out
	l := s.plan()
	l.want(t, "ops", len(l.ops), 3)
	l.want(t, "states", len(l.States), 0)
	l.want(t, "class", l.ops[2].Class, plan.Inferred)
	if k := kinds(l.ops[2], plan.FieldState0); len(k) != 1 || k[0].Text != "anonymous" {
		t.Errorf("state id %+v", k)
	}
	l.want(t, "left out", l.skips[0].Class, plan.Impossible)
	l.want(t, "protection", l.ops[0].Class, plan.Inferred)
	l.arguments(t)
}

// A restart of the server: calls that only it has caused are left out, and the state goes on.
func TestRestart(t *testing.T) {
	s := newScene(t)
	hello := func(id uint64) {
		s.compound(1, step{nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4args{EiaClientowner: nfs4.ClientOwner4{CoOwnerid: []byte("client")}},
			&nfs4.EXCHANGE_ID4res{EirResok4: nfs4.EXCHANGE_ID4resok{EirClientid: id}}})
	}
	session := func(id uint64, name string) {
		r := &nfs4.CREATE_SESSION4res{}
		copy(r.CsrResok4.CsrSessionid[:], name)
		r.CsrResok4.CsrForeChanAttrs.CaMaxrequests = 8
		s.compound(1, step{nfs4.OP_CREATE_SESSION, &nfs4.CREATE_SESSION4args{CsaClientid: id}, r})
	}
	complete := func(e string) {
		s.compound(1, sequence(e, 0, 1), step{nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{}, &nfs4.RECLAIM_COMPLETE4res{}})
	}
	hello(1)                                                                                                            // 1
	session(1, "A")                                                                                                     // 2
	complete("A")                                                                                                       // 3
	s.compound(1, sequence("A", 0, 2), putfh("root"), openStep4(1, "me", "f", 0, false, sid(1, "S"), 1, 1), getfh("F")) // 4
	bad := sequence("A", 0, 3)
	bad.res = &nfs4.SEQUENCE4res{SrStatus: nfs4.NFS4ERR_BADSESSION}
	s.compound(1, bad, step{nfs4.OP_PUTFH, &nfs4.PUTFH4args{Object: []byte("F")}, nil}) // left out
	hello(2)                                                                            // left out
	session(2, "B")                                                                     // left out
	re := openStep4(2, "me", "", 0, false, sid(1, "T"), 0, 0)
	re.args.(*nfs4.OPEN4args).Claim = nfs4.OpenClaim4{Claim: nfs4.CLAIM_PREVIOUS}
	s.compound(1, sequence("B", 0, 1), putfh("F"), re)                                // left out
	complete("B")                                                                     // left out
	s.compound(1, sequence("B", 0, 3), putfh("F"), readStep4(sid(0, "T"), 0, "data")) // 5
	l := s.plan()
	l.want(t, "ops", len(l.ops), 5)
	l.want(t, "skips", len(l.skips), 5)
	for _, x := range l.skips {
		l.want(t, "class of "+x.Reason, x.Class, plan.Exact)
	}
	l.want(t, "clients", len(l.Clients), 1)
	l.want(t, "sessions", len(l.Sessions), 1)
	l.want(t, "states", len(l.States), 1)
	l.want(t, "class of the READ", l.ops[4].Class, plan.Exact)
	l.waits(t, 5, 4)
	l.waits(t, 4, 3)
}

// Locks of two owners on one range wait for each other.
func TestLocks(t *testing.T) {
	s := newScene(t)
	s.compound(0, putfh("root"), openStep4(1, "a", "f", 1, false, sid(1, "A"), 1, 1), getfh("F")) // 1
	s.compound(0, putfh("root"), openStep4(1, "b", "f", 1, false, sid(1, "B"), 1, 1), getfh("F")) // 2
	lock := func(open, state, owner string, offset uint64, st nfs4.Nfsstat4) {
		a := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Offset: offset, Length: 10}
		a.Locker.NewLockOwner = true
		a.Locker.OpenOwner = nfs4.OpenToLockOwner4{OpenSeqid: 2, OpenStateid: sid(1, open), LockSeqid: 1,
			LockOwner: nfs4.StateOwner4{Clientid: 1, Owner: []byte(owner)}}
		r := &nfs4.LOCK4res{Status: st}
		r.Resok4.LockStateid = sid(1, state)
		s.compound(0, putfh("F"), step{nfs4.OP_LOCK, a, r})
	}
	lock("A", "LA", "la", 0, nfs4.NFS4_OK)           // 3
	lock("B", "LB", "lb", 100, nfs4.NFS4_OK)         // 4: another range
	lock("B", "", "lb2", 5, nfs4.NFS4ERR_LOCK_RANGE) // 5: in the way of 3
	s.compound(0, putfh("F"), step{nfs4.OP_LOCKU, &nfs4.LOCKU4args{Seqid: 2, LockStateid: sid(1, "LA"), Offset: 0, Length: 10},
		&nfs4.LOCKU4res{LockStateid: sid(2, "LA")}}) // 6
	lock("B", "LB3", "lb3", 5, nfs4.NFS4_OK) // 7
	l := s.plan()
	l.free(t, 4, 3)
	l.waits(t, 5, 3)
	l.waits(t, 6, 5)
	l.waits(t, 7, 6)
	if k := kinds(l.ops[2], plan.FieldSeqid); len(k) != 2 || k[0].Ref == k[1].Ref {
		t.Errorf("sequences of LOCK: %+v", k)
	}
	n := 0
	for _, x := range l.States {
		if x.Kind == plan.LockState {
			n++
			l.want(t, "class", x.Class, plan.Exact)
		}
	}
	l.want(t, "locks", n, 3)
}

// The root of the server, and what was mounted below it.
func TestBase(t *testing.T) {
	s := newScene(t)
	fsid := func(n uint64) step {
		a := nfs4.Attrs{Mask: nfs4.NewBitmap4(nfs4.FATTR4_TYPE, nfs4.FATTR4_FSID), Type: nfs4.NF4DIR, Fsid: nfs4.Fsid4{Major: n}}
		return step{nfs4.OP_GETATTR, &nfs4.GETATTR4args{}, &nfs4.GETATTR4res{Resok4: nfs4.GETATTR4resok{ObjAttributes: a.Fattr4()}}}
	}
	lookup := func(name string) step {
		return step{nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(name)}, ok4()}
	}
	s.compound(0, step{nfs4.OP_PUTROOTFH, xdr.Void{}, ok4()}, getfh("R"), fsid(0)) // 1
	s.compound(0, putfh("R"), lookup("srv"), getfh("V"), fsid(0))                  // 2
	s.compound(0, putfh("V"), lookup("data"), getfh("D"), fsid(9))                 // 3
	s.compound(0, putfh("D"), lookup("x"), getfh("X"), fsid(9))                    // 4
	s.compound(0, putfh("D"), lookup("other"), getfh("O"), fsid(10))               // 5: another file system below
	l := s.plan()
	want := map[string]plan.ObjectOrigin{"R": plan.Above, "V": plan.Above, "D": plan.Before, "X": plan.Before, "O": plan.Before}
	for i := range l.Objects {
		o := &l.Objects[i]
		h := string(unhex(t, o.Handle))
		l.want(t, h, o.Origin, want[h])
		l.want(t, "base "+h, o.Base, h == "D")
		if h == "X" {
			l.want(t, "path", o.Path, "x")
		}
	}
	l.want(t, "objects", len(l.Objects), 5)
	l.want(t, "role", l.ops[0].Role, plan.Mounting)
}

// Two file systems mounted from one server are two bases, each with a name: files of the same
// name do not collide.
func TestTwoBases(t *testing.T) {
	s := newScene(t)
	fsid := func(n uint64) step {
		a := nfs4.Attrs{Mask: nfs4.NewBitmap4(nfs4.FATTR4_TYPE, nfs4.FATTR4_FSID), Type: nfs4.NF4DIR, Fsid: nfs4.Fsid4{Major: n}}
		return step{nfs4.OP_GETATTR, &nfs4.GETATTR4args{}, &nfs4.GETATTR4res{Resok4: nfs4.GETATTR4resok{ObjAttributes: a.Fattr4()}}}
	}
	lookup := func(name string) step {
		return step{nfs4.OP_LOOKUP, &nfs4.LOOKUP4args{Objname: []byte(name)}, ok4()}
	}
	s.compound(0, step{nfs4.OP_PUTROOTFH, xdr.Void{}, ok4()}, getfh("R"), fsid(0))
	s.compound(0, putfh("R"), lookup("a"), getfh("A"), fsid(9))
	s.compound(0, putfh("R"), lookup("b"), getfh("B"), fsid(10))
	s.compound(0, putfh("A"), lookup("x"), getfh("X"), fsid(9))
	s.compound(0, putfh("B"), lookup("x"), getfh("Y"), fsid(10))
	l := s.plan()
	l.defined(t)
	want := map[string]string{"A": "base-1/", "B": "base-2/", "X": "base-1/x", "Y": "base-2/x"}
	for i := range l.Objects {
		o := &l.Objects[i]
		if h := string(unhex(t, o.Handle)); h != "R" {
			l.want(t, "path of "+h, o.Path, want[h])
			l.want(t, "base "+h, o.Base, h < "C")
		}
	}
	l.want(t, "objects", len(l.Objects), 5)
}

// Encrypted calls and callbacks are not replayed, and the plan says why.
func TestLeftOut(t *testing.T) {
	s := newScene(t)
	c := oncrpc.Call{XID: 7, RPCVersion: 2, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1}
	gss := xdr.AppendUint32(nil, 1) // version
	gss = xdr.AppendUint32(gss, 0)  // RPCSEC_GSS_DATA
	gss = xdr.AppendUint32(gss, 1)  // sequence
	gss = xdr.AppendUint32(gss, 3)  // privacy
	gss = xdr.AppendOpaque(gss, []byte("h"))
	c.Cred = oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: gss}
	add := func(tx *transaction.Transaction) {
		t.Helper()
		tx.Connection, tx.Named, tx.Program, tx.Version = s.conn, true, nfs4.NFS4_PROGRAM, 4
		s.now += 1000
		s.n++
		tx.Call.First = rdma.Ref{Time: s.now, Number: s.n}
		tx.Call.Last = tx.Call.First
		tx.Call.PayloadLength = len(tx.Call.Payload)
		s.view.Set(tx)
		if err := s.b.Add(&s.view); err != nil {
			t.Fatal(err)
		}
	}
	add(&transaction.Transaction{XID: 7, Procedure: 1, Call: transaction.Message{Payload: xdr.AppendOpaque(c.Append(nil), []byte("secret"))}})
	add(&transaction.Transaction{XID: 8, Procedure: 1, Backward: true, Call: transaction.Message{Payload: c.Append(nil)}})
	c.Cred = oncrpc.Auth{}
	add(&transaction.Transaction{XID: 9, Procedure: 1, Call: transaction.Message{Payload: append(c.Append(nil), 0, 0, 0, 9)}})
	l := s.plan()
	l.want(t, "ops", len(l.ops), 0)
	for i, want := range []struct {
		class  plan.Class
		reason string
	}{{plan.Impossible, "encrypted"}, {plan.Exact, "callback"}, {plan.Impossible, "malformed"}} {
		if x := l.skips[i]; x.Class != want.class || !strings.Contains(x.Reason, want.reason) {
			t.Errorf("%+v, want %+v", x, want)
		}
	}
	l.want(t, "impossible", l.Header.Summary.Ops.Impossible, 2)
}
