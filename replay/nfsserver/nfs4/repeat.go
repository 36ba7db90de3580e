package nfs4

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// mustBeOnce reports whether a COMPOUND of NFSv4.0 does something that must not
// be done again when the client repeats the call after it has lost its
// connection, and has no seqid to detect that (RFC 7530, section 16.1 leaves that to the server's
// duplicate request cache). Since NFSv4.1 slots detect it. The list comes from Linux,
// DELEGRETURN, and OPENs that create: the owner of the first OPEN is not confirmed, so that its
// seqid says nothing yet (section 16.18.5).
func mustBeOnce(ops []nfs4.Op) bool {
	for i := range ops {
		switch nfs4.NfsOpnum4(ops[i].Number) {
		case nfs4.OP_CREATE, nfs4.OP_LINK, nfs4.OP_REMOVE, nfs4.OP_RENAME, nfs4.OP_SETATTR,
			nfs4.OP_SETCLIENTID, nfs4.OP_SETCLIENTID_CONFIRM, nfs4.OP_DELEGRETURN:
			return true
		case nfs4.OP_OPEN:
			if a, ok := ops[i].Body.(*nfs4.OPEN4args); ok && a.Openhow.Opentype == nfs4.OPEN4_CREATE {
				return true
			}
		}
	}
	return false
}
