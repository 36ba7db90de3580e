package rpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// stateid4 is the size of a state id (RFC 8881, section 3.3.12).
const stateid4 = 16

// form is how the arguments of an operation say what it is about, for operations that most are.
type form uint8

const (
	formless form = iota // they have to be decoded
	bare                 // the current file
	named                // they begin with a name in it
	opens                // OPEN4args
	creates              // CREATE4args
	ranged               // a range of it
)

// formOf is the form of an operation. No callback with one of these numbers is about a file.
func formOf(number nfs4.NfsOpnum4) form {
	switch number {
	case nfs4.OP_SETATTR:
		return bare
	case nfs4.OP_LOOKUP, nfs4.OP_REMOVE:
		return named
	case nfs4.OP_OPEN:
		return opens
	case nfs4.OP_CREATE:
		return creates
	case nfs4.OP_COMMIT, nfs4.OP_READ, nfs4.OP_WRITE:
		return ranged
	}
	return formless
}

// place is what an operation is about, read where it stands. It returns false if the arguments have to be decoded.
func (b *projection) place(call []byte, a *target) (p ops.Place, ok bool) {
	at := b.messages.outline.args.At(a.index)
	switch p.File = ops.Current; a.form {
	case formless:
		return p, false
	case bare, ranged:
		return p, true
	case opens:
		at = nameOfOpen(call, at)
	case creates:
		at = nameOfCreate(call, at)
	}
	if at == hidden {
		return p, false
	}
	if p.Named = at != noName; p.Named {
		p.Name, _ = opaque3(call, at)
	}
	return p, true
}

// What nameOfOpen and nameOfCreate return if they find no name.
const (
	noName = -1
	hidden = -2 // the arguments have to be decoded
)

// nameOfOpen is where the name stands in the arguments of an OPEN, which Skip has accepted. What Linux claims is a name or a file handle (RFC 8881, section
// 18.16.1).
func nameOfOpen(call []byte, at int) int {
	at = behind3(call, at+20) // seqid, share_access, share_deny, owner
	create := word3(call, at) == uint32(nfs4.OPEN4_CREATE)
	if at += 4; create {
		mode := nfs4.Createmode4(word3(call, at))
		at += 4
		if mode == nfs4.EXCLUSIVE4 || mode == nfs4.EXCLUSIVE4_1 {
			at += nfs4.NFS4_VERIFIER_SIZE
		}
		if mode != nfs4.EXCLUSIVE4 { // fattr4
			at = behind3(call, at+4+4*int(word3(call, at)))
		}
	}
	switch nfs4.OpenClaimType4(word3(call, at)) {
	case nfs4.CLAIM_NULL:
		return at + 4
	case nfs4.CLAIM_FH:
		return noName
	}
	return hidden
}

// nameOfCreate is where the name stands in the arguments of a CREATE.
func nameOfCreate(call []byte, at int) int {
	switch nfs4.NfsFtype4(word3(call, at)) {
	case nfs4.NF4LNK: // its target may be in a chunk
		return hidden
	case nfs4.NF4BLK, nfs4.NF4CHR:
		return at + 12
	}
	return at + 4
}

// take4 is follower.take for operations of a COMPOUND that most are: it reads what File needs of them where it stands. done says
// that the results are there, and report success. It returns false for all others, which have to be decoded. Only READ and WRITE have results
// that say more than that they succeeded.
func (b *projection) take4(tx *transaction.Transaction, a *target, done bool) bool {
	p, ok := b.place(tx.Call.Payload, a)
	if !ok {
		return false
	}
	if b.walk.takeCurrent(&p); a.form == ranged {
		b.extent(tx, a, done, b.walk.file)
	}
	return true
}

// extent reads the range of COMMIT, READ or WRITE, and what the results of the latter two say of it.
func (b *projection) extent(tx *transaction.Transaction, a *target, done bool, f *File) {
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

// behind3 is where the next item is behind an opaque or a string.
func behind3(b []byte, at int) int { return at + 4 + (int(word3(b, at))+3)&^3 }
