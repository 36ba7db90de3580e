package nfs4

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// mustBeOnce reports whether a COMPOUND of NFSv4.0 does something that must not
// be done again when the client repeats the call after it has lost its
// connection, and has no seqid to tell (RFC 7530, section 16.1 leaves that to
// the server's duplicate request cache). Since NFSv4.1 slots do it.
func (x *compound) mustBeOnce() bool {
	for i := range x.args.Ops {
		switch nfs4.NfsOpnum4(x.args.Ops[i].Number) {
		case nfs4.OP_CREATE, nfs4.OP_LINK, nfs4.OP_REMOVE, nfs4.OP_RENAME, nfs4.OP_SETATTR:
			return true
		}
	}
	return false
}
