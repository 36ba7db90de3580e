package rpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Learn is what View.Set and View.Learn do, for consumers that want nothing else of most transactions. It returns false, and has learned
// nothing, if Set does so, or if more of the transaction has to be decoded to learn from it.
func (b *Brief) Learn(tx *transaction.Transaction, n *Names) bool {
	return b.Set(tx) && (n == nil || b.learn(tx, n))
}

// learn learns from the transaction that Set has accepted. It returns false, and has learned nothing, if more of it has to be decoded.
func (b *Brief) learn(tx *transaction.Transaction, n *Names) bool {
	m := b.messages
	switch {
	case m.compound:
		return !m.outline.tells()
	case !m.teaches || b.Failed:
		return true
	case tx.Program != nfs3.NFS_PROGRAM || tx.Version != nfs3.NFS_V3 || mayReduce(&tx.Call) || mayReduce(&tx.Reply):
		return false
	}
	return b.learn3(tx, n)
}

// learn3 learns from a call of NFSv3 that was executed. It returns false, and has learned nothing, if it is none of those that name one
// file.
func (b *Brief) learn3(tx *transaction.Transaction, n *Names) bool {
	args, at := tx.Call.Payload, b.argsAt
	result, given := tx.Reply.Payload, b.resultAt+4 // behind the status
	switch tx.Procedure {
	case nfs3.NFSPROC3_LOOKUP:
		dir, at := opaque3(args, at)
		name, _ := opaque3(args, at)
		child, _ := opaque3(result, given)
		n.learn(dir, child, name)
	case nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK, nfs3.NFSPROC3_MKNOD:
		if binary.BigEndian.Uint32(result[given:]) == 0 { // no handle follows
			return true
		}
		dir, at := opaque3(args, at)
		name, _ := opaque3(args, at)
		child, _ := opaque3(result, given+4)
		n.learn(dir, child, name)
	case nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR:
		dir, at := opaque3(args, at)
		name, _ := opaque3(args, at)
		n.remove(dir, name)
	case nfs3.NFSPROC3_RENAME:
		fromDir, at := opaque3(args, at)
		from, at := opaque3(args, at)
		toDir, at := opaque3(args, at)
		to, _ := opaque3(args, at)
		n.rename(fromDir, from, toDir, to)
	default:
		return false
	}
	return true
}
