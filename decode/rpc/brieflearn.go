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
		dir, at := opaqueAt(args, at)
		name, _ := opaqueAt(args, at)
		child, _ := opaqueAt(result, given)
		n.learn(dir, child, name)
	case nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK, nfs3.NFSPROC3_MKNOD:
		if binary.BigEndian.Uint32(result[given:]) == 0 { // no handle follows
			return true
		}
		dir, at := opaqueAt(args, at)
		name, _ := opaqueAt(args, at)
		child, _ := opaqueAt(result, given+4)
		n.learn(dir, child, name)
	case nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR:
		dir, at := opaqueAt(args, at)
		name, _ := opaqueAt(args, at)
		n.remove(dir, name)
	case nfs3.NFSPROC3_RENAME:
		fromDir, at := opaqueAt(args, at)
		from, at := opaqueAt(args, at)
		toDir, at := opaqueAt(args, at)
		to, _ := opaqueAt(args, at)
		n.rename(fromDir, from, toDir, to)
	default:
		return false
	}
	return true
}

// opaqueAt returns the opaque at a place of a message that Set has passed over without an error, and where it ends, with its padding.
func opaqueAt(b []byte, at int) (v []byte, end int) {
	n := int(binary.BigEndian.Uint32(b[at:]))
	at += 4
	return b[at : at+n], at + (n+3)&^3
}
