// Package compound tells calls apart by what a row shows of their procedure and, of an NFSv4 COMPOUND, of its operations. Most COMPOUNDs of a
// capture consist of the same operations, with the same results, as some of the others: what is written of them can be kept.
package compound

import (
	"slices"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Kind is a program, its version, a procedure and, of a COMPOUND, its minor version and its operations with what became of each. It is valid
// until the next call of Kinds.Of.
type Kind struct {
	// Stamp identifies the kind. It is never used again, in any Kinds. A consumer that keeps what it has made of a kind can keep it
	// in an array of Most elements, at Slot, and compare stamps.
	Stamp uint64
	Slot  int
	Ended bool // all operations have a status

	sum              uint64 // of the procedure, the minor version and the operations: other minor versions have another one
	procedure        *xdr.Procedure
	program, version uint32
	ended            uint32   // the operations that have a status, the first one the lowest bit
	operations       []uint64 // number and code: the name follows from the number, that of the status from the code
}

const (
	ways = 4
	// Most is how many kinds are known at a time.
	Most = 32 * ways
	// longest is how many operations a kind has at most.
	longest = 32
)

// Kinds knows the kinds of the calls seen lately. The zero value is ready for use.
type Kinds struct {
	now    [longest]uint64 // the operations of the COMPOUND that was asked for last
	known  [Most]Kind
	turn   int
	stamp  uint64
	recent [128]recent
}

// recent is the kind of calls of a procedure, or of COMPOUNDs all operations of which have succeeded, as most have.
type recent struct {
	operations uint64 // rpc.View.CompoundKind
	stamp      uint64 // of the kind
	slot       uint8
}

var _ [1<<8 - Most]struct{} // each has a slot

// stampBlock is how many stamps a Kinds takes at a time.
const stampBlock = 1 << 20

var stampBlocks atomic.Uint64

// Of returns the kind of a transaction; nil if its procedure is not known, or if it is a COMPOUND whose operations cannot all be read, or are
// too many.
func (k *Kinds) Of(v *rpc.View) *Kind {
	if v.Procedure == nil || !v.Tx.Named {
		return nil
	}
	operations := v.CompoundKind()
	if v.Compound() && (operations == 0 || !v.Done()) {
		return k.of(v, v.Steps())
	}
	s := &k.recent[(operations+uint64(v.Tx.Procedure))%uint64(len(k.recent))]
	if x := &k.known[s.slot%Most]; s.operations == operations && s.stamp == x.Stamp && x.calls(v) {
		return x
	}
	x := k.of(v, v.Steps())
	if x != nil {
		*s = recent{operations, x.Stamp, uint8(x.Slot)}
	}
	return x
}

// calls reports whether a transaction is a call of its procedure.
func (k *Kind) calls(v *rpc.View) bool {
	return k.procedure == v.Procedure && k.program == v.Tx.Program && k.version == v.Tx.Version
}

// of is Of for a call with these operations.
func (k *Kinds) of(v *rpc.View, list []rpc.Step) *Kind {
	minor, ok := v.MinorVersion()
	if v.Compound() && (!ok || len(list) == 0 || len(list) > longest || v.MoreOperations()) {
		return nil
	}
	sum, ended := (uint64(v.Tx.Procedure)<<16^uint64(minor)<<8^uint64(len(list)))*0x9e3779b97f4a7c15, uint32(0)
	for i := range list {
		o := &list[i]
		x := uint64(o.Number) | uint64(o.Code)<<32
		k.now[i] = x
		sum = (sum ^ x) * 0x9e3779b97f4a7c15
		if o.Status != "" {
			ended |= 1 << i
		}
	}
	first := int(sum>>32) % (Most / ways) * ways
	for i := first; i < first+ways; i++ {
		x := &k.known[i]
		if x.sum == sum && x.ended == ended && x.calls(v) &&
			slices.Equal(x.operations, k.now[:len(list)]) {
			return x
		}
	}
	slot := first + k.turn%ways
	k.turn++
	if k.stamp%stampBlock == 0 {
		k.stamp = stampBlocks.Add(1) * stampBlock
	}
	k.stamp++
	x := &k.known[slot]
	*x = Kind{k.stamp, slot, ended == 1<<len(list)-1, sum, v.Procedure, v.Tx.Program, v.Tx.Version, ended, append(x.operations[:0], k.now[:len(list)]...)}
	return x
}
