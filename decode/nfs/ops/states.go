package ops

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// EndsState reports whether an operation of NFSv4 ends the state that its state id
// stands for: CLOSE, DELEGRETURN, FREE_STATEID.
func EndsState(number uint32) bool {
	switch nfs4.NfsOpnum4(number) {
	case nfs4.OP_CLOSE, nfs4.OP_DELEGRETURN, nfs4.OP_FREE_STATEID:
		return true
	}
	return false
}

// KeepsSeqid reports whether an operation of NFSv4.0 that failed with this status
// leaves the seqid of its owner where it was (RFC 7530, section 9.1.7).
func KeepsSeqid(s nfs4.Nfsstat4) bool {
	switch s {
	case nfs4.NFS4ERR_STALE_CLIENTID, nfs4.NFS4ERR_STALE_STATEID, nfs4.NFS4ERR_BAD_STATEID, nfs4.NFS4ERR_BAD_SEQID,
		nfs4.NFS4ERR_BADXDR, nfs4.NFS4ERR_RESOURCE, nfs4.NFS4ERR_NOFILEHANDLE, nfs4.NFS4ERR_MOVED:
		return true
	}
	return false
}
