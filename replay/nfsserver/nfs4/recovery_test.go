package nfs4

import (
	"errors"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
)

// ledger is stable storage in memory.
type ledger struct {
	ids  map[state.Identity]bool
	fail error
}

func (l *ledger) Add(id *state.Identity) error {
	if l.fail == nil {
		l.ids[*id] = true
	}
	return l.fail
}

func (l *ledger) Remove(id *state.Identity) { delete(l.ids, *id) }

func (l *ledger) options() Options {
	o := Options{Stable: l}
	for id := range l.ids {
		o.Recovered = append(o.Recovered, id)
	}
	return o
}

// pending is mount without RECLAIM_COMPLETE.
func (r *rig) pending(name string) *session {
	r.Helper()
	s := &session{rig: r, minor: 1, seqs: map[uint32]uint32{}}
	id := body[nfs4.EXCHANGE_ID4res](r, r.must(ok, r.do(0, 1, exchangeID(name, 1, 0)))).EirResok4
	s.id = body[nfs4.CREATE_SESSION4res](r, r.must(ok, r.do(0, 1, createSession(id.EirClientid, id.EirSequenceid)))).CsrResok4.CsrSessionid
	return s
}

func reclaim(fh []byte, delegation nfs4.OpenDelegationType4) []nfs4.Op {
	a := openArgs("owner", "", forRead, 0, nfs4.Openflag4{})
	a.Claim.Claim, a.Claim.DelegateType = nfs4.CLAIM_PREVIOUS, delegation
	return []nfs4.Op{putfh(fh), o(nfs4.OP_OPEN, a)}
}

// Clients that had state may reclaim it. Others may not, nor may those that have lost it since:
// with their lease, or by not coming back after an earlier restart (RFC 7530, section 9.6.3.4.2).
func TestRecovery(t *testing.T) {
	l := &ledger{ids: map[state.Identity]bool{}}
	r := newRig(t, l.options())
	restart := func() {
		r.shut()
		r.boot(l.options())
	}
	fh := r.file("f")
	complete := o(nfs4.OP_RECLAIM_COMPLETE, &nfs4.RECLAIM_COMPLETE4args{})
	opens := []nfs4.Op{putroot, o(nfs4.OP_OPEN, openArgs("owner", "f", forRead, 0, nfs4.Openflag4{}))}
	a, b, c := r.mount("a", 1, 0), r.mount("b", 1, 0), r.mount("c", 1, 0)
	for _, s := range []*session{a, b} {
		s.must(ok, s.do(opens...))
	}
	if len(l.ids) != 2 {
		t.Errorf("%v", l.ids)
	}
	l.fail = errors.New("no space")
	c.must(nfs4.NFS4ERR_SERVERFAULT, c.do(opens...))
	l.fail = nil

	restart() // a and b had state, c had none
	r.back = &answering{}
	a, c = r.pending("a"), r.pending("c")
	r.settle()
	d := r.pending("d")
	d.must(ok, d.do(complete))
	d.must(nfs4.NFS4ERR_GRACE, d.do(opens...))
	c.must(nfs4.NFS4ERR_RECLAIM_BAD, c.do(reclaim(fh, nfs4.OPEN_DELEGATE_NONE)...))
	res := a.must(ok, a.do(reclaim(fh, nfs4.OPEN_DELEGATE_READ)...))
	if got := body[nfs4.OPEN4res](a, res).Resok4.Delegation; got.DelegationType != nfs4.OPEN_DELEGATE_READ || got.Read.Recall {
		t.Errorf("the delegation was not reclaimed: %+v", got)
	}
	a.must(ok, a.do(complete))
	a.must(nfs4.NFS4ERR_NO_GRACE, a.do(reclaim(fh, nfs4.OPEN_DELEGATE_NONE)...))
	d.must(nfs4.NFS4ERR_GRACE, d.do(opens...)) // b may still come
	for range 2 {
		r.clock.pass(50 * time.Second)
		a.must(ok, a.do())
		d.must(ok, d.do())
	}
	d.must(ok, d.do(opens...))

	restart() // b did not come: it cannot now
	a, b, d = r.pending("a"), r.pending("b"), r.pending("d")
	b.must(nfs4.NFS4ERR_RECLAIM_BAD, b.do(reclaim(fh, nfs4.OPEN_DELEGATE_NONE)...))
	a.must(ok, a.do(reclaim(fh, nfs4.OPEN_DELEGATE_NONE)...))
	d.must(ok, d.do(reclaim(fh, nfs4.OPEN_DELEGATE_NONE)...))
	a.must(ok, a.do(complete))
	b.must(ok, b.do(complete))
	b.must(nfs4.NFS4ERR_GRACE, b.do(opens...))
	d.must(ok, d.do(complete))
	b.must(ok, b.do(opens...)) // all have come: the period ends early

	// The lease of a runs out.
	r.clock.pass(60 * time.Second)
	d.must(ok, d.do())
	b.must(ok, b.do())
	r.clock.pass(60 * time.Second)
	r.s.Reap()
	restart()
	a, d = r.pending("a"), r.pending("d")
	a.must(nfs4.NFS4ERR_RECLAIM_BAD, a.do(reclaim(fh, nfs4.OPEN_DELEGATE_NONE)...))
	d.must(ok, d.do(reclaim(fh, nfs4.OPEN_DELEGATE_NONE)...))
}

// TestLate: who comes back just before the end of the grace period may still reclaim, for half a
// lease after the last reclaim, but not longer than two leases in all.
func TestLate(t *testing.T) {
	l := &ledger{ids: map[state.Identity]bool{}}
	r := newRig(t, l.options())
	fh := r.file("f")
	for _, name := range []string{"a", "b"} {
		s := r.mount(name, 1, 0)
		s.must(ok, s.do(putroot, o(nfs4.OP_OPEN, openArgs("owner", "f", forRead, 0, nfs4.Openflag4{}))))
	}
	r.shut()
	r.boot(l.options())
	claim := reclaim(fh, nfs4.OPEN_DELEGATE_NONE)
	r.clock.pass(89 * time.Second) // of a lease of 90 s
	a := r.pending("a")
	for range 2 {
		r.clock.pass(40 * time.Second)
		a.must(ok, a.do(claim...))
	}
	other := r.mount("c", 1, 0)
	open := []nfs4.Op{putroot, o(nfs4.OP_OPEN, openArgs("owner", "f", forRead, 0, nfs4.Openflag4{}))}
	other.must(nfs4.NFS4ERR_GRACE, other.do(open...))
	r.clock.pass(12 * time.Second)
	a.must(nfs4.NFS4ERR_NO_GRACE, a.do(claim...))
	other.must(ok, other.do(open...))
}
