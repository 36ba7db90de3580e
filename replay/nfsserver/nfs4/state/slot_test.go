package state

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

func TestSlot(t *testing.T) {
	tb := New(Options{})
	defer tb.Close()
	c := confirmed(t, tb, "c")
	var s *Session
	for _, s = range tb.Sessions.byID {
	}
	print := Fingerprint{Ops: 2}
	seq := func(n uint32, want Status, repeat Repeat) *Place {
		t.Helper()
		p := &Place{}
		out, got, st := tb.Sessions.Sequence(&nfs4.SEQUENCE4args{SaSessionid: s.id, SaSequenceid: n}, print, 100, p, nil)
		if st != want || got != repeat {
			t.Fatalf("%d: %v %s, want %v %s", n, got, st, repeat, want)
		}
		if repeat == Cached && string(out) != "reply" {
			t.Errorf("%q", out)
		}
		return p
	}
	p := seq(1, nfs4.NFS4_OK, First)
	seq(1, nfs4.NFS4ERR_DELAY, First)          // sent again while it is executed
	seq(2, nfs4.NFS4ERR_SEQ_MISORDERED, First) // the slot is not free
	if tb.leases.expired(c, tb.leases.now().Add(1<<62)) {
		t.Error("the lease runs out during a COMPOUND")
	}
	p.End([]byte("reply"))
	seq(1, nfs4.NFS4_OK, Cached)
	seq(1, nfs4.NFS4_OK, Cached)
	p = seq(2, nfs4.NFS4_OK, First)
	p.End(nil)
	if p := seq(2, nfs4.NFS4_OK, Uncached); p.Result.SrSequenceid != 2 {
		t.Errorf("%+v", p.Result)
	}
	seq(1, nfs4.NFS4ERR_SEQ_MISORDERED, First)
	// Sequence IDs wrap around to 0.
	s.slots[0].seq = 0xffffffff
	seq(0xffffffff, nfs4.NFS4_OK, Uncached)
	p = seq(0, nfs4.NFS4_OK, First)
	p.End([]byte("reply"))
	seq(0, nfs4.NFS4_OK, Cached)
	seq(1, nfs4.NFS4_OK, First).End(make([]byte, 1<<20)) // more than the slot may keep
	seq(1, nfs4.NFS4_OK, Uncached)
	if n := cap(s.slots[0].reply); n > 1<<13 {
		t.Errorf("%d bytes kept", n)
	}
}

func TestStateidWrap(t *testing.T) {
	s := &state{client: &Client{minor: true}, seq: 0xffffffff}
	if got := s.bump(); got.Seqid != 1 {
		t.Errorf("seqid %d after the highest", got.Seqid)
	}
	for seqid, want := range map[uint32]Status{0: nfs4.NFS4_OK, 1: nfs4.NFS4_OK, 2: nfs4.NFS4ERR_BAD_STATEID, 0xfffffff0: nfs4.NFS4ERR_OLD_STATEID} {
		if st := s.current(seqid); st != want {
			t.Errorf("%d: %s, want %s", seqid, st, want)
		}
	}
}
