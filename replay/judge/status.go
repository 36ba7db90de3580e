package judge

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// outcome compares whether and how the call was executed, and reports whether there
// are results to compare.
func (j *Judge) outcome(v *verdict.Judgement, r *Reply) bool {
	x := r.Op.Expect
	switch {
	case x == nil:
		v.Worsen(verdict.Equivalent, verdict.Reason{Code: verdict.NotCaptured})
	case x.RPC != "" && r.RPC == "":
		v.Worsen(verdict.Better, verdict.Reason{Code: verdict.RPCExecuted, Was: x.RPC})
	case x.RPC != r.RPC && r.Op.Program == nfsacl.NFS_ACL_PROGRAM && NoProgram(r.RPC):
		v.Worsen(verdict.Explained, verdict.Reason{Code: verdict.NoACL, Now: r.RPC})
	case x.RPC != "" && x.RPC != r.RPC:
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.RPCDiffers, Now: r.RPC, Was: x.RPC})
	case r.RPC != "" && x.RPC == "" && j.refusedBefore(r.Op) != "":
		v.Worsen(verdict.Explained, verdict.Reason{Code: verdict.Unsupported, At: verdict.Place{Path: j.refusedBefore(r.Op)}, Now: r.RPC})
	case r.RPC != "" && x.RPC == "":
		v.Worsen(verdict.Worse, verdict.Reason{Code: verdict.RPCFailed, Now: r.RPC})
	case r.RPC == "":
		return j.status(v, r)
	}
	return false
}

// refusedBefore returns the operation of a call that this server said it lacks, or nothing. Servers need not decode the arguments of
// operations that they lack.
func (j *Judge) refusedBefore(o *plan.Op) string {
	if o.Compound == nil {
		return ""
	}
	for i := range o.Compound.Ops {
		if j.refused[o.Compound.Ops[i].Op] {
			return opName(o, i)
		}
	}
	return ""
}

// NoProgram reports whether a server has said that it does not serve a program, or
// that version or procedure of it.
func NoProgram(rpc string) bool {
	return rpc == oncrpc.ProgUnavail.String() || rpc == oncrpc.ProgMismatch.String() || rpc == oncrpc.ProcUnavail.String()
}

// status compares statuses, and reports whether they are the same.
func (j *Judge) status(v *verdict.Judgement, r *Reply) bool {
	x := r.Op.Expect
	code, symbol := StatusOf(r.Result)
	c, compound := r.Result.(*nfs4.CompoundRes)
	if code == x.Status {
		if compound && len(x.Ops) > 0 && len(c.Ops) != len(x.Ops) && !(x.Partial && len(c.Ops) > len(x.Ops)) {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.OperationCount, N: uint64(len(c.Ops)), M: uint64(len(x.Ops))})
			return false
		}
		return true
	}
	why := verdict.Reason{Now: StatusName(code, symbol), Was: StatusName(x.Status, x.StatusName)}
	if compound && len(c.Ops) > 0 {
		last := len(c.Ops) - 1
		if x.Status != 0 && len(x.Ops) > 0 {
			last = min(last, len(x.Ops)-1)
		}
		why.At.Path = nfs4.OpName(c.Ops[last].Number)
	}
	switch {
	case code == 0 && mustFail(r.Op, x.Status):
		why.Code = verdict.SucceedsWrongly
		if c != nil && len(x.Ops) > 0 {
			why.At.Path = opName(r.Op, len(x.Ops)-1)
		}
		v.Worsen(verdict.Different, why)
	case code == 0:
		why.Code = verdict.Succeeds
		v.Worsen(verdict.Better, why)
	case unsupported(r.Op, c, code):
		if why.Code = verdict.Unsupported; c != nil && len(c.Ops) > 0 {
			at := len(c.Ops) - 1
			why.At.Path = opName(r.Op, at) // a server that does not know it answers ILLEGAL
			if at < len(r.Op.Compound.Ops) {
				j.refused[r.Op.Compound.Ops[at].Op] = true
			}
		}
		v.Worsen(verdict.Explained, why)
	case x.Status == 0:
		why.Code = verdict.Fails
		v.Worsen(verdict.Worse, why)
	default:
		why.Code = verdict.StatusDiffers
		v.Worsen(verdict.Different, why)
	}
	return false
}

// mustFail reports whether a status is a refusal that users and programs rely on: a name that
// does not exist, or already exists, or a missing permission or lock. With the same files and the
// same earlier calls, success is an error.
func mustFail(o *plan.Op, code uint32) bool {
	if o.Program == nlm.NLM_PROG {
		return code == uint32(nlm.NLM4_DENIED) || code == uint32(nlm.NLM4_BLOCKED)
	}
	if o.Compound == nil {
		switch nfs3.Nfsstat3(code) {
		case nfs3.NFS3ERR_NOENT, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_NOTEMPTY, nfs3.NFS3ERR_NOT_SYNC:
			return true
		}
		return false
	}
	switch nfs4.Nfsstat4(code) {
	case nfs4.NFS4ERR_NOENT, nfs4.NFS4ERR_EXIST, nfs4.NFS4ERR_ACCESS, nfs4.NFS4ERR_NOTEMPTY, nfs4.NFS4ERR_DENIED,
		nfs4.NFS4ERR_SHARE_DENIED, nfs4.NFS4ERR_LOCKED, nfs4.NFS4ERR_NOXATTR:
		return true
	}
	return false
}

// opName is the name of an operation of a COMPOUND.
func opName(o *plan.Op, at int) string {
	if o.Compound == nil || at < 0 || at >= len(o.Compound.Ops) {
		return ""
	}
	return nfs4.OpName(o.Compound.Ops[at].Op)
}

// unsupported reports whether a server says that it lacks a feature. c is nil outside of a COMPOUND.
func unsupported(o *plan.Op, c *nfs4.CompoundRes, code uint32) bool {
	if o.Program == nlm.NLM_PROG {
		return false
	}
	if o.Compound == nil || c == nil {
		return code == uint32(nfs3.NFS3ERR_NOTSUPP)
	}
	switch st := nfs4.Nfsstat4(code); st {
	case nfs4.NFS4ERR_NOTSUPP, nfs4.NFS4ERR_ATTRNOTSUPP, nfs4.NFS4ERR_UNION_NOTSUPP, nfs4.NFS4ERR_LAYOUTUNAVAILABLE, nfs4.NFS4ERR_UNKNOWN_LAYOUTTYPE:
		return true
	case nfs4.NFS4ERR_OP_ILLEGAL:
		// Old servers say this of newer operations.
		at := len(c.Ops) - 1
		return at >= 0 && at < len(o.Compound.Ops) && ops.Operation(o.Compound.Ops[at].Op) != nil
	}
	return false
}

// StatusOf is the status of a result; 0 if it has none.
func StatusOf(m xdr.Message) (code uint32, symbol string) {
	if s, ok := m.(xdr.Status); ok {
		return s.StatusCode()
	}
	return 0, ""
}

// StatusName is a status in readable form: its symbol, or its number if it has none.
func StatusName(code uint32, symbol string) string {
	if symbol == "" {
		return "status " + xdr.EnumString(code, "")
	}
	return symbol
}
