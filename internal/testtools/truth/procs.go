package truth

import (
	"strings"

	"github.com/rpcrdma/toolkit/analyze/kernel/nfsproc"
)

// compoundMatches reports whether ops can be the COMPOUND of the client's procedure.
func compoundMatches(procedure string, minor uint32, ops []Operation) bool {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = op.Op
	}
	failed := len(ops) > 0 && ops[len(ops)-1].Status != "NFS4_OK" && ops[len(ops)-1].Status != ""
	return nfsproc.Matches(procedure, minor, names, failed)
}

// procedureNames are the names that RFC 1813, RFC 1833, the NLM and the NSM
// give to what the Linux client calls otherwise.
var procedureNames = map[string][]string{
	"mount MOUNT":   {"MNT"},
	"mount UMOUNT":  {"UMNT"},
	"nsm MONITOR":   {"MON"},
	"nsm UNMONITOR": {"UNMON"},
}

// sameProcedure compares names, allowing for the prefixes that some RFCs put
// before them: NLMPROC4_LOCK, SM_MON, PMAPPROC_GETPORT.
func sameProcedure(program, want, got string) bool {
	names := append([]string{want}, procedureNames[program+" "+want]...)
	for _, n := range names {
		if got == n {
			return true
		}
		if program != "nfs" && program != "nfsacl" && strings.HasSuffix(got, "_"+n) {
			return true
		}
	}
	return false
}

// sameProgram compares names of programs. Version 2 of rpcbind is the port
// mapper.
func sameProgram(want, got string) bool {
	return want == got || want == "rpcbind" && got == "portmap"
}
