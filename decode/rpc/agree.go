package rpc

import (
	"bytes"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// A reply repeats some of what its call says, or must stay below it: the session, the slot and the sequence number of SEQUENCE, and how much data was
// read or written. Both messages can be decoded without an error and contradict each other in that, or themselves.

// pair is what such arguments and results are of.
type pair uint8

const (
	unpaired pair = iota
	read2
	read3
	write3
	read4
	write4
	sequence4
)

// pairOf is for procedures that are no COMPOUND.
func pairOf(args xdr.Message) pair {
	switch args.(type) {
	case *nfs2.Readargs:
		return read2
	case *nfs3.READ3args:
		return read3
	case *nfs3.WRITE3args:
		return write3
	}
	return unpaired
}

// pairOf4 is for operations of a COMPOUND.
func pairOf4(number uint32, callback bool) pair {
	switch n := nfs4.NfsOpnum4(number); {
	case callback:
		if nfs4.NfsCbOpnum4(number) == nfs4.OP_CB_SEQUENCE {
			return sequence4
		}
	case n == nfs4.OP_READ:
		return read4
	case n == nfs4.OP_WRITE:
		return write4
	case n == nfs4.OP_SEQUENCE:
		return sequence4
	}
	return unpaired
}

// paired is an operation of a COMPOUND that is one of a pair.
type paired struct {
	index int
	of    pair
}

// handle2 and fattr2 are sizes in NFSv2 (RFC 1094, sections 2.3.3 and 2.3.5), start4 is that of what SEQUENCE and its results begin with: session,
// sequence number and slot (RFC 8881, section 18.46).
const (
	handle2 = 32
	fattr2  = 68
	start4  = 24
)

// agrees reports whether a reply that succeeded says nothing that its call contradicts, where both stand and have been checked for errors.
func (p pair) agrees(call []byte, args int, reply []byte, results int) bool {
	switch p {
	case read2:
		return word3(reply, results+4+fattr2) <= word3(call, args+handle2+4)
	case read3:
		asked := word3(call, behind3(call, args)+8)
		at := optional3(reply, results+4, fattr3)
		count := word3(reply, at)
		return count == word3(reply, at+8) && count <= asked
	case write3:
		at := behind3(call, args)
		asked := word3(call, at+8)
		done := optional3(reply, optional3(reply, results+4, wccAttr3), fattr3)
		return asked == word3(call, at+16) && word3(reply, done) <= asked
	case read4:
		return word3(reply, results+8) <= word3(call, args+stateid4+8)
	case write4:
		return word3(reply, results+4) <= word3(call, args+stateid4+12)
	case sequence4:
		return bytes.Equal(call[args:args+start4], reply[results+4:results+4+start4])
	}
	return true
}

// agrees reports the same of a COMPOUND, as far as its operations have succeeded.
func (b *Brief) agrees(tx *transaction.Transaction) bool {
	o := b.messages.outline
	for _, x := range b.shape.pairs {
		if x.index >= b.good {
			return true
		}
		if !x.of.agrees(tx.Call.Payload, o.args.At(x.index), tx.Reply.Payload, o.results.At(x.index)) {
			return false
		}
	}
	return true
}

// disagreement says how results contradict their arguments, or themselves; it is empty if they do not.
func disagreement(args, result xdr.Message) string {
	switch r := result.(type) {
	case *nfs2.Readres:
		if a, ok := args.(*nfs2.Readargs); ok && r.Status == nfs2.NFS_OK {
			return tooMuch("read", uint64(r.Reply.Data.Length), uint64(a.Count))
		}
	case *nfs3.READ3res:
		a, ok := args.(*nfs3.READ3args)
		switch {
		case !ok || r.Status != nfs3.NFS3_OK:
		case uint64(r.Resok.Count) != uint64(r.Resok.Data.Length):
			return fmt.Sprintf("count of %d with %d bytes of data", r.Resok.Count, r.Resok.Data.Length)
		default:
			return tooMuch("read", uint64(r.Resok.Count), uint64(a.Count))
		}
	case *nfs3.WRITE3res:
		if a, ok := args.(*nfs3.WRITE3args); ok && r.Status == nfs3.NFS3_OK {
			return tooMuch("written", uint64(r.Resok.Count), uint64(a.Count))
		}
	case *nfs4.READ4res:
		if a, ok := args.(*nfs4.READ4args); ok && r.Status == nfs4.NFS4_OK {
			return tooMuch("read", uint64(r.Resok4.Data.Length), uint64(a.Count))
		}
	case *nfs4.WRITE4res:
		if a, ok := args.(*nfs4.WRITE4args); ok && r.Status == nfs4.NFS4_OK {
			return tooMuch("written", uint64(r.Resok4.Count), uint64(a.Data.Length))
		}
	case *nfs4.SEQUENCE4res:
		if a, ok := args.(*nfs4.SEQUENCE4args); ok && r.SrStatus == nfs4.NFS4_OK {
			x := &r.SrResok4
			return otherSlot(x.SrSessionid == a.SaSessionid, x.SrSlotid, a.SaSlotid, x.SrSequenceid, a.SaSequenceid)
		}
	case *nfs4.CB_SEQUENCE4res:
		if a, ok := args.(*nfs4.CB_SEQUENCE4args); ok && r.CsrStatus == nfs4.NFS4_OK {
			x := &r.CsrResok4
			return otherSlot(x.CsrSessionid == a.CsaSessionid, x.CsrSlotid, a.CsaSlotid, x.CsrSequenceid, a.CsaSequenceid)
		}
	}
	return ""
}

func tooMuch(verb string, count, asked uint64) string {
	if count <= asked {
		return ""
	}
	return fmt.Sprintf("%d bytes %s, %d more than the call has or asks for", count, verb, count-asked)
}

// otherSlot compares what the results of SEQUENCE must repeat (RFC 8881, sections 18.46.3 and 20.9.3).
func otherSlot(session bool, slot, asked, sequence, sent uint32) string {
	switch {
	case !session:
		return "results of another session"
	case slot != asked:
		return fmt.Sprintf("results of slot %d for slot %d", slot, asked)
	case sequence != sent:
		return fmt.Sprintf("results of sequence number %d for %d", sequence, sent)
	}
	return ""
}

// ArgsContradiction says how arguments contradict themselves; it is empty if they do not.
func (v *View) ArgsContradiction() string {
	if v.usual != nil || v.CallErr != nil || v.ArgsErr != nil {
		return ""
	}
	if a, ok := v.Args().(*nfs3.WRITE3args); ok && uint64(a.Count) != uint64(a.Data.Length) {
		return fmt.Sprintf("count of %d with %d bytes of data", a.Count, a.Data.Length)
	}
	return ""
}
