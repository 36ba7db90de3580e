package ops

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// Use is what an operation of NFSv4 does with the state id among its arguments.
type Use uint8

// Uses.
const (
	// NoUse: it has no state id.
	NoUse Use = iota
	// Accesses: it reads or changes a file. The anonymous state id serves as well (RFC
	// 8881, section 8.2.3).
	Accesses
	// Needs: it depends on the state for something else: a lock, a layout, a copy.
	Needs
	// Confirms: it confirms the state (NFSv4.0).
	Confirms
	// Narrows: it reduces the state: less access, fewer bytes.
	Narrows
	// Closes, Returns and Frees end the state: an open, a delegation, any state.
	Closes
	Returns
	Frees
	// Asks: it only asks about the state.
	Asks
)

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
