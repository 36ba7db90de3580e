package rpc

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// A reply repeats some of what its call says, or must stay below it: the session, the slot and the sequence number of SEQUENCE, and how much data was
// read or written, and how it was written. Both messages can be decoded without an error and contradict each other in that, or themselves.

// pair says which procedure or operation such arguments and results belong to.
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

// pairOf returns the pair of a procedure other than COMPOUND.
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

// pairOf4 returns the pair of an operation of a COMPOUND.
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

// Sizes in bytes: handle2 of an fhandle and fattr2 of an fattr of NFSv2 (RFC 1094, sections 2.3.3 and 2.3.5), start4 of the session id, the
// sequence id and the slot id with which SEQUENCE4args and SEQUENCE4resok begin (RFC 8881, section 18.46).
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
		return asked == word3(call, at+16) && word3(reply, done) <= asked && stays(word3(reply, done+4), word3(call, at+12))
	case read4:
		return word3(reply, results+8) <= word3(call, args+stateid4+8)
	case write4:
		return word3(reply, results+4) <= word3(call, args+stateid4+12) && stays(word3(reply, results+8), word3(call, args+stateid4+8))
	case sequence4:
		return sameStart(call[args:], reply[results+4:])
	}
	return true
}

// stays reports whether results name a defined stability of written data, and no lower one than was asked for.
func stays(committed, stable uint32) bool {
	return committed >= stable && committed <= uint32(nfs3.FILE_SYNC)
}

// sameStart reports whether SEQUENCE and its results begin with the same session, sequence number and slot.
func sameStart(args, results []byte) bool {
	a, b := (*[start4]byte)(args), (*[start4]byte)(results)
	return binary.NativeEndian.Uint64(a[:]) == binary.NativeEndian.Uint64(b[:]) &&
		binary.NativeEndian.Uint64(a[8:]) == binary.NativeEndian.Uint64(b[8:]) && binary.NativeEndian.Uint64(a[16:]) == binary.NativeEndian.Uint64(b[16:])
}

// agrees reports the same of a COMPOUND, as far as its operations have succeeded.
func (b *projection) agrees(tx *transaction.Transaction) bool {
	o := b.messages.outline
	pairs := b.kind.pairs
	for i := range pairs {
		x := &pairs[i]
		if x.index >= b.good {
			return true
		}
		args, results := o.args.At(x.index), o.results.At(x.index)
		if x.of == sequence4 { // the most frequent
			if !sameStart(tx.Call.Payload[args:], tx.Reply.Payload[results+4:]) {
				return false
			}
			continue
		}
		if !x.of.agrees(tx.Call.Payload, args, tx.Reply.Payload, results) {
			return false
		}
	}
	return true
}

// ArgsContradiction says how arguments contradict themselves; it is empty if they do not.
func (v *View) ArgsContradiction() string {
	if v.clean != nil || v.CallErr != nil || v.ArgsErr != nil {
		return ""
	}
	if a, ok := v.Args().(*nfs3.WRITE3args); ok && uint64(a.Count) != uint64(a.Data.Length) {
		return fmt.Sprintf("count of %d with %d bytes of data", a.Count, a.Data.Length)
	}
	return ""
}
