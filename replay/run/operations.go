package run

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// lastName is the name of the last operation of a COMPOUND, or of a procedure of NLM.
func lastName(o *plan.Op) string {
	if p := workload.Codec(o); isLock(o) && p != nil {
		return p.Name
	}
	if o.Compound == nil || len(o.Compound.Ops) == 0 {
		return "?"
	}
	return nfs4.OpName(o.Compound.Ops[len(o.Compound.Ops)-1].Op)
}

// like is an op that is not in the plan, with the user and connection of another one.
func like(o *plan.Op, minor uint32, ops []plan.CompoundOp, binds ...plan.Bind) *plan.Op {
	return &plan.Op{Connection: o.Connection, Credential: o.Credential, Program: o.Program, Version: o.Version, Procedure: o.Procedure,
		Compound: &plan.Compound{Minor: minor, Ops: ops}, Binds: binds}
}

// sequence is the SEQUENCE of a call that is not in the plan.
func sequence(session int) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(nfs4.OP_SEQUENCE), Args: []plan.Field{
		{N: "sa_sessionid", Kind: plan.FieldSession, Ref: session},
		{N: "sa_sequenceid", Kind: plan.FieldSequence, Ref: session},
		{N: "sa_slotid", Kind: plan.FieldSlot, Ref: session},
		{N: "sa_highest_slotid", Kind: plan.FieldHighest, Ref: session},
		{N: "sa_cachethis", Kind: plan.FieldU32},
	}}
}

// openConfirm confirms the open of a state.
func openConfirm(s *plan.State, ref int) []plan.CompoundOp {
	return []plan.CompoundOp{
		{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldHandle, Ref: s.Object}}},
		{Op: uint32(nfs4.OP_OPEN_CONFIRM), Args: []plan.Field{{N: "open_stateid", Kind: plan.FieldState, Ref: ref}, {N: "seqid", Kind: plan.FieldSeqid, Ref: s.Owner}}},
	}
}

func rawState(name string, s *nfs4.Stateid4) plan.Field {
	return plan.Field{N: name, Kind: plan.FieldRaw, Bytes: append(xdr.AppendUint32(nil, s.Seqid), s.Other[:]...)}
}

// put makes an object of the plan the current one.
func put(object int) plan.CompoundOp {
	return plan.CompoundOp{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{N: "object", Kind: plan.FieldHandle, Ref: object}}}
}

func u32(n string, v uint32) plan.Field {
	return plan.Field{N: n, Kind: plan.FieldU32, Value: uint64(v)}
}
