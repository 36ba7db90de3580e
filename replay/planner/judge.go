package planner

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Reasons why nothing is known of what a call did.
const (
	notCaptured = "its call was not captured"
	noHeader    = "the header of the call could not be read"
)

// unfit says why a transaction cannot be replayed, as far as it tells that by itself.
func unfit(v *rpc.View) (plan.Class, string) {
	tx := v.Tx
	switch {
	case callsBack(tx) && tx.Call.Seen() && v.CallErr == nil:
		return unfitLock(v)
	case tx.Backward || tx.Named && v.Program != nil && v.Program.Name == "nfs_cb":
		return plan.Exact, "a callback: the server's call to its client"
	case !tx.Call.Seen():
		return plan.Impossible, notCaptured
	case v.CallErr != nil:
		return plan.Impossible, noHeader
	case !tx.Named:
		return plan.Impossible, "the program of the call is not known"
	}
	if v.Call().Protection().Kind() == oncrpc.BodyInit || v.Call().GSS.Proc == oncrpc.GSSDestroy && v.Call().Cred.Flavor == oncrpc.RPCSecGSS {
		return plan.Exact, "set-up and tear-down of an RPCSEC_GSS context"
	}
	if isNLM(tx) {
		return unfitLock(v)
	}
	if tx.Program != nfs4.NFS4_PROGRAM && !acl3(tx) {
		return unfitProgram(v)
	}
	if tx.Version != 3 && tx.Version != 4 {
		return plan.Impossible, "NFS version " + strconv.FormatUint(uint64(tx.Version), 10) + " is not replayed"
	}
	if v.Procedure == nil {
		return plan.Impossible, "an unknown procedure"
	}
	if reason := unreadable(v); reason != "" {
		return plan.Impossible, reason
	}
	return "", ""
}

// mounts is why MOUNT is not replayed.
const mounts = "MOUNT: the executor mounts by itself"

// unfitProgram is unfit for the programs other than NFS.
func unfitProgram(v *rpc.View) (plan.Class, string) {
	name := v.ProgramName()
	switch name {
	case "mount":
		return plan.Exact, mounts
	case "portmap", "rpcbind":
		return plan.Exact, name + ": the executor is told the port"
	case "nfsacl":
		return plan.Exact, "NFSACL version 2, and GETXATTRDIR, are not replayed"
	case "nsm":
		return plan.Exact, "NSM: this run has its own names, and does not restart"
	}
	if v.Program == nil {
		return plan.Impossible, "program " + name + " is not known"
	}
	return plan.Impossible, "program " + name + " is not replayed"
}

// unreadable says why the arguments of a call cannot be used.
func unreadable(v *rpc.View) string {
	tx := v.Tx
	switch v.CallBody().Kind {
	case oncrpc.BodyPrivacy:
		if v.Args() == nil {
			return "its arguments are encrypted (RPCSEC_GSS privacy)"
		}
	case oncrpc.BodyUnknown:
		return "its arguments are protected in an unknown way"
	}
	if a, ok := v.Args().(*nfs4.CompoundArgs); ok && len(a.Ops) > maxOperations {
		return "a COMPOUND of more than " + strconv.Itoa(maxOperations) + " operations"
	}
	switch {
	case v.Args() != nil && v.ArgsErr == nil:
	case v.Args() != nil && v.ArgsCut && cutInData(v):
	case v.ArgsCut || tx.Call.Cut || tx.State == transaction.Incomplete:
		return plan.ReasonCut
	default:
		return "its arguments are malformed"
	}
	return ""
}

// maxOperations bounds the operations of a COMPOUND, which becomes one line of the plan. Servers
// accept some dozens.
const maxOperations = 1 << 13

// cutInData reports whether the arguments lack only the end of their data, which comes last.
func cutInData(v *rpc.View) bool {
	a, ok := v.Args().(*nfs3.WRITE3args)
	return ok && a.Data.Length > 0 && a.Data.Length == a.Count
}

// unfitLock is unfit for NLM.
func unfitLock(v *rpc.View) (plan.Class, string) {
	tx := v.Tx
	e := ops.Procedure(tx.Program, tx.Version, tx.Procedure)
	switch {
	case v.Procedure == nil || e == nil:
		return plan.Impossible, "an unknown procedure of NLM"
	case callsBack(tx):
	case tx.Procedure >= nlm.NLM_TEST_RES && tx.Procedure <= nlm.NLM_GRANTED_RES:
		return plan.Exact, "NLM " + procedure(v) + ": the answer to an asynchronous call, which is replayed as one with a reply"
	case asynchronous(tx):
	case e.Class == ops.Never:
		return plan.Exact, "NLM " + procedure(v) + " is not replayed"
	}
	if reason := unreadable(v); reason != "" {
		return plan.Impossible, reason
	}
	return "", ""
}

// asynchronous reports a call of a client whose answer comes as a call of the server: TEST_MSG to
// UNLOCK_MSG. It is replayed in the form that has a reply.
func asynchronous(tx *transaction.Transaction) bool {
	return isNLM(tx) && tx.Procedure >= nlm.NLM_TEST_MSG && tx.Procedure <= nlm.NLM_UNLOCK_MSG
}

// callsBack reports a GRANTED, in either of its forms.
func callsBack(tx *transaction.Transaction) bool {
	return isNLM(tx) && (tx.Procedure == nlm.NLM_GRANTED || tx.Procedure == nlm.NLM_GRANTED_MSG)
}
