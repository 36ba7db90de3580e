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
// that say more than that they succeeded.
func (b *Brief) take4(tx *transaction.Transaction, a *act, done bool) bool {
	x, p := &b.trail, ops.Place{File: ops.Current}
	switch a.form {
	case named:
		p.Named = true
		p.Name, _ = opaque3(tx.Call.Payload, b.messages.outline.args.At(a.index))
		x.takeCurrent(&p)
	case ranged:
		x.takeCurrent(&p)
		b.extent(tx, a, done, x.file)
	default:
		return false
	}
	return true
}

// extent reads the range of COMMIT, READ or WRITE, and what the results of the latter two say of it.
func (b *Brief) extent(tx *transaction.Transaction, a *act, done bool, f *File) {
	o, args := b.messages.outline, tx.Call.Payload
	at := o.args.At(a.index)
	switch a.number {
	case nfs4.OP_COMMIT:
		f.span(binary.BigEndian.Uint64(args[at:]), uint64(word3(args, at+8)))
	case nfs4.OP_READ:
		f.span(binary.BigEndian.Uint64(args[at+stateid4:]), uint64(word3(args, at+stateid4+8)))
		if done {
			results, from := tx.Reply.Payload, o.results.At(a.index)+4 // behind the status
			f.HasMoved, f.Moved, f.EOF = true, uint64(word3(results, from+4)), word3(results, from) != 0
		}
	case nfs4.OP_WRITE:
		f.span(binary.BigEndian.Uint64(args[at+stateid4:]), uint64(word3(args, at+stateid4+12)))
		if s := nfs4.StableHow4(word3(args, at+stateid4+8)).Symbol(); s != "" {
			f.Stable = s
		}
		if done {
			f.HasMoved, f.Moved, f.EOF = true, uint64(word3(tx.Reply.Payload, o.results.At(a.index)+4)), false
		}
	}
}
