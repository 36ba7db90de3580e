package nfs4

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
)

// sequenceOp is a SEQUENCE that does not advance the session's sequence ID.
func sequenceOp(id [16]byte, slot, seq uint32, keep bool) nfs4.Op {
	return o(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: id, SaSequenceid: seq, SaSlotid: slot, SaHighestSlotid: slot, SaCachethis: keep})
}

// A COMPOUND that is sent again gets the same bytes and is not executed again
// (RFC 8881, section 2.10.6.1).
func TestExactlyOnce(t *testing.T) {
	for _, keep := range []bool{false, true} {
		r := newRig(t, Options{})
		s := r.mount("client", 1, 0)
		s.keep = keep
		// Executed twice, the REMOVE would fail and the CREATE return NFS4ERR_EXIST.
		mkdir := o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: []byte("dir"), Createattrs: mode(0o755)})
		remove := o(nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte("dir")})
		for _, op := range []nfs4.Op{mkdir, remove} {
			args := s.encode(putroot, op)
			first := r.raw(0, args)
			r.must(ok, r.result(first))
			for range 3 {
				again := r.raw(0, args)
				// All but the XID.
				if !bytes.Equal(first.reply[4:], again.reply[4:]) {
					t.Errorf("% x\nafter\n% x", again.reply, first.reply)
				}
			}
			// The next COMPOUND in the slot shows that the first one counted once.
			s.must(ok, s.do(putroot))
		}
	}
}

// Replies with separate data are kept if the client asks for it.
func TestExactlyOnceData(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 1, 0)
	h, sid := s.create("o", "f", 3, 0)
	s.must(ok, s.do(putfh(h), write(sid, 0, string(bytes.Repeat([]byte("abcd"), 600)))))
	s.keep = true
	args := s.encode(putfh(h), read(sid, 0, 2000), getattr(nfs4.FATTR4_SIZE), read(sid, 4, 100))
	first := r.raw(0, args, 1<<20, 1<<20)
	if first.items != 2 {
		t.Fatalf("%d items", first.items)
	}
	again := r.raw(0, args)
	if !bytes.Equal(first.reply[4:], again.reply[4:]) {
		t.Error("another reply")
	}
	if res := s.must(ok, s.do(putfh(h), read(sid, 0, 4000))); body[nfs4.READ4res](t, res).Resok4.Data.Length != 2400 {
		t.Error("short")
	}
	// A reply too large to be kept is refused, not dropped.
	s.must(ok, s.do(putfh(h), write(sid, 0, string(bytes.Repeat([]byte("abcd"), 6000)))))
	a := s.encode(putfh(h), read(sid, 0, 2400), read(sid, 0, 2400), read(sid, 0, 2400))
	s.must(nfs4.NFS4ERR_REP_TOO_BIG_TO_CACHE, r.result(r.raw(0, a)))
}

func TestUncached(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 2, 0)
	h, sid := s.create("o", "f", 3, 0)
	s.must(ok, s.do(putfh(h), write(sid, 0, string(make([]byte, 3000)))))
	// Not kept: the reply is larger than a slot, and the client has not asked for it.
	args := s.encode(putfh(h), read(sid, 0, 3000), read(sid, 0, 3000))
	s.must(ok, r.result(r.raw(0, args)))
	res := s.must(nfs4.NFS4ERR_RETRY_UNCACHED_REP, r.result(r.raw(0, args)))
	if len(res.Ops) != 2 {
		t.Errorf("%d results", len(res.Ops))
	}
	s.must(ok, s.do(putroot))
}

func TestSequence(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 1, 0)
	next := s.seqs[0] + 1
	for _, c := range []struct {
		name string
		want status
		op   nfs4.Op
	}{
		{"skips one", nfs4.NFS4ERR_SEQ_MISORDERED, sequenceOp(s.id, 0, next+1, false)},
		{"two back", nfs4.NFS4ERR_SEQ_MISORDERED, sequenceOp(s.id, 0, next-2, false)},
		{"unused slot, 0", nfs4.NFS4ERR_SEQ_MISORDERED, sequenceOp(s.id, 5, 0, false)},
		{"unused slot, 2", nfs4.NFS4ERR_SEQ_MISORDERED, sequenceOp(s.id, 5, 2, false)},
		{"no such slot", nfs4.NFS4ERR_BADSLOT, sequenceOp(s.id, 32, 1, false)},
		{"far slot", nfs4.NFS4ERR_BADSLOT, sequenceOp(s.id, 1<<31, 1, false)},
		{"no such session", nfs4.NFS4ERR_BADSESSION, sequenceOp([16]byte{1}, 0, 1, false)},
		{"highest below", nfs4.NFS4ERR_BAD_HIGH_SLOT, o(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: s.id, SaSequenceid: 1, SaSlotid: 3, SaHighestSlotid: 2})},
		{"another COMPOUND with the same number", nfs4.NFS4ERR_SEQ_FALSE_RETRY, sequenceOp(s.id, 0, next-1, false)},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := r.must(c.want, r.do(0, 1, c.op))
			if len(res.Ops) != 1 {
				t.Errorf("%d results", len(res.Ops))
			}
		})
	}
	s.must(ok, s.do())
	many := make([]nfs4.Op, 16)
	for i := range many {
		many[i] = putroot
	}
	s.must(nfs4.NFS4ERR_TOO_MANY_OPS, s.do(many...))
	s.seqs[0]--
	s.must(ok, s.do(many[:15]...))
}

func TestPositions(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 1, 0)
	r.must(nfs4.NFS4ERR_OP_NOT_IN_SESSION, r.do(0, 1, putroot))
	r.must(nfs4.NFS4ERR_OP_NOT_IN_SESSION, r.do(0, 1, o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})))
	r.must(nfs4.NFS4ERR_NOT_ONLY_OP, r.do(0, 1, exchangeID("x", 1, 0), putroot))
	r.must(nfs4.NFS4ERR_NOT_ONLY_OP, r.do(0, 1, createSession(s.clientid, 2), putroot))
	bind := o(nfs4.OP_BIND_CONN_TO_SESSION, &nfs4.BIND_CONN_TO_SESSION4args{BctsaSessid: s.id, BctsaDir: nfs4.CDFC4_FORE_OR_BOTH})
	s.must(nfs4.NFS4ERR_NOT_ONLY_OP, s.do(bind))
	if b := body[nfs4.BIND_CONN_TO_SESSION4res](t, r.must(ok, r.do(0, 1, bind))); b.BctsrResok4.BctsrDir != nfs4.CDFS4_FORE {
		t.Errorf("%+v", b)
	}
	s.must(nfs4.NFS4ERR_SEQUENCE_POS, s.do(putroot, sequenceOp(s.id, 1, 1, false)))
	s.must(nfs4.NFS4ERR_NOT_ONLY_OP, s.do(o(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: s.id}), putroot))
	s.must(nfs4.NFS4ERR_COMPLETE_ALREADY, s.do(o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})))
	for _, op := range []nfs4.Op{
		o(nfs4.OP_SETCLIENTID, &nfs4.SETCLIENTID4args{}),
		o(nfs4.OP_SETCLIENTID_CONFIRM, &nfs4.SETCLIENTID_CONFIRM4args{}),
		o(nfs4.OP_RENEW, &nfs4.RENEW4args{}),
		o(nfs4.OP_RELEASE_LOCKOWNER, &nfs4.RELEASE_LOCKOWNER4args{}),
		o(nfs4.OP_LAYOUTGET, &nfs4.LAYOUTGET4args{}),
		o(nfs4.OP_GETDEVICEINFO, &nfs4.GETDEVICEINFO4args{}),
	} {
		s.must(nfs4.NFS4ERR_NOTSUPP, s.do(putroot, op))
	}
	s.must(nfs4.NFS4ERR_CLIENTID_BUSY, s.do(o(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: s.clientid})))
	s.must(ok, s.do(o(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{DsaSessionid: s.id})))
	s.must(nfs4.NFS4ERR_BADSESSION, s.do(putroot))
	r.must(nfs4.NFS4ERR_BADSESSION, r.do(0, 1, bind))
	r.must(ok, r.do(0, 1, o(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: s.clientid})))
	r.must(nfs4.NFS4ERR_STALE_CLIENTID, r.do(0, 1, o(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: s.clientid})))
}

// The cases of RFC 8881, section 18.35.4 by their numbers.
func TestExchangeID(t *testing.T) {
	r := newRig(t, Options{})
	const update = nfs4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A
	exchange := func(want status, uid uint32, verifier byte, flags uint32) nfs4.EXCHANGE_ID4resok {
		t.Helper()
		return body[nfs4.EXCHANGE_ID4res](t, r.must(want, r.do(uid, 1, exchangeID("name", verifier, flags)))).EirResok4
	}
	confirm := func(id nfs4.EXCHANGE_ID4resok, uid uint32) nfs4.CREATE_SESSION4resok {
		t.Helper()
		return body[nfs4.CREATE_SESSION4res](t, r.must(ok, r.do(uid, 1, createSession(id.EirClientid, id.EirSequenceid)))).CsrResok4
	}
	exchange(nfs4.NFS4ERR_INVAL, 0, 1, 1<<20)
	exchange(nfs4.NFS4ERR_INVAL, 0, 1, nfs4.EXCHGID4_FLAG_CONFIRMED_R)
	exchange(nfs4.NFS4ERR_NOENT, 0, 1, update) // 7
	a := exchange(ok, 0, 1, 0)                 // 1
	b := exchange(ok, 0, 1, 0)                 // 4: an unconfirmed record is replaced
	if a.EirClientid == b.EirClientid || b.EirFlags&nfs4.EXCHGID4_FLAG_CONFIRMED_R != 0 || b.EirFlags&nfs4.EXCHGID4_FLAG_USE_NON_PNFS == 0 {
		t.Errorf("%+v, %+v", a, b)
	}
	r.must(nfs4.NFS4ERR_STALE_CLIENTID, r.do(0, 1, createSession(a.EirClientid, a.EirSequenceid)))
	r.must(nfs4.NFS4ERR_SEQ_MISORDERED, r.do(0, 1, createSession(b.EirClientid, b.EirSequenceid+1)))
	r.must(nfs4.NFS4ERR_CLID_INUSE, r.do(7, 1, createSession(b.EirClientid, b.EirSequenceid)))
	first := confirm(b, 0)
	if again := confirm(b, 0); again.CsrSessionid != first.CsrSessionid {
		t.Error("CREATE_SESSION was executed twice")
	}
	c := exchange(ok, 0, 1, 0) // 2
	if c.EirClientid != b.EirClientid || c.EirFlags&nfs4.EXCHGID4_FLAG_CONFIRMED_R == 0 || c.EirSequenceid != b.EirSequenceid+1 {
		t.Errorf("%+v", c)
	}
	if second := confirm(c, 0); second.CsrSessionid == first.CsrSessionid {
		t.Error("no second session")
	}
	exchange(nfs4.NFS4ERR_CLID_INUSE, 7, 1, 0)    // 3, in use
	exchange(ok, 0, 1, update)                    // 6
	exchange(nfs4.NFS4ERR_NOT_SAME, 0, 2, update) // 8
	exchange(nfs4.NFS4ERR_PERM, 7, 1, update)     // 9
	d := exchange(ok, 0, 2, 0)                    // 5: the client has restarted
	if d.EirClientid == b.EirClientid {
		t.Error("the same client ID")
	}
	r.must(ok, r.do(0, 1, sequenceOp(first.CsrSessionid, 0, 1, false))) // what it had is there until it confirms
	confirm(d, 0)
	r.must(nfs4.NFS4ERR_BADSESSION, r.do(0, 1, sequenceOp(first.CsrSessionid, 0, 2, false)))
	r.clock.pass(time.Hour)
	exchange(ok, 7, 1, 0) // 3, whose lease has run out
}

func TestChannel(t *testing.T) {
	r := newRig(t, Options{})
	id := body[nfs4.EXCHANGE_ID4res](t, r.must(ok, r.do(0, 1, exchangeID("c", 1, 0)))).EirResok4
	create := func(want status, seq uint32, flags uint32, f func(a *nfs4.ChannelAttrs4)) nfs4.CREATE_SESSION4resok {
		t.Helper()
		op := createSession(id.EirClientid, seq)
		a := op.Body.(*nfs4.CREATE_SESSION4args)
		a.CsaFlags = flags
		f(&a.CsaForeChanAttrs)
		return body[nfs4.CREATE_SESSION4res](t, r.must(want, r.do(0, 1, op))).CsrResok4
	}
	keep := func(*nfs4.ChannelAttrs4) {}
	create(nfs4.NFS4ERR_TOOSMALL, 1, 0, func(a *nfs4.ChannelAttrs4) { a.CaMaxrequestsize = 100 })
	create(nfs4.NFS4ERR_TOOSMALL, 1, 0, func(a *nfs4.ChannelAttrs4) { a.CaMaxrequests = 0 })
	create(nfs4.NFS4ERR_INVAL, 1, 8, keep)
	got := create(ok, 1, 7, func(a *nfs4.ChannelAttrs4) {
		a.CaMaxrequests, a.CaMaxoperations, a.CaMaxresponsesizeCached, a.CaHeaderpadsize = 1<<20, 1<<20, 1<<30, 77
	})
	f := got.CsrForeChanAttrs
	l := r.s.table.Limits()
	if f.CaMaxrequests != uint32(l.Slots) || f.CaMaxoperations != uint32(l.Ops) || f.CaMaxresponsesizeCached != uint32(l.Cached) || f.CaHeaderpadsize != 0 || f.CaMaxrequestsize != uint32(l.Request) {
		t.Errorf("%+v", f)
	}
	if got.CsrFlags != 0 {
		t.Errorf("flags %x", got.CsrFlags) // no backchannel here, and no persistence
	}
	// A reply that is too large, and a request.
	small := create(ok, 2, 0, func(a *nfs4.ChannelAttrs4) { a.CaMaxresponsesize, a.CaMaxrequestsize = 600, 600 })
	s := &session{rig: r, minor: 1, id: small.CsrSessionid, seqs: map[uint32]uint32{}}
	s.must(ok, s.do(o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})))
	all := make([]uint32, 0, 56)
	for n := range uint32(56) {
		if !writeOnly.has(int(n)) {
			all = append(all, n)
		}
	}
	s.must(ok, s.do(putroot, getattr(all...)))
	s.must(nfs4.NFS4ERR_REP_TOO_BIG, s.do(putroot, getattr(all...), getattr(all...)))
	if n := len(s.last.reply); n > 600 {
		t.Errorf("a reply of %d bytes", n)
	}
	s.must(nfs4.NFS4ERR_REQ_TOO_BIG, s.do(putroot, lookup(string(make([]byte, 600)))))
	s.seqs[0]-- // was not executed
	h, sid := s.create("o", "f", 3, 0)
	for range 3 {
		s.must(ok, s.do(putfh(h), write(sid, 0, string(make([]byte, 300)))))
	}
	res := s.must(ok, s.do(putfh(h), write(sid, 300, string(make([]byte, 300)))))
	_ = res
	res = s.must(ok, s.do(putfh(h), read(sid, 0, 600)))
	if n := body[nfs4.READ4res](t, res).Resok4.Data.Length; n == 0 || n >= 600 || len(s.last.reply) > 600 {
		t.Errorf("%d bytes in a reply of %d", n, len(s.last.reply))
	}
}

func TestLease(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.mount("a", 1, 0), r.mount("b", 1, 0)
	h, sid := a.create("o", "f", 3, nfs4.OPEN4_SHARE_DENY_BOTH)
	deny := o(nfs4.OP_OPEN, openArgs("o", "f", 3, 0, nfs4.Openflag4{}))
	b.must(nfs4.NFS4ERR_SHARE_DENIED, b.do(putroot, deny))
	r.clock.pass(60 * time.Second)
	b.must(ok, b.do()) // renews
	r.clock.pass(60 * time.Second)
	// The lease of a has run out. Nobody has needed its state so far, so it could still come
	// back.
	b.must(ok, b.do(putroot, deny))
	a.must(nfs4.NFS4ERR_BADSESSION, a.do(putfh(h), read(sid, 0, 1)))
	r.clock.pass(2 * time.Minute)
	r.s.Reap()
	if n := r.s.State(); n != (state.Counts{}) {
		t.Errorf("left: %+v", n)
	}
	b.must(nfs4.NFS4ERR_BADSESSION, b.do())
}

func TestLimits(t *testing.T) {
	r := newRig(t, Options{Limits: state.Limits{Clients: 8, Sessions: 2, Opens: 3, Owners: 3, Ranges: 4}})
	s := r.mount("a", 1, 0)
	// Names that are never confirmed displace only one another.
	for i := range 20 {
		r.must(ok, r.do(0, 1, exchangeID(fmt.Sprint("x", i), 1, 0)))
	}
	s.must(ok, s.do())
	if n := r.s.State().Clients; n != 4 {
		t.Errorf("%d clients", n)
	}
	s.must(ok, r.do(0, 1, createSession(s.clientid, 2)))
	s.must(nfs4.NFS4ERR_NOSPC, r.do(0, 1, createSession(s.clientid, 3)))
	for i := range 3 {
		s.create("o", fmt.Sprint(i), 3, 0)
	}
	s.must(nfs4.NFS4ERR_DELAY, s.do(putroot, o(nfs4.OP_OPEN, openArgs("o", "4", 3, 0, createHow(nfs4.UNCHECKED4)))))
	for i := range 10 {
		// Owners without open files are dropped when there are too many.
		s.do(putroot, o(nfs4.OP_OPEN, openArgs(fmt.Sprint("owner", i), "none", 3, 0, nfs4.Openflag4{})))
	}
	if n := r.s.State(); n.Owners > 3 || n.Opens != 3 {
		t.Errorf("%+v", n)
	}
	// More operations than any session allows.
	many := nfs4.CompoundArgs{Minorversion: 1}
	for range 100 {
		many.Ops = append(many.Ops, putroot)
	}
	r.must(nfs4.NFS4ERR_TOO_MANY_OPS, r.result(r.raw(0, many.Append(nil))))
	many.Minorversion = 0
	r.must(nfs4.NFS4ERR_RESOURCE, r.result(r.raw(0, many.Append(nil))))
}

// Slots share the memory for replies.
func TestCacheBytes(t *testing.T) {
	r := newRig(t, Options{Limits: state.Limits{CacheBytes: 40 << 10, Sessions: 100}})
	id := body[nfs4.EXCHANGE_ID4res](t, r.must(ok, r.do(0, 1, exchangeID("c", 1, 0)))).EirResok4
	n, refused := uint32(0), false
	for seq := uint32(1); seq < 50 && !refused; seq++ {
		res := r.do(0, 1, createSession(id.EirClientid, seq))
		if refused = res.Status == nfs4.NFS4ERR_DELAY; !refused {
			n += body[nfs4.CREATE_SESSION4res](t, r.must(ok, res)).CsrResok4.CsrForeChanAttrs.CaMaxrequests
		}
	}
	if !refused || n < 2 || n > 10 {
		t.Errorf("%d slots, refused %v", n, refused)
	}
}

func TestTestStateid(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("a", 2, 0)
	h, sid := s.create("o", "f", 3, 0)
	old, ahead, current := sid, sid, sid
	s.create("o", "f", 1, 0)
	ahead.Seqid += 5
	current.Seqid = 0
	sid.Seqid++
	test := &nfs4.TEST_STATEID4args{TsStateids: []nfs4.Stateid4{sid, old, ahead, current, {}, {Seqid: 1}, {Other: [12]byte{1}}}}
	res := body[nfs4.TEST_STATEID4res](t, s.must(ok, s.do(o(nfs4.OP_TEST_STATEID, test))))
	want := []status{ok, nfs4.NFS4ERR_OLD_STATEID, nfs4.NFS4ERR_BAD_STATEID, ok, nfs4.NFS4ERR_BAD_STATEID, nfs4.NFS4ERR_BAD_STATEID, nfs4.NFS4ERR_BAD_STATEID}
	if fmt.Sprint(res.TsrResok4.TsrStatusCodes) != fmt.Sprint(want) {
		t.Errorf("%v", res.TsrResok4.TsrStatusCodes)
	}
	s.must(nfs4.NFS4ERR_LOCKS_HELD, s.do(o(nfs4.OP_FREE_STATEID, &nfs4.FREE_STATEID4args{FsaStateid: sid})))
	// Another client cannot use it.
	other := r.mount("b", 2, 0)
	other.must(nfs4.NFS4ERR_BAD_STATEID, other.do(putfh(h), read(sid, 0, 1)))
	// The current stateid.
	cur := state.Current
	res2 := s.must(ok, s.do(putroot, o(nfs4.OP_OPEN, openArgs("o", "g", 3, 0, createHow(nfs4.UNCHECKED4))),
		write(cur, 0, "abc"), savefh, putroot, restore, read(cur, 0, 10), closeOp(cur)))
	if d := body[nfs4.READ4res](t, res2).Resok4.Data.Inline; string(d) != "abc" {
		t.Errorf("%q", d)
	}
	s.must(nfs4.NFS4ERR_BAD_STATEID, s.do(putfh(h), read(cur, 0, 10)))
	s.must(nfs4.NFS4ERR_BAD_STATEID, s.do(putfh(h), o(nfs4.OP_OPEN, func() xdr.Message {
		a := openArgs("o", "", 1, 0, nfs4.Openflag4{})
		a.Claim.Claim = nfs4.CLAIM_FH
		return a
	}()), putfh(h), read(cur, 0, 10)))
}
