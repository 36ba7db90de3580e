package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// unseen explains that a directory from before the start was removed, or replaced, which was not empty in the capture: what was
// in it does not show there, so that nobody could make it. A directory in which this run knows a name must stay.
func unseen(j *Judge, r *Reply, _ *verdict.Judgement) (verdict.Reason, bool) {
	args, full := r.Op.Args, false
	if c := r.Op.Compound; c == nil {
		st := nfs3.Nfsstat3(r.Op.Expect.Status)
		switch {
		case r.Op.Program != nfs3.NFS_PROGRAM || r.Op.Version != nfs3.NFS_V3:
		case r.Op.Procedure == nfs3.NFSPROC3_RMDIR, r.Op.Procedure == nfs3.NFSPROC3_RENAME:
			full = st == nfs3.NFS3ERR_NOTEMPTY || st == nfs3.NFS3ERR_EXIST
		}
	} else if at := len(r.Op.Expect.Ops) - 1; at >= 0 && at < len(c.Ops) {
		st := nfs4.Nfsstat4(r.Op.Expect.Status)
		args = c.Ops[at].Args
		switch nfs4.NfsOpnum4(c.Ops[at].Op) {
		case nfs4.OP_REMOVE, nfs4.OP_RENAME:
			full = st == nfs4.NFS4ERR_NOTEMPTY || st == nfs4.NFS4ERR_EXIST
		}
	}
	if !full {
		return verdict.Reason{}, false
	}
	id := 0 // of the last name, which in RENAME is the one that is replaced
	for i := range args {
		if args[i].Kind == plan.FieldName {
			id = args[i].Ref
		}
	}
	if id == 0 {
		return verdict.Reason{}, false
	}
	o := &j.load.Tables.Objects[id-1]
	if o.Type != "dir" || o.Origin != plan.Before || !j.history(r.Clone).expected.Empty(id) {
		return verdict.Reason{}, false
	}
	return verdict.Reason{Code: verdict.Planned, Detail: "the directory was not empty, and the capture does not show what was in it"}, true
}
