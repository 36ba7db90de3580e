package rpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Learn is what View.Set and View.Learn do, for consumers that want nothing else of most transactions. It returns false, and has learned
// nothing, if Set does so, or if more of the transaction has to be decoded to learn from it.
func (b *Brief) Learn(tx *transaction.Transaction, n *Names) bool {
	if !b.Set(tx) {
		return false
	}
	m := b.messages
	switch {
	case m.compound:
		return !m.outline.tells()
	case !m.teaches || b.Failed || n == nil:
		return true
	case tx.Program != nfs3.NFS_PROGRAM || tx.Version != nfs3.NFS_V3 || mayReduce(&tx.Call) || mayReduce(&tx.Reply):
		return false
	}
	return b.learn3(tx, n)
}

// learn3 learns from a call of NFSv3 that was executed. It returns false, and has learned nothing, if it is none of those that name one
// file.
func (b *Brief) learn3(tx *transaction.Transaction, n *Names) bool {
	args := tx.Call.Payload[b.argsAt:]
	result := tx.Reply.Payload[b.resultAt:]
	switch tx.Procedure {
	case nfs3.NFSPROC3_LOOKUP:
		dir, args := opaque3(args)
		name, _ := opaque3(args)
		child, _ := opaque3(result[4:])
		n.learn(dir, child, name)
	case nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK, nfs3.NFSPROC3_MKNOD:
		if binary.BigEndian.Uint32(result[4:]) == 0 { // no handle follows
			return true
		}
		dir, args := opaque3(args)
		name, _ := opaque3(args)
		child, _ := opaque3(result[8:])
		n.learn(dir, child, name)
	case nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR:
		dir, args := opaque3(args)
		name, _ := opaque3(args)
		n.remove(dir, name)
	case nfs3.NFSPROC3_RENAME:
		fromDir, args := opaque3(args)
		from, args := opaque3(args)
		toDir, args := opaque3(args)
		to, _ := opaque3(args)
		n.rename(fromDir, from, toDir, to)
	default:
		return false
	}
	return true
}

// opaque3 returns the opaque that b, which Set has passed over without an error, begins with, and what follows it.
func opaque3(b []byte) (v, rest []byte) {
	n := uint(binary.BigEndian.Uint32(b))
	return b[4 : 4+n : 4+n], b[4+(n+3)&^3:]
}
