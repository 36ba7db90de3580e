package rpc

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
)

// outline is what a projection reads of a COMPOUND.
type outline struct {
	args, results nfs4.Outline
	kinds         [kinds]*kind
}

func newOutline(callback bool) *outline {
	return &outline{args: nfs4.Outline{Callback: callback}, results: nfs4.Outline{Callback: callback, Results: true}}
}

// answered reports whether the reply lists the same operations as the call. It may list fewer, since a server stops at the first one that
// fails (RFC 8881, section 15.2).
func (o *outline) answered() bool {
	call, reply := o.args.Numbers, o.results.Numbers
	return len(reply) <= len(call) && slices.Equal(call[:len(reply)], reply)
}

// kind is what the numbers of the operations say, in a minor version.
func (o *outline) kind() *kind {
	numbers, minor := o.args.Numbers, o.args.Minor
	at := uint32(len(numbers)) + minor<<16
	for _, n := range numbers {
		at = at*31 + n
	}
	at = at * 0x9e3779b1 >> (32 - kindBits)
	s := o.kinds[at]
	if s == nil {
		s = new(kind)
		o.kinds[at] = s
	} else if s.minor == minor && slices.Equal(s.numbers, numbers) {
		return s
	}
	s.set(minor, numbers, o.args.Callback)
	return s
}

// weighNumber takes the weight of an operation from the table that all share.
func weighNumber(number uint32, callback bool) weight {
	e := entryOf(number, callback)
	if e == nil {
		return heavy
	}
	return heavy - weight(e.Weight)
}

func entryOf(number uint32, callback bool) *ops.Entry {
	if callback {
		return ops.Callback(number)
	}
	return ops.Operation(number)
}
