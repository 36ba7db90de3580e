package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// errand is what a COMPOUND goes for, if it is usual: it begins at one file handle, and one operation at most is about something. Only that one may
// lead to another file, whose handle is asked for behind it, and once at most. So nothing has to be followed.
type errand struct {
	usual   bool
	put     int  // the PUTFH
	subject *act // the operation that is about something; nil: nothing but the file handle
	get     int  // the GETFH; -1 if there is none
}

// errandOf finds the errand of a COMPOUND that has these acts.
func errandOf(acts []act) errand {
	e := errand{get: -1}
	for i := range acts {
		a := &acts[i]
		switch {
		case i == 0:
			if a.entry.Effect != ops.Puts { // no callback has one
				return e
			}
			e.put = a.index
		case a.does&takes != 0:
			if e.subject != nil || e.get >= 0 || a.form == formless {
				return e
			}
			e.subject = a
		case a.does == gives && a.entry.Effect == ops.Keeps && e.get < 0:
			e.get = a.index
		default:
			return e
		}
	}
	e.usual = len(acts) > 0
	return e
}

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

// finds reports whether the subject of an errand leads to a file by its name.
func (a *act) finds() bool { return a.entry.Effect == ops.Descends }

// run is fileOf for a usual errand. It returns false, and has done nothing, for all others, and if more has to be decoded.
func (b *Brief) run(tx *transaction.Transaction, f *File) bool {
	e, o, call := &b.shape.errand, b.messages.outline, tx.Call.Payload
	a, name := e.subject, noName
	if !e.usual {
		return false
	}
	if a != nil {
		if name = b.nameAt(call, a); name == hidden {
			return false
		}
	}
	f.Handle, _ = opaque3(call, o.args.At(e.put))
	switch {
	case a == nil || a.form == bare:
	case a.form == ranged:
		b.extent(tx, a, b.worked(tx, a.index), f)
	case name != noName:
		f.Name, _ = opaque3(call, name)
		if a.finds() && e.get >= 0 && b.worked(tx, e.get) {
			f.Result, _ = opaque3(tx.Reply.Payload, o.results.At(e.get)+4)
		}
	}
	return true
}

// worked reports whether the results of an operation are there, and report success.
func (b *Brief) worked(tx *transaction.Transaction, i int) bool {
	r := &b.messages.outline.results
	return i < b.good || i < len(r.Numbers) && word3(tx.Reply.Payload, r.At(i)) == 0
}

// learnErrand is learnCompound for a usual errand. It returns false, and has learned nothing, if more has to be decoded.
func (b *Brief) learnErrand(tx *transaction.Transaction, n *Names) bool {
	e, o, call := &b.shape.errand, b.messages.outline, tx.Call.Payload
	a, done := e.subject, b.good
	if a == nil || a.index >= done {
		return true
	}
	removes := a.number == nfs4.OP_REMOVE
	if !removes && (!a.finds() || e.get < 0 || e.get >= done) {
		return true
	}
	at := b.nameAt(call, a)
	if at <= noName {
		return at == noName
	}
	dir, _ := opaque3(call, o.args.At(e.put))
	name, _ := opaque3(call, at)
	if removes {
		n.remove(dir, name)
		return true
	}
	child, _ := opaque3(tx.Reply.Payload, o.results.At(e.get)+4)
	n.learn(dir, child, name)
	return true
}

// What nameAt returns if it finds no name.
const (
	noName = -1
	hidden = -2 // it has to be decoded what the operation is about
)

// nameAt is where the name stands that the subject of an errand is about.
func (b *Brief) nameAt(call []byte, a *act) int {
	if b.named == 0 {
		at := b.messages.outline.args.At(a.index)
		switch a.form {
		case named:
		case opens:
			at = nameOfOpen(call, at)
		case creates:
			at = nameOfCreate(call, at)
		default:
			at = noName
		}
		b.named = at
	}
	return b.named
}

// nameOfOpen is nameAt for the arguments of an OPEN, which Skip has accepted. What Linux claims is a name or a file handle (RFC 8881, section
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

// nameOfCreate is nameAt for the arguments of a CREATE.
func nameOfCreate(call []byte, at int) int {
	switch nfs4.NfsFtype4(word3(call, at)) {
	case nfs4.NF4LNK: // its target may be in a chunk
		return hidden
	case nfs4.NF4BLK, nfs4.NF4CHR:
		return at + 12
	}
	return at + 4
}

// behind3 is where the next item is behind an opaque or a string.
func behind3(b []byte, at int) int { return at + 4 + (int(word3(b, at))+3)&^3 }
