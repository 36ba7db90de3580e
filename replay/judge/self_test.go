package judge

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
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

// TestSeek: a hole has no data, and what is found is not before the offset.
func TestSeek(t *testing.T) {
	result := func(offset uint64, eof bool) *nfs4.CompoundRes {
		m := &nfs4.SEEK4res{}
		m.Resok4.SrOffset, m.Resok4.SrEof = offset, eof
		r := &nfs4.CompoundRes{}
		r.Ops = append(r.Ops, nfs4.Op{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.Status4res{}}, nfs4.Op{Number: uint32(nfs4.OP_SEEK), Body: m})
		return r
	}
	for name, c := range map[string]struct {
		what   nfs4.DataContent4
		offset uint64
		found  uint64
		code   verdict.Code
	}{
		"as captured":          {nfs4.NFS4_CONTENT_DATA, 100, 8192, verdict.None},
		"data sooner":          {nfs4.NFS4_CONTENT_DATA, 100, 4096, verdict.Holes},
		"data passed over":     {nfs4.NFS4_CONTENT_DATA, 0, 4096, verdict.WrittenLost},
		"a hole later":         {nfs4.NFS4_CONTENT_HOLE, 0, 12288, verdict.Holes},
		"a hole where data is": {nfs4.NFS4_CONTENT_HOLE, 0, 8, verdict.WrittenLost},
		"back":                 {nfs4.NFS4_CONTENT_DATA, 100, 50, verdict.SeeksBack},
	} {
		raw := func(b []byte) plan.Field { return plan.Field{Kind: plan.FieldRaw, Bytes: b} }
		args := nfs4.SEEK4args{SaOffset: c.offset, SaWhat: c.what}
		b := args.Append(nil)
		op := &plan.Op{ID: 1, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1, Compound: &plan.Compound{Minor: 2, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}, {Op: uint32(nfs4.OP_SEEK), Args: []plan.Field{raw(b)}}}},
			Expect: &plan.Expect{Ops: []uint32{0, 0}, Results: result(8192, false).Append(nil)}}
		load := &workload.Workload{Ops: []*plan.Op{op}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "file", Origin: plan.Before}}
		j := New(load, Options{Follow: true})
		j.Expected(0).Prepared(1, expected.Prepared{Size: 64, Filled: 64, New: true})
		var sent workload.Arguments
		v := j.Judge(&Reply{Op: op, Args: sent.Of(op), Result: result(c.found, false), Data: inline{}})
		if c.code == verdict.None && len(v.Reasons) > 0 || c.code != verdict.None && !slices.ContainsFunc(v.Reasons, func(r verdict.Reason) bool { return r.Code == c.code }) {
			t.Errorf("%s: %+v, want %s", name, v, c.code)
		}
	}
}
