package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestSelf: a reply has to fit its call and earlier replies.
func TestSelf(t *testing.T) {
	write := func(how nfs3.StableHow, verf byte) *nfs3.WRITE3res {
		return &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Committed: how, Verf: [8]byte{verf}}}
	}
	commit := func(verf byte) *nfs3.COMMIT3res {
		return &nfs3.COMMIT3res{Resok: nfs3.COMMIT3resok{Verf: [8]byte{verf}}}
	}
	check := func(h *history, want verdict.Code, object int, args *nfs3.WRITE3args, res any) {
		t.Helper()
		var v verdict.Judgement
		switch m := res.(type) {
		case *nfs3.WRITE3res:
			h.self(&v, object, args, m)
		case *nfs3.COMMIT3res:
			h.self(&v, object, nil, m)
		}
		if want == verdict.None && len(v.Reasons) > 0 || want != verdict.None && (len(v.Reasons) != 1 || v.Reasons[0].Code != want) {
			t.Errorf("%+v, want %s", v.Reasons, want)
		}
	}
	h := New(&workload.Workload{}, Options{}).history(0)
	check(h, verdict.None, 1, &nfs3.WRITE3args{Stable: nfs3.UNSTABLE}, write(nfs3.FILE_SYNC, 1))
	check(h, verdict.None, 1, &nfs3.WRITE3args{Stable: nfs3.FILE_SYNC}, write(nfs3.FILE_SYNC, 1))
	check(h, verdict.NotStable, 1, &nfs3.WRITE3args{Stable: nfs3.FILE_SYNC}, write(nfs3.UNSTABLE, 1))
	check(h, verdict.NotStable, 1, &nfs3.WRITE3args{Stable: nfs3.FILE_SYNC}, write(nfs3.DATA_SYNC, 1))
	check(h, verdict.None, 1, nil, commit(1))
	check(h, verdict.None, 1, nil, commit(2)) // nothing was written in between
	check(h, verdict.None, 1, &nfs3.WRITE3args{}, write(nfs3.UNSTABLE, 2))
	check(h, verdict.None, 2, nil, commit(3)) // another file
	check(h, verdict.VerifierChanged, 1, nil, commit(3))
}
