package nfs4

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
)

// Users of one client: the machine, the victim and the thief.
const (
	machine = 0
	victim  = 100
	thief   = 200
)

// user sends COMPOUNDs as some user, in a session or, of NFSv4.0, without.
type user struct {
	*rig
	minor    uint32
	clientid uint64
	session  *session
	seqs     map[string]uint32 // of the owners of NFSv4.0
}

func (u *user) next(uid uint32, owner string) uint32 {
	who := fmt.Sprint(uid, " ", owner)
	u.seqs[who]++
	return u.seqs[who]
}

func newUser(r *rig, minor uint32) *user {
	u := &user{rig: r, minor: minor, seqs: map[string]uint32{}}
	if minor == 0 {
		u.clientid = r.mount0("c").clientid
		return u
	}
	u.session = r.mount(fmt.Sprint("c", minor), minor, machine)
	u.clientid = u.session.clientid
	return u
}

func (u *user) as(uid uint32, ops ...nfs4.Op) *nfs4.CompoundRes {
	u.Helper()
	if u.session == nil {
		return u.rig.do(uid, 0, ops...)
	}
	u.session.uid = uid
	return u.session.do(ops...)
}

// open opens a file of the root; of NFSv4.0 the open is confirmed.
func (u *user) open(uid uint32, owner, name string, access uint32, how nfs4.Openflag4) (h []byte, sid nfs4.Stateid4, st status) {
	u.Helper()
	a := openArgs(owner, name, access, 0, how)
	a.Owner.Clientid, a.Seqid = u.clientid, u.next(uid, owner)
	res := u.as(uid, putroot, o(nfs4.OP_OPEN, a), getfh)
	if res.Status != ok {
		return nil, sid, res.Status
	}
	h = append(h, body[nfs4.GETFH4res](u, res).Resok4.Object...)
	op := body[nfs4.OPEN4res](u, res).Resok4
	if op.Rflags&nfs4.OPEN4_RESULT_CONFIRM == 0 {
		return h, op.Stateid, ok
	}
	res = u.must(ok, u.as(uid, putfh(h), o(nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: op.Stateid, Seqid: u.next(uid, owner)})))
	return h, body[nfs4.OPEN_CONFIRM4res](u, res).Resok4.OpenStateid, ok
}

func private(m nfs4.Createmode4, bits uint32) nfs4.Openflag4 {
	h := createHow(m)
	h.How.Createattrs = mode(bits)
	return h
}

func truncateTo(sid nfs4.Stateid4, n uint64) nfs4.Op {
	return o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{Stateid: sid, ObjAttributes: attrs(func(a *nfs4.Attrs) { a.Mask, a.Size = nfs4.NewBitmap4(nfs4.FATTR4_SIZE), n })})
}

// Another user's stateid and handle give no additional access.
func TestStolenStateid(t *testing.T) {
	for minor := range uint32(3) {
		t.Run(fmt.Sprint(minor), func(t *testing.T) {
			r := newRig(t, Options{})
			u := newUser(r, minor)
			h, sid, st := u.open(victim, "owner", "f", 3, private(nfs4.UNCHECKED4, 0o600))
			if st != ok {
				t.Fatal(st)
			}
			u.must(ok, u.as(victim, putfh(h), write(sid, 0, "secret")))
			mine, mysid, st := u.open(thief, "owner", "mine", 3, private(nfs4.UNCHECKED4, 0o600))
			if st != ok {
				t.Fatal(st)
			}
			u.must(ok, u.as(thief, putfh(mine), write(mysid, 0, "mine..")))
			// A lock of the victim's.
			seq := u.next(victim, "owner")
			lockArgs := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Offset: 0, Length: 10}
			lockArgs.Locker.NewLockOwner = true
			lockArgs.Locker.OpenOwner = nfs4.OpenToLockOwner4{OpenSeqid: seq, OpenStateid: sid, LockSeqid: 1, LockOwner: nfs4.StateOwner4{Clientid: u.clientid, Owner: []byte("l")}}
			lock := body[nfs4.LOCK4res](u, u.must(ok, u.as(victim, putfh(h), o(nfs4.OP_LOCK, lockArgs)))).Resok4.LockStateid
			next := seq + 1

			again := *lockArgs
			again.Locker.OpenOwner.OpenSeqid, again.Locker.OpenOwner.LockOwner.Owner = next, []byte("other")
			more := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Offset: 100, Length: 10}
			more.Locker.LockOwner = nfs4.ExistLockOwner4{LockStateid: lock, LockSeqid: 2}
			type attempt struct {
				name  string
				since uint32
				op    []nfs4.Op
			}
			attempts := []attempt{
				{"CLOSE", 0, []nfs4.Op{putfh(h), o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid, Seqid: next})}},
				{"CLOSE, a seqid of before", 0, []nfs4.Op{putfh(h), o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid, Seqid: next - 1})}},
				{"OPEN_DOWNGRADE", 0, []nfs4.Op{putfh(h), o(nfs4.OP_OPEN_DOWNGRADE, &nfs4.OPEN_DOWNGRADE4args{OpenStateid: sid, Seqid: next, ShareAccess: 3})}},
				{"LOCK", 0, []nfs4.Op{putfh(h), o(nfs4.OP_LOCK, &again)}},
				{"LOCK sent again", 0, []nfs4.Op{putfh(h), o(nfs4.OP_LOCK, lockArgs)}},
				{"LOCK of a known owner", 0, []nfs4.Op{putfh(h), o(nfs4.OP_LOCK, more)}},
				{"LOCKU", 0, []nfs4.Op{putfh(h), o(nfs4.OP_LOCKU, &nfs4.LOCKU4args{Locktype: nfs4.WRITE_LT, Seqid: 2, LockStateid: lock, Length: 10})}},
				{"DELEGRETURN", 0, []nfs4.Op{putfh(h), o(nfs4.OP_DELEGRETURN, &nfs4.DELEGRETURN4args{DelegStateid: sid})}},
				{"FREE_STATEID", 1, []nfs4.Op{o(nfs4.OP_FREE_STATEID, &nfs4.FREE_STATEID4args{FsaStateid: lock})}},
			}
			for name, s := range map[string]nfs4.Stateid4{"open": sid, "lock": lock, "anonymous": {}, "bypass": {Seqid: 0xffffffff, Other: [12]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}} {
				attempts = append(attempts,
					attempt{"READ, " + name, 0, []nfs4.Op{putfh(h), read(s, 0, 100)}},
					attempt{"WRITE, " + name, 0, []nfs4.Op{putfh(h), write(s, 0, "broken")}},
					attempt{"SETATTR size, " + name, 0, []nfs4.Op{putfh(h), truncateTo(s, 0)}},
					attempt{"ALLOCATE, " + name, 2, []nfs4.Op{putfh(h), o(nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{AaStateid: s, AaLength: 100})}},
					attempt{"DEALLOCATE, " + name, 2, []nfs4.Op{putfh(h), o(nfs4.OP_DEALLOCATE, &nfs4.DEALLOCATE4args{DaStateid: s, DaLength: 100})}},
					attempt{"SEEK, " + name, 2, []nfs4.Op{putfh(h), o(nfs4.OP_SEEK, &nfs4.SEEK4args{SaStateid: s})}},
					attempt{"READ_PLUS, " + name, 2, []nfs4.Op{putfh(h), o(nfs4.OP_READ_PLUS, &nfs4.READ_PLUS4args{RpaStateid: s, RpaCount: 100})}},
					attempt{"COPY from, " + name, 2, []nfs4.Op{putfh(h), savefh, putfh(mine), o(nfs4.OP_COPY, &nfs4.COPY4args{CaSrcStateid: s, CaDstStateid: mysid, CaSynchronous: true})}},
					attempt{"COPY to, " + name, 2, []nfs4.Op{putfh(mine), savefh, putfh(h), o(nfs4.OP_COPY, &nfs4.COPY4args{CaSrcStateid: mysid, CaDstStateid: s, CaSynchronous: true})}},
					attempt{"CLONE from, " + name, 2, []nfs4.Op{putfh(h), savefh, putfh(mine), o(nfs4.OP_CLONE, &nfs4.CLONE4args{ClSrcStateid: s, ClDstStateid: mysid})}},
					attempt{"CLONE to, " + name, 2, []nfs4.Op{putfh(mine), savefh, putfh(h), o(nfs4.OP_CLONE, &nfs4.CLONE4args{ClSrcStateid: mysid, ClDstStateid: s})}},
				)
			}
			before := r.s.State()
			for _, a := range attempts {
				if minor < a.since {
					continue
				}
				res := u.as(thief, a.op...)
				switch res.Status {
				case nfs4.NFS4ERR_ACCESS, nfs4.NFS4ERR_WRONG_CRED:
				case nfs4.NFS4ERR_BAD_STATEID:
					if minor > 0 && a.name != "DELEGRETURN" {
						t.Errorf("%s: %s", a.name, res.Status)
					}
				default:
					t.Errorf("%s: %s", a.name, res.Status)
				}
			}
			if after := r.s.State(); after != before {
				t.Errorf("%+v became %+v", before, after)
			}
			// The victim has noticed nothing: the seqids are those it expects.
			res := u.must(ok, u.as(victim, putfh(h), read(sid, 0, 100)))
			if d := body[nfs4.READ4res](t, res).Resok4.Data.Inline; string(d) != "secret" {
				t.Errorf("%q", d)
			}
			u.must(ok, u.as(victim, putfh(h), o(nfs4.OP_LOCKU, &nfs4.LOCKU4args{Locktype: nfs4.WRITE_LT, Seqid: 2, LockStateid: lock, Length: 10})))
			u.must(ok, u.as(victim, putfh(h), o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid, Seqid: next})))
			// The thief does not get the reply to the CLOSE, either.
			if res := u.as(thief, putfh(h), o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid, Seqid: next})); res.Status == ok {
				t.Error("the reply was another's")
			}
			res = u.must(ok, u.as(thief, putfh(mine), read(mysid, 0, 100)))
			if d := body[nfs4.READ4res](t, res).Resok4.Data.Inline; string(d) != "mine.." {
				t.Errorf("copied: %q", d)
			}
		})
	}
}

// A user who has opened a file for writing may read it only if its permissions allow it.
func TestWriteOnlyOpen(t *testing.T) {
	for minor := range uint32(3) {
		for _, bits := range []uint32{0o622, 0o666} {
			r := newRig(t, Options{})
			u := newUser(r, minor)
			h, sid, st := u.open(victim, "o", "f", 3, private(nfs4.UNCHECKED4, bits))
			if st != ok {
				t.Fatal(st)
			}
			u.must(ok, u.as(victim, putfh(h), write(sid, 0, "secret")))
			_, w, st := u.open(thief, "o", "f", 2, nfs4.Openflag4{})
			if st != ok {
				t.Fatal(st)
			}
			want := ok
			if bits == 0o622 {
				want = nfs4.NFS4ERR_ACCESS
			}
			u.must(want, u.as(thief, putfh(h), read(w, 0, 100)))
			u.must(ok, u.as(thief, putfh(h), write(w, 0, "SECRET")))
			if minor == 2 {
				u.must(want, u.as(thief, putfh(h), o(nfs4.OP_READ_PLUS, &nfs4.READ_PLUS4args{RpaStateid: w, RpaCount: 100})))
				u.must(want, u.as(thief, putfh(h), o(nfs4.OP_SEEK, &nfs4.SEEK4args{SaStateid: w})))
				mine, dst, _ := u.open(thief, "o", "mine", 3, createHow(nfs4.UNCHECKED4))
				u.must(want, u.as(thief, putfh(h), savefh, putfh(mine), o(nfs4.OP_COPY, &nfs4.COPY4args{CaSrcStateid: w, CaDstStateid: dst, CaSynchronous: true})))
			}
			// Its owner reads it through an open for writing, to fill pages.
			_, w, st = u.open(victim, "o2", "f", 2, nfs4.Openflag4{})
			if st != ok {
				t.Fatal(st)
			}
			u.must(ok, u.as(victim, putfh(h), read(w, 0, 100)))
			// An open file stays open, whatever happens to its mode.
			_, both, st := u.open(thief, "o3", "f", 2, nfs4.Openflag4{})
			if st != ok {
				t.Fatal(st)
			}
			u.must(ok, u.as(victim, putfh(h), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: mode(0)})))
			u.must(ok, u.as(thief, putfh(h), write(both, 0, "Secret")))
			u.must(nfs4.NFS4ERR_ACCESS, u.as(thief, putfh(h), read(both, 0, 1)))
		}
	}
}

// The verifier of an exclusive create is not a password: it is often a time and a process number.
func TestStolenVerifier(t *testing.T) {
	for minor := range uint32(2) {
		r := newRig(t, Options{})
		u := newUser(r, minor)
		how := nfs4.Openflag4{Opentype: nfs4.OPEN4_CREATE}
		how.How.Mode = nfs4.EXCLUSIVE4
		how.How.Createverf = [8]byte{1, 2, 3}
		if _, _, st := u.open(victim, "o", "f", 3, how); st != ok {
			t.Fatal(st)
		}
		if _, _, st := u.open(victim, "o", "f", 3, how); st != ok {
			t.Errorf("sent again: %s", st)
		}
		if _, _, st := u.open(thief, "o", "f", 3, how); st != nfs4.NFS4ERR_ACCESS {
			t.Errorf("by another: %s", st)
		}
	}
}

// A claim to have had a file open is no permission to open it.
func TestStolenReclaim(t *testing.T) {
	for minor := range uint32(3) {
		r := newRig(t, Options{})
		u := newUser(r, minor)
		h, _, st := u.open(victim, "o", "f", 3, private(nfs4.UNCHECKED4, 0o600))
		if st != ok {
			t.Fatal(st)
		}
		r.s.Close()
		r.boot(Options{Grace: time.Minute})
		reclaim := func(uid uint32, seq uint32) status {
			a := openArgs("o", "", 3, 0, nfs4.Openflag4{})
			a.Claim = nfs4.OpenClaim4{Claim: nfs4.CLAIM_PREVIOUS}
			a.Owner.Clientid, a.Seqid = u.clientid, seq
			return u.as(uid, putfh(h), o(nfs4.OP_OPEN, a)).Status
		}
		if minor == 0 {
			u.clientid = r.mount0("c").clientid
		} else {
			// Like mount, without RECLAIM_COMPLETE.
			id := body[nfs4.EXCHANGE_ID4res](r, r.must(ok, r.do(machine, minor, exchangeID("c", 1, 0)))).EirResok4
			cs := body[nfs4.CREATE_SESSION4res](r, r.must(ok, r.do(machine, minor, createSession(id.EirClientid, id.EirSequenceid)))).CsrResok4
			u.session = &session{rig: r, minor: minor, seqs: map[uint32]uint32{}, clientid: id.EirClientid, id: cs.CsrSessionid}
		}
		if st := reclaim(thief, 1); st != nfs4.NFS4ERR_ACCESS {
			t.Errorf("by another: %s", st)
		}
		if st := reclaim(victim, 1); st != ok {
			t.Errorf("by the owner: %s", st)
		}
	}
}

// Only the creator of a session or a client ID may change it, and nobody gets the reply to
// another user's COMPOUND.
func TestStolenSession(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("c", 1, machine)
	r.must(nfs4.NFS4ERR_WRONG_CRED, r.do(thief, 1, o(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: s.id})))
	r.must(nfs4.NFS4ERR_WRONG_CRED, r.do(thief, 1, o(nfs4.OP_BIND_CONN_TO_SESSION, &nfs4.BIND_CONN_TO_SESSION4args{BctsaSessid: s.id, BctsaDir: nfs4.CDFC4_FORE})))
	r.must(nfs4.NFS4ERR_WRONG_CRED, r.do(thief, 1, o(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: s.clientid})))
	r.must(nfs4.NFS4ERR_CLID_INUSE, r.do(thief, 1, exchangeID("c", 1, 0)))
	r.must(nfs4.NFS4ERR_CLID_INUSE, r.do(thief, 1, exchangeID("c", 2, 0)))
	r.must(nfs4.NFS4ERR_PERM, r.do(thief, 1, exchangeID("c", 1, nfs4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A)))

	s.keep, s.uid = true, victim
	call := s.encode(putroot, getattr(nfs4.FATTR4_FILEID))
	first := s.result(s.raw(victim, call))
	s.must(ok, first)
	s.must(nfs4.NFS4ERR_SEQ_FALSE_RETRY, s.result(s.raw(thief, call)))
	s.must(ok, s.result(s.raw(victim, call)))

	s.uid = machine
	r.must(ok, r.do(machine, 1, o(nfs4.OP_BIND_CONN_TO_SESSION, &nfs4.BIND_CONN_TO_SESSION4args{BctsaSessid: s.id, BctsaDir: nfs4.CDFC4_FORE})))
	r.must(ok, r.do(machine, 1, o(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: s.id})))
	r.must(ok, r.do(machine, 1, o(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: s.clientid})))
}

// Root that the server maps to nobody is still not nobody: the machine's state is its own.
func TestSquashedApart(t *testing.T) {
	const nobody = 65534
	r := newRig(t, Options{})
	r.rpc = nfsserver.New(nfsserver.Options{Squash: nfsserver.RootSquash})
	r.rpc.Register(r.s.Program())
	s := r.mount("c", 1, machine)
	h, sid := s.create("o", "f", 3, 0)
	s.must(ok, s.do(putfh(h), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: mode(0o600)})))
	r.must(nfs4.NFS4ERR_WRONG_CRED, r.do(nobody, 1, o(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: s.id})))
	s.uid = nobody
	s.must(nfs4.NFS4ERR_WRONG_CRED, s.do(putfh(h), closeOp(sid)))
	s.must(ok, s.do(putfh(h), read(sid, 0, 1))) // they have one user's permissions
	s.uid = victim
	s.must(nfs4.NFS4ERR_ACCESS, s.do(putfh(h), read(sid, 0, 1)))
	// Such a root gets no more than nobody: neither by a file's mode, nor by changing its owner.
	s.uid = victim
	h2, _ := s.create("v", "g", 3, 0)
	s.must(ok, s.do(putfh(h2), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: mode(0o600)})))
	s.uid = machine
	s.must(nfs4.NFS4ERR_ACCESS, s.do(putfh(h2), read(nfs4.Stateid4{}, 0, 1)))
	s.must(nfs4.NFS4ERR_PERM, s.do(putfh(h2), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: mode(0o666)})))
	s.must(nfs4.NFS4ERR_PERM, s.do(putfh(h), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: attrs(func(a *nfs4.Attrs) {
		a.Mask, a.Owner = nfs4.NewBitmap4(nfs4.FATTR4_OWNER), []byte("0")
	})})))
}

// The ids that a client gets reveal nothing about those of others.
func TestNoCounters(t *testing.T) {
	r := newRig(t, Options{})
	halves := map[uint32]int{}
	count := func(b []byte) {
		for len(b) >= 4 {
			halves[binary.BigEndian.Uint32(b)]++
			b = b[4:]
		}
	}
	var clients [][]byte
	for i := range 50 {
		s := r.mount(fmt.Sprint(i), 1, 0)
		_, a := s.create("o", fmt.Sprint(i), 1, 0)
		_, b := s.create("p", fmt.Sprint(i), 1, 0)
		count(s.id[:])
		count(a.Other[4:])
		count(b.Other[4:])
		clients = append(clients, binary.BigEndian.AppendUint64(nil, s.clientid))
	}
	for _, c := range clients {
		count(c)
	}
	for half, n := range halves {
		if n > 1 || halves[half+1] > 0 {
			t.Errorf("%x: %d times; the next number %d times", half, n, halves[half+1])
		}
	}
}

// A record that was not confirmed within a lease is rejected when it is used (RFC 8881, section
// 18.35.3), even before the reaper runs.
func TestUnconfirmedExpires(t *testing.T) {
	r := newRig(t, Options{})
	id := body[nfs4.EXCHANGE_ID4res](t, r.must(ok, r.do(0, 1, exchangeID("c", 1, 0)))).EirResok4
	id0 := body[nfs4.SETCLIENTID4res](t, r.must(ok, r.do(0, 0, setclientid("z", 1)))).Resok4
	r.clock.pass(91 * time.Second)
	r.must(nfs4.NFS4ERR_STALE_CLIENTID, r.do(0, 1, createSession(id.EirClientid, id.EirSequenceid)))
	r.must(nfs4.NFS4ERR_STALE_CLIENTID, r.do(0, 0, confirmOp(id0)))
}

// A back channel that cannot carry anything is refused, whether it was asked for or not.
func TestSmallBackChannel(t *testing.T) {
	r := newRig(t, Options{})
	id := body[nfs4.EXCHANGE_ID4res](t, r.must(ok, r.do(0, 1, exchangeID("c", 1, 0)))).EirResok4
	for _, flags := range []uint32{0, nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN} {
		for _, spoil := range []func(a *nfs4.ChannelAttrs4){
			func(a *nfs4.ChannelAttrs4) { a.CaMaxrequestsize = 10 },
			func(a *nfs4.ChannelAttrs4) { a.CaMaxresponsesize = 10 },
			func(a *nfs4.ChannelAttrs4) { a.CaMaxoperations = 1 },
			func(a *nfs4.ChannelAttrs4) { a.CaMaxrequests = 0 },
		} {
			op := createSession(id.EirClientid, id.EirSequenceid)
			a := op.Body.(*nfs4.CREATE_SESSION4args)
			a.CsaFlags = flags
			spoil(&a.CsaBackChanAttrs)
			r.must(nfs4.NFS4ERR_TOOSMALL, r.do(0, 1, op))
		}
	}
	r.must(ok, r.do(0, 1, createSession(id.EirClientid, id.EirSequenceid)))
}

// An address that takes all the records that it can get does not keep others out.
func TestCrowd(t *testing.T) {
	r := newRig(t, Options{})
	r.s.Close()
	opt := Options{}
	opt.Limits.Clients = 100
	r.boot(opt)
	for i := range 300 {
		z := r.mount0(fmt.Sprint("crowd", i))
		if i < 40 {
			z.open(fmt.Sprint(i), 3, 0)
		}
	}
	r.from = netip.MustParseAddrPort("192.0.2.2:700")
	r.mount0("newcomer")
	r.mount("newcomer", 1, 0)
	if n := r.s.State(); n.Clients > 100 || n.Opens != 40 {
		t.Errorf("%+v", n)
	}
}

// permitted is what the mode of a file allows, with the additions of NFS: its owner may read and
// write it whatever the mode, and a user who may execute it may read it.
func permitted(uid, owner, bits uint32, write bool) bool {
	if uid == 0 || uid == owner {
		return true
	}
	if write {
		return bits&2 != 0
	}
	return bits&5 != 0
}

// NFSv3 and NFSv4, with the user's own stateid, another's, or none, give the same user the same
// access.
func TestVersionsAgree(t *testing.T) {
	r := newRig(t, Options{})
	r.rpc.Register(v3.New(r.store, v3.Options{}))
	st := r.store.(*memory.Store)
	rnd := rand.New(rand.NewPCG(4, 2))
	users := map[uint32]*user{0: newUser(r, 0), 1: newUser(r, 1), 2: newUser(r, 2)}
	for round := range 400 {
		owner, uid, bits := uint32(rnd.IntN(3)*100), uint32(rnd.IntN(3)*100), uint32(rnd.IntN(0o1000))
		name := fmt.Sprint("f", round)
		var a store.Attr
		var w store.Wcc
		root := store.Cred{}
		set := store.SetAttr{Mask: store.SetMode | store.SetUID | store.SetGID, Mode: bits, UID: owner, GID: 1000}
		if _, err := st.Create(&root, st.Root(), []byte(name), &store.Create{Set: set}, &a, &w); err != nil {
			t.Fatal(err)
		}
		h := st.Info().Handles.Append(nil, a.Handle)
		minor := uint32(round % 3)
		u := users[minor]
		_, rootsid, s := u.open(machine, fmt.Sprint("root", round), name, 3, nfs4.Openflag4{})
		if s != ok {
			t.Fatal(s)
		}
		for _, wr := range []bool{false, true} {
			what := fmt.Sprintf("minor %d: uid %d, file of %d, mode %o, write %v", minor, uid, owner, bits, wr)
			want := permitted(uid, owner, bits, wr)
			if got := v3IO(r, uid, h, wr); got != want {
				t.Errorf("%s: v3 %v, want %v", what, got, want)
			}
			io := func(sid nfs4.Stateid4) nfs4.Op {
				if wr {
					return write(sid, 0, "x")
				}
				return read(sid, 0, 1)
			}
			for kind, sid := range map[string]nfs4.Stateid4{"anonymous": {}, "root's": rootsid} {
				if got := u.as(uid, putfh(h), io(sid)).Status; (got == ok) != want {
					t.Errorf("%s: %s stateid: %s, want %v", what, kind, got, want)
				}
			}
			// OPEN checks only the mode, like open(2).
			access := uint32(1)
			bit := uint32(5)
			if wr {
				access, bit = 2, 2
			}
			may := bits
			if uid == owner {
				may >>= 6
			}
			opens := uid == 0 || may&bit != 0
			_, sid, s := u.open(uid, fmt.Sprint("o", round, wr), name, access, nfs4.Openflag4{})
			if (s == ok) != opens {
				t.Errorf("%s: OPEN %s, want %v", what, s, opens)
			}
			if s == ok {
				u.must(ok, u.as(uid, putfh(h), io(sid)))
			}
		}
	}
}

// v3IO reads or writes by NFSv3, and reports whether that was permitted.
func v3IO(r *rig, uid uint32, h []byte, write bool) bool {
	r.Helper()
	sys := oncrpc.Sys{Machine: []byte("client"), UID: uid, GID: uid}
	r.xid++
	c := oncrpc.Call{XID: r.xid, RPCVersion: 2, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: uint32(nfs3.NFSPROC3_READ),
		Cred: oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)}}
	var args xdr.Message = &nfs3.READ3args{File: nfs3.NfsFh3{Data: h}, Count: 1}
	if write {
		c.Procedure = uint32(nfs3.NFSPROC3_WRITE)
		args = &nfs3.WRITE3args{File: nfs3.NfsFh3{Data: h}, Count: 1, Stable: nfs3.FILE_SYNC, Data: xdr.Data{Length: 1, Inline: []byte("x")}}
	}
	x := &exchange{from: r.from}
	x.call.Stream = args.Append(c.Append(nil))
	r.rpc.ServeRPC(x)
	if !x.done || len(x.reply) < 28 {
		r.Fatalf("reply % x", x.reply)
	}
	switch st := nfs3.Nfsstat3(binary.BigEndian.Uint32(x.reply[24:])); st {
	case nfs3.NFS3_OK:
		return true
	case nfs3.NFS3ERR_ACCES:
		return false
	default:
		r.Fatal(st)
		return false
	}
}
