package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// fact is what the results of a procedure tell of names.
type fact uint8

const (
	various fact = iota // what has to be decoded
	found3              // of NFSv3: a handle was found under a name
	made3               // the same, if a handle follows
	removed3
	renamed3
	listed3 // names and handles of a directory
)

// factOf3 is what a procedure of NFSv3 tells, if it teaches.
func factOf3(procedure uint32) fact {
	switch procedure {
	case nfs3.NFSPROC3_LOOKUP:
		return found3
	case nfs3.NFSPROC3_CREATE, nfs3.NFSPROC3_MKDIR, nfs3.NFSPROC3_SYMLINK, nfs3.NFSPROC3_MKNOD:
		return made3
	case nfs3.NFSPROC3_REMOVE, nfs3.NFSPROC3_RMDIR:
		return removed3
	case nfs3.NFSPROC3_RENAME:
		return renamed3
	case nfs3.NFSPROC3_READDIRPLUS:
		return listed3
	}
	return various
}

// learn learns from the transaction that Set has accepted. It returns false, and has learned nothing, if more of it has to be decoded.
func (b *projection) learn(tx *transaction.Transaction, n *Names) bool {
	m := b.messages
	switch {
	case m.compound:
		if b.kind.tells {
			b.learnCompound(tx, n)
		}
		return true
	case !m.teaches || b.Failed:
		return true
	case m.fact == various:
		return false
	}
	// No item that is read here stands behind one that may be in a chunk.
	args, at := tx.Call.Payload, b.argsAt
	switch m.fact {
	case found3, made3:
		result, given := tx.Reply.Payload, b.resultAt+4 // behind the status
		if m.fact == made3 {
			if word3(result, given) == 0 { // no handle follows
				return true
			}
			given += 4
		}
		child, _ := opaque3(result, given)
		i, sum := n.known.ofHandle(n.server.key(), child)
		if i != 0 && n.known.entries[i].named3(args, at) {
			return true
		}
		dir, at := opaque3(args, at)
		name, _ := opaque3(args, at)
		n.setUnknown(i, sum, child, dir, name)
	case removed3:
		dir, at := opaque3(args, at)
		name, _ := opaque3(args, at)
		n.remove(dir, name)
	case renamed3:
		fromDir, at := opaque3(args, at)
		from, at := opaque3(args, at)
		toDir, at := opaque3(args, at)
		to, _ := opaque3(args, at)
		n.rename(fromDir, from, toDir, to)
	case listed3:
		dir, _ := opaque3(args, at)
		n.list3(dir, tx.Reply.Payload, b.resultAt+4)
	}
	return true
}

// list3 learns from the results of a READDIRPLUS that succeeded, which begin at dir_attributes.
func (n *Names) list3(dir, results []byte, at int) {
	at = optional3(results, at, fattr3) + nfs3.NFS3_COOKIEVERFSIZE
	for word3(results, at) != 0 { // an entry follows
		name, next := opaque3(results, at+4+8)      // behind fileid
		at = optional3(results, next+8, fattr3) + 4 // behind cookie and name_attributes
		if word3(results, at-4) != 0 {
			var child []byte
			child, at = opaque3(results, at)
			n.learn(dir, child, name)
		}
	}
}

// named3 reports whether an entry has the name that arguments of NFSv3 begin with.
func (x *entry) named3(args []byte, at int) bool {
	dir, at := opaque3(args, at)
	if !same(x.dir.handle, dir) {
		return false
	}
	name, _ := opaque3(args, at)
	return string(x.name()) == string(name)
}
