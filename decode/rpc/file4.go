package rpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// stateid4 is the size of a state id (RFC 8881, section 3.3.12).
const stateid4 = 16

// take4 is follower.take for operations of a COMPOUND that most are: it reads what File needs of them where it stands. done says
// that the results are there, and report success. It returns false for all others, which have to be decoded. Only READ and WRITE have results
// that say more than that they succeeded. No callback with one of these numbers is about a file.
func (b *Brief) take4(tx *transaction.Transaction, a *act, done bool) bool {
	x, o := &b.trail, b.messages.outline
	f, args, at := x.file, tx.Call.Payload, o.args.At(a.index)
	switch a.number {
	case nfs4.OP_LOOKUP, nfs4.OP_REMOVE:
		name, _ := opaque3(args, at)
		x.takeCurrent(&ops.Place{File: ops.Current, Named: true, Name: name})
	case nfs4.OP_COMMIT:
		x.takeCurrent(&ops.Place{File: ops.Current})
		f.span(binary.BigEndian.Uint64(args[at:]), uint64(word3(args, at+8)))
	case nfs4.OP_READ:
		x.takeCurrent(&ops.Place{File: ops.Current})
		f.span(binary.BigEndian.Uint64(args[at+stateid4:]), uint64(word3(args, at+stateid4+8)))
		if done {
			results, from := tx.Reply.Payload, o.results.At(a.index)+4 // behind the status
			f.HasMoved, f.Moved, f.EOF = true, uint64(word3(results, from+4)), word3(results, from) != 0
		}
	case nfs4.OP_WRITE:
		x.takeCurrent(&ops.Place{File: ops.Current})
		f.span(binary.BigEndian.Uint64(args[at+stateid4:]), uint64(word3(args, at+stateid4+12)))
		if s := nfs4.StableHow4(word3(args, at+stateid4+8)).Symbol(); s != "" {
			f.Stable = s
		}
		if done {
			f.HasMoved, f.Moved, f.EOF = true, uint64(word3(tx.Reply.Payload, o.results.At(a.index)+4)), false
		}
	default:
		return false
	}
	return true
}
